//! The lock of a folder: one process makes what is missing there, and the others wait for it.

use std::fs::{File, TryLockError};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::Result;
use crate::process::{OwnDescriptor, without_fork};

/// Name of the file that is locked.
const LOCK: &str = "lock";

/// How long whoever waits sleeps until it looks again.
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

    fn open(folder: &Path) -> Option<FolderLock> {
        let mut options = File::options();
        options.create(true).append(true);
        // Neither a link that leads elsewhere nor a pipe that nobody reads is a lock.
        #[cfg(unix)]
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        without_fork(|| {
            let file = options.open(folder.join(LOCK)).ok()?;
            Some(FolderLock { _own: OwnDescriptor::of(&file), file })
        })
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Whoever else has a descriptor of this file must not keep the lock.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn who_waits_ends_when_the_lock_is_free_or_nothing_is_missing_or_it_is_stopped() {
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
