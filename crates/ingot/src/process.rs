//! Which process this is: threads and rings belong to one, and a fork makes another.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

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
