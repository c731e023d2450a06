//! Bags, and what a bag does not say itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingot::compression::Dictionary;
use ingot::records::{Bag, BagOptions, Existing, Packer, Packing, open_bag, packing_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::record::PyRecordWriter;

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
            "auto" => packing_of(path),
            other => {
                let message =
                    format!("compression is \"auto\", \"zstd\" or \"none\", not {other:?}");
                return Err(PyValueError::new_err(message));
            }
        };
        let packing = match (packing, dictionary.filter(|dictionary| !dictionary.is_empty())) {
            (Packing::Zstd(_), Some(dictionary)) => {
                let dictionary = Dictionary::new(&dictionary)
                    .ok_or_else(|| PyValueError::new_err("not a zstd dictionary"))?;
                Packing::Zstd(Some(Arc::new(dictionary)))
            }
            (packing, _) => packing,
        };
        Ok(Reading { limits, options: BagOptions { packing, leading_zero } })
    }

    /// Opens the bag.
    pub fn open(&self, path: &Path) -> ingot::Result<Bag> {
        open_bag(path, self.limits.as_deref(), self.options.clone())
    }
}

/// Starts a bag, or appends to one.
#[pyfunction]
#[pyo3(signature = (path, limits_path, *, mode, level, dictionary, sync))]
pub fn write_bag(
    py: Python<'_>,
    path: PathBuf,
    limits_path: Option<PathBuf>,
    mode: &str,
    level: Option<i32>,
    dictionary: Option<&[u8]>,
    sync: bool,
) -> PyResult<PyRecordWriter> {
    let existing = match mode {
        "create" => Existing::Refuse,
        "replace" => Existing::Replace,
        "replace-in-place" => Existing::ReplaceInPlace,
        "append" => Existing::Continue,
        other => {
            let message = format!(
                "mode is \"create\", \"replace\", \"replace-in-place\" or \"append\", not {other:?}"
            );
            return Err(PyValueError::new_err(message));
        }
    };
    let packer = level.map(|level| Packer::new(level, dictionary.unwrap_or_default()));
    let packer = packer.transpose().map_err(PyValueError::new_err)?;
    PyRecordWriter::open(py, || {
        ingot::records::write_bag(&path, limits_path.as_deref(), existing, packer, sync)
    })
}
