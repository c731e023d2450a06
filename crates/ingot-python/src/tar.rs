//! Files as the members of a tar archive.

use ingot::format::foreign::tar::{BLOCK, put_file};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::cells::Cells;
use crate::object;

/// Returns files, each after its header. `offsets` says where the content of each begins in
/// `data`, and where the last one ends, as int64 bytes.
#[pyfunction]
pub fn archive_files<'py>(
    py: Python<'py>,
    names: Vec<String>,
    data: &Bound<'py, PyAny>,
    offsets: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let cells = Cells::of(data, offsets)?;
    let (bytes, ends) = (cells.bytes(), cells.ends());
    if names.len() != ends.len() {
        return Err(PyValueError::new_err("expected a name for each file"));
    }
    let archived = py.detach(|| {
        let mut out = Vec::with_capacity(bytes.len() + 2 * BLOCK * ends.len());
        let mut start = 0;
        for (name, &end) in names.iter().zip(ends) {
            put_file(&mut out, name, &bytes[start..end]);
            start = end;
        }
        out
    });
    object::bytes(py, &archived)
}
