//! A file of this machine, read the fastest way its state allows.

use std::env;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::capacity::available_memory;
use super::mapping::Mapping;
use super::pread::Pread;
use super::uring::{self, Uring};
use super::warming::Warming;
use super::{Read, ReadAt, ReadError};

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

/// An open file, as long as it is now or longer.
///
/// Every way of reading falls back to positioned reads, and their result is what
/// the caller sees. May be used from several threads, and in the child of a fork.
pub struct LocalFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    access: Access,
    mapping: Option<Mapping>,
    uring: Uring,
    pread: Pread,
    warming: Warming,
    /// What this file adds to `OPEN_BYTES`.
    counted_bytes: u64,
}

impl LocalFile {
    /// Opens the file at `path` for reading as `INGOT_IO` says, else automatically.
    pub fn open(path: impl AsRef<Path>) -> io::Result<LocalFile> {
        LocalFile::open_with(path, Access::from_environment()?)
    }

    /// Opens the file at `path` for reading by `access`.
    pub fn open_with(path: impl AsRef<Path>, access: Access) -> io::Result<LocalFile> {
        let path = path.as_ref();
        LocalFile::with_access(File::open(path)?, path, access)
    }

    /// Takes over a file that is open for reading; `path` is what messages call it.
    pub fn from_file(file: File, path: impl AsRef<Path>) -> io::Result<LocalFile> {
        LocalFile::with_access(file, path.as_ref(), Access::from_environment()?)
    }

    fn with_access(file: File, path: &Path, access: Access) -> io::Result<LocalFile> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let file = Arc::new(file);
        expect_random_reads(&file);
        let mapped = metadata.is_file() && !matches!(access, Access::Uring | Access::Pread);
        let mapping = if mapped { Mapping::new(Arc::clone(&file)).ok() } else { None };
        let access = match access {
            Access::Uring if metadata.is_file() => Access::Uring,
            _ if mapping.is_none() => Access::Pread,
            mapped => mapped,
        };
        let counted_bytes = if access == Access::Automatic { metadata.len() } else { 0 };
        if counted_bytes > 0 {
            OPEN_BYTES.fetch_add(counted_bytes, Ordering::Relaxed);
            measure_memory();
        }
        Ok(LocalFile {
            path: path.to_owned(),
            identity: identity(&metadata),
            access,
            mapping,
            uring: Uring::new(Arc::clone(&file)),
            pread: Pread::new(Arc::clone(&file)),
            warming: Warming::new(file),
            counted_bytes,
        })
    }

    /// Returns the path the file was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the numbers of the device and the inode, where there are such.
    pub fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    /// Returns how the file is read.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Reads a batch of which some ranges are not in memory.
    fn read_mixed(
        &self,
        mapping: &Mapping,
        reads: &mut [Read<'_>],
        landed: &mut dyn FnMut(usize, &mut Read<'_>),
    ) -> Result<(), ReadError> {
        let visit = mapping.visit(reads);
        if visit.cold().len() == 0 || !uring::is_available() {
            mapping.bring(visit.cold().map(|k| (reads[k].offset, reads[k].buf.len())));
            return or_else(reads, landed, &self.pread, |reads, landed| {
                mapping.copy_many(&visit, reads, landed)
            });
        }
        let mut is_cold = vec![false; reads.len()];
        visit.cold().for_each(|k| is_cold[k] = true);
        let mut resident = Part::select(reads, |k| !is_cold[k]);
        resident.read(landed, |reads, landed| {
            or_else(reads, landed, &self.pread, |reads, landed| {
                mapping.copy_many(&visit, reads, landed)
            })
        })?;
        let mut cold = Part::select(reads, |k| is_cold[k]);
        if cold.reads.len() == 1 {
            return cold.read(landed, |reads, landed| self.pread.read_many(reads, landed));
        }
        let bytes: usize = cold.reads.iter().map(|read| read.buf.len()).sum();
        let fits = OPEN_BYTES.load(Ordering::Relaxed) <= MEMORY_BYTES.load(Ordering::Relaxed);
        cold.read(landed, |reads, landed| self.uring.read_many(reads, landed))?;
        self.warming.missed(bytes as u64, fits);
        Ok(())
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        OPEN_BYTES.fetch_sub(self.counted_bytes, Ordering::Relaxed);
    }
}

impl ReadAt for LocalFile {
    fn size(&self) -> io::Result<u64> {
        self.pread.size()
    }

    fn read_many(
        &self,
        reads: &mut [Read<'_>],
        landed: &mut dyn FnMut(usize, &mut Read<'_>),
    ) -> Result<(), ReadError> {
        match (self.access, &self.mapping) {
            (Access::Automatic, Some(mapping)) => self.read_mixed(mapping, reads, landed),
            (Access::Uring, _) => self.uring.read_many(reads, landed),
            (_, Some(mapping)) => or_else(reads, landed, &self.pread, |reads, landed| {
                mapping.read_many(reads, landed)
            }),
            (_, None) => self.pread.read_many(reads, landed),
        }
    }

    fn is_warm(&self) -> bool {
        self.mapping.as_ref().is_some_and(ReadAt::is_warm)
    }

    fn written(&self, range: Range<u64>) -> Vec<Range<u64>> {
        written(&self.pread, range)
    }

    fn prefetch(&self, range: Range<u64>) {
        if let Some(mapping) = &self.mapping {
            mapping.prefetch(range);
        }
    }

    fn announce(&self, ranges: &[Range<u64>]) -> bool {
        match (self.access, &self.mapping) {
            (Access::Automatic, Some(mapping)) if !mapping.is_warm() && uring::is_available() => {
                mapping.is_all_resident(ranges)
            }
            (_, Some(mapping)) => mapping.announce(ranges),
            (_, None) => false,
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

type Landed<'l> = dyn FnMut(usize, &mut Read<'_>) + 'l;

/// Reads from a mapping, and from where it fails on by positioned reads, whose
/// errors are exact: a mapping knows neither the cause nor that the file grew.
fn or_else(
    reads: &mut [Read<'_>],
    landed: &mut Landed<'_>,
    pread: &Pread,
    copy: impl FnOnce(&mut [Read<'_>], &mut Landed<'_>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let Err(ReadError { index: first, .. }) = copy(reads, landed) else {
        return Ok(());
    };
    pread
        .read_many(&mut reads[first..], &mut |index, read| landed(first + index, read))
        .map_err(|error| ReadError { index: first + error.index, ..error })
}

/// Some reads of a batch, with their places in it.
struct Part<'r> {
    reads: Vec<Read<'r>>,
    places: Vec<usize>,
}

impl<'r> Part<'r> {
    fn select(reads: &'r mut [Read<'_>], wanted: impl Fn(usize) -> bool) -> Part<'r> {
        let (places, reads) = reads
            .iter_mut()
            .enumerate()
            .filter(|(place, _)| wanted(*place))
            .map(|(place, read)| (place, Read { buf: &mut *read.buf, ..*read }))
            .unzip();
        Part { reads, places }
    }

    fn read(
        &mut self,
        landed: &mut Landed<'_>,
        read: impl FnOnce(&mut [Read<'_>], &mut Landed<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let places = &self.places;
        read(&mut self.reads, &mut |index, read| landed(places[index], read))
            .map_err(|error| ReadError { index: places[error.index], ..error })
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
        // SAFETY: the descriptor is open; nobody reads from the position that this sets.
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

/// Returns what tells the file at `path` from others, if the system has that; a link is not
/// followed.
pub fn identity_at(path: &Path) -> io::Result<Option<(u64, u64)>> {
    std::fs::symlink_metadata(path).map(|found| identity(&found))
}

#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(super) fn identity(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}
