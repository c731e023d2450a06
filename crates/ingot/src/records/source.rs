//! Where the bytes of a file are, and what errors call it.

use crate::compression::Failure;
use crate::error::{Error, Result};
use crate::storage::{Read, ReadAt};

/// A storage with the name to call it by in errors.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// Where the bytes are.
    pub storage: &'a dyn ReadAt,
    /// What errors call it.
    pub name: &'a str,
}

impl Source<'_> {
    /// Returns the size of the file.
    pub fn size(&self) -> Result<u64> {
        self.storage.size().map_err(|source| self.failed(0, source))
    }

    /// Reads `len` bytes at `offset`; the caller has checked that the file could hold them.
    pub fn read(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.make_room(&mut bytes, len)?;
        self.read_into(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Fills `bytes` from `offset`.
    pub fn read_into(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let mut found = Ok(());
        self.storage
            .read_many(&mut [Read::new(offset, bytes)], &mut |_, _, outcome| found = outcome);
        found.map_err(|source| self.failed(offset, source))
    }

    /// Makes a buffer at least `len` bytes long, or says that there is no memory for it.
    pub fn make_room(&self, buffer: &mut Vec<u8>, len: u64) -> Result<()> {
        let wanted = usize::try_from(len).unwrap_or(usize::MAX);
        let more = wanted.saturating_sub(buffer.len());
        buffer.try_reserve_exact(more).map_err(|_| Error::memory(self.name, len))?;
        buffer.resize(buffer.len() + more, 0);
        Ok(())
    }

    /// Returns the error for a read at `offset` that failed. A file that ends too
    /// early is damaged, not unreadable.
    pub fn failed(&self, offset: u64, source: std::io::Error) -> Error {
        if source.kind() == std::io::ErrorKind::UnexpectedEof {
            return self.corrupt(offset, "the file ends here: it is truncated");
        }
        super::draft::failed(self.name, offset, "read", source)
    }

    /// Returns the error for damage at `offset`.
    pub fn corrupt(&self, offset: u64, why: impl Into<String>) -> Error {
        Error::Corrupt { path: self.name.to_owned(), record: None, offset, reason: why.into() }
    }

    /// Returns the error for the bytes at `offset` that could not be decoded.
    pub fn undecoded(&self, offset: u64, failure: Failure) -> Error {
        match failure {
            Failure::Damaged(why) => self.corrupt(offset, why),
            Failure::Memory(bytes) => Error::memory(self.name, bytes),
            Failure::Limit(reason) => Error::format(self.name, reason),
        }
    }
}

/// Called now and then by long work; an error stops it.
pub type Watch<'a> = dyn FnMut() -> Result<()> + 'a;
