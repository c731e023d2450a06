//! Rows of HDF5 files, read from where the HDF5 library says that they lie, without it.

mod column;
mod file;
mod heaps;

pub use column::{Column, ColumnLayout};
pub use file::{Hdf5, Share};
