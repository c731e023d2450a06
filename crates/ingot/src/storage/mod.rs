//! Where bytes live. Nothing here knows a file format.
//!
//! Reading many ranges at once is the primitive, one range is the special case:
//! an implementation of [`ReadAt`] sees the whole batch and may coalesce, queue or
//! map as suits the medium. [`read_all`] reads a batch over many storages, which then
//! wait at the same time.

mod append;
mod capacity;
mod coalesce;
mod cost;
mod crashing;
mod delayed;
mod descriptors;
mod exchange;
mod faulty;
mod identity;
mod local;
mod location;
mod mapping;
mod memory;
mod pread;
mod region;
mod residency;
mod scheduler;
mod sigbus;
#[cfg(target_os = "linux")]
mod uring;
mod warming;
/// Without io_uring, positioned reads do its work.
#[cfg(not(target_os = "linux"))]
mod uring {
    pub use super::pread::{Pread as Uring, read_files};

    pub fn is_available() -> bool {
        false
    }
}

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::crc::Sum;

pub use append::{AppendFile, has_writer};
pub(crate) use capacity::available_memory;
pub use cost::Cost;
pub use crashing::{CrashState, Crashing};
pub use delayed::Delayed;
pub(crate) use descriptors::opening;
pub use exchange::exchange;
pub use faulty::{Failure, Faulty};
pub use identity::{FileId, Identity, Tag};
pub use local::{Access, Guard, LocalFile};
pub use location::Location;
pub use mapping::Mapping;
pub use memory::Memory;
pub use pread::Pread;
pub use region::Region;
pub use scheduler::{Group, read_all};
pub use uring::Uring;

/// A range of a storage that is wanted, and the place for its bytes.
#[derive(Debug)]
pub struct Read<'a> {
    /// Where the range begins.
    pub offset: u64,
    /// Takes the bytes; its length is the length of the range.
    pub buf: &'a mut [u8],
    /// What the bytes are summed to on their way, while they are in the cache of the
    /// processor.
    pub sum: Sum,
    /// The checksum of what comes before them; they are added to it.
    pub crc: u32,
}

impl<'a> Read<'a> {
    /// Returns a read that is not summed.
    pub fn new(offset: u64, buf: &'a mut [u8]) -> Self {
        Read { offset, buf, sum: Sum::None, crc: 0 }
    }

    /// Adds the bytes, which have just arrived, to the checksum.
    fn add_up(&mut self) -> &mut Self {
        self.crc = self.sum.append(self.crc, self.buf);
        self
    }
}

/// Takes each read of a batch once, by its number, as soon as it has landed: filled and
/// summed, or failed. A range that ends past the end of the storage is `UnexpectedEof`.
pub type Landed<'l> = dyn FnMut(usize, &mut Read<'_>, io::Result<()>) + 'l;

/// Bytes that can be read at any offset, from several threads at once.
pub trait ReadAt: Send + Sync {
    /// Returns the number of bytes that are there now.
    fn size(&self) -> io::Result<u64>;

    /// Returns what distinguishes the file, as it is, from others.
    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity { size: self.size()?, tag: Tag::default() })
    }

    /// Reads a batch, and calls `landed` for each read on the calling thread, in any order.
    ///
    /// A read that fails fails alone. Interrupted and short reads are continued, not
    /// reported. The checksum is that of the read that `landed` gets.
    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>);

    /// Reads what needs no waiting. Returns the numbers of the others, in ascending order;
    /// those have not landed.
    fn read_ready(&self, reads: &mut [Read<'_>], _landed: &mut Landed<'_>) -> Vec<usize> {
        (0..reads.len()).collect()
    }

    /// Returns whether reading `ranges` would not wait, as far as the storage knows.
    fn is_ready(&self, _ranges: &[Range<u64>]) -> bool {
        false
    }

    /// Returns what a read costs now.
    fn cost(&self) -> Cost {
        Cost::DEVICE
    }

    /// Returns the file to read from, if many files can be waited for in one ring. `bytes`
    /// are about to be read from it.
    fn ring(&self, _bytes: u64) -> Option<Arc<Uring>> {
        None
    }

    /// Returns the parts of a range that may hold other bytes than zeros, in order. What is
    /// between them was never written.
    fn written(&self, range: Range<u64>) -> Vec<Range<u64>> {
        vec![range]
    }

    /// Says that a range is about to be read. Costs a few nanoseconds and does not wait:
    /// bytes in memory are on their way into the cache of the processor meanwhile.
    fn prefetch(&self, _range: Range<u64>) {}
}

/// Bytes that grow at the end. Has one owner, the writer.
pub trait Append: Send {
    /// Adds all of `bytes` at the end. After an error the storage may hold a part of them.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Returns once everything appended so far would survive a power failure.
    /// A failed call must not be repeated: the bytes may be gone.
    fn sync(&mut self) -> io::Result<()>;

    /// Fails if others have removed the storage, or changed its length.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    /// Cuts the storage back to `len` bytes.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Overwrites bytes that are there already; for repair alone.
    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// The error of a range that ends past the end of a storage.
fn past_end() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the range ends past the end of the storage")
}
