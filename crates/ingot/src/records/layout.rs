//! How formats lay out rows in files.

use std::sync::Arc;

use serde::Deserialize;

use super::csv::Csv;
use super::indexed::{Sink, Stream};
use super::jsonlines::JsonLines;
use super::litdata;
use super::mds;
use super::tar::Tar;
use super::tfrecord::TfRecord;
use crate::error::{Error, Result};
use crate::format::ingot::Field;

/// How a format lays out rows in a file.
pub trait Layout: Send + Sync {
    /// The name of the format.
    fn format(&self) -> &'static str;

    /// What besides the format decides the layout, as JSON.
    fn options(&self) -> String {
        "{}".to_owned()
    }

    /// What errors call a row: `record` or `line`.
    fn unit(&self) -> &'static str {
        "record"
    }

    /// Whether the fields are known without reading rows.
    fn knows_fields(&self) -> bool {
        false
    }

    /// Returns the fields of the first rows of files; none if these are records without fields.
    fn infer(&self, files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>>;

    /// Scans a file and reports its rows to the sink, which knows the wanted fields.
    fn scan(&self, stream: &mut Stream<'_>, sink: &mut Sink<'_>) -> Result<()>;
}

/// The JSON description of a layout.
#[derive(Debug, Deserialize)]
#[serde(tag = "format", rename_all = "lowercase", deny_unknown_fields)]
enum Described {
    TfRecord,
    #[serde(rename = "webdataset")]
    Tar {
        #[serde(default)]
        partial: bool,
    },
    JsonLines,
    Csv {
        #[serde(default)]
        separator: Option<char>,
    },
    Mds {
        columns: Vec<(String, String)>,
    },
    LitData {
        leaves: Vec<(String, String)>,
    },
}

/// Returns the layout that JSON describes: `format`, and its options.
pub fn layout_of(description: &str) -> Result<Arc<dyn Layout>> {
    let described: Described = serde_json::from_str(description)
        .map_err(|error| Error::Invalid(format!("not the layout of a format: {error}")))?;
    Ok(match described {
        Described::TfRecord => Arc::new(TfRecord),
        Described::Tar { partial } => Arc::new(Tar { is_partial: partial }),
        Described::JsonLines => Arc::new(JsonLines),
        Described::Csv { separator } => {
            let separator = separator.map(u8::try_from).transpose();
            let separator =
                separator.map_err(|_| Error::Invalid("a separator is one byte".to_owned()))?;
            Arc::new(Csv { separator })
        }
        Described::Mds { columns } => Arc::new(mds::layout(columns)?),
        Described::LitData { leaves } => Arc::new(litdata::layout(leaves)?),
    })
}
