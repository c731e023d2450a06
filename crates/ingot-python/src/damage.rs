//! Damage as the tuples that `ingot.Damage` is made of.

use ingot::records::{Damage, Sequence};
use pyo3::prelude::*;

use crate::error::raised;
use crate::signals::tell;
use crate::threads;

pub type DamageTuple = (Option<u64>, u64, u64, String);

pub fn tuples(damaged: Vec<Damage>) -> Vec<DamageTuple> {
    damaged.into_iter().map(|one| (one.record, one.records, one.offset, one.reason)).collect()
}

/// Verifies files; returns the rows checked and the damage found. Calls `progress` with the
/// rows done and their total.
pub fn check(
    py: Python<'_>,
    files: &Sequence,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, Vec<DamageTuple>)> {
    threads::settle(py)?;
    let mut stopped = None;
    let total = files.num_rows();
    let outcome =
        py.detach(|| files.verify(&mut |done| tell(progress.as_ref(), done, total, &mut stopped)));
    let found = stopped.map_or_else(|| outcome.map_err(raised), Err)?;
    Ok((found.rows, tuples(found.damaged)))
}
