//! The layouts of formats by their names.

use std::sync::Arc;

use serde::Deserialize;

use super::csv::Csv;
use super::indexed::Layout;
use super::jsonlines::JsonLines;
use super::litdata::LitData;
use super::mds::Mds;
use super::tfrecord::TfRecord;
use super::webdataset::WebDataset;
use crate::error::{Error, Result};

/// A layout as its description, which is JSON, has it.
#[derive(Debug, Deserialize)]
#[serde(tag = "format", rename_all = "lowercase", deny_unknown_fields)]
enum Described {
    TfRecord,
    WebDataset {
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

/// Returns the layout that JSON describes: `format`, and what belongs to it.
pub fn layout_of(description: &str) -> Result<Arc<dyn Layout>> {
    let described: Described = serde_json::from_str(description)
        .map_err(|error| Error::Invalid(format!("no layout of a format: {error}")))?;
    Ok(match described {
        Described::TfRecord => Arc::new(TfRecord),
        Described::WebDataset { partial } => Arc::new(WebDataset { is_partial: partial }),
        Described::JsonLines => Arc::new(JsonLines),
        Described::Csv { separator } => {
            let separator = separator.map(u8::try_from).transpose();
            let separator =
                separator.map_err(|_| Error::Invalid("a separator is one byte".to_owned()))?;
            Arc::new(Csv { separator })
        }
        Described::Mds { columns } => Arc::new(Mds::of(columns)?),
        Described::LitData { leaves } => Arc::new(LitData::of(leaves)?),
    })
}
