//! Files that are open at the same time: a bounded number of them.
//!
//! A data set may have more files than a process may have descriptors. So a file that was not
//! used lately is closed when others are opened, and opened again when it is needed.

use std::cell::Cell;
use std::io;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;
use std::time::Duration;

use arc_swap::{ArcSwapOption, Guard};

use super::local::Handle;
use crate::process::{self, PerProcess};

/// Files that are open at the same time, at most, and at least.
const OPEN: (usize, usize) = (1024, 4);

/// Descriptors that are left to others, and those that a file takes at most.
const OTHERS: usize = 32;
const PER_FILE: usize = 4;

/// How often a thread tries to open a file again when the process has no descriptor left, and
/// how long it waits in between, in milliseconds: one more each time.
const TRIES: u64 = 64;

/// The place of a file that may be open or not.
#[derive(Default)]
pub(super) struct Place {
    handle: ArcSwapOption<Handle>,
    used: AtomicBool,
}

/// An open file, which stays open for as long as this is held.
pub(super) struct Held {
    handle: Guard<Option<Arc<Handle>>>,
    /// Of a file that had to be opened.
    _permit: Option<Permits>,
}

impl Deref for Held {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        self.handle.as_deref().expect("made with a handle")
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
        Some(Held { handle, _permit: None })
    }

    /// Takes a file that was opened with a permit. If too many are open then, others are closed.
    pub fn put(self: &Arc<Self>, handle: Handle, permit: Permits) -> Held {
        let handle = Arc::new(handle);
        self.handle.store(Some(Arc::clone(&handle)));
        self.used.store(true, Ordering::Relaxed);
        drop(Open::with(|open| open.add(self)));
        Held { handle: Guard::from_inner(Some(handle)), _permit: Some(permit) }
    }
}

/// Calls `open`. If the process has no descriptor left, unused files are closed, and
/// it is called again, several times: other threads may be about to finish with theirs.
pub(crate) fn opening<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    for tries in 0..TRIES {
        match process::without_fork(&open) {
            Err(error) if is_exhausted(&error) => {}
            opened => return opened,
        }
        drop(Open::with(|open| open.shrink(0)));
        thread::sleep(Duration::from_millis(tries));
    }
    process::without_fork(open)
}

/// Leave to open files, and to keep them open while they are read. All permits of a process
/// are as many as the files that it may have open.
pub(super) struct Permits {
    count: usize,
    of: Arc<Counter>,
}

#[derive(Default)]
struct Counter {
    taken: Mutex<usize>,
    returned: Condvar,
}

thread_local!(static MINE: Cell<usize> = const { Cell::new(0) });

impl Permits {
    /// Takes up to `most` permits, at least one. Waits until there is one; a thread that
    /// has some already does not wait.
    pub fn take(most: usize) -> Permits {
        static COUNTER: PerProcess<Counter> = PerProcess::new();
        let of = COUNTER.get(Counter::default);
        let mut taken = of.taken.lock().expect("no panics under this lock");
        let all = limit();
        while *taken >= all && MINE.get() == 0 {
            taken = of.returned.wait(taken).expect("no panics under this lock");
        }
        let count = most.min(all.saturating_sub(*taken)).max(1);
        *taken += count;
        drop(taken);
        MINE.set(MINE.get() + count);
        Permits { count, of }
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `work` on another thread than the one that has taken the permits, and for which
    /// it waits: the thread uses these instead of waiting for some of its own.
    pub fn lend<R>(&self, work: impl FnOnce() -> R) -> R {
        MINE.set(MINE.get() + 1);
        let done = work();
        MINE.set(MINE.get() - 1);
        done
    }
}

impl Drop for Permits {
    fn drop(&mut self) {
        MINE.set(MINE.get().saturating_sub(self.count));
        let mut taken = self.of.taken.lock().expect("no panics under this lock");
        *taken = taken.saturating_sub(self.count);
        drop(taken);
        self.of.returned.notify_all();
    }
}

/// Whether there was no descriptor left.
pub(super) fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The places of open files, as the hand of a clock goes round.
struct Open {
    places: Vec<Weak<Place>>,
    hand: usize,
}

impl Open {
    /// Calls `call` with the places of this process. The child of a fork has those of its parent:
    /// no fork happens while a thread is here.
    fn with<R>(call: impl FnOnce(&mut Open) -> R) -> R {
        static OPEN: Mutex<Open> = Mutex::new(Open { places: Vec::new(), hand: 0 });
        process::without_fork(|| call(&mut OPEN.lock().expect("no panics under this lock")))
    }

    /// Adds a place, and returns the files that are closed for it.
    fn add(&mut self, place: &Arc<Place>) -> Vec<Arc<Handle>> {
        self.places.push(Arc::downgrade(place));
        self.shrink(limit())
    }

    /// Goes round until at most `most` files are open, and returns those to be closed. Files
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

#[allow(unsafe_code)]
fn limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills the structure.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    let descriptors =
        if known { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 256 };
    (descriptors.saturating_sub(OTHERS) / PER_FILE).clamp(OPEN.1, OPEN.0)
}
