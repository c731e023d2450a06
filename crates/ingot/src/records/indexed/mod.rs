//! Files of other formats, read in place: an index of our own says where each value is.
//!
//! A [`Layout`] scans a file once and reports its rows to a [`Sink`], which writes the index: an
//! Ingot file whose columns hold the numbers of the rows, and the place and checksum of every
//! other value (docs/index_file.md). [`Indexed`] makes a container of the file and its index.

mod build;
mod container;
mod copy;
mod entry;
mod find;
mod inferred;
mod open;
mod probe;
mod samples;
mod sink;
mod stream;

use std::sync::Arc;

use super::container::Container;
use super::open::Opening;
use super::source::Watch;
use crate::error::{Error, Result};
use crate::format::ingot::Field;

pub use super::derived::{Report, check_environment};
pub use super::layout::Layout;
pub use build::examine;
pub use container::Indexed;
pub use copy::Compressed;
pub use entry::Place;
pub use open::{Admit, Input, Request, open, probe_rows};
pub use probe::Seen;
pub use samples::{Column, Samples, Value};
pub use sink::Sink;
pub use stream::{Extent, Stream};

/// Rows that are inspected to infer fields: of the first file, and of each of a few others.
pub const PROBE_ROWS: (usize, usize) = (1000, 100);

/// Bytes that are inspected to infer fields, at most, of each file.
pub const PROBE_BYTES: u64 = 16 << 20;

/// Opens a file as records without fields, or as rows of the fields that it has.
pub(super) fn open_one(
    opening: &Opening<'_>,
    layout: Arc<dyn Layout>,
    fields: Option<Vec<Field>>,
    watch: &mut Watch<'_>,
) -> Result<Arc<dyn Container>> {
    let request = Request { fields, ..Request::of(layout) };
    let (location, packed) = (opening.location.clone(), opening.packed.clone());
    let inputs = [Input { location, storage: Some(Arc::clone(&opening.storage)), packed }];
    let found = open(&inputs, &request, &mut |_, _| watch())?;
    found
        .and_then(|mut found| found.pop())
        .ok_or_else(|| Error::format(opening.location.name(), "its records have no fields"))
}
