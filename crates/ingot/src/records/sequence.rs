//! One or more shards of records as one sequence.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::cache::Pin;
use super::container::{Cell, Container, Stats, Stored};
use super::fetch::Files;
use super::listing::Listed;
use super::locate;
use super::open::{Mode, open};
use super::shards::{OPENING, Shards, Spot};
use super::source::Watch;
use super::stack::Stack;
use super::verification::Verification;
use crate::error::{Error, Result};
use crate::format::ingot::Schema;
use crate::pool::Pool;
use crate::process;

/// How many rows ahead of a lookup the processor prefetches.
const AHEAD: usize = 8;

/// Rows that are located together once a part of an index must be loaded.
const TOGETHER: usize = 1024;

/// Shards one after the other: row 0 is the first record of the first one that is not deleted. A
/// snapshot of what was there when it was opened. Safe to use from several threads at once.
///
/// A shard is a file of rows, and may have files of columns and deleted rows; see [`Listed`]. Files
/// that a list describes are opened when they are needed, and stay open.
pub struct Sequence {
    shards: Shards,
    generation: u64,
}

impl Sequence {
    /// Opens files by their paths, many at a time; see [`open()`].
    pub fn open(
        paths: &[impl AsRef<Path> + Sync],
        mode: Mode,
        check: bool,
        watch: &mut Watch<'_>,
    ) -> Result<Sequence> {
        if let [path] = paths {
            return Ok([open(&path.as_ref().into(), mode, check, watch)?].into_iter().collect());
        }
        let mut files = Vec::with_capacity(paths.len());
        for some in paths.chunks(OPENING) {
            watch()?;
            let opened = Pool::blocking()
                .map(some.len(), &|k| open(&some[k].as_ref().into(), mode, check, &mut || Ok(())));
            files.extend(opened.into_iter().collect::<Result<Vec<_>>>()?);
        }
        Ok(files.into_iter().collect())
    }

    /// Returns the shards of a list, which have the fields of `schema`, or else those of the first
    /// file. Of a long list only the first shard is opened yet.
    pub fn listed(shards: Vec<Listed>, schema: Option<Schema>) -> Result<Sequence> {
        Ok(Sequence::of(Shards::listed(shards, schema)?))
    }

    pub(super) fn of(shards: Shards) -> Sequence {
        Sequence { shards, generation: process::generation() }
    }

    /// Returns the shards.
    #[inline]
    pub(super) fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Number of shards: files of rows.
    pub fn num_files(&self) -> usize {
        self.shards.len()
    }

    /// Returns the file of rows of a shard, and opens it if need be.
    #[inline]
    pub fn open_file(&self, number: usize) -> Result<&Arc<dyn Container>> {
        self.shards.stack(number).map(Stack::rows)
    }

    /// Returns all files of rows, and opens shards that are not open, many at a time.
    pub fn open_files(&self) -> Result<Vec<&Arc<dyn Container>>> {
        self.shards.open_all()?;
        (0..self.num_files()).map(|k| self.open_file(k)).collect()
    }

    /// Returns the id of each file that the list knows, or that is in the file, as
    /// [`Container::fingerprint`] does: those of a shard one after the other, its file of rows
    /// first.
    pub fn fingerprints(&self) -> Result<Vec<Vec<u8>>> {
        let shards: Vec<Option<&Listed>> =
            (0..self.num_files()).map(|k| self.shards.entry(k)).collect();
        let listed = |shard: &Option<&Listed>| shard.and_then(|shard| shard.id);
        if !shards.iter().all(|shard| listed(shard).is_some()) {
            self.shards.open_all()?;
        }
        let mut ids = Vec::with_capacity(shards.len());
        for (k, shard) in shards.into_iter().enumerate() {
            ids.push(match listed(&shard) {
                Some(id) => id.to_vec(),
                None => self.open_file(k)?.fingerprint()?,
            });
            ids.extend(shard.into_iter().flat_map(Listed::other_ids).map(|id| id.to_vec()));
        }
        Ok(ids)
    }

    /// Number of rows of each shard, without those that are deleted.
    pub fn row_counts(&self) -> impl Iterator<Item = u64> {
        let ends = self.shards.ends();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        ends.iter().zip(starts).map(|(end, start)| end - start)
    }

    /// Returns what errors call this sequence.
    pub fn name(&self) -> &str {
        let first = if self.num_files() > 0 { self.shards.get(0) } else { None };
        first.map_or("no files", |stack| stack.rows().source().name)
    }

    /// Number of records.
    pub fn num_rows(&self) -> u64 {
        self.shards.num_rows()
    }

    /// The process generation this sequence was made in; see [`process::generation`].
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the same sequence for the child of a fork.
    #[must_use]
    pub fn after_fork(&self) -> Sequence {
        Sequence::of(self.shards.after_fork())
    }

    /// Returns the error for an index that is out of range.
    pub fn out_of_range(&self, index: i64) -> Error {
        Error::Index { path: self.name().to_owned(), index, rows: self.num_rows() }
    }

    /// Returns where record `row`, which must exist, is. It is in a file of rows: this is not for
    /// rows of several fields.
    pub fn locate(&self, row: u64) -> Result<Cell> {
        self.locate_pinned(row, &mut Vec::new())
    }

    fn locate_pinned(&self, row: u64, pins: &mut Vec<Pin>) -> Result<Cell> {
        let (shard, position) = self.shards.place(row);
        let stack = self.shards.stack(shard)?;
        let found = locate::find_pinned(&**stack.rows(), stack.row(position), pins);
        in_file(found, self.shards.numbers().first(shard), row)
    }

    /// As [`Sequence::locate`], but returns `None` instead of reading from the storage.
    #[inline]
    pub fn locate_loaded(&self, row: u64) -> Option<Result<Cell>> {
        let (shard, position) = self.shards.place(row);
        let stack = self.shards.get(shard)?;
        let found = stack.rows().find(stack.row(position))?;
        Some(in_file(found, self.shards.numbers().first(shard), row))
    }

    /// Appends to `cells` where the records at `rows` are, up to the first that cannot be
    /// found. What must be read for that is read in one go.
    pub fn locate_many(&self, rows: &[u64], cells: &mut Vec<Cell>) -> Result<()> {
        if let Some(&row) = rows.iter().find(|&&row| row >= self.num_rows()) {
            return Err(self.out_of_range(row as i64));
        }
        cells.reserve(rows.len());
        let mut k = 0;
        while k < rows.len() {
            self.touch(rows, k);
            match self.locate_loaded(rows[k]) {
                Some(found) => {
                    cells.push(found?);
                    k += 1;
                }
                None => {
                    let some = &rows[k..rows.len().min(k + TOGETHER)];
                    let mut pins = self.prepare(some);
                    for &row in some {
                        cells.push(self.locate_pinned(row, &mut pins)?);
                    }
                    k += some.len();
                }
            }
        }
        Ok(())
    }

    /// Opens the files of rows, which must exist, and loads what it takes to locate records, in
    /// one go. It stays in memory for as long as the pins are held. Files and parts that cannot
    /// be read are left out: locating their rows returns the error.
    pub fn prepare(&self, rows: &[u64]) -> Vec<Pin> {
        self.load(&self.shards.spots(rows).0, |_, places| places.push(0))
    }

    /// As [`Sequence::prepare`], for fields of the data set. Returns where the rows are, too.
    pub(super) fn prepare_fields(
        &self,
        rows: &[u64],
        fields: impl Iterator<Item = usize> + Clone,
    ) -> Result<(Vec<Spot<'_>>, Vec<Pin>)> {
        let (spots, outcome) = self.shards.spots(rows);
        outcome?;
        let pins = self.load(&spots, |stack, places| {
            let origins = fields.clone().filter_map(|field| stack.origin(field));
            places.extend(origins.map(|(place, _)| place));
            places.sort_unstable();
            places.dedup();
        });
        Ok((spots, pins))
    }

    /// Loads what it takes to find rows in files of their stacks, which `choose` appends by their
    /// places.
    fn load(
        &self,
        spots: &[Spot<'_>],
        mut choose: impl FnMut(&Stack, &mut Vec<usize>),
    ) -> Vec<Pin> {
        let mut rows: Vec<(u32, u64)> = spots.iter().map(|spot| (spot.first, spot.local)).collect();
        rows.sort_unstable();
        let mut wanted: Vec<(&dyn Container, Vec<u64>)> = Vec::new();
        let mut places = Vec::new();
        for group in rows.chunk_by(|a, b| a.0 == b.0) {
            let (shard, _) = self.shards.numbers().place(group[0].0);
            let Some(stack) = self.shards.get(shard) else { continue };
            choose(stack, &mut places);
            for place in places.drain(..) {
                wanted.push((&**stack.file(place), group.iter().map(|&(_, row)| row).collect()));
            }
        }
        locate::prepare(&wanted)
    }

    /// Tells the processor which index entries are needed soon, when row `k` of `rows`, all
    /// of which must exist, is about to be located: it fetches several at a time.
    #[inline]
    pub fn touch(&self, rows: &[u64], k: usize) {
        if !k.is_multiple_of(AHEAD) {
            return;
        }
        let first = if k == 0 { 0 } else { k + AHEAD };
        for &row in rows.iter().take(k + 2 * AHEAD).skip(first) {
            let (shard, position) = self.shards.place(row);
            if let Some(stack) = self.shards.get(shard) {
                stack.rows().touch(stack.row(position));
            }
        }
    }

    /// Returns whether fetching `cells` would not wait; see
    /// [`ReadAt::is_ready`](crate::storage::ReadAt::is_ready).
    pub fn is_ready(&self, cells: &[Cell]) -> bool {
        let mut ranges: Vec<(u32, Range<u64>)> =
            cells.iter().map(|cell| (cell.file, cell.offset..cell.offset + cell.stored)).collect();
        ranges.sort_by_key(|&(file, _)| file);
        ranges.chunk_by(|a, b| a.0 == b.0).all(|group| {
            let ranges: Vec<Range<u64>> = group.iter().map(|(_, range)| range.clone()).collect();
            self.file(group[0].0).source().storage.is_ready(&ranges)
        })
    }

    /// Returns figures about all files together.
    pub fn stats(&self) -> Result<Stats> {
        self.shards.open_all()?;
        let each = (0..self.num_files()).map(|k| self.shards.stack(k).map(Stack::stats));
        let each = each.collect::<Result<Vec<_>>>()?;
        Ok(each.into_iter().reduce(|sum, next| sum.and(&next)).unwrap_or_default())
    }

    /// Checks every byte of every file. `progress` is called with the records done and may
    /// stop the work by returning an error.
    pub fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        let mut found = Verification::default();
        for k in 0..self.num_files() {
            let (stack, first) = (self.shards.stack(k)?, self.shards.first_row(k));
            let one = stack.verify(self.shards.entry(k), first, progress)?;
            found.rows += one.rows;
            found.damaged.extend(one.damaged);
        }
        Ok(found)
    }
}

/// Returns what was found in a file as a row of the sequence.
pub(super) fn in_file(found: Result<Cell>, file: u32, row: u64) -> Result<Cell> {
    match found {
        Ok(cell) => Ok(Cell { row, file, ..cell }),
        Err(error) => Err(error.at_record(row)),
    }
}

impl FromIterator<Arc<dyn Container>> for Sequence {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Container>>>(files: I) -> Self {
        Sequence::of(files.into_iter().map(Stack::from).collect())
    }
}

impl Files for Sequence {
    #[inline]
    fn file(&self, number: u32) -> &dyn Stored {
        let (shard, place) = self.shards.numbers().place(number);
        let stack = self.shards.get(shard);
        &**stack.expect("located cells are in open files").file(place)
    }
}
