//! Bags: the files of Bagz and Granular.

mod limits;
mod packer;
mod reader;
mod writer;

pub use packer::Packer;
pub use reader::{Bag, BagOptions, Packing};
pub use writer::{BagWriter, Placement};
