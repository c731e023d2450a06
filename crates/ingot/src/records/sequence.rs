//! One or more files of records as one sequence.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::cache::Pin;
use super::container::{Cell, Container, Stats, Stored, Table};
use super::fetch::Files;
use super::listing::Listed;
use super::locate;
use super::open::{Mode, open};
use super::source::Watch;
use super::verification::{Damage, Verification};
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::process;

/// How many rows ahead of a lookup the processor prefetches.
const AHEAD: usize = 8;

/// Rows that are located together once a part of an index must be loaded.
const TOGETHER: usize = 1024;

/// Files that are opened at the same time. A list of no more than these is opened at once, so
/// that its readers keep their files if these are replaced later.
const OPENING: usize = 64;

/// Files one after the other: row 0 is the first record of the first file. A snapshot of
/// what was there when it was opened. Safe to use from several threads at once.
///
/// Files that a list describes are opened when they are needed, and stay open.
pub struct Sequence {
    files: Vec<Slot>,
    /// Number of the row after the last of each file.
    ends: Vec<u64>,
    generation: u64,
}

/// A file, open or not yet.
struct Slot {
    listed: Option<Listed>,
    file: OnceLock<Arc<dyn Container>>,
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

    /// Returns the files of a list, all of which must have the fields of the first. Of a long
    /// list only the first is opened yet.
    pub fn listed(files: Vec<Listed>) -> Result<Sequence> {
        let first = match files.first() {
            Some(first) => Some(first.open(None)?),
            None => None,
        };
        let ends = ends_of(files.iter().map(|file| file.rows));
        let files =
            files.into_iter().map(|file| Slot { listed: Some(file), file: OnceLock::new() });
        let files: Vec<Slot> = files.collect();
        if let (Some(slot), Some(first)) = (files.first(), first) {
            slot.file.get_or_init(|| first);
        }
        let listed = Sequence { files, ends, generation: process::generation() };
        if listed.num_files() <= OPENING {
            listed.open_files()?;
        }
        Ok(listed)
    }

    /// Number of files.
    pub fn num_files(&self) -> usize {
        self.files.len()
    }

    /// Returns a file, and opens it if need be.
    #[inline]
    pub fn open_file(&self, number: usize) -> Result<&Arc<dyn Container>> {
        match self.files[number].file.get() {
            Some(file) => Ok(file),
            None => self.open_slot(number),
        }
    }

    #[cold]
    fn open_slot(&self, number: usize) -> Result<&Arc<dyn Container>> {
        let slot = &self.files[number];
        let first = self.files[0].file.get().and_then(|first| first.table());
        let listed = slot.listed.as_ref().expect("others are open from the start");
        let opened = listed.open(first.map(Table::schema))?;
        Ok(slot.file.get_or_init(|| opened))
    }

    /// Returns all files, and opens those that are not open, many at a time.
    pub fn open_files(&self) -> Result<Vec<&Arc<dyn Container>>> {
        let closed = (0..self.files.len()).filter(|&k| self.files[k].file.get().is_none());
        let closed: Vec<usize> = closed.collect();
        for some in closed.chunks(OPENING) {
            let opened = Pool::blocking().map(some.len(), &|k| self.open_file(some[k]).map(|_| ()));
            opened.into_iter().collect::<Result<()>>()?;
        }
        (0..self.files.len()).map(|k| self.open_file(k)).collect()
    }

    /// Returns the id of each file that the list knows, or that is in the file, as
    /// [`Container::fingerprint`] does.
    pub fn fingerprints(&self) -> Result<Vec<Vec<u8>>> {
        let listed = |slot: &Slot| slot.listed.as_ref().and_then(|file| file.id);
        if self.files.iter().all(|slot| listed(slot).is_some()) {
            return Ok(self.files.iter().filter_map(listed).map(|id| id.to_vec()).collect());
        }
        self.open_files()?.into_iter().map(|file| file.fingerprint()).collect()
    }

    /// Number of rows of each file.
    pub fn row_counts(&self) -> impl Iterator<Item = u64> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        self.ends.iter().zip(starts).map(|(end, start)| end - start)
    }

    /// Returns what errors call this sequence.
    pub fn name(&self) -> &str {
        self.files
            .first()
            .and_then(|slot| slot.file.get())
            .map_or("no files", |file| file.source().name)
    }

    /// Number of records.
    pub fn num_rows(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The process generation this sequence was made in; see [`process::generation`].
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the same sequence for the child of a fork.
    #[must_use]
    pub fn after_fork(&self) -> Sequence {
        let files = self.files.iter().map(|slot| {
            let file = slot.file.get().map(|file| file.after_fork());
            Slot {
                listed: slot.listed.clone(),
                file: file.map_or_else(OnceLock::new, OnceLock::from),
            }
        });
        Sequence {
            files: files.collect(),
            ends: self.ends.clone(),
            generation: process::generation(),
        }
    }

    /// Returns the error for an index that is out of range.
    pub fn out_of_range(&self, index: i64) -> Error {
        Error::Index { path: self.name().to_owned(), index, rows: self.num_rows() }
    }

    /// Returns the file that holds `row`, and the row's number in it.
    #[inline]
    pub(super) fn place(&self, row: u64) -> (usize, u64) {
        if let [_] = self.files[..] {
            return (0, row);
        }
        let file = self.ends.partition_point(|&end| end <= row);
        (file, row - self.first_row(file))
    }

    /// Number of the first row of a file.
    pub(super) fn first_row(&self, file: usize) -> u64 {
        file.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Returns where record `row`, which must exist, is.
    pub fn locate(&self, row: u64) -> Result<Cell> {
        self.locate_pinned(row, &mut Vec::new())
    }

    fn locate_pinned(&self, row: u64, pins: &mut Vec<Pin>) -> Result<Cell> {
        let (file, local) = self.place(row);
        in_file(locate::find_pinned(&**self.open_file(file)?, local, pins), file, row)
    }

    /// As [`Sequence::locate`], but returns `None` instead of reading from the storage.
    #[inline]
    pub fn locate_loaded(&self, row: u64) -> Option<Result<Cell>> {
        let (file, local) = self.place(row);
        self.files[file].file.get()?.find(local).map(|found| in_file(found, file, row))
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

    /// Opens the files of rows, which must exist, and loads what it takes to locate them, in
    /// one go. It stays in memory for as long as the pins are held. Files and parts that cannot
    /// be read are left out: locating their rows returns the error.
    pub fn prepare(&self, rows: &[u64]) -> Vec<Pin> {
        let mut places: Vec<(usize, u64)> = rows.iter().map(|&row| self.place(row)).collect();
        places.sort_unstable();
        let groups: Vec<&[(usize, u64)]> = places.chunk_by(|a, b| a.0 == b.0).collect();
        let is_open = |group: &&[(usize, u64)]| self.files[group[0].0].file.get().is_some();
        if groups.iter().filter(|group| !is_open(group)).count() > 1 {
            Pool::blocking().run(groups.len(), &|k| {
                let _ = self.open_file(groups[k][0].0);
            });
        }
        let wanted: Vec<(&dyn Container, Vec<u64>)> = groups
            .iter()
            .filter_map(|group| {
                let file = self.open_file(group[0].0).ok()?;
                Some((&**file, group.iter().map(|&(_, row)| row).collect()))
            })
            .collect();
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
            let (file, local) = self.place(row);
            if let Some(file) = self.files[file].file.get() {
                file.touch(local);
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
        let each = self.open_files()?.into_iter().map(|file| file.stats());
        Ok(each.reduce(|sum, next| sum.and(&next)).unwrap_or_default())
    }

    /// Checks every byte of every file. `progress` is called with the records done and may
    /// stop the work by returning an error.
    pub fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        let mut found = Verification::default();
        for k in 0..self.files.len() {
            let (file, first) = (self.open_file(k)?, self.first_row(k));
            let mut one = file.verify(&mut |done| progress(first + done))?;
            one.damaged.extend(cut_of(&**file));
            for damage in &mut one.damaged {
                if let Some(record) = damage.record {
                    let (here, there) = (format!("record {record}: "), first + record);
                    damage.reason = damage.reason.replacen(&here, &format!("record {there}: "), 1);
                    damage.record = Some(there);
                }
            }
            found.rows += one.rows;
            found.damaged.extend(one.damaged);
        }
        Ok(found)
    }
}

/// Returns the damage of a file that is shorter than it was when it was opened: the end of a
/// mapped page shows zeros then, or what was there before.
fn cut_of(file: &dyn Container) -> Option<Damage> {
    let source = file.source();
    let (size, expected) = (source.storage.size().ok()?, file.stats().file_bytes);
    let reason =
        || format!("{}: the file was truncated from {expected} to {size} bytes", source.name);
    (size < expected).then(|| Damage::elsewhere((size, reason())))
}

/// Returns what was found in a file as a row of the sequence.
pub(super) fn in_file(found: Result<Cell>, file: usize, row: u64) -> Result<Cell> {
    match found {
        Ok(cell) => Ok(Cell { row, file: file as u32, ..cell }),
        Err(error) => Err(error.at_record(row)),
    }
}

fn ends_of(rows: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut end = 0_u64;
    let ends = rows.map(|rows| {
        end = end.saturating_add(rows);
        end
    });
    ends.collect()
}

impl FromIterator<Arc<dyn Container>> for Sequence {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Container>>>(files: I) -> Self {
        let files: Vec<Arc<dyn Container>> = files.into_iter().collect();
        let ends = ends_of(files.iter().map(|file| file.num_rows()));
        let slots = files.into_iter().map(|file| Slot { listed: None, file: OnceLock::from(file) });
        Sequence { files: slots.collect(), ends, generation: process::generation() }
    }
}

impl Files for Sequence {
    fn file(&self, number: u32) -> &dyn Stored {
        let file = self.files[number as usize].file.get();
        &**file.expect("located cells are in open files")
    }
}
