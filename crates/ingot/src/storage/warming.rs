//! Bringing a whole file into memory, once that pays.
//!
//! Reads past the page cache are the fastest that a device can give, but leave nothing
//! behind. Who has read a good part of a file at random will likely read the rest, and
//! one long sequential read brings that in far sooner than random ones do.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::pread::Pread;
use crate::errand::Errand;

/// The part of a file that is read past the page cache before all of it is brought in.
const PART: u64 = 4;

/// Bytes that are read at a time.
const STEP: usize = 1 << 20;

/// Counts what of a file was read past the page cache, and brings it in when the time has come.
pub(super) struct Warming {
    file: Arc<File>,
    missed: AtomicU64,
    begun: AtomicBool,
    stop: Arc<AtomicBool>,
}

impl Warming {
    pub fn new(file: Arc<File>) -> Warming {
        Warming {
            file,
            missed: AtomicU64::default(),
            begun: AtomicBool::default(),
            stop: Arc::default(),
        }
    }

    /// Takes note of bytes that were read past the page cache. `fits` says whether the
    /// file may be expected to stay in memory.
    pub fn missed(&self, bytes: u64, fits: bool) {
        let missed = self.missed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if !fits || self.begun.load(Ordering::Relaxed) {
            return;
        }
        let Ok(size) = self.file.metadata().map(|now| now.len()) else { return };
        if missed < size / PART || self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let (file, stop) = (Arc::clone(&self.file), Arc::clone(&self.stop));
        // Without a thread to spare the file stays where it is, which costs speed alone.
        let _ = Errand::send(move || bring(&file, size, &stop));
    }
}

impl Drop for Warming {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Reads the file from front to end. What fails here is left to those who need the bytes.
fn bring(file: &Arc<File>, size: u64, stop: &AtomicBool) {
    let Ok(file) = own(file) else { return };
    let pread = Pread::new(Arc::new(file));
    let mut bytes = vec![0; STEP];
    for offset in (0..size).step_by(STEP) {
        let len = (size - offset).min(STEP as u64) as usize;
        if stop.load(Ordering::Relaxed) || pread.fill(offset, &mut bytes[..len]).is_err() {
            return;
        }
    }
}

/// Opens the file anew, so that the system sees one reader that goes straight through it.
#[cfg(target_os = "linux")]
fn own(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    // The path may lead to another file by now, the descriptor does not.
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(not(target_os = "linux"))]
fn own(file: &File) -> io::Result<File> {
    file.try_clone()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::storage::Mapping;

    const SIZE: usize = 8 << 20;

    /// Returns a file that is not in memory; `None` where files live in memory.
    fn cold_file() -> Option<(tempfile::NamedTempFile, Arc<File>)> {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; SIZE]).unwrap();
        file.as_file().sync_all().unwrap();
        #[allow(unsafe_code)]
        // SAFETY: the descriptor is open.
        unsafe {
            libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED)
        };
        let opened = Arc::new(File::open(file.path()).unwrap());
        (!is_resident(&opened)).then_some((file, opened))
    }

    fn is_resident(file: &Arc<File>) -> bool {
        Mapping::new(Arc::clone(file)).unwrap().is_resident(SIZE as u64 / 2, SIZE / 2)
    }

    fn comes_in(file: &Arc<File>, within: Duration) -> bool {
        let began = Instant::now();
        while began.elapsed() < within {
            if is_resident(file) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    #[test]
    fn a_file_comes_in_once_a_quarter_was_missed() {
        let Some((_path, file)) = cold_file() else { return };
        let warming = Warming::new(Arc::clone(&file));
        warming.missed(SIZE as u64 / PART - 1, true);
        assert!(!comes_in(&file, Duration::from_millis(100)));
        warming.missed(1, true);
        assert!(comes_in(&file, Duration::from_secs(60)));
    }

    #[test]
    fn a_file_that_does_not_fit_stays_out() {
        let Some((_path, file)) = cold_file() else { return };
        Warming::new(Arc::clone(&file)).missed(SIZE as u64, false);
        assert!(!comes_in(&file, Duration::from_millis(100)));
    }
}
