//! Reading the cells of a batch: bytes to their places, verified and decompressed.

use std::cell::RefCell;
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
            .read_many(&mut [Read { offset: cell.offset, buf }], &mut |_, bytes| {
                found = self.seed().cell(cell.number, bytes);
            })
            .map_err(|error| source.failed(cell.offset, error.source).at_record(cell.row))?;
        if found == cell.crc {
            return Ok(());
        }
        Err(source.corrupt(cell.offset, mismatch(cell.crc, found)).at_record(cell.row))
    }

    /// As [`Reader::fetch`], but goes on after a bad cell and returns all that failed.
    pub fn fetch_each(&self, cells: &[Cell], bufs: &mut [&mut [u8]]) -> Vec<Failure> {
        assert_eq!(cells.len(), bufs.len(), "one buffer for each cell");
        let total: u64 = cells.iter().map(|cell| cell.raw.max(cell.stored)).sum();
        if cells.len() < 2 || total < SHARE {
            return self.fetch_share(cells, bufs, 0);
        }
        let pool = Pool::compute();
        let parts = if self.source().storage.is_warm() { 4 } else { 1 };
        let tasks = (pool.width() * parts).min((total / (SHARE / 2)) as usize).min(cells.len());
        let shares: Vec<_> = split(cells, bufs, total / tasks as u64)
            .into_iter()
            .map(|share| Mutex::new(Some(share)))
            .collect();
        let failures = Mutex::new(Vec::new());
        pool.run(shares.len(), &|k| {
            let share = shares[k].lock().expect("no panics under this lock").take();
            let (first, cells, bufs) = share.expect("each share is taken once");
            let failed = self.fetch_share(cells, bufs, first);
            if !failed.is_empty() {
                failures.lock().expect("no panics under this lock").extend(failed);
            }
        });
        failures.into_inner().expect("no panics under this lock")
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
            cells.iter().zip(bufs).map(|(cell, buf)| Read { offset: cell.offset, buf }).collect();
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
            reads.push(Read { offset: cell.offset, buf });
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
        let mut check = |k: usize, stored: &[u8], failures: &mut Vec<Failure>| {
            let cell = &cells[k];
            let found = self.seed().cell(cell.number, stored);
            let outcome = if found == cell.crc {
                land(k, stored)
            } else {
                Err(self.source().corrupt(cell.offset, mismatch(cell.crc, found)))
            };
            if let Err(error) = outcome {
                failures.push((first + k, error.at_record(cell.row)));
            }
        };
        let outcome = self.source().storage.read_many(reads, &mut |k, bytes| {
            landed[k] = true;
            check(k, bytes, &mut failures);
        });
        let Err(error) = outcome else { return failures };
        // One range failed and took the rest of the batch with it: ask for each of the rest alone.
        for (k, read) in reads.iter_mut().enumerate() {
            if landed[k] {
                continue;
            }
            let cell = &cells[k];
            let again = if k == error.index {
                Err(copy_of(&error.source))
            } else {
                let mut one = [Read { offset: read.offset, buf: &mut *read.buf }];
                let outcome = self.source().storage.read_many(&mut one, &mut |_, _| {});
                outcome.map_err(|error| error.source)
            };
            match again {
                Ok(()) => check(k, read.buf, &mut failures),
                Err(source) => failures.push((
                    first + k,
                    self.source().failed(cell.offset, source).at_record(cell.row),
                )),
            }
        }
        failures
    }
}

type Share<'a, 'b> = (usize, &'a [Cell], &'a mut [&'b mut [u8]]);

/// Cuts a batch into runs of about `bytes` each.
fn split<'a, 'b>(
    cells: &'a [Cell],
    bufs: &'a mut [&'b mut [u8]],
    bytes: u64,
) -> Vec<Share<'a, 'b>> {
    let (mut shares, mut first, mut taken) = (Vec::new(), 0, 0);
    let mut rest = bufs;
    for (k, cell) in cells.iter().enumerate() {
        taken += cell.raw.max(cell.stored);
        if taken >= bytes || k + 1 == cells.len() {
            let (share, behind) = rest.split_at_mut(k + 1 - first);
            shares.push((first, &cells[first..=k], share));
            (rest, first, taken) = (behind, k + 1, 0);
        }
    }
    shares
}
