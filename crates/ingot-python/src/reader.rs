//! `ingot._core.Reader`.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::{ArcSwapOption, Guard};
use ingot::Error;
use ingot::records::{Cell, Container, Files, Mode, Sequence, Stats, check_growth, find};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyList, PyMemoryView, PySlice};

use crate::bag::{BagTuple, Reading};
use crate::buffer::{PyBuffer, Spares};
use crate::bytes;
use crate::damage::{self, DamageTuple};
use crate::error::raised;
use crate::indices::{row_of, rows_of};
use crate::object;
use crate::signals::watched;
use crate::stream::PyStream;
use crate::threads;

#[pyclass(frozen, subclass, name = "Reader", module = "ingot._core")]
pub struct PyReader {
    paths: Vec<PathBuf>,
    mode: Mode,
    check: bool,
    /// How each file is read, if all of them are bags.
    bags: Option<Vec<Reading>>,
    reader: ArcSwapOption<Sequence>,
    spares: Arc<Spares>,
}

impl PyReader {
    pub fn reader(&self) -> PyResult<Arc<Sequence>> {
        self.current().map(Guard::into_inner).map(|reader| reader.expect("it is open"))
    }

    /// Returns the files, if they are open, without counting a reference to them.
    fn current(&self) -> PyResult<Guard<Option<Arc<Sequence>>>> {
        let current = self.reader.load();
        match &*current {
            Some(reader) if reader.generation() == ingot::process::generation() => Ok(current),
            Some(reader) => {
                let reader = Arc::new(reader.after_fork());
                self.reader.store(Some(Arc::clone(&reader)));
                Ok(Guard::from_inner(Some(reader)))
            }
            None => {
                let path = self.paths[0].display().to_string();
                Err(raised(Error::Closed { path, what: "reader" }))
            }
        }
    }

    fn open(&self, py: Python<'_>) -> PyResult<Sequence> {
        if let Some(bags) = &self.bags {
            let open = |(path, bag): (&PathBuf, &Reading)| -> ingot::Result<Arc<dyn Container>> {
                Ok(Arc::new(bag.open(path)?))
            };
            let opened =
                || self.paths.iter().zip(bags).map(open).collect::<ingot::Result<Sequence>>();
            return py.detach(opened).map_err(raised);
        }
        let files = watched(py, |watch| Sequence::open(&self.paths, self.mode, self.check, watch))?;
        for file in files.open_files().map_err(raised)? {
            if file.table().is_some_and(|table| !table.schema().is_records()) {
                let why = "the rows of this file have named fields, so they are not records: \
                           ingot.open reads them";
                return Err(raised(Error::format(file.source().name, why)));
            }
        }
        Ok(files)
    }

    fn one<'py>(
        &self,
        py: Python<'py>,
        reader: &Sequence,
        row: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        bytes::read_one(py, reader, &locate(py, reader, row)?)
    }

    fn many<'py>(
        &self,
        py: Python<'py>,
        reader: &Sequence,
        rows: &[u64],
    ) -> PyResult<Bound<'py, PyList>> {
        // From the first row whose place is not in memory on, all are located together.
        let mut located = Vec::new().into_iter();
        let mut failed_later = None;
        let next = |k: usize| {
            if let Some(cell) = located.next() {
                return Ok(cell);
            }
            if let Some(error) = failed_later.take() {
                return Err(raised(error));
            }
            reader.touch(rows, k);
            if let Some(found) = reader.locate_loaded(rows[k]) {
                return found.map_err(raised);
            }
            let mut cells = Vec::new();
            failed_later = py.detach(|| reader.locate_many(&rows[k..], &mut cells)).err();
            located = cells.into_iter();
            located.next().ok_or_else(|| raised(failed_later.take().expect("or there is a cell")))
        };
        let (objects, failed) = bytes::read_many(py, reader, rows.len(), next)?;
        failed.map_or_else(|| PyList::new(py, objects), |error| Err(raised(error)))
    }
}

fn fingerprint(reader: &Sequence) -> PyResult<Vec<u8>> {
    Ok(reader.fingerprints().map_err(raised)?.concat())
}

/// Returns the files of several readers, one after the other.
fn joined(parts: &[PyRef<'_, PyReader>]) -> PyResult<Sequence> {
    let parts: Vec<Arc<Sequence>> =
        parts.iter().map(|part| part.reader()).collect::<PyResult<_>>()?;
    let files: ingot::Result<Vec<_>> = parts.iter().map(|part| part.open_files()).collect();
    Ok(files.map_err(raised)?.into_iter().flatten().map(Arc::clone).collect())
}

/// The fields of `ingot.Stats`.
pub type Figures = (u64, u64, u64, u64, u64, u64, bool);

/// Returns figures as Python has them.
pub fn figures_of(stats: Stats) -> Figures {
    (
        stats.rows,
        stats.file_bytes,
        stats.index_bytes,
        stats.pages,
        stats.dictionaries,
        stats.dictionary_bytes,
        stats.closed,
    )
}

/// Returns a file by its number.
fn file_of(reader: &Sequence, number: usize) -> PyResult<&Arc<dyn Container>> {
    if number >= reader.num_files() {
        return Err(PyIndexError::new_err(format!("file {number} does not exist")));
    }
    reader.open_file(number).map_err(raised)
}

/// Returns where the record of a row is, without the GIL if its index page must be read.
fn locate(py: Python<'_>, reader: &Sequence, row: u64) -> PyResult<Cell> {
    reader.locate_loaded(row).unwrap_or_else(|| py.detach(|| reader.locate(row))).map_err(raised)
}

#[pymethods]
impl PyReader {
    /// Opens the files at `paths`, as `bags` says that they are read, or takes those of
    /// `parts`, which are open at these paths.
    #[new]
    #[pyo3(signature = (paths, partial, check, parts=None, bags=None))]
    fn new(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        partial: bool,
        check: bool,
        parts: Option<Vec<PyRef<'_, PyReader>>>,
        bags: Option<Vec<BagTuple>>,
    ) -> PyResult<Self> {
        if paths.is_empty() {
            return Err(PyValueError::new_err("no files to open"));
        }
        let mode = if partial { Mode::Partial } else { Mode::Whole };
        let bags = bags.map(|bags| {
            let each = paths.iter().zip(bags);
            each.map(|(path, bag)| Reading::new(path, bag)).collect::<PyResult<Vec<_>>>()
        });
        let (bags, reader) = (bags.transpose()?, ArcSwapOption::empty());
        let this = PyReader { paths, mode, check, bags, reader, spares: Arc::default() };
        let reader = match parts {
            None => this.open(py)?,
            Some(parts) => joined(&parts)?,
        };
        this.reader.store(Some(Arc::new(reader)));
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
        let current = this.current()?;
        let reader = current.as_deref().expect("it is open");
        if index.is_instance_of::<PyInt>() {
            return Ok(this.one(py, reader, row_of(reader, index)?)?.into_any());
        }
        if index.is_instance_of::<PySlice>() {
            return slf.call_method1("_slice", (index,));
        }
        // An array of no dimensions has a `__len__` that raises. To ask a list for what it
        // does not have would cost as much as reading several records.
        if !index.is_instance_of::<PyList>() && index.hasattr("__index__")? && index.len().is_err()
        {
            return Ok(this.one(py, reader, row_of(reader, index)?)?.into_any());
        }
        Ok(this.many(py, reader, &rows_of(reader, index)?)?.into_any())
    }

    /// Reads into one buffer; returns it with the offsets of the records as int64 bytes, and
    /// the length that all records have, 0 if they differ or are empty.
    #[pyo3(name = "_read_buffer")]
    fn read_buffer<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyMemoryView>, Bound<'py, PyByteArray>, u64)> {
        threads::settle(py)?;
        let reader = self.reader()?;
        let rows = rows_of(&reader, indices)?;
        let mut cells = Vec::with_capacity(rows.len());
        let located = py.detach(|| {
            reader.locate_many(&rows, &mut cells)?;
            check_growth(&*reader, &cells)
        });
        located.map_err(raised)?;
        let mut end = 0;
        let ends = cells.iter().map(|cell| {
            end += cell.raw;
            end
        });
        let offsets = object::words(std::iter::once(0).chain(ends));
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
        let first = cells.first().map_or(0, |cell| cell.raw);
        let common = if cells.iter().all(|cell| cell.raw == first) { first } else { 0 };
        Ok((PyMemoryView::from(&buffer)?, object::byte_array(py, &offsets)?, common))
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
        threads::settle(py)?;
        let reader = self.reader()?;
        let rows = rows_of(&reader, indices)?;
        let mut cells = Vec::with_capacity(rows.len());
        py.detach(|| reader.locate_many(&rows, &mut cells)).map_err(raised)?;
        object::byte_array(py, &object::words(cells.iter().map(|cell| cell.raw)))
    }

    /// Returns how many records each file has as int64 bytes.
    #[pyo3(name = "_file_rows")]
    fn file_rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyByteArray>> {
        object::byte_array(py, &object::words(self.reader()?.row_counts()))
    }

    /// Returns the metadata as JSON.
    #[pyo3(name = "_metadata_json")]
    fn metadata_json(&self) -> PyResult<String> {
        Ok(self.reader()?.open_file(0).map_err(raised)?.metadata().to_owned())
    }

    /// Returns bytes that differ between other files and these.
    #[pyo3(name = "_fingerprint")]
    fn fingerprint<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &fingerprint(&*self.reader()?)?))
    }

    /// Returns what is particular to the format of a file, as JSON.
    #[pyo3(name = "_info")]
    fn info(&self, py: Python<'_>, file: usize) -> PyResult<String> {
        let reader = self.reader()?;
        let found = file_of(&reader, file)?;
        Ok(py.detach(|| found.info()))
    }

    /// Returns where the records of a file begin, as int64 bytes, and their checksums, as
    /// uint32 bytes.
    #[pyo3(name = "_layout")]
    fn layout<'py>(
        &self,
        py: Python<'py>,
        file: usize,
    ) -> PyResult<(Bound<'py, PyByteArray>, Bound<'py, PyByteArray>)> {
        let reader = self.reader()?;
        let found = file_of(&reader, file)?;
        let cells = || (0..found.num_rows()).map(|row| find(&**found, row));
        let cells: Vec<Cell> =
            py.detach(|| cells().collect::<ingot::Result<_>>()).map_err(raised)?;
        let offsets = object::words(cells.iter().map(|cell| cell.offset));
        let checksums: Vec<u8> = cells.iter().flat_map(|cell| cell.crc.to_ne_bytes()).collect();
        Ok((object::byte_array(py, &offsets)?, object::byte_array(py, &checksums)?))
    }

    /// Returns the fields of `ingot.Stats`.
    #[pyo3(name = "_figures")]
    fn figures(&self, py: Python<'_>) -> PyResult<Figures> {
        let reader = self.reader()?;
        py.detach(|| reader.stats()).map(figures_of).map_err(raised)
    }

    /// Verifies the file; returns the rows checked and the damage found.
    #[pyo3(name = "_check")]
    fn check(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(u64, Vec<DamageTuple>)> {
        damage::check(py, &*self.reader()?, progress)
    }

    /// Opens the file again to see records that were added.
    #[pyo3(name = "_reopen")]
    fn reopen(&self, py: Python<'_>) -> PyResult<()> {
        let current = self.reader()?;
        let reader = self.open(py)?;
        if fingerprint(&reader)? != fingerprint(&current)? {
            let why = "the file was replaced by another one; open it again";
            return Err(raised(Error::format(reader.name(), why)));
        }
        self.reader.store(Some(Arc::new(reader)));
        Ok(())
    }

    /// Close the file. A second call does nothing. Iterators that were begun before continue to
    /// their end, and hold the file until then.
    fn close(&self) {
        self.reader.store(None);
    }

    /// Whether the reader was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.reader.load().is_none()
    }
}
