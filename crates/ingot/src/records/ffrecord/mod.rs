//! FFRecord files: read as a container, and written byte for byte as FFRecord does.

mod reader;
mod writer;

use std::path::Path;
use std::sync::Arc;

use super::container::Container;
use super::draft::Spool;
use super::open::{Format, Opening};
use super::publish::{beside, name, publishing, reading, remove, start_over, target_of};
use super::source::Watch;
use crate::error::Result;

pub use reader::FfRecord;
pub use writer::{FfWriter, Room};

/// FFRecord files, which have no signature.
pub static FORMAT: Format = Format {
    name: "ffrecord",
    title: "an FFRecord file",
    suffixes: &[".ffr"],
    is_checked: true,
    begins: |_| false,
    open,
};

fn open(
    Opening { location, storage, check, .. }: Opening<'_>,
    _watch: &mut Watch<'_>,
) -> Result<Arc<dyn Container>> {
    Ok(Arc::new(FfRecord::open(storage, &location.name(), check)?))
}

/// Starts an FFRecord file that appears at `path`, in place of what is there, when it is
/// closed. With `records` it must get exactly this many; without, they are spooled beside it.
pub fn write_ffrecord(path: &Path, records: Option<u64>, sync: bool) -> Result<FfWriter> {
    let target = target_of(path)?;
    FfWriter::check_count(&name(path), records.unwrap_or(0))?;
    let (hidden, spool) = (beside(&target, ".part"), beside(&target, ".spool"));
    let file = Box::new(start_over(&hidden)?);
    let publish = publishing(hidden, target, sync);
    let Some(records) = records else {
        let append = Box::new(start_over(&spool)?);
        let room = Room::Spooled(Spool { append, read: reading(&spool)? });
        let finish = Box::new(move |whole| remove(&spool).and_then(|()| publish(whole)));
        return FfWriter::new(file, room, &name(path), sync, finish);
    };
    FfWriter::new(file, Room::Announced(records), &name(path), sync, publish)
}
