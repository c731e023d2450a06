//! The index pages of a file, loaded when they are first needed.

use std::sync::Arc;

use super::super::cache::{Block, Blocks, Loaded};
use super::super::locate::Missing;
use super::super::source::Source;
use crate::error::Result;
use crate::format::checksum::Seed;
use crate::format::ingot::{Page, PageEntry, Schema};
use crate::format::{Violation, bail};

/// Finds the page of a row. Pages stay in memory as [`Blocks`] do.
pub struct Pages {
    entries: Vec<PageEntry>,
    /// For each page the number of the row and of the cell behind its last.
    ends: Vec<(u64, u64)>,
    pages_per_row: f64,
    blocks: Blocks<Page>,
}

impl Pages {
    pub fn new(entries: Vec<PageEntry>) -> Self {
        let mut end = (0_u64, 0_u64);
        let ends: Vec<(u64, u64)> = entries
            .iter()
            .map(|entry| {
                end = (end.0 + u64::from(entry.rows), end.1 + u64::from(entry.cells));
                end
            })
            .collect();
        let blocks = Blocks::new(entries.len());
        let pages_per_row = entries.len() as f64 / end.0.max(1) as f64;
        Pages { entries, ends, pages_per_row, blocks }
    }

    pub fn entries(&self) -> &[PageEntry] {
        &self.entries
    }

    pub fn num_rows(&self) -> u64 {
        self.ends.last().map_or(0, |end| end.0)
    }

    pub fn num_cells(&self) -> u64 {
        self.ends.last().map_or(0, |end| end.1)
    }

    /// Number of the first row of a page.
    pub fn first_row(&self, page: usize) -> u64 {
        page.checked_sub(1).map_or(0, |before| self.ends[before].0)
    }

    /// Returns the page that describes `row`, which must be in the file. Pages are
    /// nearly always of equal size, so a guess by proportion nearly always hits.
    pub fn find(&self, row: u64) -> usize {
        let guess = (row as f64 * self.pages_per_row) as usize;
        for page in [guess, guess.wrapping_sub(1), guess + 1] {
            if page < self.ends.len() && self.first_row(page) <= row && row < self.ends[page].0 {
                return page;
            }
        }
        self.ends.partition_point(|end| end.0 <= row)
    }

    /// Returns the page if it is loaded.
    #[inline]
    pub fn loaded(&self, page: usize) -> Option<Loaded<Page>> {
        self.blocks.get(page)
    }

    /// Calls `then` with the page, loading it first if need be.
    pub fn with<T>(
        &self,
        page: usize,
        loader: &Loader<'_>,
        then: impl FnOnce(&Page) -> T,
    ) -> Result<T> {
        if let Some(page) = self.loaded(page) {
            return Ok(then(&page));
        }
        let decoded = self.read(page, loader)?;
        Ok(then(&self.keep(page, decoded)))
    }

    /// Returns the pages of rows, which must exist, that are not loaded.
    pub fn missing<'a>(&self, rows: &[u64], source: Source<'a>) -> Vec<Missing<'a>> {
        let mut pages: Vec<usize> = rows.iter().map(|&row| self.find(row)).collect();
        pages.retain(|&page| !self.blocks.has(page));
        pages.sort_unstable();
        pages.dedup();
        let missing = pages.into_iter().map(|page| {
            let PageEntry { offset, len, .. } = self.entries[page];
            Missing { number: page as u64, source, offset, len: len.into() }
        });
        missing.collect()
    }

    /// Takes the bytes of a page.
    pub fn load(
        &self,
        page: usize,
        bytes: Vec<u8>,
        loader: &Loader<'_>,
    ) -> Result<Arc<Block<Page>>> {
        let decoded =
            self.decode(page, bytes, loader).map_err(|why| self.corrupt(page, why, loader))?;
        Ok(self.keep(page, decoded))
    }

    /// Reads a page from the storage, whether it is loaded or not.
    pub fn read(&self, page: usize, loader: &Loader<'_>) -> Result<Page> {
        let entry = &self.entries[page];
        let fail = |error: crate::Error| error.at_record(self.first_row(page));
        let bytes = loader.source.read(entry.offset, entry.len.into()).map_err(fail)?;
        self.decode(page, bytes, loader).map_err(|why| self.corrupt(page, why, loader))
    }

    fn corrupt(&self, page: usize, why: Violation, loader: &Loader<'_>) -> crate::Error {
        let rows = self.first_row(page)..self.ends[page].0;
        let last = rows.end.saturating_sub(1);
        let why = format!("index page of records {} to {last}: {why}", rows.start);
        loader.source.corrupt(self.entries[page].offset, why).at_record(rows.start)
    }

    fn decode(&self, page: usize, bytes: Vec<u8>, loader: &Loader<'_>) -> Result<Page, Violation> {
        let entry = &self.entries[page];
        let (decoded, crc) = Page::decode(bytes, entry.offset, loader.schema, loader.seed)?;
        let first_cell = self.ends[page].1 - u64::from(entry.cells);
        let found = (crc, decoded.rows, decoded.cells, decoded.first_row, decoded.first_cell);
        let listed = (entry.crc, entry.rows, entry.cells, self.first_row(page), first_cell);
        if found != listed {
            bail!("it is not the page that was committed");
        }
        Ok(decoded)
    }

    fn keep(&self, page: usize, decoded: Page) -> Arc<Block<Page>> {
        let bytes = decoded.bytes_len();
        self.blocks.put(page, decoded, bytes)
    }
}

/// What it takes to load a page.
pub struct Loader<'a> {
    pub source: Source<'a>,
    pub schema: &'a Schema,
    pub seed: Seed,
}
