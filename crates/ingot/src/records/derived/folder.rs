//! A folder of derived files: its lock, under which one process makes what is missing while the
//! others wait for it, and what is removed from it.

use std::collections::HashMap;
use std::fs::{self, DirEntry, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::Derived;
use super::place::{COPY, COPY_NOTE, is_temporary, parts_of};
use super::usage::in_use;
use crate::error::Result;
use crate::process::{OwnDescriptor, generation};
use crate::storage::{Location, opening};

/// A hidden file that was not written to for so long has lost its writer.
const AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Name of the file that is locked.
const LOCK: &str = "lock";

/// Pause between two looks at a lock that is taken.
const PAUSE: Duration = Duration::from_millis(20);

/// Folders that are locked at a time. Where there are more, what is missing in the others may be
/// made twice, side by side.
const FOLDERS: usize = 16;

/// The lock of a folder. It ends when this is dropped, or with the process, and children of the
/// process do not have it.
#[derive(Debug)]
pub struct FolderLock {
    /// Dropped before the file is closed.
    _own: OwnDescriptor,
    file: File,
    generation: u64,
}

impl FolderLock {
    /// Waits for the locks of folders. `is_done` is called before and while this waits; there
    /// are no locks if it finds that another process has made all that is missing, and its
    /// error ends the wait.
    ///
    /// Where files cannot be locked, processes make the same things side by side, and each is
    /// whole when it gets its name.
    pub fn wait(
        mut folders: Vec<PathBuf>,
        is_done: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<Option<Vec<FolderLock>>> {
        // One folder has one lock, however it is spelled: a process would wait for itself.
        for folder in &mut folders {
            if let Ok(whole) = fs::canonicalize(&*folder) {
                *folder = whole;
            }
        }
        // In one order, so that no two processes wait for each other.
        folders.sort();
        folders.dedup();
        folders.truncate(FOLDERS);
        let mut locks = Vec::with_capacity(folders.len());
        for folder in folders {
            let Some(lock) = FolderLock::open(&folder) else { continue };
            loop {
                match lock.file.try_lock() {
                    Ok(()) => break locks.push(lock),
                    Err(TryLockError::Error(_)) => break,
                    Err(TryLockError::WouldBlock) if is_done()? => return Ok(None),
                    Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                }
            }
        }
        Ok(Some(locks))
    }

    /// Tries to get the lock of a folder for a moment's work, this many times; none on failure.
    /// Needs no file.
    pub fn brief(folder: &Path, tries: usize) -> Option<FolderLock> {
        let lock = FolderLock::take(File::options().read(true), folder)?;
        let mut tries = 1..tries;
        while let Err(error) = lock.file.try_lock() {
            match error {
                TryLockError::WouldBlock if tries.next().is_some() => thread::sleep(PAUSE),
                _ => return None,
            }
        }
        Some(lock)
    }

    fn open(folder: &Path) -> Option<FolderLock> {
        let mut options = File::options();
        options.create(true).append(true);
        // Neither a link that leads elsewhere nor a pipe without a reader is a lock.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        FolderLock::take(&options, &folder.join(LOCK))
    }

    fn take(options: &OpenOptions, path: &Path) -> Option<FolderLock> {
        let taken = opening(|| {
            let file = options.open(path)?;
            Ok(FolderLock { _own: OwnDescriptor::of(&file), file, generation: generation() })
        });
        taken.ok()
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // A copy of this descriptor must not keep the lock, but in the child of a fork the lock is
        // the parent's.
        if self.generation == generation() {
            let _ = self.file.unlock();
        }
    }
}

/// Removes from a folder what killed writers have left, and what belongs to originals that are
/// gone or to what they were before. The originals of `items` are beside each other; what cannot be
/// removed stays.
pub fn tidy<D: Derived>(folder: &Path, items: &[&D]) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut by_name: HashMap<&str, &D> = HashMap::new();
    let mut parent = None;
    for item in items {
        if let Location::Path(path) = &item.original().location {
            parent = path.parent();
            by_name
                .extend(path.file_name().and_then(|name| name.to_str()).map(|name| (name, *item)));
        }
    }
    let mut used = None;
    for entry in entries.flatten() {
        let place = entry.path();
        let is_stale = match (parts_of(&place), parent) {
            (Some((name, extension)), Some(parent)) => match by_name.get(name) {
                Some(item) => !item.places().read.contains(&place) && item.is_stale(&place),
                None if [COPY, COPY_NOTE].contains(&extension) => {
                    let used = used.get_or_insert_with(in_use);
                    is_gone(&parent.join(name)) && !used.contains(&place.with_extension(COPY))
                }
                None => is_gone(&parent.join(name)),
            },
            _ => is_abandoned(&entry),
        };
        if is_stale {
            let _ = fs::remove_file(&place);
            let _ = fs::remove_file(place.with_extension("sum"));
        }
    }
}

fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn is_abandoned(entry: &DirEntry) -> bool {
    let changed = || entry.metadata().and_then(|about| about.modified());
    is_temporary(&entry.file_name().to_string_lossy())
        && changed().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > AGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_wait_ends_when_the_lock_is_free_or_nothing_is_missing_or_it_is_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let wait = |is_done: &mut dyn FnMut() -> Result<bool>| {
            FolderLock::wait(vec![folder.path().to_path_buf()], is_done)
        };
        let held = wait(&mut || Ok(false)).unwrap().unwrap();
        assert!(wait(&mut || Ok(true)).unwrap().is_none());
        assert!(matches!(wait(&mut || Err(Error::Stopped)), Err(Error::Stopped)));
        let mut held = Some(held);
        let freed = wait(&mut || {
            held = None;
            Ok(false)
        });
        assert_eq!(freed.unwrap().unwrap().len(), 1);
    }
}
