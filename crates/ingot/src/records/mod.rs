//! A file of rows as a sequence: read one, many or all, append, recover, verify.

mod ahead;
mod arrayrecord;
mod bag;
mod batch;
mod chain;
mod container;
mod contents;
mod fetch;
mod ffrecord;
mod groups;
mod pages;
pub mod path;
mod reader;
mod recovery;
mod rows;
mod segment;
mod sequence;
mod training;
mod verify;
mod writer;

pub use ahead::{Ahead, Window};
pub use arrayrecord::{ArCodec, ArOptions, ArWriter, ArrayRecord};
pub use bag::{Bag, BagOptions, BagWriter, Packing};
pub use batch::Value;
pub use container::{Cell, Container, Form};
pub use contents::Watch;
pub use fetch::Files;
pub use ffrecord::{FfRecord, FfWriter};
pub use reader::{Mode, Reader, Stats};
pub use recovery::{Recovery, append, recover};
pub use rows::{Rows, Wanted};
pub use sequence::Sequence;
pub use training::Compression;
pub use verify::{Damage, Verification};
pub use writer::{Options, Writer};
