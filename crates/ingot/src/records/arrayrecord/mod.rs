//! ArrayRecord files.

mod encoders;
mod options;
mod reader;
mod verify;
mod writer;

use std::path::Path;
use std::sync::Arc;

use super::container::Container;
use super::open::{Format, Opening};
use super::publish::{beside, name, publishing, start_over, target_of};
use super::source::Watch;
use crate::error::Result;

pub use options::{Codec as ArCodec, Options as ArOptions};
pub use reader::ArrayRecord;
pub use writer::ArWriter;

/// ArrayRecord files.
pub static FORMAT: Format = Format {
    name: "arrayrecord",
    title: "an ArrayRecord file",
    suffixes: &[".array_record", ".arrayrecord", ".arecord", ".riegeli"],
    is_checked: true,
    begins: ArrayRecord::is_prefix,
    open,
};

fn open(
    Opening { location, storage, .. }: Opening<'_>,
    _watch: &mut Watch<'_>,
) -> Result<Arc<dyn Container>> {
    Ok(Arc::new(ArrayRecord::open(storage, &location.name())?))
}

/// Starts an ArrayRecord file that appears at `path`, in place of what is there, when it is
/// closed.
pub fn write_arrayrecord(path: &Path, options: ArOptions) -> Result<ArWriter> {
    options.check()?;
    let target = target_of(path)?;
    let hidden = beside(&target, ".part");
    let file = Box::new(start_over(&hidden)?);
    ArWriter::new(file, &name(path), options, publishing(hidden, target, options.sync))
}
