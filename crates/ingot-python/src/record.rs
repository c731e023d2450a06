//! A record as Python has it: anything bytes-like, and `ingot._core.RecordWriter`, which takes
//! them.

use std::sync::Arc;

use ingot::Result;
use ingot::records::RecordWriter;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::error::raised;
use crate::own::Own;
use crate::threads;

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

/// A writer of any container. The classes of Python derive from it, and are made of what the
/// functions return that open a file.
#[pyclass(frozen, subclass, name = "RecordWriter", module = "ingot._core")]
pub struct PyRecordWriter {
    writer: Arc<Own<dyn RecordWriter>>,
}

impl PyRecordWriter {
    pub fn new(writer: Arc<Own<dyn RecordWriter>>) -> Self {
        PyRecordWriter { writer }
    }

    /// Opens a file without the GIL.
    pub fn open<W: RecordWriter + 'static>(
        py: Python<'_>,
        open: impl FnOnce() -> Result<W> + Send,
    ) -> PyResult<Self> {
        threads::settle(py)?;
        let writer = py.detach(open).map_err(raised)?;
        Ok(PyRecordWriter::new(Arc::new(Own::new(writer))))
    }

    /// Calls `call` without the GIL.
    fn detached<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut dyn RecordWriter) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.writer.with(py, |writer| py.detach(|| call(writer)))?.map_err(raised)
    }
}

#[pymethods]
impl PyRecordWriter {
    #[new]
    fn of(writer: &Bound<'_, PyRecordWriter>) -> Self {
        PyRecordWriter::new(Arc::clone(&writer.get().writer))
    }

    /// Add a record, anything bytes-like, and return its index.
    fn append(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        with_bytes(record, |bytes| {
            self.writer
                .with(py, |writer| {
                    if writer.is_cheap(bytes.len()) {
                        writer.append(bytes)
                    } else {
                        py.detach(|| writer.append(bytes))
                    }
                })?
                .map_err(raised)
        })
    }

    /// Add every record of an iterable.
    fn extend(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        for (k, record) in records.try_iter()?.enumerate() {
            self.append(py, &record?)?;
            if k % 1024 == 0 {
                py.check_signals()?;
            }
        }
        Ok(())
    }

    /// Finish the file. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, |writer| writer.close())
    }

    /// Give the file up. A second call does nothing.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, |writer| writer.abandon())
    }

    /// Whether the writer was closed or abandoned.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.writer.with(py, |writer| writer.is_closed())
    }

    fn _flush(&self, py: Python<'_>) -> PyResult<()> {
        self.detached(py, |writer| writer.flush())
    }

    fn _size(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.detached(py, |writer| writer.size())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.writer.with(py, |writer| writer.num_rows() as usize)
    }
}
