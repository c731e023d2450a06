//! Python's signal handlers in the middle of native work.

use std::time::{Duration, Instant};

use ingot::records::Watch;
use ingot::records::indexed::Report;
use ingot::{Error, Result};
use pyo3::prelude::*;

use crate::error::raised;

/// How long handlers may wait. Asking for the GIL more often would hold up the work where
/// other threads are busy with it.
const PATIENCE: Duration = Duration::from_millis(50);

/// Does `work` without the GIL. What a signal handler raises meanwhile stops it.
pub fn watched<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Watch<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    reported(py, None, |report| work(&mut || report(0, 0)))
}

/// As [`watched`], for work that reports its progress, with which `progress` is called.
pub fn reported<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Report<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let (mut stopped, mut looked) = (None, Instant::now());
    let outcome = py.detach(|| {
        work(&mut |done, total| {
            if looked.elapsed() < PATIENCE && (done < total || total == 0) {
                return Ok(());
            }
            looked = Instant::now();
            tell(progress.as_ref(), done, total, &mut stopped)
        })
    });
    stopped.map_or_else(|| outcome.map_err(raised), Err)
}

/// Runs signal handlers, then calls `progress`. An exception is kept in `stopped` and stops the
/// work.
pub fn tell(
    progress: Option<&Py<PyAny>>,
    done: u64,
    total: u64,
    stopped: &mut Option<PyErr>,
) -> Result<()> {
    let told = Python::attach(|py| {
        py.check_signals()?;
        progress.map_or(Ok(()), |call| call.call1(py, (done, total)).map(drop))
    });
    told.map_err(|error| {
        *stopped = Some(error);
        Error::Stopped
    })
}
