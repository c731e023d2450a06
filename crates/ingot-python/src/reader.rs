//! `ingot._core.Reader`.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use ingot::Error;
use ingot::records::{Cell, Mode, Reader, path};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyMemoryView, PySlice};

use crate::batch::{PyBuffer, Spares};
use crate::bytes;
use crate::damage::{DamageTuple, tuples};
use crate::error::raised;
use crate::rows::{row_of, rows_of};
use crate::stream::PyStream;

/// The single field of a record file.
const FIELD: usize = 0;

#[pyclass(frozen, subclass, name = "Reader", module = "ingot._core")]
pub struct PyReader {
    path: PathBuf,
    mode: Mode,
    reader: RwLock<Option<Arc<Reader>>>,
    spares: Arc<Spares>,
}

impl PyReader {
    pub fn reader(&self) -> PyResult<Arc<Reader>> {
        let current = self.reader.read().expect("no panics under this lock").clone();
        let Some(reader) = current else {
            let path = self.path.display().to_string();
            return Err(raised(Error::Closed { path, what: "reader" }));
        };
        if reader.generation() == ingot::process::generation() {
            return Ok(reader);
        }
        let reader = Arc::new(reader.after_fork());
        *self.reader.write().expect("no panics under this lock") = Some(Arc::clone(&reader));
        Ok(reader)
    }

    fn open(&self, py: Python<'_>) -> PyResult<Reader> {
        py.detach(|| path::open(&self.path, self.mode)).map_err(raised)
    }

    fn one<'py>(
        &self,
        py: Python<'py>,
        reader: &Reader,
        row: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        bytes::read_one(py, reader, &locate(py, reader, row)?)
    }

    fn many<'py>(
        &self,
        py: Python<'py>,
        reader: &Reader,
        rows: &[u64],
    ) -> PyResult<Bound<'py, PyList>> {
        let next = |k: usize| {
            reader.touch(rows, k);
            let found = reader.locate_loaded(rows[k], FIELD);
            let found = found.unwrap_or_else(|| {
                py.detach(|| {
                    reader.prepare(&rows[k..]);
                    reader.locate_one(rows[k], FIELD)
                })
            });
            found.map_err(raised)
        };
        let (objects, failed) = bytes::read_many(py, reader, rows.len(), next)?;
        failed.map_or_else(|| PyList::new(py, objects), |error| Err(raised(error)))
    }
}

/// Returns where the record of a row is, without the GIL if its index page must be read.
fn locate(py: Python<'_>, reader: &Reader, row: u64) -> PyResult<Cell> {
    reader
        .locate_loaded(row, FIELD)
        .unwrap_or_else(|| py.detach(|| reader.locate_one(row, FIELD)))
        .map_err(raised)
}

#[pymethods]
impl PyReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, partial: bool) -> PyResult<Self> {
        let mode = if partial { Mode::Partial } else { Mode::Whole };
        let this = PyReader { path, mode, reader: RwLock::default(), spares: Arc::default() };
        let reader = this.open(py)?;
        if !reader.schema().is_records() {
            return Err(raised(Error::Format {
                path: reader.name().to_owned(),
                reason: "the rows of this file have several fields: it is not a record file"
                    .to_owned(),
            }));
        }
        *this.reader.write().expect("no panics under this lock") = Some(Arc::new(reader));
        Ok(this)
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.reader()?.num_rows() as usize)
    }

    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let reader = this.reader()?;
        if index.is_instance_of::<PyInt>() {
            return Ok(this.one(py, &reader, row_of(&reader, index)?)?.into_any());
        }
        if index.is_instance_of::<PySlice>() {
            return slf.call_method1("_slice", (index,));
        }
        // An array of no dimensions has a `__len__` that raises. To ask a list for what it
        // does not have would cost as much as reading several records.
        if !index.is_instance_of::<PyList>() && index.hasattr("__index__")? && index.len().is_err()
        {
            return Ok(this.one(py, &reader, row_of(&reader, index)?)?.into_any());
        }
        Ok(this.many(py, &reader, &rows_of(&reader, index)?)?.into_any())
    }

    /// Reads into one buffer; returns it with the offsets of the records as int64 bytes.
    #[pyo3(name = "_read_buffer")]
    fn read_buffer<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyMemoryView>, Bound<'py, PyByteArray>)> {
        let reader = self.reader()?;
        let rows = rows_of(&reader, indices)?;
        let mut cells = Vec::with_capacity(rows.len());
        py.detach(|| reader.locate(&rows, FIELD, &mut cells)).map_err(raised)?;
        let mut offsets = Vec::with_capacity(8 * cells.len() + 8);
        let mut end = 0_u64;
        offsets.extend_from_slice(&end.to_ne_bytes());
        for cell in &cells {
            end += cell.raw;
            offsets.extend_from_slice(&end.to_ne_bytes());
        }
        let len = end as usize;
        let mut buffer = self.spares.take(len)?;
        py.detach(|| {
            let mut rest = &mut buffer[..];
            let mut values: Vec<&mut [u8]> = cells
                .iter()
                .map(|cell| rest.split_off_mut(..cell.raw as usize).expect("sized for all"))
                .collect();
            reader.fetch(&cells, &mut values)
        })
        .map_err(raised)?;
        let buffer = Bound::new(py, PyBuffer::new(buffer, len, &self.spares))?;
        Ok((PyMemoryView::from(&buffer)?, PyByteArray::new(py, &offsets)))
    }

    /// Iterates over all records, or those at the indices, reading ahead.
    #[pyo3(name = "_stream")]
    fn stream(&self, indices: Option<&Bound<'_, PyAny>>) -> PyResult<PyStream> {
        PyStream::new(self.reader()?, indices)
    }

    /// Returns the lengths of records as int64 bytes.
    #[pyo3(name = "_sizes")]
    fn sizes<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let reader = self.reader()?;
        let rows = rows_of(&reader, indices)?;
        let mut cells = Vec::with_capacity(rows.len());
        py.detach(|| reader.locate(&rows, FIELD, &mut cells)).map_err(raised)?;
        let sizes: Vec<u8> = cells.iter().flat_map(|cell| cell.raw.to_ne_bytes()).collect();
        Ok(PyByteArray::new(py, &sizes))
    }

    /// Returns the metadata as JSON.
    #[pyo3(name = "_metadata_json")]
    fn metadata_json(&self) -> PyResult<String> {
        Ok(self.reader()?.header().metadata.clone())
    }

    /// Returns the random id of the file.
    #[pyo3(name = "_file_id")]
    fn file_id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.reader()?.header().id))
    }

    /// Returns the fields of `ingot.Stats`.
    #[pyo3(name = "_figures")]
    fn figures(&self) -> PyResult<(u64, u64, u64, u64, u64, u64, bool)> {
        let stats = self.reader()?.stats();
        Ok((
            stats.rows,
            stats.file_bytes,
            stats.index_bytes,
            stats.pages,
            stats.dictionaries,
            stats.dictionary_bytes,
            stats.closed,
        ))
    }

    /// Verifies the file; returns the rows checked and the damage found.
    #[pyo3(name = "_check")]
    fn check(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(u64, Vec<DamageTuple>)> {
        let reader = self.reader()?;
        let mut stopped = None;
        let total = reader.num_rows();
        let outcome = py.detach(|| {
            reader.verify(&mut |done| {
                let told = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |call| call.call1(py, (done, total)).map(drop))
                });
                told.map_err(|error| {
                    stopped = Some(error);
                    Error::Invalid("stopped".to_owned())
                })
            })
        });
        if let Some(error) = stopped {
            return Err(error);
        }
        let found = outcome.map_err(raised)?;
        Ok((found.rows, tuples(found.damaged)))
    }

    /// Looks at the file anew.
    #[pyo3(name = "_reopen")]
    fn reopen(&self, py: Python<'_>) -> PyResult<()> {
        let current = self.reader()?;
        let reader = self.open(py)?;
        if reader.header().id != current.header().id {
            return Err(raised(Error::Format {
                path: reader.name().to_owned(),
                reason: "the file was replaced by another one; open it again".to_owned(),
            }));
        }
        *self.reader.write().expect("no panics under this lock") = Some(Arc::new(reader));
        Ok(())
    }

    /// Close the file. A second call does nothing.
    fn close(&self) {
        self.reader.write().expect("no panics under this lock").take();
    }

    /// Whether the reader was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.reader.read().expect("no panics under this lock").is_none()
    }
}
