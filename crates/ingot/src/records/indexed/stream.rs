//! The bytes of a file from front to end.

use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::records::source::Source;

/// Bytes that are read at a time.
const CHUNK: usize = 4 << 20;

/// A row that is next in a stream: its length, and where the one behind it begins.
pub struct Extent {
    /// Bytes of the row.
    pub len: usize,
    /// Bytes of the row and of what separates it from the next.
    pub next: usize,
}

/// The bytes of a file, one after the other. Holds a few megabytes of them, or as much as one
/// call asks for.
pub struct Stream<'a> {
    source: Source<'a>,
    size: u64,
    /// Bytes of the file from `start` on.
    buffer: Vec<u8>,
    start: u64,
    /// What was taken of the buffer.
    taken: usize,
    /// The CRC-32C of what was read.
    crc: u32,
    progress: &'a dyn Fn(u64) -> Result<()>,
}

impl<'a> Stream<'a> {
    /// Returns the bytes of a storage. `progress` is called with how many bytes more were
    /// read, and stops the work by an error.
    pub fn of(source: Source<'a>, progress: &'a dyn Fn(u64) -> Result<()>) -> Result<Stream<'a>> {
        let size = source.size()?;
        Ok(Stream { source, size, buffer: Vec::new(), start: 0, taken: 0, crc: 0, progress })
    }

    /// What errors call the file.
    pub fn name(&self) -> &str {
        self.source.name
    }

    /// Where the next byte is.
    pub fn offset(&self) -> u64 {
        self.start + self.taken as u64
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.size - self.offset()
    }

    /// Returns the error for something at an offset.
    pub fn corrupt(&self, offset: u64, why: impl Into<String>) -> Error {
        self.source.corrupt(offset, why)
    }

    /// Returns the next `len` bytes without taking them.
    pub fn peek(&mut self, len: u64) -> Result<&[u8]> {
        if len > self.left() {
            let left = self.left();
            let why = format!("the file ends here: {len} bytes are missing, {left} are left");
            return Err(self.corrupt(self.offset(), why));
        }
        let len = len as usize;
        if self.buffer.len() - self.taken < len {
            self.fill(len)?;
        }
        Ok(&self.buffer[self.taken..self.taken + len])
    }

    fn fill(&mut self, len: usize) -> Result<()> {
        self.buffer.drain(..self.taken);
        self.start += self.taken as u64;
        self.taken = 0;
        let have = self.buffer.len();
        let end = self.start + have as u64;
        let more = (len.max(CHUNK) - have).min((self.size - end) as usize);
        self.source.make_room(&mut self.buffer, (have + more) as u64)?;
        self.source.read_into(end, &mut self.buffer[have..])?;
        self.crc = Sum::Crc32c.append(self.crc, &self.buffer[have..]);
        (self.progress)(more as u64)
    }

    /// Takes bytes that were peeked at.
    pub fn advance(&mut self, len: usize) {
        self.taken += len;
        assert!(self.taken <= self.buffer.len(), "these bytes were peeked at");
    }

    /// Takes the next bytes, at most `len` and at least one of those.
    pub fn some(&mut self, len: u64) -> Result<&[u8]> {
        let have = (self.buffer.len() - self.taken) as u64;
        let len = if have == 0 { len.min(CHUNK as u64) } else { len.min(have) };
        self.peek(len)?;
        let start = self.taken;
        self.taken += len as usize;
        Ok(&self.buffer[start..self.taken])
    }

    /// Returns the next buffered bytes without taking them; none at the end.
    pub fn ready(&mut self) -> Result<&[u8]> {
        let have = (self.buffer.len() - self.taken) as u64;
        self.peek(if have == 0 { self.left().min(CHUNK as u64) } else { have })
    }

    /// Skips bytes, which are read all the same.
    pub fn skip(&mut self, mut len: u64) -> Result<()> {
        while len > 0 {
            len -= self.some(len)?.len() as u64;
        }
        Ok(())
    }

    /// Reads what is left, and returns the CRC-32C of all bytes of the file.
    pub fn finish(&mut self) -> Result<u32> {
        self.skip(self.left())?;
        Ok(self.crc)
    }

    /// Returns where the first byte that `end` finds is, from the next byte on, and looks at
    /// ever more bytes for it. `end` gets the bytes and whether they are the last.
    pub fn find<T>(
        &mut self,
        mut end: impl FnMut(&[u8], bool) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut len = (64 << 10).min(self.left());
        loop {
            let is_last = len == self.left();
            if let Some(found) = end(self.peek(len)?, is_last)? {
                return Ok(Some(found));
            }
            if is_last {
                return Ok(None);
            }
            len = len.saturating_mul(4).min(self.left());
        }
    }
}
