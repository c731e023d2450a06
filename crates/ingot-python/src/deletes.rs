//! Bitmaps of deleted rows.

use std::path::PathBuf;

use ingot::records::deletes::{self, Claim};
use ingot::records::{hex, id_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::error::raised;
use crate::object;
use crate::threads;

fn known(id: &str) -> PyResult<[u8; 16]> {
    let wrong = || format!("an id is 32 hexadecimal digits, not {id:?}");
    id_of(id).ok_or_else(|| PyValueError::new_err(wrong()))
}

/// Writes which of the rows of file `of` are deleted: bit k of byte j is row 8 j + k. Returns the
/// id and the size of the new file.
#[pyfunction]
pub fn write_deletes(
    py: Python<'_>,
    path: PathBuf,
    of: &str,
    rows: u64,
    bitmap: PyBackedBytes,
    sync: bool,
) -> PyResult<(String, u64)> {
    threads::settle(py)?;
    let of = known(of)?;
    let written = py.detach(|| deletes::create(&path, of, rows, &bitmap, sync));
    let (id, nbytes) = written.map_err(raised)?;
    Ok((hex(&id), nbytes))
}

/// Reads which of the rows of file `of` are deleted, and checks that the bitmap is the one with
/// this id, and that it deletes `count` rows.
#[pyfunction]
pub fn read_deletes<'py>(
    py: Python<'py>,
    path: PathBuf,
    file_id: &str,
    of: Option<&str>,
    rows: u64,
    count: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    threads::settle(py)?;
    let claim = Claim { id: known(file_id)?, of: of.map(known).transpose()?, rows, count };
    let read = || {
        let deletes = deletes::read(&path.as_path().into(), &claim)?;
        deletes
            .live
            .to_deleted()
            .ok_or_else(|| ingot::Error::memory(path.display().to_string(), rows.div_ceil(8)))
    };
    object::bytes(py, &py.detach(read).map_err(raised)?)
}
