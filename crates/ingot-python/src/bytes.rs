//! Bytes objects that the engine fills without the GIL.
#![allow(unsafe_code)]

use ingot::Error;
use ingot::limit::Growth;
use ingot::records::{Cell, Files, Sequence, add_growth};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::raised;
use crate::threads;

/// A cached record of at most this many bytes is copied with the GIL held: to release it costs
/// more than the copy.
const QUICK: u64 = 16 << 10;

/// Returns a new bytes object of `len` bytes that nothing has been written to.
fn uninitialised(py: Python<'_>, len: u64) -> PyResult<Bound<'_, PyBytes>> {
    let len = ffi::Py_ssize_t::try_from(len).map_err(|_| {
        pyo3::exceptions::PyMemoryError::new_err("a record exceeds the address space")
    })?;
    // SAFETY: with a null pointer the call allocates an object of `len` bytes or raises.
    unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), len);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}

/// Returns the memory of a bytes object that only this thread knows of yet.
///
/// # Safety
///
/// The object was made by [`uninitialised`], and is not handed out before the last use of the
/// slice, which does not outlive it. What the interpreter has not written counts as bytes of any
/// value: the allocation is not Rust's.
unsafe fn memory<'a>(object: &Bound<'_, PyBytes>) -> &'a mut [u8] {
    let bytes = object.as_bytes();
    if bytes.is_empty() {
        return &mut []; // The empty object is shared by the whole interpreter.
    }
    // SAFETY: there is no other reference to the object, as the caller promises.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// Reads one cell into a bytes object.
pub fn read_one<'py>(
    py: Python<'py>,
    reader: &Sequence,
    cell: &Cell,
) -> PyResult<Bound<'py, PyBytes>> {
    add_growth(reader, cell, &mut Growth::default()).map_err(raised)?;
    let object = uninitialised(py, cell.raw)?;
    // SAFETY: the object is handed out after the last use of its memory.
    let value = unsafe { memory(&object) };
    let is_quick = cell.raw <= QUICK && !cell.is_encoded();
    if !(is_quick && reader.fetch_ready(cell, value)) {
        py.detach(|| reader.fetch_one(cell, value)).map_err(raised)?;
    }
    Ok(object)
}

/// Reads the cells of one row into bytes objects.
pub fn read_row<'py>(
    py: Python<'py>,
    files: &Sequence,
    cells: &[Cell],
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let len = cells.iter().fold(0u64, |len, cell| len.saturating_add(cell.raw));
    let is_quick = len <= QUICK && !cells.iter().any(Cell::is_encoded);
    if let Some(objects) = is_quick.then(|| read_ready(py, files, cells)).transpose()?.flatten() {
        return Ok(objects);
    }
    let (objects, failed) = read_many(py, files, cells.len(), |k| Ok(cells[k]))?;
    failed.map_or(Ok(objects), |error| Err(raised(error)))
}

/// Reads cells that are not encoded; None if one of them must wait or is bad.
fn read_ready<'py>(
    py: Python<'py>,
    files: &Sequence,
    cells: &[Cell],
) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
    let mut objects = Vec::with_capacity(cells.len());
    for cell in cells {
        let object = uninitialised(py, cell.raw)?;
        // SAFETY: the object is handed out after the last use of its memory.
        if !files.fetch_ready(cell, unsafe { memory(&object) }) {
            return Ok(None);
        }
        objects.push(object);
    }
    Ok(Some(objects))
}

/// Reads the cells that `locate` gives for each number below `count` into bytes objects.
/// Returns those before the first bad one, and its error.
pub fn read_many<'py>(
    py: Python<'py>,
    reader: &impl Files,
    count: usize,
    mut locate: impl FnMut(usize) -> PyResult<Cell>,
) -> PyResult<(Vec<Bound<'py, PyBytes>>, Option<Error>)> {
    threads::settle(py)?;
    let mut objects = Vec::new();
    objects.try_reserve_exact(count).map_err(|_| {
        pyo3::exceptions::PyMemoryError::new_err(format!("out of memory for {count} records"))
    })?;
    let mut growth = Growth::default();
    let next = |k: usize| -> PyResult<(Cell, &mut [u8])> {
        let cell = locate(k)?;
        add_growth(reader, &cell, &mut growth).map_err(raised)?;
        let object = uninitialised(py, cell.raw)?;
        // SAFETY: the objects are handed out when all reads have ended.
        let value = unsafe { memory(&object) };
        objects.push(object);
        Ok((cell, value))
    };
    let failures = reader.fetch_into(count, next, |work| py.detach(work))?;
    let first = failures.into_iter().min_by_key(|&(k, _)| k);
    if let Some((k, _)) = first {
        objects.truncate(k);
    }
    Ok((objects, first.map(|(_, error)| error)))
}
