//! How much values may grow when they are decoded.

use ingot::limit;
use pyo3::prelude::*;

/// Return by how many bytes the values of a batch may grow when they are decoded.
#[pyfunction]
pub fn max_decoded_bytes() -> u64 {
    limit::max_decoded_bytes()
}

/// Sets by how many bytes the values of a batch may grow when they are decoded.
#[pyfunction]
pub fn set_max_decoded_bytes(nbytes: u64) {
    limit::set_max_decoded_bytes(nbytes);
}
