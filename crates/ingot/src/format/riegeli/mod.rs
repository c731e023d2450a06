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
mod varint;

pub use chunk::{Chunk, Kind};
pub use coding::{Coding, Compression};

/// The records of a chunk, one behind the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Their bytes.
    pub bytes: Vec<u8>,
    /// Where each of them ends.
    pub ends: Vec<usize>,
}

impl Group {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns where record `k`, which must exist, begins and ends.
    pub fn range(&self, k: usize) -> std::ops::Range<usize> {
        k.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[k]
    }

    /// Returns record `k`, which must exist.
    pub fn record(&self, k: usize) -> &[u8] {
        &self.bytes[self.range(k)]
    }

    /// Adds a record at the end.
    pub fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    /// Removes all records and keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
