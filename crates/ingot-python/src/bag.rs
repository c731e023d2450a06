//! `ingot._core.BagWriter`, and what a bag does not say itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingot::compression::Dictionary;
use ingot::records::{Bag, BagOptions, BagWriter, Packer, Packing, path};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::raised;
use crate::own::Own;
use crate::record;
use crate::threads;

/// The file of its limits, its compression, a dictionary, and whether its limits begin with a
/// zero.
pub type BagTuple = (Option<PathBuf>, String, Option<Vec<u8>>, bool);

/// How one bag is read.
pub struct Reading {
    limits: Option<PathBuf>,
    options: BagOptions,
}

impl Reading {
    /// Returns how the bag at `path` is read.
    pub fn new(path: &Path, bag: BagTuple) -> PyResult<Reading> {
        let (limits, compression, dictionary, leading_zero) = bag;
        let packing = match compression.as_str() {
            "none" => Packing::Plain,
            "zstd" => Packing::Zstd(None),
            "auto" => path::packing_of(path),
            other => {
                let message =
                    format!("compression is \"auto\", \"zstd\" or \"none\", not {other:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        let packing = match (packing, dictionary.filter(|dictionary| !dictionary.is_empty())) {
            (Packing::Zstd(_), Some(dictionary)) => {
                let dictionary = Dictionary::new(&dictionary).ok_or_else(|| {
                    PyValueError::new_err("these bytes cannot be a dictionary of zstd")
                })?;
                Packing::Zstd(Some(Arc::new(dictionary)))
            }
            (packing, _) => packing,
        };
        Ok(Reading { limits, options: BagOptions { packing, leading_zero } })
    }

    /// Opens the bag.
    pub fn open(&self, path: &Path) -> ingot::Result<Bag> {
        path::open_bag(path, self.limits.as_deref(), self.options.clone())
    }
}

/// Records that are handed to the engine at a time, at most.
const RUN: usize = 1024;

/// And their bytes, after which a run ends.
const RUN_BYTES: usize = 1 << 20;

#[pyclass(frozen, subclass, name = "BagWriter", module = "ingot._core")]
pub struct PyBagWriter {
    writer: Own<BagWriter>,
}

impl PyBagWriter {
    fn with<T>(&self, py: Python<'_>, call: impl FnOnce(&mut BagWriter) -> T) -> PyResult<T> {
        self.writer.with(py, call)
    }

    fn push_run(&self, py: Python<'_>, run: &mut Vec<Bound<'_, PyBytes>>) -> PyResult<()> {
        let records: Vec<&[u8]> = run.iter().map(|record| record.as_bytes()).collect();
        self.with(py, |writer| py.detach(|| writer.push_many(&records)))?.map_err(raised)?;
        run.clear();
        py.check_signals()
    }
}

#[pymethods]
impl PyBagWriter {
    #[new]
    #[pyo3(signature = (path, limits_path, *, mode, level, dictionary, sync))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        limits_path: Option<PathBuf>,
        mode: &str,
        level: Option<i32>,
        dictionary: Option<&[u8]>,
        sync: bool,
    ) -> PyResult<Self> {
        threads::settle(py)?;
        let existing = match mode {
            "create" => path::Existing::Refuse,
            "replace" => path::Existing::Replace,
            "replace-in-place" => path::Existing::ReplaceInPlace,
            "append" => path::Existing::Continue,
            other => {
                let message = format!(
                    "mode is \"create\", \"replace\", \"replace-in-place\" or \"append\", not {other:?}"
                );
                return Err(PyValueError::new_err(message));
            }
        };
        let dictionary = dictionary.unwrap_or_default();
        let packer = level.map(|level| Packer::new(level, dictionary));
        let packer = packer.transpose().map_err(PyValueError::new_err)?;
        let writer = py
            .detach(|| path::write_bag(&path, limits_path.as_deref(), existing, packer, sync))
            .map_err(raised)?;
        Ok(PyBagWriter { writer: Own::new(writer) })
    }

    /// Add a record; return its number.
    fn append(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
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

    /// Add records.
    fn extend(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let (mut run, mut bytes) = (Vec::new(), 0);
        for record in records.try_iter()? {
            match record?.cast_into::<PyBytes>() {
                Ok(record) => {
                    bytes += record.as_bytes().len();
                    run.push(record);
                }
                Err(other) => {
                    self.push_run(py, &mut run)?;
                    self.append(py, &other.into_inner())?;
                }
            }
            if run.len() == RUN || bytes >= RUN_BYTES {
                self.push_run(py, &mut run)?;
                bytes = 0;
            }
        }
        self.push_run(py, &mut run)
    }

    /// Bring all records so far into the files: readers of separate limits see them.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.flush()))?.map_err(raised)
    }

    /// Complete the bag. A second call does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.close()))?.map_err(raised)
    }

    /// Give the bag up: with its limits at its end nothing appears under its name, with
    /// limits of their own what was flushed stays.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.abandon()))?.map_err(raised)
    }

    /// Whether the writer was closed or abandoned.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |writer| writer.is_closed())
    }

    /// Bytes of the records so far, as they are stored, and of their limits.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |writer| py.detach(|| writer.size()))?.map_err(raised)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |writer| writer.len() as usize)
    }
}
