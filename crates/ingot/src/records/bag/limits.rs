//! The table of limits, loaded as it is needed.

use std::ops::Range;
use std::sync::Arc;

use super::super::cache::{Block, Blocks};
use super::super::locate::Missing;
use super::super::source::Source;
use crate::error::Result;
use crate::format::Violation;
use crate::format::bag::{self, LIMIT_LEN, Table};
use crate::storage::ReadAt;

/// Limits that are loaded together.
const BLOCK: u64 = 4096;

/// Where each record of a bag is.
#[derive(Clone)]
pub struct Limits {
    storage: Arc<dyn ReadAt>,
    name: String,
    table: Table,
    /// Bytes that records can be in.
    records_len: u64,
    blocks: Blocks<Vec<u8>>,
}

impl Limits {
    /// Returns the limits in `table`, which `storage` must hold.
    pub fn new(storage: Arc<dyn ReadAt>, name: &str, table: Table, records_len: u64) -> Limits {
        let blocks = Blocks::new(table.limits.div_ceil(BLOCK) as usize);
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

    /// Returns the limit of record `row`, and loads its block if need be.
    fn limit(&self, row: u64) -> Result<u64> {
        let block = (row / BLOCK) as usize;
        if let Some(limits) = self.blocks.get(block) {
            return Ok(bag::limit(&limits, row % BLOCK));
        }
        let (offset, len) = self.extent(block as u64);
        let limits = self.load(block, self.source().read(offset, len)?);
        Ok(bag::limit(&limits, row % BLOCK))
    }

    /// Takes the bytes of a block.
    pub fn load(&self, block: usize, bytes: Vec<u8>) -> Arc<Block<Vec<u8>>> {
        let len = bytes.len();
        self.blocks.put(block, bytes, len)
    }

    /// Returns where record `row`, which must exist, is.
    pub fn range(&self, row: u64) -> Result<Range<u64>> {
        let start = if row == 0 { 0 } else { self.limit(row - 1)? };
        let end = self.limit(row)?;
        bag::check(start, end, self.records_len)
            .map_err(|why| self.corrupt(row, why).at_record(row))?;
        Ok(start..end)
    }

    fn corrupt(&self, row: u64, why: Violation) -> crate::error::Error {
        self.source().corrupt(self.table.offset + row * LIMIT_LEN, why)
    }

    /// As [`Limits::range`], but returns `None` instead of reading from the storage.
    pub fn range_loaded(&self, row: u64) -> Option<Result<Range<u64>>> {
        let is_loaded = |row: u64| self.blocks.has((row / BLOCK) as usize);
        (is_loaded(row) && is_loaded(row.saturating_sub(1))).then(|| self.range(row))
    }

    /// Brings the limit of record `row`, which must exist, into the cache of the processor if
    /// it is loaded.
    pub fn touch(&self, row: u64) {
        if let Some(limits) = self.blocks.get((row / BLOCK) as usize) {
            std::hint::black_box(limits[(row % BLOCK * LIMIT_LEN) as usize]);
        }
    }

    /// Returns the blocks that are not loaded and that it takes to find records.
    pub fn missing(&self, rows: &[u64]) -> Vec<Missing<'_>> {
        let mut blocks: Vec<u64> =
            rows.iter().flat_map(|&row| [row.saturating_sub(1) / BLOCK, row / BLOCK]).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.retain(|&block| !self.blocks.has(block as usize));
        let missing = blocks.into_iter().map(|number| {
            let (offset, len) = self.extent(number);
            Missing { number, source: self.source(), offset, len }
        });
        missing.collect()
    }
}
