//! `ingot._core.FFRecordWriter` and the tree of packed folders.

use std::path::PathBuf;

use ingot::Error;
use ingot::format::ffrecord::tree::{self, Folder, Node};
use ingot::records::{FfWriter, path};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::raised;
use crate::own::Own;
use crate::record;

#[pyclass(frozen, subclass, name = "FFRecordWriter", module = "ingot._core")]
pub struct PyFfWriter {
    writer: Own<FfWriter>,
}

impl PyFfWriter {
    fn with<T>(&self, py: Python<'_>, call: impl FnOnce(&mut FfWriter) -> T) -> PyResult<T> {
        self.writer.with(py, call)
    }
}

#[pymethods]
impl PyFfWriter {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, n: Option<u64>, sync: bool) -> PyResult<Self> {
        let writer = py.detach(|| path::write_ffrecord(&path, n, sync)).map_err(raised)?;
        Ok(PyFfWriter { writer: Own::new(writer) })
    }

    fn append(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        record::with_bytes(record, |bytes| {
            self.with(py, |writer| {
                if bytes.len() < record::SMALL {
                    writer.push(bytes)
                } else {
                    py.detach(|| writer.push(bytes))
                }
            })?
            .map_err(raised)
        })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.close()))?.map_err(raised)
    }

    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| py.detach(|| writer.abandon()))?.map_err(raised)
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |writer| writer.is_closed())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |writer| writer.len() as usize)
    }
}

/// Returns the tree of a packed folder: names to record numbers, or to dicts again. `path`
/// is what errors call the file.
#[pyfunction]
pub fn decode_tree<'py>(
    py: Python<'py>,
    record: &[u8],
    num_files: u64,
    path: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let root = py.detach(|| tree::decode(record, num_files)).map_err(|why| {
        let reason = format!("the tree of the packed folder: {why}");
        raised(Error::Corrupt { path: path.to_owned(), record: Some(num_files), offset: 0, reason })
    })?;
    dict_of(py, &root)
}

/// A tree is not so deep that this could not recurse.
fn dict_of<'py>(py: Python<'py>, folder: &Folder) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, node) in folder.entries() {
        let name = PyBytes::new(py, name).call_method1("decode", ("utf-8", "surrogatepass"))?;
        match node {
            Node::File(record) => dict.set_item(name, record)?,
            Node::Folder(folder) => dict.set_item(name, dict_of(py, folder)?)?,
        }
    }
    Ok(dict)
}
