//! `ingot._core.ArrayRecordWriter`.

use std::path::PathBuf;

use ingot::records::{ArCodec, ArOptions, ArWriter, path};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::raised;
use crate::own::Own;
use crate::record;
use crate::threads;

#[pyclass(frozen, subclass, name = "ArrayRecordWriter", module = "ingot._core")]
pub struct PyArWriter {
    writer: Own<ArWriter>,
}

impl PyArWriter {
    fn with<T>(&self, py: Python<'_>, call: impl FnOnce(&mut ArWriter) -> T) -> PyResult<T> {
        self.writer.with(py, call)
    }

    fn push(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        record::with_bytes(record, |bytes| {
            self.with(py, |writer| {
                if bytes.len() < record::SMALL && writer.is_cheap(bytes.len()) {
                    writer.push(bytes)
                } else {
                    py.detach(|| writer.push(bytes))
                }
            })?
            .map_err(raised)
        })
    }
}

#[pymethods]
impl PyArWriter {
    #[new]
    #[pyo3(signature = (path, *, group_size, codec, level, window_log, transpose, pad, sync))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        group_size: u64,
        codec: &str,
        level: i32,
        window_log: Option<u32>,
        transpose: Option<u64>,
        pad: bool,
        sync: bool,
    ) -> PyResult<Self> {
        threads::settle(py)?;
        let codec = match codec {
            "none" => ArCodec::None,
            "brotli" => ArCodec::Brotli(u32::try_from(level).unwrap_or(u32::MAX), window_log),
            "zstd" => ArCodec::Zstd(level, window_log.unwrap_or(20)),
            "snappy" => ArCodec::Snappy,
            other => return Err(PyValueError::new_err(format!("there is no codec {other:?}"))),
        };
        let options = ArOptions { group_size, codec, transpose, pad_to_block: pad, sync };
        let writer = py.detach(|| path::write_arrayrecord(&path, options)).map_err(raised)?;
        Ok(PyArWriter { writer: Own::new(writer) })
    }

    /// Add a record; return its number.
    fn append(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.push(py, record)
    }

    /// Add records.
    fn extend(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        for (k, record) in records.try_iter()?.enumerate() {
            self.push(py, &record?)?;
            if k % 1024 == 0 {
                py.check_signals()?;
            }
        }
        Ok(())
    }

    /// Write what is left and let the file appear under its name. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.close()))?.map_err(raised)
    }

    /// Give the file up: nothing appears under its name.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.abandon()))?.map_err(raised)
    }

    /// Whether the writer was closed or abandoned.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |writer| writer.is_closed())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |writer| writer.len() as usize)
    }
}
