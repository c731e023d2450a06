//! A table at the front of a file that says where rows begin, as MDS and LitData have it.

use std::ops::Range;

use super::stream::Stream;
use crate::error::Result;

/// Where the rows of a file are: their number, and where each begins and the last one ends, as
/// numbers of 32 bits.
pub struct Offsets {
    offsets: Vec<u32>,
}

impl Offsets {
    /// Reads the table at the front of a file.
    pub fn read(stream: &mut Stream<'_>) -> Result<Offsets> {
        let head = stream.peek(4)?;
        let count = u64::from(u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
        let len = 4 * (count + 2);
        if len > stream.size() {
            let why = format!("the file declares {count} samples, but is too short");
            return Err(stream.corrupt(0, why));
        }
        let table = stream.peek(len)?;
        let offsets = table[4..].as_chunks().0.iter().map(|&one| u32::from_le_bytes(one)).collect();
        stream.advance(len as usize);
        Ok(Offsets { offsets })
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns where a row is, which must be next in the stream but for bytes that belong to
    /// no row; those are skipped.
    pub fn range(&self, row: usize, stream: &mut Stream<'_>) -> Result<Range<u64>> {
        let range = u64::from(self.offsets[row])..u64::from(self.offsets[row + 1]);
        let at = stream.offset();
        if range.start < at || range.end < range.start || range.end > stream.size() {
            let why = format!("sample {row} is at {} to {}", range.start, range.end);
            return Err(stream.corrupt(4 + 4 * row as u64, why));
        }
        stream.skip(range.start - at)?;
        Ok(range)
    }
}
