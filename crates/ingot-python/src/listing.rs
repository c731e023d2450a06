//! `ingot._core.Listing`: the files of a data set, as a manifest lists them.

use std::path::{Path, PathBuf};

use ingot::format::manifest::{Manifest, Shard};
use ingot::records::{Listed, find_odd};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::raised;
use crate::object;

/// A file as Python has it: name, rows, size, id.
type ShardTuple = (String, u64, u64, Option<String>);

/// A list of files, or why it was rejected.
#[derive(IntoPyObject)]
enum Parsed {
    Files(PyListing),
    Refused(String),
}

fn told(Shard { name, rows, nbytes, id }: &Shard) -> ShardTuple {
    (name.clone(), *rows, *nbytes, id.clone())
}

#[pyclass(frozen, name = "Listing", module = "ingot._core")]
pub struct PyListing {
    shards: Vec<Shard>,
}

#[pymethods]
impl PyListing {
    #[new]
    fn new(shards: Vec<ShardTuple>) -> Self {
        let shards = shards
            .into_iter()
            .map(|(name, rows, nbytes, id)| Shard { name, rows, nbytes, id })
            .collect();
        PyListing { shards }
    }

    /// Takes the list out of a JSON object, or says what is wrong with it; also returns the
    /// other members as JSON.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &[u8]) -> PyResult<(Parsed, String)> {
        let found = py.detach(|| Manifest::decode(text));
        let found = found.map_err(|why| PyValueError::new_err(why.to_string()))?;
        let parsed = match found.shards {
            Ok(shards) => Parsed::Files(PyListing { shards }),
            Err(why) => Parsed::Refused(why.to_string()),
        };
        Ok((parsed, found.rest))
    }

    fn __len__(&self) -> usize {
        self.shards.len()
    }

    /// Returns a file.
    fn shard(&self, number: usize) -> PyResult<ShardTuple> {
        let found = self.shards.get(number).map(told);
        found.ok_or_else(|| PyValueError::new_err(format!("file {number} does not exist")))
    }

    /// Returns the files.
    fn shards(&self) -> Vec<ShardTuple> {
        self.shards.iter().map(told).collect()
    }

    /// Returns the names of the files.
    fn names(&self) -> Vec<&str> {
        self.shards.iter().map(|shard| shard.name.as_str()).collect()
    }

    /// The sizes of the files together.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.shards.iter().fold(0, |sum, shard| sum.saturating_add(shard.nbytes))
    }

    /// Returns the list of the first `count` files.
    fn first(&self, count: usize) -> PyListing {
        PyListing { shards: self.shards.iter().take(count).cloned().collect() }
    }

    /// Returns bytes that differ between lists.
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        for Shard { name, rows, nbytes, id } in &self.shards {
            let id = id.as_deref().unwrap_or("-");
            bytes.extend_from_slice(format!("{name} {rows} {nbytes} {id}\n").as_bytes());
        }
        object::bytes(py, &bytes)
    }

    /// Returns the first file in a folder whose size differs, and its size, which is None if the
    /// file does not exist.
    fn odd(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Option<(usize, Option<u64>)>> {
        let odd = py.detach(|| find_odd(&folder, &self.shards)).map_err(raised)?;
        Ok(odd.map(|odd| (odd.number, odd.found)))
    }
}

impl PyListing {
    /// Returns the files in a folder, to be opened when they are needed.
    pub fn listed(&self, folder: &Path) -> Vec<Listed> {
        let shards = self.shards.iter();
        shards
            .map(|shard| Listed {
                path: folder.join(&shard.name),
                rows: shard.rows,
                id: shard.id.as_deref().and_then(id_of),
            })
            .collect()
    }
}

fn id_of(digits: &str) -> Option<[u8; 16]> {
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}
