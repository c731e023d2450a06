//! One or more files of records as one sequence.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::container::{Cell, Container, Form};
use super::contents::Watch;
use super::fetch::Files;
use super::path;
use super::reader::{Mode, Stats};
use super::verify::Verification;
use crate::error::{Error, Result};
use crate::process;

/// How many rows ahead of a lookup the processor is told about.
const AHEAD: usize = 8;

/// Files one after the other: row 0 is the first record of the first file. A snapshot of
/// what was there when it was opened. Safe to use from several threads at once.
pub struct Sequence {
    files: Vec<Arc<dyn Container>>,
    /// Number of the row behind the last of each file.
    ends: Vec<u64>,
    generation: u64,
}

impl Sequence {
    /// Opens files by their paths; see [`path::open_any`].
    pub fn open(
        paths: &[impl AsRef<Path>],
        mode: Mode,
        check: bool,
        watch: &mut Watch<'_>,
    ) -> Result<Sequence> {
        paths.iter().map(|path| path::open_any(path.as_ref(), mode, check, watch)).collect()
    }

    /// Returns the files.
    pub fn files(&self) -> &[Arc<dyn Container>] {
        &self.files
    }

    /// Returns what errors call this sequence.
    pub fn name(&self) -> &str {
        self.files.first().map_or("no files", |file| file.name())
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
        self.files.iter().map(|file| file.after_fork()).collect()
    }

    /// Returns the error for an index that no row has.
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

    fn first_row(&self, file: usize) -> u64 {
        file.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Returns where record `row`, which must exist, is.
    pub fn locate(&self, row: u64) -> Result<Cell> {
        let (file, local) = self.place(row);
        in_sequence(self.files[file].find(local), file, row)
    }

    /// As [`Sequence::locate`], but returns `None` instead of reading from the storage.
    #[inline]
    pub fn locate_loaded(&self, row: u64) -> Option<Result<Cell>> {
        let (file, local) = self.place(row);
        self.files[file].find_loaded(local).map(|found| in_sequence(found, file, row))
    }

    /// Appends to `cells` where the records at `rows` are.
    pub fn locate_many(&self, rows: &[u64], cells: &mut Vec<Cell>) -> Result<()> {
        if let Some(&row) = rows.iter().find(|&&row| row >= self.num_rows()) {
            return Err(self.out_of_range(row as i64));
        }
        self.prepare(rows);
        cells.reserve(rows.len());
        for (k, &row) in rows.iter().enumerate() {
            self.touch(rows, k);
            cells.push(self.locate(row)?);
        }
        Ok(())
    }

    /// Loads what it takes to locate rows, which must exist, in one go.
    pub fn prepare(&self, rows: &[u64]) {
        if let [file] = &self.files[..] {
            return file.prepare(rows);
        }
        let mut places: Vec<(usize, u64)> = rows.iter().map(|&row| self.place(row)).collect();
        places.sort_unstable();
        for group in places.chunk_by(|a, b| a.0 == b.0) {
            let rows: Vec<u64> = group.iter().map(|&(_, row)| row).collect();
            self.files[group[0].0].prepare(&rows);
        }
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
            self.files[file].touch(local);
        }
    }

    /// Says that `cells` will be fetched soon; see [`crate::storage::ReadAt::announce`].
    pub fn announce(&self, cells: &[Cell]) -> bool {
        let mut ranges: Vec<(u32, Range<u64>)> =
            cells.iter().map(|cell| (cell.file, cell.offset..cell.offset + cell.stored)).collect();
        ranges.sort_by_key(|&(file, _)| file);
        let mut brought = true;
        for group in ranges.chunk_by(|a, b| a.0 == b.0) {
            let ranges: Vec<Range<u64>> = group.iter().map(|(_, range)| range.clone()).collect();
            brought &= self.files[group[0].0 as usize].storage().announce(&ranges);
        }
        brought
    }

    /// Says that `cell` is about to be fetched; see [`crate::storage::ReadAt::prefetch`].
    #[inline]
    pub fn prefetch(&self, cell: &Cell) {
        if !matches!(cell.form, Form::Part(_)) {
            let storage = self.files[cell.file as usize].storage();
            storage.prefetch(cell.offset..cell.offset + cell.stored);
        }
    }

    /// Returns figures about all files together.
    pub fn stats(&self) -> Stats {
        let each = self.files.iter().map(|file| file.stats());
        each.reduce(|sum, next| sum.and(&next)).unwrap_or_default()
    }

    /// Checks every byte of every file. `progress` is called with the records done and may
    /// stop the work by returning an error.
    pub fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        let mut found = Verification::default();
        for (k, file) in self.files.iter().enumerate() {
            let first = self.first_row(k);
            let mut one = file.verify(&mut |done| progress(first + done))?;
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

fn in_sequence(found: Result<Cell>, file: usize, row: u64) -> Result<Cell> {
    match found {
        Ok(cell) => Ok(Cell { row, file: file as u32, ..cell }),
        Err(error) => Err(error.at_record(row)),
    }
}

impl FromIterator<Arc<dyn Container>> for Sequence {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Container>>>(files: I) -> Self {
        let files: Vec<Arc<dyn Container>> = files.into_iter().collect();
        let mut end = 0;
        let ends = files
            .iter()
            .map(|file| {
                end += file.num_rows();
                end
            })
            .collect();
        Sequence { files, ends, generation: process::generation() }
    }
}

impl Files for Sequence {
    fn file(&self, number: u32) -> &dyn Container {
        &*self.files[number as usize]
    }

    fn is_warm(&self) -> bool {
        self.files.iter().all(|file| file.storage().is_warm())
    }
}
