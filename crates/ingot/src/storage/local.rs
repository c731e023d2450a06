//! A local file, read the fastest way its state allows.

use std::any::Any;
use std::env;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::capacity::available_memory;
use super::descriptors::{Held, Permits, Place, opening};
use super::identity::{FileId, Identity};
use super::mapping::Mapping;
use super::pread::Pread;
use super::uring::{self, Uring};
use super::warming::Warming;
use super::{Cost, Landed, Read, ReadAt};
use crate::error::copy_of;

/// The environment variable that forces one way of reading.
const VARIABLE: &str = "INGOT_IO";

/// Bytes of all files that are open here with automatic access, against the bytes
/// that may be expected to stay in memory.
static OPEN_BYTES: AtomicU64 = AtomicU64::new(0);
static MEMORY_BYTES: AtomicU64 = AtomicU64::new(u64::MAX);

/// How a file is read. All ways give the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Copies what is in memory from a mapping, reads the rest past the page cache. A
    /// file that fits into half of the memory is brought in once a part of it was read so.
    Automatic,
    /// Copies from a mapping; what is not in memory is asked for beforehand.
    Mapping,
    /// Reads by io_uring, past the page cache where the file system allows it.
    Uring,
    /// Positioned reads.
    Pread,
}

impl Access {
    /// Returns what the environment variable `INGOT_IO` says: `mmap`, `uring` or
    /// `pread`; `Automatic` if it is not set or empty.
    pub fn from_environment() -> io::Result<Access> {
        let value = env::var_os(VARIABLE).unwrap_or_default();
        match value.to_str() {
            Some("") => Ok(Access::Automatic),
            Some("mmap") => Ok(Access::Mapping),
            Some("uring") => Ok(Access::Uring),
            Some("pread") => Ok(Access::Pread),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{VARIABLE}={}: expected mmap, uring or pread", value.display()),
            )),
        }
    }
}

/// What it takes to read a file that is open.
pub(super) struct Handle {
    mapping: Option<Mapping>,
    uring: Arc<Uring>,
    pread: Pread,
}

impl Handle {
    fn of(file: File, access: Access, metadata: &Metadata) -> Handle {
        let file = Arc::new(file);
        expect_random_reads(&file);
        let is_mapped = metadata.is_file() && !matches!(access, Access::Uring | Access::Pread);
        Handle {
            mapping: if is_mapped { Mapping::new(Arc::clone(&file)).ok() } else { None },
            uring: Arc::new(Uring::new(Arc::clone(&file))),
            pread: Pread::new(file),
        }
    }
}

impl Handle {
    /// Reads what is not in memory, without a ring: through the mapping, if there is one, after
    /// requesting all of it.
    fn wait(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        let Some(mapping) = &self.mapping else { return self.pread.read_many(reads, landed) };
        let visit = mapping.visit(reads);
        mapping.bring(visit.cold().iter().map(|&k| (reads[k].offset, reads[k].buf.len())));
        let left = mapping.copy_many(&visit, reads, true, landed);
        if !left.is_empty() {
            Part::select(reads, left)
                .read(landed, |reads, landed| self.pread.read_many(reads, landed));
        }
    }
}

/// Something that ends when a file is closed for good.
pub type Guard = Arc<dyn Any + Send + Sync>;

/// A file, as long as it was when it was opened or longer.
///
/// Files that were not used recently are closed when there are many, and reopened when they
/// are read; a file that was replaced meanwhile is rejected then.
///
/// Every way of reading falls back to positioned reads, and their result is what
/// the caller sees. May be used from several threads, and in the child of a fork.
pub struct LocalFile {
    path: PathBuf,
    /// Which file it is: another one may take its place.
    id: Option<FileId>,
    /// Kept for as long as this is open.
    guard: Option<Guard>,
    access: Access,
    place: Arc<Place>,
    warming: Warming,
    size: u64,
}

impl LocalFile {
    /// Opens the file at `path` for reading as `INGOT_IO` says, else automatically.
    pub fn open(path: impl AsRef<Path>) -> io::Result<LocalFile> {
        LocalFile::open_with(path, Access::from_environment()?)
    }

    /// Opens the file at `path` for reading by `access`.
    pub fn open_with(path: impl AsRef<Path>, access: Access) -> io::Result<LocalFile> {
        let path = std::path::absolute(path)?;
        let permit = Permits::take(1);
        let file = opening(|| File::open(&path))?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let handle = Handle::of(file, access, &metadata);
        let access = match access {
            Access::Uring if metadata.is_file() => Access::Uring,
            _ if handle.mapping.is_none() => Access::Pread,
            mapped => mapped,
        };
        let place = if metadata.is_file() {
            let place = Arc::<Place>::default();
            place.put(handle, permit);
            place
        } else {
            Place::pinned(handle)
        };
        let size = metadata.len();
        if access == Access::Automatic {
            OPEN_BYTES.fetch_add(size, Ordering::Relaxed);
            measure_memory();
        }
        let id = Identity::of(&metadata).tag.file;
        let warming = Warming::default();
        Ok(LocalFile { path, id, guard: None, access, place, warming, size })
    }

    /// Keeps `guard` for as long as the file is open here, even while it has no descriptor.
    #[must_use]
    pub fn with_guard(mut self, guard: Guard) -> LocalFile {
        self.guard = Some(guard);
        self
    }

    /// Returns how the file is read.
    pub fn access(&self) -> Access {
        self.access
    }

    #[inline]
    fn handle(&self) -> io::Result<Held> {
        match self.place.get() {
            Some(held) => Ok(held),
            None => self.reopen(),
        }
    }

    #[cold]
    fn reopen(&self) -> io::Result<Held> {
        let permit = Permits::take(1);
        let file = opening(|| File::open(&self.path))?;
        let metadata = file.metadata()?;
        if Identity::of(&metadata).tag.file != self.id || metadata.len() < self.size {
            let why = "the file was replaced since it was opened; open it again";
            return Err(io::Error::new(io::ErrorKind::StaleNetworkFileHandle, why));
        }
        Ok(self.place.put(Handle::of(file, self.access, &metadata), permit))
    }

    /// Returns whether all files that are open may be expected to stay in memory.
    fn fits() -> bool {
        OPEN_BYTES.load(Ordering::Relaxed) <= MEMORY_BYTES.load(Ordering::Relaxed)
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        if self.access == Access::Automatic {
            OPEN_BYTES.fetch_sub(self.size, Ordering::Relaxed);
        }
    }
}

/// Lands reads of a file that could not be opened again.
fn land_failed(reads: &mut [Read<'_>], error: &io::Error, landed: &mut Landed<'_>) {
    for (k, read) in reads.iter_mut().enumerate() {
        landed(k, read, Err(copy_of(error)));
    }
}

impl ReadAt for LocalFile {
    fn size(&self) -> io::Result<u64> {
        self.handle()?.pread.size()
    }

    fn identity(&self) -> io::Result<Identity> {
        self.handle()?.pread.file().metadata().map(|found| Identity::of(&found))
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        let left = self.read_ready(reads, landed);
        if left.is_empty() {
            return;
        }
        let mut part = Part::select(reads, left);
        let bytes = part.reads.iter().map(|read| read.buf.len() as u64).sum();
        match self.ring(bytes) {
            Some(ring) => part.read(landed, |reads, landed| ring.read_many(reads, landed)),
            None => part.read(landed, |reads, landed| match self.handle() {
                Ok(handle) => handle.wait(reads, landed),
                Err(error) => land_failed(reads, &error, landed),
            }),
        }
    }

    fn read_ready(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) -> Vec<usize> {
        let handle = match self.handle() {
            Ok(handle) => handle,
            Err(error) => {
                land_failed(reads, &error, landed);
                return Vec::new();
            }
        };
        let Some(mapping) = &handle.mapping else { return (0..reads.len()).collect() };
        let visit = mapping.visit(reads);
        mapping.copy_many(&visit, reads, false, landed)
    }

    fn is_ready(&self, ranges: &[Range<u64>]) -> bool {
        self.handle().is_ok_and(|handle| {
            handle.mapping.as_ref().is_some_and(|mapping| mapping.is_ready(ranges))
        })
    }

    fn cost(&self) -> Cost {
        match self.handle() {
            Ok(handle) => handle.mapping.as_ref().map_or(Cost::DEVICE, |mapping| mapping.cost()),
            Err(_) => Cost::DEVICE,
        }
    }

    fn ring(&self, bytes: u64) -> Option<Arc<Uring>> {
        if !matches!(self.access, Access::Automatic | Access::Uring) || !uring::is_available() {
            return None;
        }
        let handle = self.handle().ok()?;
        if self.access == Access::Automatic {
            self.warming.missed(&self.path, &self.id, bytes, self.size, LocalFile::fits());
        }
        Some(Arc::clone(&handle.uring))
    }

    fn written(&self, range: Range<u64>) -> Vec<Range<u64>> {
        match self.handle() {
            Ok(handle) => written(&handle.pread, range),
            Err(_) => vec![range],
        }
    }

    fn prefetch(&self, range: Range<u64>) {
        if let Some(handle) = self.place.get()
            && let Some(mapping) = &handle.mapping
        {
            mapping.prefetch(range);
        }
    }
}

/// Brings `MEMORY_BYTES` up to date, at most once a second: a data set may have
/// thousands of files.
fn measure_memory() {
    static MEASURED: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    if MEASURED.swap(now, Ordering::Relaxed) != now {
        MEMORY_BYTES.store(available_memory() / 2, Ordering::Relaxed);
    }
}

/// Some reads of a batch, with their numbers in it.
struct Part<'r> {
    reads: Vec<Read<'r>>,
    numbers: Vec<usize>,
}

impl<'r> Part<'r> {
    /// Returns the reads with these numbers, which are in ascending order.
    fn select(reads: &'r mut [Read<'_>], numbers: Vec<usize>) -> Part<'r> {
        let mut wanted = numbers.iter().copied().peekable();
        let reads = reads
            .iter_mut()
            .enumerate()
            .filter(|(number, _)| wanted.next_if_eq(number).is_some())
            .map(|(_, read)| Read { buf: &mut *read.buf, ..*read })
            .collect();
        Part { reads, numbers }
    }

    fn read(
        &mut self,
        landed: &mut Landed<'_>,
        read: impl FnOnce(&mut [Read<'_>], &mut Landed<'_>),
    ) {
        let numbers = &self.numbers;
        read(&mut self.reads, &mut |k, read, outcome| landed(numbers[k], read, outcome));
    }
}

/// Parts of a file between its holes, at most: a file with more is taken as one part.
#[cfg(target_os = "linux")]
const PARTS: usize = 1 << 14;

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn written(pread: &Pread, range: Range<u64>) -> Vec<Range<u64>> {
    use std::os::fd::AsRawFd;
    let descriptor = pread.file().as_raw_fd();
    let seek = |offset: u64, whence| {
        let offset = libc::off64_t::try_from(offset).ok()?;
        // SAFETY: the descriptor is open; nothing reads from the position that this sets.
        u64::try_from(unsafe { libc::lseek64(descriptor, offset, whence) }).ok()
    };
    let mut parts = Vec::new();
    let mut at = range.start;
    while at < range.end && parts.len() < PARTS {
        let Some(start) = seek(at, libc::SEEK_DATA) else {
            // There is no more data, or the system cannot tell.
            let cannot = io::Error::last_os_error().raw_os_error() != Some(libc::ENXIO);
            return if cannot { vec![range] } else { parts };
        };
        let end = seek(start, libc::SEEK_HOLE).unwrap_or(range.end);
        if start >= range.end {
            return parts;
        }
        parts.push(start.max(at)..end.min(range.end));
        at = end.max(at + 1);
    }
    if parts.len() < PARTS { parts } else { vec![range] }
}

#[cfg(not(target_os = "linux"))]
fn written(_pread: &Pread, range: Range<u64>) -> Vec<Range<u64>> {
    vec![range]
}

/// Tells the system to read no more than it is asked for: neighbours are asked for together.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn expect_random_reads(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open. Advice may be refused, which costs speed alone.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
}

#[cfg(not(target_os = "linux"))]
fn expect_random_reads(_file: &File) {}
