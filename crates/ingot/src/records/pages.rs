//! The index pages of a file, loaded when they are first needed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::contents::Source;
use crate::error::Result;
use crate::format::Violation;
use crate::format::checksum::Seed;
use crate::format::ingot::{Page, PageEntry, Schema};
use crate::storage::Read;

/// Memory that pages may take for good: enough for the index of some thirty million
/// records. Of those beyond it only the latest is kept.
const BUDGET: usize = 256 << 20;

/// How many pages one batch loads at a time.
const LOAD: usize = 64;

/// Longer pages, of rows with very many cells, are loaded one by one.
const LOAD_BYTES: u32 = 1 << 20;

/// Finds the page of a row and keeps the pages in use.
pub struct Pages {
    entries: Vec<PageEntry>,
    /// For each page the number of the row and of the cell behind its last.
    ends: Vec<(u64, u64)>,
    pages_per_row: f64,
    /// Pages that stay. Asking for one takes no lock, so the lookups of a batch overlap.
    slots: Vec<OnceLock<Box<Page>>>,
    bytes: AtomicUsize,
    latest: Mutex<Option<(usize, Arc<Page>)>>,
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
        let slots = entries.iter().map(|_| OnceLock::new()).collect();
        let pages_per_row = entries.len() as f64 / end.0.max(1) as f64;
        Pages {
            entries,
            ends,
            pages_per_row,
            slots,
            bytes: AtomicUsize::new(0),
            latest: Mutex::default(),
        }
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

    /// Returns the page if it is here to stay.
    #[inline]
    pub fn loaded(&self, page: usize) -> Option<&Page> {
        self.slots[page].get().map(|page| &**page)
    }

    /// Calls `then` with the page, loading it first if need be.
    pub fn with<T>(
        &self,
        page: usize,
        loader: &Loader<'_>,
        then: impl FnOnce(&Page) -> T,
    ) -> Result<T> {
        if let Some(page) = self.loaded(page) {
            return Ok(then(page));
        }
        let latest = self.latest.lock().expect("no panics under this lock").clone();
        if let Some((_, latest)) = latest.filter(|&(number, _)| number == page) {
            return Ok(then(&latest));
        }
        match self.keep(page, self.read(page, loader)?) {
            Kept::Here(page) => Ok(then(page)),
            Kept::Latest(page) => Ok(then(&page)),
        }
    }

    /// Loads those of `wanted` that are missing, many at a time. Damaged ones are
    /// left for [`Pages::with`] to complain about.
    pub fn prepare(&self, wanted: &mut Vec<usize>, loader: &Loader<'_>) {
        wanted.retain(|&page| self.entries[page].len <= LOAD_BYTES);
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.len() < 2 {
            return;
        }
        for group in wanted.chunks(LOAD) {
            let mut buffers: Vec<Vec<u8>> =
                group.iter().map(|&page| vec![0; self.entries[page].len as usize]).collect();
            let mut reads: Vec<Read<'_>> = group
                .iter()
                .zip(&mut buffers)
                .map(|(&page, buf)| Read::new(self.entries[page].offset, buf))
                .collect();
            let outcome = loader.source.storage.read_many(&mut reads, &mut |_, _| {});
            if outcome.is_err() {
                return;
            }
            for (&page, bytes) in group.iter().zip(buffers) {
                if let Ok(decoded) = self.decode(page, bytes, loader) {
                    self.keep(page, decoded);
                }
            }
        }
    }

    /// Reads a page from the storage, whether it is loaded or not.
    pub fn read(&self, page: usize, loader: &Loader<'_>) -> Result<Page> {
        let entry = &self.entries[page];
        let fail = |error: crate::Error| error.at_record(self.first_row(page));
        let bytes = loader.source.read(entry.offset, entry.len.into()).map_err(fail)?;
        self.decode(page, bytes, loader).map_err(|why| {
            let rows = self.first_row(page)..self.ends[page].0;
            let why = format!(
                "index page of records {} to {}: {why}",
                rows.start,
                rows.end.saturating_sub(1)
            );
            loader.source.corrupt(entry.offset, Violation(why)).at_record(rows.start)
        })
    }

    fn decode(&self, page: usize, bytes: Vec<u8>, loader: &Loader<'_>) -> Result<Page, Violation> {
        let entry = &self.entries[page];
        let (decoded, crc) = Page::decode(bytes, entry.offset, loader.schema, loader.seed)?;
        let first_cell = self.ends[page].1 - u64::from(entry.cells);
        let found = (crc, decoded.rows, decoded.cells, decoded.first_row, decoded.first_cell);
        let listed = (entry.crc, entry.rows, entry.cells, self.first_row(page), first_cell);
        if found != listed {
            return Err(Violation("it is not the page that was committed".to_owned()));
        }
        Ok(decoded)
    }

    fn keep(&self, page: usize, decoded: Page) -> Kept<'_> {
        let bytes = decoded.bytes_len();
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= BUDGET {
            return Kept::Here(self.slots[page].get_or_init(|| Box::new(decoded)));
        }
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        let decoded = Arc::new(decoded);
        *self.latest.lock().expect("no panics under this lock") =
            Some((page, Arc::clone(&decoded)));
        Kept::Latest(decoded)
    }
}

/// Where a page went that was just loaded.
enum Kept<'a> {
    Here(&'a Page),
    Latest(Arc<Page>),
}

/// What it takes to load a page.
pub struct Loader<'a> {
    pub source: Source<'a>,
    pub schema: &'a Schema,
    pub seed: Seed,
}
