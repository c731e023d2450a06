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
mod lock;
pub(super) mod note;
mod offsets;
mod open;
mod parallel;
mod part;
mod place;
mod probe;
mod samples;
mod sink;
mod stale;
mod stamp;
mod stream;

use std::sync::Arc;

use super::container::Container;
use super::open::Opening;
use super::source::Watch;
use crate::error::{Error, Result};
use crate::format::foreign::kind::Kind;
use crate::format::ingot::Field;

pub use build::examine;
pub use container::Indexed;
pub use entry::Place;
pub(super) use lock::FolderLock;
pub use offsets::Offsets;
pub(super) use open::each;
pub use open::{Admit, Input, Report, Request, open, probe_rows};
pub(super) use parallel::in_parallel;
pub(super) use part::{sweep, temporary};
pub use place::check_environment;
pub(super) use place::{Places, cache, chosen, home, name_of};
pub use probe::Seen;
pub use samples::scan_samples;
pub use sink::Sink;
pub(super) use stamp::{Change, Stamp};
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

/// Opens a file as records without fields, or as rows of the fields that it has.
pub(super) fn open_one(
    opening: &Opening<'_>,
    layout: Arc<dyn Layout>,
    fields: Option<Vec<Field>>,
    watch: &mut Watch<'_>,
) -> Result<Arc<dyn Container>> {
    let request = Request { fields, ..Request::of(layout) };
    let inputs = [Input { location: opening.location.clone(), packed: opening.packed.clone() }];
    let found = open(&inputs, &request, &mut |_, _| watch())?;
    found.and_then(|mut found| found.pop()).ok_or_else(|| {
        let reason = "its records have no fields".to_owned();
        Error::Format { path: opening.location.name(), reason }
    })
}
