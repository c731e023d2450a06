//! Bytes in memory.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use super::{Append, Cost, Landed, Read, ReadAt, past_end};

/// A storage in memory. Clones share the bytes, so that what is appended through
/// one handle is read through another.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    bytes: Arc<RwLock<Vec<u8>>>,
}

impl Memory {
    /// Returns an empty storage.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Returns a copy of all the bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.look(Vec::clone)
    }

    fn look<T>(&self, look: impl FnOnce(&Vec<u8>) -> T) -> T {
        look(&self.bytes.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        change(&mut self.bytes.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl From<Vec<u8>> for Memory {
    fn from(bytes: Vec<u8>) -> Memory {
        Memory { bytes: Arc::new(RwLock::new(bytes)) }
    }
}

impl ReadAt for Memory {
    fn size(&self) -> io::Result<u64> {
        Ok(self.look(|bytes| bytes.len() as u64))
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        self.read_ready(reads, landed);
    }

    fn read_ready(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) -> Vec<usize> {
        for (k, read) in reads.iter_mut().enumerate() {
            let outcome = self.look(|bytes| {
                let wanted = within(bytes.len(), read.offset, read.buf.len())?;
                read.buf.copy_from_slice(&bytes[wanted]);
                Ok(())
            });
            landed(k, read.add_up(), outcome);
        }
        Vec::new()
    }

    fn is_ready(&self, _ranges: &[std::ops::Range<u64>]) -> bool {
        true
    }

    fn cost(&self) -> Cost {
        Cost::MEMORY
    }
}

impl Append for Memory {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.change(|held| held.extend_from_slice(bytes));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.change(|held| {
            let len = within(held.len(), len, 0)?.start;
            held.truncate(len);
            Ok(())
        })
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(|held| {
            let wanted = within(held.len(), offset, bytes.len())?;
            held[wanted].copy_from_slice(bytes);
            Ok(())
        })
    }
}

/// Returns `offset..offset + len` if it is within `0..size`; an empty range always is.
pub(super) fn within(size: usize, offset: u64, len: usize) -> io::Result<std::ops::Range<usize>> {
    let start = match usize::try_from(offset) {
        Ok(start) if start <= size => start,
        _ if len == 0 => size,
        _ => return Err(past_end()),
    };
    match start.checked_add(len) {
        Some(end) if end <= size => Ok(start..end),
        _ => Err(past_end()),
    }
}
