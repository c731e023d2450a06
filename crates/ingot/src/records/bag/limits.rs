//! The table of limits, loaded as it is needed.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::contents::Source;
use crate::error::Result;
use crate::format::Violation;
use crate::format::bag::{self, LIMIT_LEN, Table};
use crate::storage::{Read, ReadAt};

/// Limits that are loaded together.
const BLOCK: u64 = 4096;

/// Where each record of a bag is.
pub struct Limits {
    storage: Arc<dyn ReadAt>,
    name: String,
    table: Table,
    /// Bytes that records can be in.
    records_len: u64,
    blocks: Vec<OnceLock<Box<[u8]>>>,
}

impl Limits {
    /// Returns the limits in `table`, which `storage` must hold.
    pub fn new(storage: Arc<dyn ReadAt>, name: &str, table: Table, records_len: u64) -> Limits {
        let blocks = (0..table.limits.div_ceil(BLOCK)).map(|_| OnceLock::new()).collect();
        Limits { storage, name: name.to_owned(), table, records_len, blocks }
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.table.limits
    }

    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }

    fn extent(&self, block: u64) -> (u64, u64) {
        let first = block * BLOCK;
        let limits = (self.table.limits - first).min(BLOCK);
        (self.table.offset + first * LIMIT_LEN, limits * LIMIT_LEN)
    }

    fn block(&self, block: u64) -> Result<&[u8]> {
        let slot = &self.blocks[block as usize];
        if let Some(limits) = slot.get() {
            return Ok(limits);
        }
        let (offset, len) = self.extent(block);
        let limits = self.source().read(offset, len)?.into_boxed_slice();
        Ok(slot.get_or_init(|| limits))
    }

    /// Returns where record `row`, which must exist, is.
    pub fn range(&self, row: u64) -> Result<Range<u64>> {
        let limit = |row: u64| {
            let block = self.block(row / BLOCK)?;
            Ok(bag::limit(block, row % BLOCK))
        };
        let start = if row == 0 { 0 } else { limit(row - 1)? };
        let end = limit(row)?;
        bag::check(start, end, self.records_len)
            .map_err(|why| self.corrupt(row, why).at_record(row))?;
        Ok(start..end)
    }

    fn corrupt(&self, row: u64, why: Violation) -> crate::error::Error {
        self.source().corrupt(self.table.offset + row * LIMIT_LEN, why)
    }

    /// As [`Limits::range`], but returns `None` instead of reading from the storage.
    pub fn range_loaded(&self, row: u64) -> Option<Result<Range<u64>>> {
        let is_loaded = |row: u64| self.blocks[(row / BLOCK) as usize].get().is_some();
        (is_loaded(row) && is_loaded(row.saturating_sub(1))).then(|| self.range(row))
    }

    /// Brings the limit of record `row`, which must exist, into the cache of the processor if
    /// it is loaded.
    pub fn touch(&self, row: u64) {
        if let Some(limits) = self.blocks[(row / BLOCK) as usize].get() {
            std::hint::black_box(limits[(row % BLOCK * LIMIT_LEN) as usize]);
        }
    }

    /// Loads what it takes to find records, which must exist, in one go. What cannot be
    /// read is reported when its turn comes.
    pub fn load(&self, rows: &[u64]) {
        let mut blocks: Vec<u64> =
            rows.iter().flat_map(|&row| [row.saturating_sub(1) / BLOCK, row / BLOCK]).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.retain(|&block| self.blocks[block as usize].get().is_none());
        let mut bytes: Vec<Box<[u8]>> =
            blocks.iter().map(|&block| vec![0; self.extent(block).1 as usize].into()).collect();
        let mut reads: Vec<Read<'_>> = blocks
            .iter()
            .zip(&mut bytes)
            .map(|(&block, bytes)| Read::new(self.extent(block).0, bytes))
            .collect();
        if self.storage.read_many(&mut reads, &mut |_, _| {}).is_ok() {
            for (block, bytes) in blocks.into_iter().zip(bytes) {
                self.blocks[block as usize].get_or_init(|| bytes);
            }
        }
    }

    /// Returns the same limits for the child of a fork: a thread of the parent may have been
    /// about to load some.
    pub fn after_fork(&self) -> Limits {
        Limits::new(Arc::clone(&self.storage), &self.name, self.table, self.records_len)
    }
}
