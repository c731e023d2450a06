//! Which process this is: threads and rings belong to one, and a fork makes another.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Once};

static GENERATION: AtomicU64 = AtomicU64::new(0);
static REGISTER: Once = Once::new();

/// Returns a number that changes in the child of a fork.
///
/// Whatever belongs to one process (threads, rings, locks) is kept with the
/// generation it was made in, and is abandoned, not dropped, when the number
/// has changed. Costs one atomic load.
pub fn generation() -> u64 {
    REGISTER.call_once(register);
    GENERATION.load(Ordering::Relaxed)
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn register() {
    extern "C" fn forked() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the handler only adds to an atomic, which is safe in the child of a fork.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

#[cfg(not(unix))]
fn register() {}

/// Something that is made anew in the child of a fork. There are no locks here that a
/// thread of the parent could have held at that moment; what the parent made is left alone.
pub struct PerProcess<T>(AtomicPtr<(u64, Arc<T>)>);

impl<T> PerProcess<T> {
    /// Returns a place where nothing was made yet.
    pub const fn new() -> Self {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Returns what this process has made, or makes it. Of several threads that come at
    /// once all may make one, of which one is kept.
    #[allow(unsafe_code)]
    pub fn get(&self, make: impl Fn() -> T) -> Arc<T> {
        let generation = generation();
        loop {
            let current = self.0.load(Ordering::Acquire);
            // SAFETY: a pointer that was stored here is never freed.
            if let Some((made, kept)) = unsafe { current.as_ref() }
                && *made == generation
            {
                return Arc::clone(kept);
            }
            let made = Box::into_raw(Box::new((generation, Arc::new(make()))));
            if self.0.compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire).is_err()
            {
                // SAFETY: the pointer came from a box and was not stored.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        PerProcess::new()
    }
}
