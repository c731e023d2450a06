//! Python objects whose allocation may fail: with an exception instead of a panic.
#![allow(unsafe_code)]

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

/// Returns a bytes object.
pub fn bytes<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, content.len(), |room| {
        room.copy_from_slice(content);
        Ok(())
    })
}

/// Returns 64-bit numbers as the bytes of an array.
pub fn words(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    numbers.into_iter().flat_map(u64::to_ne_bytes).collect()
}

/// Returns a bytearray.
pub fn byte_array<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Bound<'py, PyByteArray>> {
    byte_array_with(py, content.len(), |room| room.copy_from_slice(content))
}

/// Returns a bytearray of `len` bytes that `fill` fills.
pub fn byte_array_with<'py>(
    py: Python<'py>,
    len: usize,
    fill: impl FnOnce(&mut [u8]),
) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, len, |room| {
        fill(room);
        Ok(())
    })
}

/// Returns a text.
pub fn text<'py>(py: Python<'py>, content: &str) -> PyResult<Bound<'py, PyString>> {
    let len = ffi::Py_ssize_t::try_from(content.len())
        .map_err(|_| PyValueError::new_err("a text exceeds the address space"))?;
    // SAFETY: the pointer and the length are those of a text; the call returns a new object, or
    // raises.
    unsafe {
        let object = ffi::PyUnicode_FromStringAndSize(content.as_ptr().cast(), len);
        Ok(Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked())
    }
}
