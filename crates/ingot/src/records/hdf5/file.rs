//! A file, and reading rows of its columns.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::container::{Cell, Form, Stored};
use super::super::fetch::Files;
use super::super::source::Source;
use super::column::{Column, ColumnLayout};
use super::heaps::Heaps;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::hdf5::{COLLECTION_MIN, REFERENCE_LEN, Reference};
use crate::process;
use crate::storage::{Identity, LocalFile, Read, ReadAt};

/// An HDF5 file. What is in it and where is for the HDF5 library to say; this reads it.
pub struct Hdf5 {
    storage: Arc<dyn ReadAt>,
    name: String,
    size: u64,
    /// Where it is, and what it was when it was opened.
    opened: Option<(PathBuf, Identity)>,
    heaps: Heaps,
    generation: u64,
}

/// What a batch reads of one column.
pub struct Share<'c> {
    column: &'c Column,
    rows: &'c [u64],
    /// Where values that vary in length are.
    values: Vec<Range<u64>>,
}

impl Share<'_> {
    /// Returns how many bytes each of the values has.
    pub fn lens(&self) -> impl Iterator<Item = u64> {
        self.rows.iter().enumerate().map(|(k, _)| {
            self.values.get(k).map_or(self.column.row_len(), |range| range.end - range.start)
        })
    }
}

/// A row that is read in several pieces: where its pieces are in the scratch memory.
struct Split<'b> {
    column: &'b Column,
    row: u64,
    pieces: Range<usize>,
    value: &'b mut [u8],
}

impl Hdf5 {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> Result<Hdf5> {
        let name = path.display().to_string();
        let failed = |source| Error::storage(&name, "open", source);
        let storage = LocalFile::open(path).map_err(failed)?;
        let identity = storage.identity().map_err(failed)?;
        let mut file = Hdf5::new(Arc::new(storage), &name)?;
        file.opened = Some((path.to_owned(), identity));
        Ok(file)
    }

    /// Takes a storage; `name` is what errors call it.
    pub fn new(storage: Arc<dyn ReadAt>, name: &str) -> Result<Hdf5> {
        let size = Source { storage: &*storage, name }.size()?;
        let (name, generation) = (name.to_owned(), process::generation());
        Ok(Hdf5 { storage, name, size, opened: None, heaps: Heaps::default(), generation })
    }

    /// The process generation this file was opened in; see [`process::generation`].
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the same file for the child of a fork.
    #[must_use]
    pub fn reopened(&self) -> Hdf5 {
        Hdf5 {
            storage: Arc::clone(&self.storage),
            name: self.name.clone(),
            size: self.size,
            opened: self.opened.clone(),
            heaps: Heaps::default(),
            generation: process::generation(),
        }
    }

    /// Returns a column of this layout.
    pub fn column(&self, layout: ColumnLayout) -> Result<Column> {
        let first = layout.offsets.first().copied().unwrap_or_default();
        Column::new(layout, self.size).map_err(|why| self.source().corrupt(first, why))
    }

    /// Returns what it takes to read columns of `rows`: where values that vary in length are
    /// is read for all of them together.
    pub fn plan<'c>(&self, columns: &[&'c Column], rows: &'c [u64]) -> Result<Vec<Share<'c>>> {
        for column in columns {
            if let Some(&row) = rows.iter().find(|&&row| row >= column.num_rows()) {
                let (path, rows) = (self.name.clone(), column.num_rows());
                return Err(Error::Index { path, index: row as i64, rows });
            }
        }
        let varying = columns.iter().filter(|column| column.varying_item().is_some());
        let cells: Vec<Cell> =
            varying.flat_map(|column| rows.iter().flat_map(|&row| cells_of(column, row))).collect();
        let mut values = self.resolve(&cells, columns, rows.len())?.into_iter();
        let shares = columns.iter().map(|&column| {
            let count = if column.varying_item().is_some() { rows.len() } else { 0 };
            Share { column, rows, values: values.by_ref().take(count).collect() }
        });
        Ok(shares.collect())
    }

    /// Returns where the values of the references in `cells` are, `count` of each column.
    fn resolve(
        &self,
        cells: &[Cell],
        columns: &[&Column],
        count: usize,
    ) -> Result<Vec<Range<u64>>> {
        if cells.is_empty() {
            return Ok(Vec::new());
        }
        let source = self.source();
        let mut bytes = Vec::new();
        source.make_room(&mut bytes, cells.len() as u64 * REFERENCE_LEN)?;
        let places = bytes.chunks_exact_mut(REFERENCE_LEN as usize).collect();
        self.fetch_some(cells, places)?;
        let items = columns.iter().filter_map(|column| column.varying_item());
        let items: Vec<u64> = items.flat_map(|item| std::iter::repeat_n(item, count)).collect();
        let references: Vec<Reference> =
            bytes.chunks_exact(REFERENCE_LEN as usize).map(Reference::decode).collect();
        for ((cell, reference), item) in cells.iter().zip(&references).zip(&items) {
            let checked = self.check(reference, *item);
            checked.map_err(|why| source.corrupt(cell.offset, why).at_record(cell.row))?;
        }
        let filled: Vec<Reference> =
            references.iter().filter(|reference| reference.len > 0).copied().collect();
        let heaps = self.heaps.find(source, self.size, &filled);
        let each = cells.iter().zip(&references).zip(&items);
        each.map(|((cell, reference), item)| {
            let &Reference { len, address, index } = reference;
            if len == 0 {
                return Ok(0..0);
            }
            let objects = match &heaps[&address] {
                Ok(objects) => objects,
                Err(error) => return Err(error.clone().at_record(cell.row)),
            };
            let range = objects.find(index, u64::from(len) * item);
            let range = range.map_err(|why| source.corrupt(address, why).at_record(cell.row))?;
            Ok(address + range.start..address + range.end)
        })
        .collect()
    }

    fn check(&self, reference: &Reference, item: u64) -> Result<(), Violation> {
        let &Reference { len, address, .. } = reference;
        let bytes = u64::from(len).checked_mul(item);
        let room = self.size.saturating_sub(address);
        if len > 0 && (bytes.is_none_or(|bytes| bytes > room) || room < COLLECTION_MIN) {
            let why = format!("a value of {len} elements at {address} is not in the file");
            return Err(Violation(why));
        }
        Ok(())
    }

    /// Fills `bufs[k]`, which has the bytes of all values of `shares[k]`, with these values.
    pub fn fill(&self, shares: &[Share<'_>], bufs: &mut [&mut [u8]]) -> Result<()> {
        let (mut cells, mut places): (Vec<Cell>, Vec<&mut [u8]>) = (Vec::new(), Vec::new());
        let mut splits: Vec<Split<'_>> = Vec::new();
        let mut split_len = 0;
        for (share, buf) in shares.iter().zip(bufs) {
            let mut buf = &mut **buf;
            for (k, len) in share.lens().enumerate() {
                let value = buf.split_off_mut(..len as usize).expect("sized for all");
                let (row, column) = (share.rows[k], share.column);
                if let Some(range) = share.values.get(k) {
                    cells.push(cell_of(row, range.clone()));
                    places.push(value);
                } else if column.is_whole() {
                    cells.extend(cells_of(column, row));
                    places.push(value);
                } else {
                    let start = split_len;
                    split_len +=
                        cells_of(column, row).map(|cell| cell.stored).sum::<u64>() as usize;
                    splits.push(Split { column, row, pieces: start..split_len, value });
                }
            }
        }
        if splits.is_empty() {
            self.fetch_some(&cells, places)?;
        } else {
            self.fill_splits(cells, places, splits, split_len as u64)?;
        }
        self.check_unchanged()
    }

    fn fill_splits(
        &self,
        mut cells: Vec<Cell>,
        places: Vec<&mut [u8]>,
        splits: Vec<Split<'_>>,
        len: u64,
    ) -> Result<()> {
        let mut scratch = Vec::new();
        self.source().make_room(&mut scratch, len)?;
        let mut room = &mut scratch[..];
        let mut places: Vec<&mut [u8]> = places;
        for split in &splits {
            for cell in cells_of(split.column, split.row) {
                cells.push(cell);
                places.push(room.split_off_mut(..cell.stored as usize).expect("there is room"));
            }
        }
        self.fetch_some(&cells, places)?;
        for Split { column, pieces, value, .. } in splits {
            column.assemble(&scratch[pieces], value);
        }
        Ok(())
    }

    fn fetch_some(&self, cells: &[Cell], mut places: Vec<&mut [u8]>) -> Result<()> {
        match (cells, &mut places[..]) {
            ([], _) => Ok(()),
            ([cell], [place]) => self.fetch_one(cell, place),
            (cells, places) => self.fetch(cells, places),
        }
    }

    /// Rejects a file that was changed: HDF5 has no checksums that would reveal it.
    fn check_unchanged(&self) -> Result<()> {
        let Some((path, before)) = &self.opened else { return Ok(()) };
        if Identity::at(path).is_ok_and(|now| now.is_unchanged(before)) {
            return Ok(());
        }
        let reason = "the file was changed or removed after it was opened: open it again";
        Err(Error::format(&self.name, reason))
    }
}

fn cell_of(row: u64, range: Range<u64>) -> Cell {
    let len = range.end - range.start;
    Cell::unsummed(row, range, len, Form::Alone)
}

fn cells_of(column: &Column, row: u64) -> impl Iterator<Item = Cell> {
    column.pieces(row).map(move |range| cell_of(row, range))
}

/// Reads ranges of a file in one go; each fails alone.
pub fn read_ranges(source: Source<'_>, ranges: Vec<Range<u64>>) -> Vec<Result<Vec<u8>>> {
    let mut found: Vec<Result<Vec<u8>>> = ranges
        .iter()
        .map(|range| {
            let mut bytes = Vec::new();
            source.make_room(&mut bytes, range.end - range.start).map(|()| bytes)
        })
        .collect();
    let mut numbers = Vec::new();
    let mut reads = Vec::new();
    for (k, (bytes, range)) in found.iter_mut().zip(&ranges).enumerate() {
        if let Ok(bytes) = bytes {
            numbers.push(k);
            reads.push(Read::new(range.start, bytes));
        }
    }
    let mut failures = Vec::new();
    source.storage.read_many(&mut reads, &mut |k, _, outcome| {
        failures.extend(outcome.err().map(|error| (numbers[k], error)));
    });
    for (k, error) in failures {
        found[k] = Err(source.failed(ranges[k].start, error));
    }
    found
}

impl Stored for Hdf5 {
    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }
}
