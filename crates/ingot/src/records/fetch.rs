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

/// Bytes of the shares that the threads take from a batch. A compressed cell counts
/// eight times.
const SHARE_BYTES: u64 = 32 << 10;

/// The same for data that is not in memory: the more ranges are asked for at once, the better.
const SHARE_BYTES_COLD: u64 = 256 << 10;

/// Shares of a batch, at most.
const SHARES: usize = 256;

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

/// A run of cells of a batch and where their values go.
#[derive(Default)]
struct Share<'b> {
    /// Number of the first cell in the batch.
    first: usize,
    cells: Vec<(Cell, &'b mut [u8])>,
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
        let next = |k: usize| bufs.next().map(|buf| (cells[k], &mut **buf)).ok_or(());
        self.fetch_into(cells.len(), next, |work| work()).expect("one buffer for each cell")
    }

    /// As [`Reader::fetch_each`] with cells and buffers that are made on the way: `next`
    /// gives those of each number below `count` in turn, while others already read into
    /// those before. What is then left for the calling thread goes on inside `aside`.
    ///
    /// On an error of `next` the content of the buffers is not known.
    pub fn fetch_into<'b, E: Send>(
        &self,
        count: usize,
        mut next: impl FnMut(usize) -> Result<(Cell, &'b mut [u8]), E>,
        aside: impl FnOnce(&mut (dyn FnMut() + Send)),
    ) -> Result<Vec<Failure>, E> {
        let pool = Pool::compute();
        let warm = self.source().storage.is_warm();
        let (bytes, most) = if warm {
            (SHARE_BYTES, count)
        } else {
            (SHARE_BYTES_COLD, count.div_ceil(pool.width()))
        };
        let least = count.div_ceil(SHARES);
        let shares: Vec<Mutex<Share<'b>>> =
            (0..SHARES.min(count)).map(|_| Mutex::default()).collect();
        let failures = Mutex::new(Vec::new());
        let work = |k: usize| {
            let share = std::mem::take(&mut *shares[k].lock().expect("no panics under this lock"));
            let failed = self.fetch_share(share);
            if !failed.is_empty() {
                failures.lock().expect("no panics under this lock").extend(failed);
            }
        };
        let mut fed = Ok(());
        let feed = |publish: &dyn Fn(bool)| {
            let mut slots = shares.iter();
            let (mut first, mut weight) = (0, 0);
            let mut cells = Vec::with_capacity(count.min(8));
            for k in 0..count {
                let (cell, buf) = match next(k) {
                    Ok(found) => found,
                    Err(error) => return fed = Err(error),
                };
                weight += if cell.is_compressed() { 8 * cell.raw } else { cell.raw };
                cells.push((cell, buf));
                let full = cells.len() >= most || (weight >= bytes && cells.len() >= least);
                if full || k + 1 == count {
                    let next = Vec::with_capacity(cells.len());
                    let share = Share { first, cells: std::mem::replace(&mut cells, next) };
                    let slot = slots.next().expect("a share has at least `least` cells");
                    *slot.lock().expect("no panics under this lock") = share;
                    (first, weight) = (k + 1, 0);
                    publish(k + 1 < count);
                }
            }
        };
        pool.run_while(&work, feed, aside);
        fed?;
        Ok(failures.into_inner().expect("no panics under this lock"))
    }

    fn read_of<'b>(&self, cell: &Cell, buf: &'b mut [u8]) -> Read<'b> {
        Read { offset: cell.offset, buf, crc: self.seed().before_cell(cell.number) }
    }

    /// Reads a share of a batch on this thread.
    fn fetch_share(&self, mut share: Share<'_>) -> Vec<Failure> {
        if !share.cells.iter().any(|(cell, _)| cell.is_compressed()) {
            return self.fetch_raw(&mut share);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let failures = self.fetch_mixed(&mut share, scratch);
            if scratch.capacity() > KEEP {
                *scratch = Vec::new();
            }
            failures
        })
    }

    fn fetch_raw(&self, share: &mut Share<'_>) -> Vec<Failure> {
        let (cells, mut reads): (Vec<Cell>, Vec<Read<'_>>) =
            share.cells.iter_mut().map(|(cell, buf)| (*cell, self.read_of(cell, buf))).unzip();
        self.read_cells(&cells, &mut reads, share.first, &mut |_, _| Ok(()))
    }

    fn fetch_mixed(&self, share: &mut Share<'_>, scratch: &mut Vec<u8>) -> Vec<Failure> {
        let total: u64 = share.cells.iter().map(|(cell, _)| cell.stored).sum();
        if let Err(error) = self.source().make_room(scratch, total) {
            return vec![(share.first, error.at_record(share.cells[0].0.row))];
        }
        let mut rest = &mut scratch[..];
        let (cells, mut reads): (Vec<Cell>, Vec<Read<'_>>) = share
            .cells
            .iter()
            .map(|(cell, _)| {
                let buf = rest.split_off_mut(..cell.stored as usize).expect("there is room");
                (*cell, self.read_of(cell, buf))
            })
            .unzip();
        self.read_cells(&cells, &mut reads, share.first, &mut |k, stored| {
            let (cell, buf) = &mut share.cells[k];
            if !cell.is_compressed() {
                buf.copy_from_slice(stored);
                return Ok(());
            }
            let dictionary = match cell.dictionary {
                0 => None,
                number => Some(self.dictionary(number)?),
            };
            compression::decompress(cell.codec, dictionary, stored, buf)
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
