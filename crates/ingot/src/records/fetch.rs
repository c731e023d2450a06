//! Reading the cells of a batch: bytes to their places, verified and decompressed.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Mutex;

use super::reader::Reader;
use crate::compression::{self, Codec};
use crate::error::{Error, Result, copy_of};
use crate::format::Violation;
use crate::format::checksum::mismatch;
use crate::pool::Pool;
use crate::storage::Read;

/// A batch smaller than this is read on the calling thread alone: sharing it
/// costs more than it saves.
const SHARE: u64 = 32 << 10;

/// Parts of a batch are no smaller than this, and no larger if it is in memory; a
/// compressed cell counts four times.
const PART: Range<u64> = 16 << 10..256 << 10;

/// Scratch memory a thread keeps between batches.
const KEEP: usize = 4 << 20;

/// Where a value is and how to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The row it belongs to.
    pub row: u64,
    /// Its number in the file, which its checksum is seeded with.
    pub number: u64,
    /// Where its stored bytes begin.
    pub offset: u64,
    /// How many bytes are stored.
    pub stored: u64,
    /// How many bytes the value has.
    pub raw: u64,
    /// Checksum of the stored bytes.
    pub crc: u32,
    /// How the stored bytes are compressed, if `raw` differs from `stored`.
    pub codec: Codec,
    /// The dictionary, counted from 1; 0 for none.
    pub dictionary: u16,
}

impl Cell {
    fn is_compressed(&self) -> bool {
        self.raw != self.stored
    }
}

type Failure = (usize, Error);

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Reader {
    /// Fills `bufs[k]`, which has `cells[k].raw` bytes, with the value of `cells[k]`.
    ///
    /// Every checksum is verified. Reads from several threads when that pays. The
    /// error is that of the first bad cell of the batch.
    pub fn fetch(&self, cells: &[Cell], bufs: &mut [&mut [u8]]) -> Result<()> {
        let first = self.fetch_each(cells, bufs).into_iter().min_by_key(|&(k, _)| k);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Fills `buf`, which has `cell.raw` bytes, with the value of `cell`.
    pub fn fetch_one(&self, cell: &Cell, buf: &mut [u8]) -> Result<()> {
        if cell.is_compressed() {
            return self.fetch(std::slice::from_ref(cell), &mut [buf]);
        }
        let mut found = !cell.crc;
        let source = self.source();
        source
            .storage
            .read_many(&mut [self.read_of(cell, buf)], &mut |_, read| found = read.crc)
            .map_err(|error| source.failed(cell.offset, error.source).at_record(cell.row))?;
        if found == cell.crc {
            return Ok(());
        }
        Err(source.corrupt(cell.offset, mismatch(cell.crc, found)).at_record(cell.row))
    }

    /// As [`Reader::fetch`], but goes on after a bad cell and returns all that failed.
    pub fn fetch_each(&self, cells: &[Cell], bufs: &mut [&mut [u8]]) -> Vec<Failure> {
        assert_eq!(cells.len(), bufs.len(), "one buffer for each cell");
        let mut bufs = bufs.iter_mut();
        let next = |_: &Cell| bufs.next().map(|buf| &mut **buf).ok_or(());
        self.fetch_into(cells, next, |work| work()).expect("one buffer for each cell")
    }

    /// As [`Reader::fetch_each`] with buffers that are made on the way: `next` gives that
    /// of each cell in turn, while others already read into those before. What is then
    /// left for the calling thread goes on inside `aside`.
    ///
    /// On an error of `next` the content of the buffers is not known.
    pub fn fetch_into<'b, E: Send>(
        &self,
        cells: &[Cell],
        mut next: impl FnMut(&Cell) -> Result<&'b mut [u8], E>,
        aside: impl FnOnce(&mut (dyn FnMut() + Send)),
    ) -> Result<Vec<Failure>, E> {
        let pool = Pool::compute();
        let ranges = self.split(cells, pool.width());
        let shares: Vec<Mutex<Vec<&'b mut [u8]>>> =
            ranges.iter().map(|range| Mutex::new(Vec::with_capacity(range.len()))).collect();
        let failures = Mutex::new(Vec::new());
        let work = |k: usize| {
            let mut bufs =
                std::mem::take(&mut *shares[k].lock().expect("no panics under this lock"));
            let range = ranges[k].clone();
            let failed = self.fetch_share(&cells[range.clone()], &mut bufs, range.start);
            if !failed.is_empty() {
                failures.lock().expect("no panics under this lock").extend(failed);
            }
        };
        let mut fed = Ok(());
        let feed = |publish: &dyn Fn()| {
            for (range, share) in ranges.iter().zip(&shares) {
                let mut bufs = Vec::with_capacity(range.len());
                for cell in &cells[range.clone()] {
                    match next(cell) {
                        Ok(buf) => bufs.push(buf),
                        Err(error) => return fed = Err(error),
                    }
                }
                *share.lock().expect("no panics under this lock") = bufs;
                publish();
            }
        };
        pool.run_while(ranges.len(), &work, feed, aside);
        fed?;
        Ok(failures.into_inner().expect("no panics under this lock"))
    }

    /// Cuts a batch into runs of cells for up to `width` threads.
    fn split(&self, cells: &[Cell], width: usize) -> Vec<Range<usize>> {
        let size = |cell: &Cell| if cell.is_compressed() { 4 * cell.raw } else { cell.raw };
        let total: u64 = cells.iter().map(size).sum();
        let parts = if self.source().storage.is_warm() { 4 } else { 1 };
        let tasks = (width as u64 * parts).min(total / PART.start).max(parts * total / PART.end);
        let tasks = if total < SHARE { 1 } else { tasks.max(1) };
        let (mut ranges, mut first, mut taken) = (Vec::new(), 0, 0);
        for (k, cell) in cells.iter().enumerate() {
            taken += size(cell);
            if taken >= total / tasks || k + 1 == cells.len() {
                ranges.push(first..k + 1);
                (first, taken) = (k + 1, 0);
            }
        }
        ranges
    }

    fn read_of<'b>(&self, cell: &Cell, buf: &'b mut [u8]) -> Read<'b> {
        Read { offset: cell.offset, buf, crc: self.seed().before_cell(cell.number) }
    }

    /// Reads a share of a batch on this thread; `first` is the number of its first cell.
    fn fetch_share(&self, cells: &[Cell], bufs: &mut [&mut [u8]], first: usize) -> Vec<Failure> {
        if !cells.iter().any(Cell::is_compressed) {
            return self.fetch_raw(cells, bufs, first);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let failures = self.fetch_mixed(cells, bufs, first, scratch);
            if scratch.capacity() > KEEP {
                *scratch = Vec::new();
            }
            failures
        })
    }

    fn fetch_raw(&self, cells: &[Cell], bufs: &mut [&mut [u8]], first: usize) -> Vec<Failure> {
        let mut reads: Vec<Read<'_>> =
            cells.iter().zip(bufs).map(|(cell, buf)| self.read_of(cell, buf)).collect();
        self.read_cells(cells, &mut reads, first, &mut |_, _| Ok(()))
    }

    fn fetch_mixed(
        &self,
        cells: &[Cell],
        bufs: &mut [&mut [u8]],
        first: usize,
        scratch: &mut Vec<u8>,
    ) -> Vec<Failure> {
        let total: u64 = cells.iter().map(|cell| cell.stored).sum();
        if let Err(error) = self.source().make_room(scratch, total) {
            return vec![(first, error.at_record(cells[0].row))];
        }
        let mut rest = &mut scratch[..];
        let mut reads = Vec::with_capacity(cells.len());
        for cell in cells {
            let (buf, behind) = rest.split_at_mut(cell.stored as usize);
            reads.push(self.read_of(cell, buf));
            rest = behind;
        }
        self.read_cells(cells, &mut reads, first, &mut |k, stored| {
            let cell = &cells[k];
            if !cell.is_compressed() {
                bufs[k].copy_from_slice(stored);
                return Ok(());
            }
            let dictionary = match cell.dictionary {
                0 => None,
                number => Some(self.dictionary(number)?),
            };
            compression::decompress(cell.codec, dictionary, stored, bufs[k])
                .map_err(|why| self.source().corrupt(cell.offset, Violation(why)))
        })
    }

    /// Reads and verifies; `land` gets the verified bytes of each cell.
    fn read_cells(
        &self,
        cells: &[Cell],
        reads: &mut [Read<'_>],
        first: usize,
        land: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Vec<Failure> {
        let mut failures: Vec<Failure> = Vec::new();
        let mut landed = vec![false; reads.len()];
        let mut check = |k: usize, read: &Read<'_>, failures: &mut Vec<Failure>| {
            let cell = &cells[k];
            let outcome = if read.crc == cell.crc {
                land(k, read.buf)
            } else {
                Err(self.source().corrupt(cell.offset, mismatch(cell.crc, read.crc)))
            };
            if let Err(error) = outcome {
                failures.push((first + k, error.at_record(cell.row)));
            }
        };
        let outcome = self.source().storage.read_many(reads, &mut |k, read| {
            landed[k] = true;
            check(k, read, &mut failures);
        });
        let Err(error) = outcome else { return failures };
        // One range failed and took the rest of the batch with it: ask for each of the rest alone.
        for (k, read) in reads.iter_mut().enumerate() {
            if landed[k] {
                continue;
            }
            let cell = &cells[k];
            let mut one = [self.read_of(cell, &mut *read.buf)];
            let again = if k == error.index {
                Err(copy_of(&error.source))
            } else {
                let outcome = self.source().storage.read_many(&mut one, &mut |_, _| {});
                outcome.map_err(|error| error.source)
            };
            match again {
                Ok(()) => check(k, &one[0], &mut failures),
                Err(source) => failures.push((
                    first + k,
                    self.source().failed(cell.offset, source).at_record(cell.row),
                )),
            }
        }
        failures
    }
}
