//! What distinguishes files.

use std::path::PathBuf;

use ingot::records::{content_of, hex, identity_of};
use ingot::storage::Identity;
use pyo3::prelude::*;

use crate::error::raised;

/// Returns what distinguishes a file from others and from its earlier states: its size, when its
/// content was changed, and which local file it is.
#[pyfunction]
pub fn identity(py: Python<'_>, path: PathBuf) -> PyResult<(u64, String, String)> {
    let Identity { size, tag } = py.detach(|| identity_of(&path)).map_err(raised)?;
    let changed = tag.mtime_ns.map_or_else(String::new, |time| format!("{time:x}"));
    Ok((size, changed, tag.file.map_or_else(String::new, |file| file.to_string())))
}

/// Returns what identifies the content of each file, as hexadecimal digits. Copies have the same.
#[pyfunction]
pub fn contents(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<String>> {
    let found: ingot::Result<Vec<_>> =
        py.detach(|| paths.iter().map(|path| content_of(path)).collect());
    Ok(found.map_err(raised)?.iter().map(|bytes| hex(bytes)).collect())
}
