//! Bags: the files of Bagz and Granular.

mod limits;
mod reader;
mod writer;

pub use reader::{Bag, BagOptions, Packing};
pub use writer::{BagWriter, Placement};
