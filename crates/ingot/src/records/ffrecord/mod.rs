//! FFRecord files: read as a container, and written byte for byte as FFRecord does.

mod reader;
mod writer;

pub use reader::FfRecord;
pub use writer::{FfWriter, Room};
