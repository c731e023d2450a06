//! The table of formats.

use ingot::records::FORMATS;
use pyo3::prelude::*;

/// A format: its name, what its files are called, how their names end, and whether every record
/// has a checksum.
type FormatTuple = (&'static str, &'static str, Vec<&'static str>, bool);

/// Returns the formats of record files.
#[pyfunction]
pub fn formats() -> Vec<FormatTuple> {
    let each = FORMATS.iter();
    each.map(|one| (one.name, one.title, one.suffixes.to_vec(), one.is_checked)).collect()
}
