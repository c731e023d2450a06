//! An FFRecord file as a container.

use std::sync::Arc;

use super::super::container::{Cell, Container, Form, Stats, Stored};
use super::super::source::Source;
use super::super::verification::{Verification, verify_records};
use crate::crc::Sum;
use crate::error::Result;
use crate::format::Violation;
use crate::format::ffrecord::{HEAD_LEN, Index, measure};
use crate::storage::ReadAt;

/// An FFRecord file, open for reading. The whole index is in memory.
#[derive(Clone)]
pub struct FfRecord {
    storage: Arc<dyn ReadAt>,
    name: String,
    index: Arc<Index>,
    file_bytes: u64,
    check: bool,
}

impl FfRecord {
    /// Opens a file and reads its index; `name` is what errors call it. Without `check`
    /// neither the index nor records are verified.
    pub fn open(storage: Arc<dyn ReadAt>, name: &str, check: bool) -> Result<FfRecord> {
        let source = Source { storage: &*storage, name };
        let size = source.size()?;
        let corrupt = |why: Violation| source.corrupt(0, why);
        let head = source.read(0, size.min(HEAD_LEN as u64))?;
        let len = measure(&head, size).map_err(corrupt)?;
        let index = Index::decode(source.read(0, len)?, size, check).map_err(corrupt)?;
        let (name, index) = (name.to_owned(), Arc::new(index));
        Ok(FfRecord { storage, name, index, file_bytes: size, check })
    }

    /// Returns the index.
    pub fn index(&self) -> &Index {
        &self.index
    }
}

impl Stored for FfRecord {
    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }
}

impl Container for FfRecord {
    fn num_rows(&self) -> u64 {
        self.index.len()
    }

    fn find(&self, row: u64) -> Option<Result<Cell>> {
        let found = self.index.entry(row).map(|entry| {
            let (sum, before) = if self.check { (Sum::Crc32, 0) } else { (Sum::None, entry.crc) };
            let range = entry.offset..entry.offset + entry.len;
            let cell = Cell::unsummed(row, range, entry.len, Form::Alone);
            Cell { sum, before, crc: entry.crc, ..cell }
        });
        Some(found.map_err(|why| {
            self.source().corrupt(self.index.places(row).1 as u64, why).at_record(row)
        }))
    }

    fn touch(&self, row: u64) {
        let (crc_at, offset_at) = self.index.places(row);
        let bytes = self.index.bytes();
        std::hint::black_box(bytes[crc_at] ^ bytes[offset_at]);
    }

    fn stats(&self) -> Stats {
        let index_bytes = self.index.bytes().len() as u64;
        Stats::of_records(self.num_rows(), self.file_bytes, index_bytes)
    }

    fn fingerprint(&self) -> Result<Vec<u8>> {
        let head = &self.index.bytes()[..HEAD_LEN];
        Ok([head, &self.file_bytes.to_le_bytes()].concat())
    }

    fn info(&self) -> String {
        let (legacy, intact) = (self.index.is_legacy(), self.index.is_intact());
        format!(r#"{{"legacy": {legacy}, "intact": {intact}}}"#)
    }

    fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        verify_records(self, progress)
    }

    fn after_fork(&self) -> Arc<dyn Container> {
        Arc::new(self.clone())
    }
}
