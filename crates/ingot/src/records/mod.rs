//! A file of rows as a sequence: read one, many or all, append, recover, verify.

mod ahead;
mod batch;
mod chain;
mod contents;
mod fetch;
mod pages;
pub mod path;
mod reader;
mod recovery;
mod segment;
mod training;
mod verify;
mod writer;

pub use ahead::{Ahead, Window};
pub use batch::Value;
pub use fetch::Cell;
pub use reader::{Mode, Reader, Stats};
pub use recovery::{Recovery, append, recover};
pub use training::Compression;
pub use verify::{Damage, Verification};
pub use writer::{Options, Writer};
