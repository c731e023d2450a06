//! The part of Riegeli's record files that ArrayRecord stands on.
//!
//! A file is a row of chunks, each with a header that says how long it is and how its
//! bytes hash. At every multiple of 64 KiB a block header interrupts whatever is there.
//! All fixed numbers are little-endian.

pub mod block;
pub mod chunk;
pub mod simple;
pub mod transposed;

mod coding;
mod hash;

pub use chunk::{Chunk, Kind};
pub use coding::{Coding, Compression, Encoder};
pub(crate) use hash::hash;

pub use super::group::Group;
