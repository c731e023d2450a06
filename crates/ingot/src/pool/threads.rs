//! How many threads work on one batch.

use std::env;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::Pool;
use crate::error::{Error, Result};

const VARIABLE: &str = "INGOT_THREADS";

/// The argument of the last call of `set_threads`; 0 before that.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Sets how many threads work on one batch, the caller included, in this process and in the
/// processes that it forks. With 1, no helper is started, and existing ones sleep.
pub fn set_threads(threads: NonZeroUsize) {
    ASKED.store(threads.get(), Ordering::Relaxed);
    Pool::compute().resize(threads);
}

/// Returns how many threads the user asked for, with [`set_threads`] or else with the environment
/// variable `INGOT_THREADS`. Fails if the variable is not a positive number.
pub fn asked_threads() -> Result<Option<NonZeroUsize>> {
    let asked = NonZeroUsize::new(ASKED.load(Ordering::Relaxed));
    if asked.is_some() {
        return Ok(asked);
    }
    let Some(value) = env::var_os(VARIABLE) else { return Ok(None) };
    let number = value.to_str().and_then(|value| value.parse().ok());
    let refusal =
        || Error::Invalid(format!("{VARIABLE}={}: expected a positive number", value.display()));
    number.map(Some).ok_or_else(refusal)
}

/// Returns how many threads the user asked for, or else one per core that this process may use.
pub(super) fn first_threads() -> usize {
    let asked = asked_threads().ok().flatten();
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from)
}
