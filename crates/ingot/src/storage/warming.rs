//! Bringing a whole file into memory, once that pays.
//!
//! Reads past the page cache are the fastest that a device can give, but leave nothing
//! behind. Who has read a good part of a file at random will likely read the rest, and
//! one long sequential read brings that in far sooner than random ones do.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, Once};
use std::thread;

use super::descriptors::opening;
use super::identity::{FileId, Identity};
use super::pread::Pread;
use crate::limit::has_room_for_thread;
use crate::process::PerProcess;

/// The part of a file that is read past the page cache before all of it is brought in: those
/// who read so much of it at random are likely to want the rest.
const PART: u64 = 32;

/// Bytes that are brought in at a time.
const STEP: usize = 1 << 20;

/// Bytes that the device is asked for ahead of those that are waited for.
const AHEAD: usize = 8 << 20;

/// Counts what of a file was read past the page cache, and brings it in when the time has come.
#[derive(Default)]
pub(super) struct Warming {
    missed: AtomicU64,
    begun: AtomicBool,
    stop: Arc<AtomicBool>,
}

impl Warming {
    /// Takes note of bytes that are read past the page cache from a file of `size` bytes.
    /// `fits` says whether the file may be expected to stay in memory. The file is opened by
    /// its path when its turn comes, which may be late.
    pub fn missed(&self, path: &Path, id: &Option<FileId>, bytes: u64, size: u64, fits: bool) {
        if self.is_due(bytes, size, fits) {
            let (path, id) = (path.to_owned(), id.clone());
            let stop = Arc::clone(&self.stop);
            Warmer::of_process().take(Cold { path, id, size, stop });
        }
    }

    /// Adds to what was missed; returns once whether that is enough.
    fn is_due(&self, bytes: u64, size: u64, fits: bool) -> bool {
        let missed = self.missed.fetch_add(bytes, Ordering::Relaxed) + bytes;
        fits && missed >= size / PART && !self.begun.swap(true, Ordering::Relaxed)
    }
}

impl Drop for Warming {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A file to be brought in, unless it is closed before. Many may wait, so it is not open.
struct Cold {
    path: PathBuf,
    id: Option<FileId>,
    size: u64,
    stop: Arc<AtomicBool>,
}

impl Cold {
    /// Opens the file, unless another one has its name: the system then sees one reader that
    /// goes straight through it.
    fn open(&self) -> io::Result<File> {
        let file = opening(|| File::open(&self.path))?;
        match Identity::of(&file.metadata()?).tag.file == self.id {
            true => Ok(file),
            false => Err(io::ErrorKind::StaleNetworkFileHandle.into()),
        }
    }
}

/// The one thread of the process that brings files in, one after the other: a device gives
/// its sequential rate to one reader, and waiting readers keep theirs.
struct Warmer {
    queue: Mutex<VecDeque<Cold>>,
    arrived: Condvar,
    started: Once,
}

impl Warmer {
    fn of_process() -> Arc<Warmer> {
        static WARMER: PerProcess<Warmer> = PerProcess::new();
        WARMER.get(|| Warmer {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            started: Once::new(),
        })
    }

    /// Without a thread to spare files stay where they are, which costs speed alone.
    fn take(self: Arc<Self>, cold: Cold) {
        self.queue.lock().expect("no panics under this lock").push_back(cold);
        self.arrived.notify_one();
        if !self.started.is_completed() && !has_room_for_thread() {
            return;
        }
        self.started.call_once(|| {
            let warmer = Arc::clone(&self);
            let thread = thread::Builder::new().name("ingot-warming".to_owned());
            let _ = thread.stack_size(128 << 10).spawn(move || warmer.run());
        });
    }

    fn run(&self) {
        loop {
            let mut queue = self.queue.lock().expect("no panics under this lock");
            let cold = loop {
                match queue.pop_front() {
                    Some(cold) => break cold,
                    None => queue = self.arrived.wait(queue).expect("no panics under this lock"),
                }
            };
            drop(queue);
            // A failure here is left to the reads that need the bytes.
            let _ = bring(&cold);
        }
    }
}

/// Brings a file in from front to end.
fn bring(cold: &Cold) -> io::Result<()> {
    let is_stopped = || cold.stop.load(Ordering::Relaxed);
    if is_stopped() {
        return Ok(());
    }
    let (file, size) = (cold.open()?, cold.size);
    if announce(&file, size, &is_stopped).is_ok() {
        return Ok(());
    }
    let pread = Pread::new(Arc::new(file));
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(STEP).map_err(io::Error::other)?;
    bytes.resize(STEP, 0);
    for offset in (0..size).step_by(STEP) {
        let len = (size - offset).min(STEP as u64) as usize;
        if is_stopped() {
            return Ok(());
        }
        pread.fill(offset, &mut bytes[..len])?;
    }
    Ok(())
}

/// Has the system bring the file in, which copies nothing.
///
/// Each part is asked for ahead of its turn, because the system keeps such parts in small
/// pages. When it reads ahead on its own account it takes huge ones, which a virtual machine
/// may have given back to its host: the first touch of each page then costs microseconds.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn announce(file: &File, size: u64, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    let size = usize::try_from(size).map_err(io::Error::other)?;
    let bytes = memmap2::MmapOptions::new().len(size).map_raw_read_only(file)?;
    let mut asked = 0;
    for start in (0..size).step_by(STEP) {
        if is_stopped() {
            return Ok(());
        }
        while asked < size.min(start + AHEAD) {
            let len = STEP.min(size - asked);
            // SAFETY: the descriptor is open. What is refused here is read below.
            unsafe { libc::readahead(file.as_raw_fd(), asked as libc::off64_t, len) };
            asked += len;
        }
        let len = STEP.min(size - start);
        file.read_exact_at(&mut [0], (start + len - 1) as u64)?;
        // SAFETY: the range is inside the mapping, which only this function knows.
        unsafe { complete(bytes.as_mut_ptr().add(start).cast(), len) }?;
    }
    Ok(())
}

/// Reads what is missing of a step: the system need not take all that it was asked for.
///
/// # Safety
/// The range is inside a mapping, and begins at a page.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
unsafe fn complete(address: *mut libc::c_void, len: usize) -> io::Result<()> {
    const PAGE_BYTES_MIN: usize = 4096;
    let mut flags = [1_u8; STEP / PAGE_BYTES_MIN];
    // SAFETY: the caller's, and there is a flag for each page. A page that cannot be read is
    // an error of the call.
    let status = unsafe {
        libc::mincore(address, len, flags.as_mut_ptr().cast());
        match flags.iter().all(|flag| flag & 1 == 1) {
            true => 0,
            false => libc::madvise(address, len, libc::MADV_POPULATE_READ),
        }
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn announce(_file: &File, _size: u64, _is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::storage::Mapping;

    const SIZE: usize = 8 << 20;

    /// Returns a file that is not in memory, unless the file system has no other place.
    fn cold_file() -> (tempfile::NamedTempFile, Cold) {
        use std::os::fd::AsRawFd;
        let program = std::env::current_exe().unwrap();
        let mut file = tempfile::NamedTempFile::new_in(program.parent().unwrap()).unwrap();
        file.write_all(&vec![7; SIZE]).unwrap();
        file.as_file().sync_all().unwrap();
        #[allow(unsafe_code)]
        // SAFETY: the descriptor is open.
        unsafe {
            libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED)
        };
        let id = Identity::of(&file.as_file().metadata().unwrap()).tag.file;
        let (path, size, stop) = (file.path().to_owned(), SIZE as u64, Arc::default());
        (file, Cold { path, id, size, stop })
    }

    fn is_resident(cold: &Cold) -> bool {
        let file = Arc::new(File::open(&cold.path).unwrap());
        Mapping::new(file).unwrap().is_resident(SIZE as u64 / 2, SIZE / 2)
    }

    #[test]
    fn a_file_is_due_once_after_a_part_was_missed() {
        let (warming, size) = (Warming::default(), SIZE as u64);
        assert!(!warming.is_due(size / PART - 1, size, true));
        assert!(warming.is_due(1, size, true));
        assert!(!warming.is_due(size, size, true));
    }

    #[test]
    fn a_file_that_does_not_fit_stays_out() {
        let (warming, size) = (Warming::default(), SIZE as u64);
        assert!(!warming.is_due(size, size, false));
        assert!(warming.is_due(0, size, true));
    }

    #[test]
    fn a_file_is_brought_in_from_front_to_end() {
        let (_file, cold) = cold_file();
        bring(&cold).unwrap();
        assert!(is_resident(&cold));
    }

    #[test]
    fn a_file_that_was_replaced_stays_out() {
        let (file, cold) = cold_file();
        let (other, _) = cold_file();
        other.persist(file.path()).unwrap();
        assert_eq!(bring(&cold).unwrap_err().kind(), io::ErrorKind::StaleNetworkFileHandle);
    }

    #[test]
    fn a_file_that_was_closed_is_not_opened() {
        let (file, cold) = cold_file();
        drop(file);
        assert!(bring(&cold).is_err());
        cold.stop.store(true, Ordering::Relaxed);
        assert!(bring(&cold).is_ok());
    }
}
