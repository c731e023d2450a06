//! A local file that grows at the end, under a lock.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;

use super::Append;
use super::descriptors::opening;
use super::identity::{FileId, Identity};
use crate::error::copy_of;
use crate::process::{self, OwnDescriptor};

/// A file with one writer: others that open it for appending are rejected while
/// this lives.
///
/// The lock is advisory and belongs to the open file: readers are not affected,
/// and it ends with the process, however that ends. In the child of a fork every
/// operation fails, and the lock stays with the parent.
#[derive(Debug)]
pub struct AppendFile {
    /// Dropped before the file is closed.
    _own: OwnDescriptor,
    file: File,
    path: PathBuf,
    len: u64,
    generation: u64,
    /// Whether the length, the times and the name are known to be on the device.
    settled: bool,
    /// What the failed sync said. It is never tried again: the kernel forgets the
    /// bytes it could not write, and the next call would succeed without them.
    failed: Option<io::Error>,
}

/// How often a lock is tried that only readers seem to hold.
const TRIES: usize = 1000;

/// Whether a writer has the file at `path` open. Nothing is known of a file that cannot be opened.
pub fn has_writer(path: &Path) -> bool {
    let Ok(file) = opening(|| File::open(path)) else { return false };
    let has_writer = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    // A child that was forked meanwhile has the same lock.
    let _ = file.unlock();
    has_writer
}

/// Takes the lock of a writer. A moment's lock of [`has_writer`] is waited for.
fn lock_alone(file: &File) -> io::Result<()> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        if file.try_lock_shared().is_err() {
            break;
        }
        file.unlock()?;
        thread::yield_now();
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another writer has this file open"))
}

impl AppendFile {
    /// Creates the file at `path`.
    ///
    /// Fails with `AlreadyExists` if there is one, and with `WouldBlock` if another
    /// writer took the new file before it was locked.
    pub fn create(path: impl AsRef<Path>) -> io::Result<AppendFile> {
        let file =
            opening(|| OpenOptions::new().read(true).write(true).create_new(true).open(&path))?;
        let made = AppendFile::lock(file, path.as_ref());
        // An empty file would be in the way of the next attempt.
        if made.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            let _ = fs::remove_file(&path);
        }
        made
    }

    /// Opens the existing file at `path` for appending.
    ///
    /// Fails with `WouldBlock` if another writer has it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<AppendFile> {
        let file = opening(|| OpenOptions::new().read(true).write(true).open(&path))?;
        AppendFile::lock(file, path.as_ref())
    }

    fn lock(file: File, path: &Path) -> io::Result<AppendFile> {
        lock_alone(&file)?;
        let len = file.metadata()?.len();
        Ok(AppendFile {
            _own: OwnDescriptor::of(&file),
            file,
            path: path.to_owned(),
            len,
            generation: process::generation(),
            settled: false,
            failed: None,
        })
    }

    /// Returns where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns which file it is, whatever its name.
    pub fn id(&self) -> io::Result<Option<FileId>> {
        Ok(Identity::of(&self.file.metadata()?).tag.file)
    }

    /// Returns the number of bytes in the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn is_usable(&self) -> io::Result<()> {
        if self.generation != process::generation() {
            return Err(io::Error::other("the writer belongs to the process that forked this one"));
        }
        self.failed.as_ref().map_or(Ok(()), |error| Err(copy_of(error)))
    }

    fn settle(&self) -> io::Result<()> {
        if self.settled {
            return self.file.sync_data();
        }
        self.file.sync_all()?;
        sync_parent(&self.path)
    }
}

/// Writes end at multiples of this many bytes: larger ones can be several times slower, where
/// the system looks for large pages to put them into.
const RUN: usize = 64 << 10;

impl Append for AppendFile {
    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        // Past the end of a truncated file there would be a hole.
        self.check()?;
        while !bytes.is_empty() {
            let room = RUN - (self.len % RUN as u64) as usize;
            let count = write_some(&self.file, &bytes[..bytes.len().min(room)], self.len)?;
            bytes = &bytes[count..];
            self.len += count as u64;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.is_usable()?;
        let outcome = self.settle();
        match &outcome {
            Ok(()) => self.settled = true,
            Err(error) => self.failed = Some(copy_of(error)),
        }
        outcome
    }

    fn check(&self) -> io::Result<()> {
        self.is_usable()?;
        let found = self.file.metadata()?;
        if is_removed(&found) {
            return Err(io::Error::other("the file was removed, or replaced by another"));
        }
        if found.len() != self.len {
            return Err(io::Error::other(format!(
                "another process changed the file: it has {} bytes, not the {} that were written",
                found.len(),
                self.len
            )));
        }
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.is_usable()?;
        if len > self.len {
            return Err(super::past_end());
        }
        self.file.set_len(len)?;
        self.len = len;
        Ok(())
    }

    fn rewrite(&mut self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        self.is_usable()?;
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.len) {
            return Err(super::past_end());
        }
        while !bytes.is_empty() {
            let count = write_some(&self.file, bytes, offset)?;
            bytes = &bytes[count..];
            offset += count as u64;
        }
        Ok(())
    }
}

impl Drop for AppendFile {
    fn drop(&mut self) {
        // A child may hold a duplicate of the descriptor, which would keep the lock.
        if self.generation == process::generation() {
            let _ = self.file.unlock();
        }
    }
}

/// Writes at least one of `bytes`, and returns how many.
fn write_some(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Whether an open file was unlinked.
fn is_removed(found: &Metadata) -> bool {
    found.nlink() == 0
}

/// Makes the name of the file at `path` survive a power failure.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
