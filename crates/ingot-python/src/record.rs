//! A record as Python has it: anything bytes-like.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// Records shorter than this are summed and copied before the GIL could be had again.
pub const SMALL: usize = 16 << 10;

/// Calls `then` with the bytes of a record.
#[allow(unsafe_code)]
pub fn with_bytes<T>(
    record: &Bound<'_, PyAny>,
    then: impl FnOnce(&[u8]) -> PyResult<T>,
) -> PyResult<T> {
    if let Ok(bytes) = record.cast::<PyBytes>() {
        return then(bytes.as_bytes());
    }
    let Ok(buffer) = PyUntypedBuffer::get(record) else {
        // An array of no dimensions has bytes, but no shape to be had.
        if let Ok(view) = PyMemoryView::from(record) {
            let bytes = view.call_method0("tobytes")?;
            return then(bytes.cast::<PyBytes>()?.as_bytes());
        }
        let found = record.get_type().name()?.to_string();
        let hint = if found == "str" { "; encode it first" } else { "" };
        return Err(PyTypeError::new_err(format!("a record is bytes-like, not {found}{hint}")));
    };
    if buffer.format().to_bytes().contains(&b'O') {
        let message = "an array of Python objects has no bytes of its own; encode it first";
        return Err(PyTypeError::new_err(message));
    }
    if !buffer.is_c_contiguous() {
        let message = "a record must be contiguous in memory; pass array.tobytes()";
        return Err(PyValueError::new_err(message));
    }
    if buffer.len_bytes() == 0 {
        return then(&[]);
    }
    // SAFETY: the buffer is contiguous, holds `len_bytes` bytes and is locked by the
    // view. They are copied; a thread that changes them meanwhile changes the copy.
    let bytes =
        unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) };
    then(bytes)
}
