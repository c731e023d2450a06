//! ArrayRecord files.

mod reader;
mod verify;
mod writer;

pub use reader::ArrayRecord;
pub use writer::{ArWriter, Codec as ArCodec, Options as ArOptions};
