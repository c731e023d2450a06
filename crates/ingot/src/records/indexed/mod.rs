//! Files of other formats, read in place: an index of our own says where each value is.
//!
//! A [`Layout`] goes through a file once and tells a [`Sink`] what it finds. What comes of it,
//! the index, is an Ingot file: its columns hold the numbers of the rows, and where every
//! other value is, with a checksum (docs/index_file.md). [`Indexed`] makes a container of the
//! file and its index, and everything above knows no difference.

mod build;
mod container;
mod entry;
mod find;
mod inferred;
mod offsets;
mod open;
mod part;
mod place;
mod probe;
mod samples;
mod sink;
mod stamp;
mod stream;

use std::sync::Arc;

use super::container::Container;
use super::open::Opening;
use crate::error::Result;
use crate::format::foreign::kind::Kind;
use crate::format::ingot::Field;

pub use build::examine;
pub use container::Indexed;
pub use entry::Place;
pub use offsets::Offsets;
pub use open::{Report, Request, infer, open, probe_rows};
pub(super) use part::{sweep, temporary};
pub use place::{cache, chosen};
pub use probe::Seen;
pub use samples::scan_samples;
pub use sink::Sink;
pub(super) use stamp::Stamp;
pub use stream::{Extent, Stream};

/// How a format lays out rows in a file.
pub trait Layout: Send + Sync {
    /// The name of the format.
    fn format(&self) -> &'static str;

    /// What besides the name decides where things are, as JSON.
    fn options(&self) -> String {
        "{}".to_owned()
    }

    /// What errors count: `record` or `line`.
    fn unit(&self) -> &'static str {
        "record"
    }

    /// Whether fields are known without a look at rows.
    fn knows_fields(&self) -> bool {
        false
    }

    /// Returns the fields that the first rows of files have; none if these are records
    /// without fields.
    fn infer(&self, files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>>;

    /// Goes through a file and tells what it finds. There is a kind for each field, and none
    /// for the flags of optional ones, which the sink fills.
    fn scan(
        &self,
        kinds: &[Option<Kind>],
        stream: &mut Stream<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<()>;
}

/// Rows that are looked at to infer fields: of the first file, and of each of a few others.
pub const PROBE_ROWS: (usize, usize) = (1000, 100);

/// Bytes that are looked at to infer fields, at most, of each file.
pub const PROBE_BYTES: u64 = 16 << 20;

/// Opens a file as records without fields.
pub fn open_records(
    opening: &Opening<'_>,
    layout: Arc<dyn Layout>,
    watch: &mut dyn FnMut() -> Result<()>,
) -> Result<Arc<dyn Container>> {
    let request = Request { layout, fields: Some(Vec::new()), folder: None };
    let locations = [opening.location.clone()];
    let mut found = open(&locations, &request, &mut |_, _| watch())?;
    Ok(found.pop().expect("one container for each file"))
}
