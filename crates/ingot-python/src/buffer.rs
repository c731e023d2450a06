//! Memory that many records share, lent to Python through the buffer protocol.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use ingot::records::Found;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::object;

/// Values one after the other; where each begins and the last ends, as int64 bytes, unless all
/// are numbers; and how many each row of a sequence has, as uint64 bytes.
pub type Packed<'py> =
    (Bound<'py, PyAny>, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>);

/// Returns what was found of a field, whose cells were fetched into `buffer`.
pub fn pack<'py>(
    py: Python<'py>,
    found: Found,
    buffer: Vec<u8>,
    spares: &Arc<Spares>,
) -> PyResult<Packed<'py>> {
    if let Found::Numbers(values) = &found {
        return Ok((object::byte_array(py, values)?.into_any(), None, None));
    }
    let lens = found.cells().iter().map(|cell| cell.raw);
    let (data, offsets) = pack_values(py, buffer, lens, spares)?;
    let counts = match found {
        Found::Elements(_, counts) => Some(object::bytes(py, &object::words(counts))?),
        _ => None,
    };
    Ok((data.into_any(), Some(offsets), counts))
}

/// Returns a buffer that begins with values of these lengths, and where each begins and the
/// last ends, as int64 bytes.
pub fn pack_values<'py>(
    py: Python<'py>,
    buffer: Vec<u8>,
    lens: impl Iterator<Item = u64>,
    spares: &Arc<Spares>,
) -> PyResult<(Bound<'py, PyMemoryView>, Bound<'py, PyBytes>)> {
    let mut offsets = vec![0; 8];
    let mut end = 0_u64;
    for len in lens {
        end += len;
        offsets.extend_from_slice(&end.to_ne_bytes());
    }
    let buffer = Bound::new(py, PyBuffer::new(buffer, end as usize, spares))?;
    Ok((PyMemoryView::from(&buffer)?, object::bytes(py, &offsets)?))
}

/// Buffers that wait to be used again: fresh memory costs a page fault for every 4 KB, more
/// than the copy itself.
///
/// No thread waits for the lock: one that finds it taken allocates instead. A fork may leave it
/// taken for good in the child.
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
    /// Keeps at most `most` buffers of at most `bytes_max` bytes.
    pub const fn keeping(most: usize, bytes_max: usize) -> Spares {
        Spares { waiting: Mutex::new(Vec::new()), most, bytes_max }
    }

    /// Returns a buffer of `len` bytes with unknown content.
    pub fn take(&self, len: usize) -> PyResult<Vec<u8>> {
        self.find(len).ok_or_else(|| {
            pyo3::exceptions::PyMemoryError::new_err(format!("out of memory for {len} bytes"))
        })
    }

    /// As [`Spares::take`]; none if there is no memory for it.
    pub fn find(&self, len: usize) -> Option<Vec<u8>> {
        let spare = self.waiting.try_lock().ok().and_then(|mut waiting| waiting.pop());
        let mut buffer = spare.unwrap_or_default();
        if buffer.len() < len {
            buffer.clear();
            buffer.try_reserve_exact(len).ok()?;
            buffer.resize(len, 0);
        }
        Some(buffer)
    }

    fn put_back(&self, buffer: Vec<u8>) {
        if let Ok(mut waiting) = self.waiting.try_lock()
            && waiting.len() < self.most
            && buffer.capacity() <= self.bytes_max
        {
            waiting.push(buffer);
        }
    }
}

/// One block of memory. Goes back to its reader when the last view on it is gone.
pub struct Block {
    bytes: Vec<u8>,
    len: usize,
    spares: Arc<Spares>,
}

impl AsRef<[u8]> for Block {
    /// Returns what is in it.
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.spares.put_back(std::mem::take(&mut self.bytes));
    }
}

/// A block of memory with the buffer protocol.
#[pyclass(frozen, name = "Buffer", module = "ingot._core")]
pub struct PyBuffer(Arc<Block>);

impl PyBuffer {
    pub fn new(bytes: Vec<u8>, len: usize, spares: &Arc<Spares>) -> Self {
        PyBuffer(Arc::new(Block { bytes, len, spares: Arc::clone(spares) }))
    }

    /// Returns the block.
    pub fn block(&self) -> &Arc<Block> {
        &self.0
    }
}

#[pymethods]
impl PyBuffer {
    fn __len__(&self) -> usize {
        self.0.len
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let block = &slf.get().0;
        let memory = (block.bytes.as_ptr(), block.len);
        // SAFETY: the memory belongs to this object and never moves. Writing through the view is
        // allowed: the engine has finished with the memory.
        unsafe { lend(&slf, memory, false, view, flags) }
    }
}

/// Fills the view that a consumer of the buffer protocol has asked an object for.
///
/// # Safety
///
/// `view` is what the slot was given. `memory`, a start and a length, is valid for as long as the
/// object lives, which the view keeps alive; unless it is read-only, nothing else uses it.
pub unsafe fn lend<T>(
    owner: &Bound<'_, T>,
    memory: (*const u8, usize),
    is_readonly: bool,
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("the view is null"));
    }
    let (start, len) = (memory.0.cast_mut().cast::<c_void>(), memory.1 as ffi::Py_ssize_t);
    // SAFETY: as the caller promises.
    let code = unsafe {
        ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start, len, is_readonly.into(), flags)
    };
    if code == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}
