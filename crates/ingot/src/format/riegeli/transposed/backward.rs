//! Bytes that are written from their end to their beginning.

use super::super::coding::zeros;
use crate::format::{Violation, bail};

/// Room that is made at first, beyond what the values take.
const SLACK: usize = 4096;

/// A buffer that grows at its front, up to a limit.
pub struct Backward {
    /// What is written stands at the end.
    bytes: Vec<u8>,
    start: usize,
    limit: usize,
}

impl Backward {
    /// Returns an empty buffer for at most `limit` bytes, probably more than `expected`.
    pub fn new(expected: usize, limit: usize) -> Result<Backward, Violation> {
        let room = expected.saturating_add(expected / 2).saturating_add(SLACK).min(limit);
        Ok(Backward { bytes: zeros(room)?, start: room, limit })
    }

    /// Number of bytes written.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Number of bytes that may still be written.
    pub fn room(&self) -> usize {
        self.limit - self.len()
    }

    /// Puts `bytes` in front of what was written before.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        if bytes.len() > self.start {
            self.grow(bytes.len())?;
        }
        let end = self.start;
        self.start -= bytes.len();
        self.bytes[self.start..end].copy_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn grow(&mut self, more: usize) -> Result<(), Violation> {
        if more > self.room() {
            bail!("the records have more than the {} bytes that the chunk says", self.limit);
        }
        let len = self.len();
        let mut bytes = zeros((2 * (len + more)).min(self.limit))?;
        let start = bytes.len() - len;
        bytes[start..].copy_from_slice(&self.bytes[self.start..]);
        (self.bytes, self.start) = (bytes, start);
        Ok(())
    }

    /// Returns what was written, which must be as much as can be.
    pub fn finish(self) -> Result<Vec<u8>, Violation> {
        if self.len() != self.limit {
            bail!("the records have {} bytes, the chunk says {}", self.len(), self.limit);
        }
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepended_bytes_come_first() {
        let mut out = Backward::new(3, 10_000).unwrap();
        out.put(&[3; 4990]).unwrap();
        out.put(b"").unwrap();
        out.put(&[2; 5000]).unwrap();
        assert_eq!((out.len(), out.room()), (9990, 10));
        assert!(out.put(&[9; 11]).is_err());
        out.put(&[1; 10]).unwrap();
        assert!(out.put(b"0").is_err());
        let expected = [[1; 10].as_slice(), &[2; 5000], &[3; 4990]].concat();
        assert!(out.finish().unwrap() == expected);
        assert!(Backward::new(0, 1).unwrap().finish().is_err());
        assert_eq!(Backward::new(7, 0).unwrap().finish().unwrap(), b"");
    }
}
