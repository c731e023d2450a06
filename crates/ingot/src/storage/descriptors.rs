//! Files that are open at the same time: a bounded number of them.
//!
//! A data set may have more files than a process may have descriptors. So a file that was not
//! used lately is closed when others are opened, and opened again when it is needed.

use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use arc_swap::{ArcSwapOption, Guard};

use super::local::Handle;
use crate::process::PerProcess;

/// Files that are open at the same time, at most, and at least.
const OPEN: (usize, usize) = (1024, 4);

/// Descriptors that are left to others, and those that a file takes at most.
const OTHERS: usize = 32;
const PER_FILE: usize = 4;

/// The place of a file that may be open or not.
#[derive(Default)]
pub(super) struct Place {
    handle: ArcSwapOption<Handle>,
    used: AtomicBool,
}

/// An open file, which stays open for as long as this is held.
pub(super) struct Held(Guard<Option<Arc<Handle>>>);

impl Deref for Held {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        self.0.as_deref().expect("made with a handle")
    }
}

impl Place {
    /// Returns a place whose file is never closed.
    pub fn pinned(handle: Handle) -> Arc<Place> {
        let place = Arc::<Place>::default();
        place.handle.store(Some(Arc::new(handle)));
        place
    }

    /// Returns the file if it is open.
    #[inline]
    pub fn get(&self) -> Option<Held> {
        let handle = self.handle.load();
        handle.as_ref()?;
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        Some(Held(handle))
    }

    /// Takes a file that was opened. If too many are open then, others are closed.
    pub fn put(self: &Arc<Self>, handle: Handle) -> Held {
        let handle = Arc::new(handle);
        self.handle.store(Some(Arc::clone(&handle)));
        self.used.store(true, Ordering::Relaxed);
        let closed = Open::of_process().lock().expect("no panics under this lock").add(self);
        drop(closed);
        Held(Guard::from_inner(Some(handle)))
    }
}

/// Calls `open`. If the process has no descriptor left, files that nobody uses are closed, and
/// it is called again.
pub(super) fn opening<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match open() {
        Err(error) if is_exhausted(&error) => {
            let kept = Open::of_process();
            let closed = kept.lock().expect("no panics under this lock").shrink(0);
            drop(closed);
            open()
        }
        opened => opened,
    }
}

#[cfg(unix)]
fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(not(unix))]
fn is_exhausted(_error: &io::Error) -> bool {
    false
}

/// The places of open files, as the hand of a clock goes round.
struct Open {
    places: Vec<Weak<Place>>,
    hand: usize,
}

impl Open {
    fn of_process() -> Arc<Mutex<Open>> {
        static OPEN: PerProcess<Mutex<Open>> = PerProcess::new();
        OPEN.get(|| Mutex::new(Open { places: Vec::new(), hand: 0 }))
    }

    /// Adds a place, and returns the files that are closed for it.
    fn add(&mut self, place: &Arc<Place>) -> Vec<Arc<Handle>> {
        self.places.push(Arc::downgrade(place));
        self.shrink(limit())
    }

    /// Goes round until at most so many files are open, and returns those to be closed. Files
    /// that were used since the hand came by stay for another round.
    fn shrink(&mut self, most: usize) -> Vec<Arc<Handle>> {
        let mut closed = Vec::new();
        let mut steps = 2 * self.places.len();
        while self.places.len() > most && steps > 0 {
            steps -= 1;
            self.hand %= self.places.len();
            let place = self.places[self.hand].upgrade();
            if place.as_ref().is_some_and(|place| place.used.swap(false, Ordering::Relaxed)) {
                self.hand += 1;
                continue;
            }
            closed.extend(place.and_then(|place| place.handle.swap(None)));
            self.places.swap_remove(self.hand);
        }
        closed
    }
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    let descriptors =
        if known { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 256 };
    (descriptors.saturating_sub(OTHERS) / PER_FILE).clamp(OPEN.1, OPEN.0)
}

#[cfg(not(unix))]
fn limit() -> usize {
    OPEN.0
}
