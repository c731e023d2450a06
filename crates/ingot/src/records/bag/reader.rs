//! A bag as a container.

use std::ops::Range;
use std::sync::Arc;

use super::super::cache::Pin;
use super::super::container::{Cell, Container, Form, Stats, Stored};
use super::super::content::content;
use super::super::groups::Groups;
use super::super::locate::Missing;
use super::super::source::Source;
use super::super::verification::{Verification, verify_records};
use super::limits::Limits;
use crate::compression::{Dictionary, Failure, frame};
use crate::error::{Error, Result};
use crate::format::Group;
use crate::format::bag::{self, LIMIT_LEN, Table};
use crate::storage::ReadAt;

/// Blocks of limits are loaded under their own numbers, records under theirs from here on.
const FIRST_RECORD: u64 = 1 << 63;

/// How the records of a bag are stored; a bag does not say it itself.
#[derive(Clone, Default)]
pub enum Packing {
    /// As they are.
    #[default]
    Plain,
    /// Each as a Zstandard frame, with a dictionary or without.
    Zstd(Option<Arc<Dictionary>>),
}

/// How to read a bag.
#[derive(Clone, Default)]
pub struct BagOptions {
    /// How its records are stored.
    pub packing: Packing,
    /// Whether there is a zero in front of the limits, as in bags of Granular up to 0.19.
    pub leading_zero: bool,
}

/// A bag, open for reading. Its limits are loaded as they are needed.
#[derive(Clone)]
pub struct Bag {
    storage: Arc<dyn ReadAt>,
    name: String,
    limits: Limits,
    options: BagOptions,
    groups: Groups,
    file_bytes: u64,
    /// The last bytes of the limits, which distinguish the states of a bag.
    last: Vec<u8>,
}

impl Bag {
    /// Opens a bag whose limits are at its end, or in `limits` if that is given; `name` is
    /// what errors call it.
    pub fn open(
        storage: Arc<dyn ReadAt>,
        limits: Option<(Arc<dyn ReadAt>, String)>,
        name: &str,
        options: BagOptions,
    ) -> Result<Bag> {
        let source = Source { storage: &*storage, name };
        let size = source.size()?;
        let (table_storage, table_name, table, records_len) = match limits {
            Some((limits, limits_name)) => {
                let size_of_limits = Source { storage: &*limits, name: &limits_name }.size()?;
                (limits, limits_name, Table::alone(size_of_limits), size)
            }
            None => {
                let last = if size < LIMIT_LEN { 0 } else { last_limit(source, size)? };
                let table = Table::at_end(size, last).map_err(|why| source.corrupt(size, why))?;
                (Arc::clone(&storage), name.to_owned(), table, table.offset)
            }
        };
        let table = if options.leading_zero { table.without_zero() } else { table };
        let limits = Limits::new(table_storage, &table_name, table, records_len);
        let mut bag = Bag {
            storage: Arc::clone(&storage),
            name: name.to_owned(),
            limits,
            options,
            groups: Groups::new(),
            file_bytes: size,
            last: Vec::new(),
        };
        if let Some(row) = bag.num_rows().checked_sub(1) {
            let range = bag.limits.range(row)?;
            bag.last = [range.start, range.end].iter().flat_map(|n| n.to_le_bytes()).collect();
        }
        Ok(bag)
    }

    /// Returns where the last record ends.
    pub fn end(&self) -> Result<u64> {
        let last = self.num_rows().checked_sub(1);
        last.map_or(Ok(0), |row| Ok(self.limits.range(row)?.end))
    }

    /// Returns the cell of the record in `range`, if its length is known or can be read at once.
    fn cell_loaded(&self, row: u64, range: &Range<u64>) -> Option<Result<Cell>> {
        let stored = range.end - range.start;
        if stored == 0 || matches!(self.options.packing, Packing::Plain) {
            return Some(Ok(Cell::unsummed(row, range.clone(), stored, Form::Alone)));
        }
        if let Some(group) = self.groups.get(range.start) {
            return Some(Ok(Cell::unsummed(
                row,
                range.clone(),
                group.bytes.len() as u64,
                Form::Part(0),
            )));
        }
        if !self.storage.cost().is_free() {
            return None;
        }
        match self.content_size(range) {
            Ok(size) => size.map(|raw| Ok(Cell::unsummed(row, range.clone(), raw, Form::Chunk))),
            Err(error) => Some(Err(error.at_record(row))),
        }
    }

    /// Returns how long a compressed record is, if it says so.
    fn content_size(&self, range: &Range<u64>) -> Result<Option<u64>> {
        let mut head = [0; frame::HEAD_LEN];
        let len = head.len().min((range.end - range.start) as usize);
        let source = self.source();
        source.read_into(range.start, &mut head[..len])?;
        let stored = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        frame::content_len(&head[..len], stored).map_err(|why| source.corrupt(range.start, why))
    }

    fn unpack(&self, offset: u64, stored: &[u8]) -> Result<Group> {
        let Packing::Zstd(dictionary) = &self.options.packing else {
            return Ok(Group { bytes: stored.to_vec(), ends: vec![stored.len()] });
        };
        let bytes = frame::decompress(dictionary.as_deref(), stored)
            .map_err(|failure| self.undecodable(offset, failure))?;
        Ok(Group { ends: vec![bytes.len()], bytes })
    }

    /// Returns the error for a record that cannot be decompressed.
    fn undecodable(&self, offset: u64, failure: Failure) -> Error {
        let Failure::Damaged(why) = failure else {
            return self.source().undecoded(offset, failure);
        };
        let advice = match self.options.packing {
            Packing::Zstd(None) => {
                "; it is damaged, or was written with a dictionary: open the bag as Bagz's \
                 Reader does, with CompressionZstd(dictionary=...)"
            }
            _ => "; it is damaged, or was written with another dictionary",
        };
        self.source().corrupt(offset, format!("{why}{advice}"))
    }
}

fn last_limit(source: Source<'_>, size: u64) -> Result<u64> {
    Ok(bag::limit(&source.read(size - LIMIT_LEN, LIMIT_LEN)?, 0))
}

impl Stored for Bag {
    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }

    fn decode(&self, cell: &Cell, stored: &[u8], value: &mut [u8]) -> Result<()> {
        let Packing::Zstd(dictionary) = &self.options.packing else {
            return Err(Error::Invalid(format!("{}: the bag is not compressed", self.name)));
        };
        frame::decompress_into(dictionary.as_deref(), stored, value)
            .map_err(|why| self.undecodable(cell.offset, why))
    }

    fn group(&self, cell: &Cell) -> Result<Arc<Group>> {
        self.groups.get_or_load(cell.offset, || {
            self.unpack(cell.offset, &self.source().read(cell.offset, cell.stored)?)
        })
    }
}

impl Container for Bag {
    fn num_rows(&self) -> u64 {
        self.limits.len()
    }

    fn find(&self, row: u64) -> Option<Result<Cell>> {
        match self.limits.range_loaded(row)? {
            Ok(range) => self.cell_loaded(row, &range),
            Err(error) => Some(Err(error)),
        }
    }

    fn touch(&self, row: u64) {
        if matches!(self.options.packing, Packing::Plain) {
            return self.limits.touch(row);
        }
        // The front of a frame says how long its content is, so it is needed as well.
        if let Some(Ok(range)) = self.limits.range_loaded(row) {
            self.storage.prefetch(range);
        }
    }

    /// Limits first, then compressed records whose length only they themselves tell.
    fn missing(&self, rows: &[u64]) -> Vec<Missing<'_>> {
        let limits = self.limits.missing(rows);
        if !limits.is_empty() || matches!(self.options.packing, Packing::Plain) {
            return limits;
        }
        let missing = rows.iter().filter(|&&row| self.find(row).is_none()).filter_map(|&row| {
            let Range { start, end } = self.limits.range_loaded(row)?.ok()?;
            let (number, source) = (FIRST_RECORD + row, self.source());
            Some(Missing { number, source, offset: start, len: end - start })
        });
        missing.collect()
    }

    fn load(&self, number: u64, bytes: Vec<u8>) -> Result<Pin> {
        let Some(row) = number.checked_sub(FIRST_RECORD) else {
            return Ok(self.limits.load(number as usize, bytes));
        };
        let start = self.limits.range(row)?.start;
        Ok(self.groups.get_or_load(start, || self.unpack(start, &bytes))?)
    }

    fn stats(&self) -> Stats {
        Stats::of_records(self.num_rows(), self.file_bytes, self.num_rows() * LIMIT_LEN)
    }

    fn fingerprint(&self) -> Result<Vec<u8>> {
        let content = content(self.source())?;
        Ok([&content[..], &self.num_rows().to_le_bytes(), &self.last].concat())
    }

    fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        verify_records(self, progress)
    }

    fn after_fork(&self) -> Arc<dyn Container> {
        Arc::new(self.clone())
    }
}
