//! The index pages of a file, loaded when they are first needed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use super::contents::Source;
use crate::error::Result;
use crate::format::Violation;
use crate::format::checksum::Seed;
use crate::format::ingot::{Page, PageEntry, Schema};
use crate::storage::Read;

/// Memory that loaded pages may take before those not used lately are dropped:
/// enough for the index of some thirty million records.
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
    slots: Vec<RwLock<Option<Arc<Slot>>>>,
    loaded: Mutex<Loaded>,
}

struct Slot {
    page: Page,
    used: AtomicBool,
}

#[derive(Default)]
struct Loaded {
    order: VecDeque<usize>,
    bytes: usize,
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
        let slots = entries.iter().map(|_| RwLock::default()).collect();
        let pages_per_row = entries.len() as f64 / end.0.max(1) as f64;
        Pages { entries, ends, pages_per_row, slots, loaded: Mutex::default() }
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

    /// Calls `then` with the page if it is in memory.
    pub fn with_loaded<T>(&self, page: usize, then: impl FnOnce(&Page) -> T) -> Option<T> {
        let slot = self.slots[page].read().expect("no panics under this lock");
        let slot = slot.as_ref()?;
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        Some(then(&slot.page))
    }

    /// Calls `then` with the page, loading it first if need be.
    pub fn with<T>(
        &self,
        page: usize,
        loader: &Loader<'_>,
        then: impl Fn(&Page) -> T,
    ) -> Result<T> {
        match self.with_loaded(page, &then) {
            Some(outcome) => Ok(outcome),
            None => Ok(then(&self.load(page, loader)?.page)),
        }
    }

    /// Loads those of `wanted` that are missing, many at a time. Damaged ones are
    /// left for [`Pages::with`] to complain about.
    pub fn prepare(&self, wanted: &mut Vec<usize>, loader: &Loader<'_>) {
        wanted.retain(|&page| {
            let slot = self.slots[page].read().expect("no panics under this lock");
            slot.is_none() && self.entries[page].len <= LOAD_BYTES
        });
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
                .map(|(&page, buf)| Read { offset: self.entries[page].offset, buf })
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

    fn load(&self, page: usize, loader: &Loader<'_>) -> Result<Arc<Slot>> {
        let decoded = self.read(page, loader)?;
        Ok(self.keep(page, decoded))
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

    fn keep(&self, page: usize, decoded: Page) -> Arc<Slot> {
        let bytes = decoded.bytes_len();
        let slot = Arc::new(Slot { page: decoded, used: AtomicBool::new(true) });
        let mut loaded = self.loaded.lock().expect("no panics under this lock");
        let replaced =
            self.slots[page].write().expect("no panics under this lock").replace(Arc::clone(&slot));
        if replaced.is_none() {
            loaded.order.push_back(page);
            loaded.bytes += bytes;
        }
        while loaded.bytes > BUDGET && loaded.order.len() > 1 {
            self.drop_one(&mut loaded);
        }
        slot
    }

    /// Drops the page that has gone longest without use, roughly: each gets a second chance.
    fn drop_one(&self, loaded: &mut Loaded) {
        let Some(page) = loaded.order.pop_front() else { return };
        let mut slot = self.slots[page].write().expect("no panics under this lock");
        match &*slot {
            Some(kept) if kept.used.swap(false, Ordering::Relaxed) => loaded.order.push_back(page),
            Some(kept) => {
                loaded.bytes -= kept.page.bytes_len();
                *slot = None;
            }
            None => {}
        }
    }
}

/// What it takes to load a page.
pub struct Loader<'a> {
    pub source: Source<'a>,
    pub schema: &'a Schema,
    pub seed: Seed,
}
