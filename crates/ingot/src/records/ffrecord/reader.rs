//! An FFRecord file as a container.

use std::sync::Arc;

use super::super::container::Stats;
use super::super::container::{Cell, Container, Form};
use super::super::fetch::Files;
use super::super::source::Source;
use super::super::verification::{Verification, verify_records};
use crate::compression::Codec;
use crate::crc::Sum;
use crate::error::Result;
use crate::format::Violation;
use crate::format::ffrecord::{HEAD_LEN, Index, measure};
use crate::storage::ReadAt;

/// An FFRecord file, open for reading. The whole index is in memory.
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

impl Container for FfRecord {
    fn name(&self) -> &str {
        &self.name
    }

    fn storage(&self) -> &Arc<dyn ReadAt> {
        &self.storage
    }

    fn num_rows(&self) -> u64 {
        self.index.len()
    }

    fn find(&self, row: u64) -> Result<Cell> {
        let entry = self.index.entry(row).map_err(|why| {
            Source::of(self).corrupt(self.index.places(row).1 as u64, why).at_record(row)
        })?;
        let (sum, before) = if self.check { (Sum::Crc32, 0) } else { (Sum::None, entry.crc) };
        Ok(Cell {
            row,
            offset: entry.offset,
            stored: entry.len,
            raw: entry.len,
            sum,
            before,
            crc: entry.crc,
            file: 0,
            codec: Codec::None,
            dictionary: 0,
            form: Form::Alone,
        })
    }

    fn touch(&self, row: u64) {
        let (crc_at, offset_at) = self.index.places(row);
        let bytes = self.index.bytes();
        std::hint::black_box(bytes[crc_at] ^ bytes[offset_at]);
    }

    fn stats(&self) -> Stats {
        Stats {
            rows: self.index.len(),
            cells: self.index.len(),
            file_bytes: self.file_bytes,
            index_bytes: self.index.bytes().len() as u64,
            pages: 1,
            closed: true,
            ..Stats::default()
        }
    }

    fn metadata(&self) -> &str {
        "{}"
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
        Arc::new(FfRecord {
            storage: Arc::clone(&self.storage),
            name: self.name.clone(),
            index: Arc::clone(&self.index),
            ..*self
        })
    }
}

impl Files for FfRecord {
    fn file(&self, _number: u32) -> &dyn Container {
        self
    }
}
