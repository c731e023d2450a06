//! FFRecord files and the tree of packed folders.

use std::path::PathBuf;

use ingot::Error;
use ingot::format::ffrecord::tree::{self, Folder, Node};
use ingot::records;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::raised;
use crate::record::PyRecordWriter;

/// Starts an FFRecord file of exactly `n` records, or of any number.
#[pyfunction]
pub fn write_ffrecord(
    py: Python<'_>,
    path: PathBuf,
    n: Option<u64>,
    sync: bool,
) -> PyResult<PyRecordWriter> {
    PyRecordWriter::open(py, || records::write_ffrecord(&path, n, sync))
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
