//! `ingot._core.Listing`: the files of a data set, as a manifest lists them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ingot::format::manifest::{self, Manifest, Shard};
use ingot::records::{Columns, Deleted, Listed, find_odd, id_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::raised;
use crate::object;

/// A file of rows as Python has it: name, rows, size, id, deleted rows, files of columns.
type ShardTuple<C> = (String, u64, u64, Option<String>, Option<DeletedTuple>, C);

/// A bitmap of deleted rows: name, size, id, how many are deleted.
type DeletedTuple = (String, u64, String, u64);

/// A file of columns: name, size, id, fields.
type ColumnsTuple<F> = (String, u64, String, F);

/// A file as it is returned, which can be hashed.
type Hashable<'py> = ShardTuple<Bound<'py, PyTuple>>;

/// A file of rows, with or without what may come on top of it.
#[derive(FromPyObject)]
enum ShardLike {
    Layered(ShardTuple<Vec<ColumnsTuple<Vec<String>>>>),
    Plain((String, u64, u64, Option<String>)),
}

/// A list of files, or why it was rejected.
#[derive(IntoPyObject)]
enum Parsed {
    Files(PyListing),
    Refused(String),
}

fn told<'py>(py: Python<'py>, shard: &Shard) -> PyResult<Hashable<'py>> {
    let Shard { name, rows, nbytes, id, deleted, columns } = shard.clone();
    let deleted = deleted.map(|one| (one.name, one.nbytes, one.id, one.count));
    let columns = columns.into_iter().map(|one| {
        let fields = PyTuple::new(py, one.fields)?;
        Ok::<ColumnsTuple<_>, PyErr>((one.name, one.nbytes, one.id, fields))
    });
    let columns = PyTuple::new(py, columns.collect::<PyResult<Vec<_>>>()?)?;
    Ok((name, rows, nbytes, id, deleted, columns))
}

fn shard_of(given: ShardLike) -> Shard {
    let (name, rows, nbytes, id, deleted, columns) = match given {
        ShardLike::Layered(shard) => shard,
        ShardLike::Plain((name, rows, nbytes, id)) => (name, rows, nbytes, id, None, Vec::new()),
    };
    let deleted =
        deleted.map(|(name, nbytes, id, count)| manifest::Deleted { name, nbytes, id, count });
    let column = |(name, nbytes, id, fields)| manifest::Columns { name, nbytes, id, fields };
    let columns = columns.into_iter().map(column).collect();
    Shard { name, rows, nbytes, id, deleted, columns }
}

#[pyclass(frozen, name = "Listing", module = "ingot._core")]
pub struct PyListing {
    shards: Vec<Shard>,
}

#[pymethods]
impl PyListing {
    #[new]
    fn new(shards: Vec<ShardLike>) -> Self {
        PyListing { shards: shards.into_iter().map(shard_of).collect() }
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
    fn shard<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Hashable<'py>> {
        let missing = || PyValueError::new_err(format!("file {number} does not exist"));
        told(py, self.shards.get(number).ok_or_else(missing)?)
    }

    /// Returns the files.
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Vec<Hashable<'py>>> {
        self.shards.iter().map(|shard| told(py, shard)).collect()
    }

    /// Returns the names of the files of rows.
    fn names(&self) -> Vec<&str> {
        self.shards.iter().map(|shard| shard.name.as_str()).collect()
    }

    /// Returns the names of all files: of rows, of deleted ones, and of columns.
    fn files(&self) -> Vec<&str> {
        self.shards.iter().flat_map(Shard::names).collect()
    }

    /// The sizes of the files together.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.shards.iter().fold(0, |sum, shard| sum.saturating_add(shard.num_bytes()))
    }

    /// Returns the list of the first `count` files.
    fn first(&self, count: usize) -> PyListing {
        PyListing { shards: self.shards.iter().take(count).cloned().collect() }
    }

    /// Returns bytes that differ between lists.
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut text = String::new();
        for shard in &self.shards {
            append_content(shard, &mut text);
        }
        object::bytes(py, text.as_bytes())
    }

    /// Returns the first file in a folder whose size differs: the number of its shard, its name,
    /// the size that is listed, and the one that it has, which is None if the file does not exist.
    fn odd(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Option<OddTuple>> {
        let odd = py.detach(|| find_odd(&folder, &self.shards)).map_err(raised)?;
        Ok(odd.map(|odd| (odd.number, odd.name, odd.listed, odd.found)))
    }
}

type OddTuple = (usize, String, u64, Option<u64>);

/// Appends a line that differs between shards. Saved states of loaders contain its digest.
fn append_content(shard: &Shard, text: &mut String) {
    let Shard { name, rows, nbytes, id, deleted, columns } = shard;
    let id = id.as_deref().unwrap_or("-");
    let _ = write!(text, "{name} {rows} {nbytes} {id}");
    if let Some(manifest::Deleted { name, id, count, .. }) = deleted {
        let _ = write!(text, " -{name}:{id}:{count}");
    }
    for manifest::Columns { name, id, fields, .. } in columns {
        let _ = write!(text, " +{name}:{id}:{}", fields.join(","));
    }
    text.push('\n');
}

impl PyListing {
    /// Returns the shards in a folder, to be opened when they are needed.
    pub fn listed(&self, folder: &Path) -> PyResult<Vec<Listed>> {
        self.shards.iter().map(|shard| listed(shard, folder)).collect()
    }
}

fn listed(shard: &Shard, folder: &Path) -> PyResult<Listed> {
    let known = |name: &str, id: &str| {
        let wrong = || format!("{name}: an id is 32 hexadecimal digits, not {id:?}");
        id_of(id).ok_or_else(|| PyValueError::new_err(wrong()))
    };
    let deleted = shard.deleted.as_ref().map(|one| {
        let (path, count) = (folder.join(&one.name), one.count);
        Ok::<_, PyErr>(Deleted { path, id: known(&one.name, &one.id)?, count })
    });
    let columns = shard.columns.iter().map(|one| {
        let (path, fields) = (folder.join(&one.name), one.fields.clone());
        Ok(Columns { path, id: known(&one.name, &one.id)?, fields })
    });
    Ok(Listed {
        path: folder.join(&shard.name),
        rows: shard.rows,
        id: shard.id.as_deref().and_then(id_of),
        deleted: deleted.transpose()?,
        columns: columns.collect::<PyResult<_>>()?,
    })
}
