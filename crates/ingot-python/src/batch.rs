//! Memory that many records share, lent to Python through the buffer protocol.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::object;

/// A buffer, the offsets of the values in it as int64 bytes, and the length all of them have,
/// 0 if they differ or are empty.
pub type Packed<'py> = (Bound<'py, PyMemoryView>, Bound<'py, PyBytes>, u64);

/// Returns a buffer that begins with values of these lengths.
pub fn pack<'py>(
    py: Python<'py>,
    buffer: Vec<u8>,
    lens: impl Iterator<Item = u64>,
    spares: &Arc<Spares>,
) -> PyResult<Packed<'py>> {
    let mut offsets = vec![0; 8];
    let (mut end, mut first, mut is_common) = (0_u64, None, true);
    for len in lens {
        end += len;
        offsets.extend_from_slice(&end.to_ne_bytes());
        is_common &= *first.get_or_insert(len) == len;
    }
    let common = if is_common { first.unwrap_or(0) } else { 0 };
    let buffer = Bound::new(py, PyBuffer::new(buffer, end as usize, spares))?;
    Ok((PyMemoryView::from(&buffer)?, object::bytes(py, &offsets)?, common))
}

/// Buffers that wait to be used again: fresh memory costs a page fault for every 4 KB, more
/// than the copy itself.
pub struct Spares {
    waiting: Mutex<Vec<Vec<u8>>>,
    most: usize,
    bytes_max: usize,
}

impl Default for Spares {
    /// Those of a reader.
    fn default() -> Spares {
        Spares::keeping(4, 32 << 20)
    }
}

impl Spares {
    /// Keeps at most so many buffers of at most so many bytes.
    pub const fn keeping(most: usize, bytes_max: usize) -> Spares {
        Spares { waiting: Mutex::new(Vec::new()), most, bytes_max }
    }

    /// Returns a buffer of `len` bytes with unknown content.
    pub fn take(&self, len: usize) -> PyResult<Vec<u8>> {
        let spare = self.waiting.lock().expect("no panics under this lock").pop();
        let mut buffer = spare.unwrap_or_default();
        if buffer.len() < len {
            buffer.clear();
            buffer.try_reserve_exact(len).map_err(|_| {
                pyo3::exceptions::PyMemoryError::new_err(format!("out of memory for {len} bytes"))
            })?;
            buffer.resize(len, 0);
        }
        Ok(buffer)
    }

    fn put_back(&self, buffer: Vec<u8>) {
        let mut spares = self.waiting.lock().expect("no panics under this lock");
        if spares.len() < self.most && buffer.capacity() <= self.bytes_max {
            spares.push(buffer);
        }
    }
}

/// One block of memory with the buffer protocol. Goes back to its reader when the
/// last view on it is gone.
#[pyclass(frozen, name = "Buffer", module = "ingot._core")]
pub struct PyBuffer {
    bytes: Vec<u8>,
    len: usize,
    spares: Arc<Spares>,
}

impl PyBuffer {
    pub fn new(bytes: Vec<u8>, len: usize, spares: &Arc<Spares>) -> Self {
        PyBuffer { bytes, len, spares: Arc::clone(spares) }
    }
}

impl Drop for PyBuffer {
    fn drop(&mut self) {
        self.spares.put_back(std::mem::take(&mut self.bytes));
    }
}

#[pymethods]
impl PyBuffer {
    fn __len__(&self) -> usize {
        self.len
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("the view is null"));
        }
        let this = slf.get();
        // SAFETY: `view` is a valid pointer by the contract of the slot. The memory is
        // owned by this object, which the view keeps alive, and never moves. Writing
        // through the view is allowed: the engine has finished with the memory.
        let code = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                this.bytes.as_ptr().cast_mut().cast::<c_void>(),
                this.len as ffi::Py_ssize_t,
                0,
                flags,
            )
        };
        if code == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
