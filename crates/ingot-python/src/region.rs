//! Mapped files, lent to Python through the buffer protocol.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::path::PathBuf;

use ingot::storage::Region;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// A file as read-only memory. A page that cannot be read shows zeros, and kills nobody.
#[pyclass(frozen, name = "Region", module = "ingot._core")]
pub struct PyRegion {
    region: Region,
}

#[pymethods]
impl PyRegion {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let region = py.detach(|| Region::map(&File::open(path)?))?;
        Ok(PyRegion { region })
    }

    /// Whether the file could not be read at some place.
    #[getter]
    fn is_damaged(&self) -> bool {
        self.region.is_damaged()
    }

    fn __len__(&self) -> usize {
        self.region.len()
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("the view is null"));
        }
        let region = &slf.get().region;
        // SAFETY: `view` is a valid pointer by the contract of the slot. The memory is owned by
        // this object, which the view keeps alive, and never moves. The view is read-only.
        let code = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                region.as_ptr().cast_mut().cast::<c_void>(),
                region.len() as ffi::Py_ssize_t,
                1,
                flags,
            )
        };
        if code == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}
