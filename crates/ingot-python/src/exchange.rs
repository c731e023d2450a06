//! Two names that trade places in one step.

use std::path::PathBuf;

use ingot::storage;
use pyo3::prelude::*;

/// Exchange what two paths name in one step; return False where the file system cannot.
///
/// Raises OSError if one of them does not exist, or the system refuses for another reason.
#[pyfunction]
pub fn exchange(py: Python<'_>, one: PathBuf, other: PathBuf) -> PyResult<bool> {
    Ok(py.detach(|| storage::exchange(&one, &other))?)
}
