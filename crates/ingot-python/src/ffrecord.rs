//! `ingot._core.FFRecordWriter` and the tree of packed folders.

use std::path::PathBuf;
use std::sync::Mutex;

use ingot::records::{FfWriter, path};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::error::raised;
use crate::record;

/// Records shorter than this are summed and copied before the GIL could be had again.
const SMALL: usize = 16 << 10;

#[pyclass(frozen, subclass, name = "FFRecordWriter", module = "ingot._core")]
pub struct PyFfWriter {
    writer: Mutex<FfWriter>,
}

impl PyFfWriter {
    fn with<T>(&self, py: Python<'_>, call: impl FnOnce(&mut FfWriter) -> T) -> T {
        let mut writer = self.writer.lock_py_attached(py).expect("no panics under this lock");
        call(&mut writer)
    }
}

#[pymethods]
impl PyFfWriter {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, n: Option<u64>, sync: bool) -> PyResult<Self> {
        let writer = py.detach(|| path::write_ffrecord(&path, n, sync)).map_err(raised)?;
        Ok(PyFfWriter { writer: Mutex::new(writer) })
    }

    fn append(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        record::with_bytes(record, |bytes| {
            self.with(py, |writer| {
                if bytes.len() < SMALL {
                    writer.push(bytes)
                } else {
                    py.detach(|| writer.push(bytes))
                }
            })
            .map_err(raised)
        })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.close())).map_err(raised)
    }

    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.abandon())).map_err(raised)
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.with(py, |writer| writer.is_closed())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.with(py, |writer| writer.len() as usize)
    }
}
