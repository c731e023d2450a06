//! Mapped files, lent to Python through the buffer protocol.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fs::File;
use std::path::PathBuf;

use ingot::storage::Region;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::buffer::lend;

/// A file as read-only memory. A page that cannot be read shows zeros instead of killing the
/// process.
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
        let region = &slf.get().region;
        // SAFETY: the memory belongs to this object and never moves. The view is read-only.
        unsafe { lend(&slf, (region.as_ptr(), region.len()), true, view, flags) }
    }
}
