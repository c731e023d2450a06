//! How many threads work on one batch.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use ingot::pool::{self, Pool};
use ingot::records::indexed;
use ingot::{Error, limit, process};
use pyo3::prelude::*;

use crate::error::raised;

/// Settles how many threads this process works with, unless that was done before. Whatever may
/// use helper threads calls this first, while it has the GIL. Fails if an environment variable
/// makes no sense.
///
/// A worker of PyTorch's data loader works with one, unless the user has asked for more: there
/// are as many workers as the user wants cores to be busy.
pub fn settle(py: Python<'_>) -> PyResult<()> {
    static SETTLED: AtomicU64 = AtomicU64::new(u64::MAX);
    let generation = process::generation();
    if SETTLED.load(Ordering::Relaxed) == generation {
        return Ok(());
    }
    let checked = limit::check_environment().and_then(|()| indexed::check_environment());
    checked.map_err(|why| raised(Error::Invalid(why)))?;
    if pool::asked_threads().map_err(raised)?.is_none() && is_loader_worker(py)? {
        Pool::compute().resize(NonZeroUsize::MIN);
    }
    SETTLED.store(generation, Ordering::Relaxed);
    Ok(())
}

fn is_loader_worker(py: Python<'_>) -> PyResult<bool> {
    let modules = py.import("sys")?.getattr("modules")?;
    let loader = modules.call_method1("get", ("torch.utils.data",))?;
    match loader.getattr_opt("get_worker_info")? {
        Some(worker) => Ok(!worker.call0()?.is_none()),
        None => Ok(false),
    }
}

/// Returns how many threads work on one batch.
#[pyfunction]
pub fn threads(py: Python<'_>) -> PyResult<usize> {
    settle(py)?;
    Ok(Pool::compute().width())
}

/// Sets how many threads work on one batch.
#[pyfunction]
pub fn set_threads(n: NonZeroUsize) {
    pool::set_threads(n);
}
