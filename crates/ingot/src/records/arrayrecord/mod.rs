//! ArrayRecord files.

mod encoders;
mod options;
mod reader;
mod verify;
mod writer;

pub use options::{Codec as ArCodec, Options as ArOptions};
pub use reader::ArrayRecord;
pub use writer::ArWriter;
