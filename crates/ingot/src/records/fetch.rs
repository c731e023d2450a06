//! Reading the cells of a batch: bytes to their places, verified and decompressed.
//!
//! Cells in memory are read first, on all cores, in small shares. The others, which wait for a
//! device or a network, are then requested together, over all files.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use super::container::{Cell, Form, Stored};
use crate::error::{Error, Result};
use crate::format::Group;
use crate::format::checksum::mismatch;
use crate::limit::Growth;
use crate::pool::Pool;
use crate::storage::{self, Cost, Read};

/// Bytes of the shares into which a batch is cut; an encoded cell counts eight times. A batch of
/// one share is read by the caller alone: below this, waking a helper costs more than it saves.
const SHARE_BYTES: u64 = 64 << 10;

/// Maximum number of shares of a batch.
const SHARES: usize = 256;

/// Minimum number of cells per thread when several threads wait. A batch of 64 is read by the
/// caller alone: its ring holds all of it, and waking a helper costs more than it saves.
const WAITING_MIN: usize = 48;

/// Stored bytes of encoded cells that a thread waits for at a time.
const WAITING_BYTES: u64 = 32 << 20;

/// Scratch memory a thread keeps between batches.
const KEEP: usize = 4 << 20;

/// A cell of a batch: its number there, what it is, and where its value goes.
type Wanted<'b> = (usize, Cell, &'b mut [u8]);

type Failure = (usize, Error);

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One or more files that cells are in.
pub trait Files: Sync {
    /// Returns a file by its number, [`Cell::file`].
    fn file(&self, number: u32) -> &dyn Stored;

    /// Fills `bufs[k]`, which has `cells[k].raw` bytes, with the value of `cells[k]`.
    ///
    /// Every checksum is verified. Reads from several threads when that pays. The
    /// error is that of the first bad cell of the batch.
    fn fetch(&self, cells: &[Cell], bufs: &mut [&mut [u8]]) -> Result<()> {
        let first = self.fetch_each(cells, bufs).into_iter().min_by_key(|&(k, _)| k);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// As [`Files::fetch_one`] of a cell that is not encoded, if it is in memory and intact.
    /// Returns whether it was read.
    fn fetch_ready(&self, cell: &Cell, buf: &mut [u8]) -> bool {
        if cell.is_nothing() {
            return true;
        }
        let mut is_read = false;
        let storage = self.file(cell.file).source().storage;
        storage.read_ready(&mut [read_of(cell, buf)], &mut |_, read, outcome| {
            is_read = outcome.is_ok() && read.crc == cell.crc;
        });
        is_read
    }

    /// Fills `buf`, which has `cell.raw` bytes, with the value of `cell`.
    fn fetch_one(&self, cell: &Cell, buf: &mut [u8]) -> Result<()> {
        if cell.is_nothing() {
            return Ok(());
        }
        if cell.is_encoded() {
            let failure = wait_for(self, vec![(0, *cell, buf)]).pop();
            return failure.map_or(Ok(()), |(_, error)| Err(error));
        }
        let file = self.file(cell.file);
        let mut outcome = Ok(());
        file.source().storage.read_many(&mut [read_of(cell, buf)], &mut |_, read, read_outcome| {
            if read_outcome.is_err() || read.crc != cell.crc {
                outcome = Err(failure_of(file, cell, read.crc, read_outcome));
            }
        });
        outcome
    }

    /// As [`Files::fetch`], but continues after a bad cell and returns all failures.
    fn fetch_each(&self, cells: &[Cell], bufs: &mut [&mut [u8]]) -> Vec<Failure> {
        assert_eq!(cells.len(), bufs.len(), "one buffer for each cell");
        let mut bufs = bufs.iter_mut();
        let next = |k: usize| bufs.next().map(|buf| (cells[k], &mut **buf)).ok_or(());
        self.fetch_into(cells.len(), next, |work| work()).expect("one buffer for each cell")
    }

    /// As [`Files::fetch_each`], with cells and buffers that `next` returns for each number below
    /// `count`. The reads happen inside `aside`; if `next` fails, nothing is read.
    fn fetch_into<'b, E: Send>(
        &self,
        count: usize,
        mut next: impl FnMut(usize) -> Result<(Cell, &'b mut [u8]), E>,
        aside: impl FnOnce(&mut (dyn FnMut() + Send)),
    ) -> Result<Vec<Failure>, E> {
        let least = count.div_ceil(SHARES);
        let mut shares: Vec<Vec<Wanted<'b>>> = Vec::new();
        let (mut share, mut weight) = (Vec::new(), 0);
        for k in 0..count {
            let (cell, buf) = next(k)?;
            if cell.is_nothing() {
                continue;
            }
            weight += if cell.is_encoded() { 8 * cell.raw } else { cell.raw };
            share.push((k, cell, buf));
            if weight >= SHARE_BYTES && share.len() >= least {
                shares.push(std::mem::take(&mut share));
                weight = 0;
            }
        }
        if !share.is_empty() {
            shares.push(share);
        }
        let mut failures = Vec::new();
        aside(&mut || {
            let shares = std::mem::take(&mut shares);
            let done = Pool::compute().map_each(shares, &|share| fetch_ready(self, share));
            let mut left = Vec::new();
            for one in done {
                failures.extend(one.failed);
                left.extend(one.left);
            }
            failures.extend(wait_for_all(self, left));
        });
        Ok(failures)
    }
}

impl<S: Stored> Files for S {
    fn file(&self, _number: u32) -> &dyn Stored {
        self
    }
}

/// Rejects cells that grow too much when they are decoded; see
/// [`max_decoded_bytes`](crate::limit::max_decoded_bytes).
pub fn check_growth<'c>(
    files: &(impl Files + ?Sized),
    cells: impl IntoIterator<Item = &'c Cell>,
) -> Result<()> {
    let mut growth = Growth::default();
    cells.into_iter().try_for_each(|cell| add_growth(files, cell, &mut growth))
}

/// As [`check_growth`], with one cell more.
#[inline]
pub fn add_growth(files: &(impl Files + ?Sized), cell: &Cell, growth: &mut Growth) -> Result<()> {
    growth.add(cell.stored, cell.raw).map_err(|why| {
        let name = files.file(cell.file).source().name;
        Error::format(name, format!("record {}: {why}", cell.row))
    })
}

fn read_of<'b>(cell: &Cell, buf: &'b mut [u8]) -> Read<'b> {
    Read { offset: cell.offset, buf, sum: cell.sum, crc: cell.before }
}

/// Returns the error of a cell that could not be read, or has another checksum.
#[cold]
fn failure_of(file: &dyn Stored, cell: &Cell, crc: u32, outcome: io::Result<()>) -> Error {
    let source = file.source();
    let error = match outcome {
        Err(cause) => source.failed(cell.offset, cause),
        Ok(()) => source.corrupt(cell.offset, mismatch(cell.crc, crc)),
    };
    error.at_record(cell.row)
}

/// The outcome of a share: cells that failed, and cells that must wait.
#[derive(Default)]
struct Done<'b> {
    failed: Vec<Failure>,
    left: Vec<Wanted<'b>>,
}

/// Reads the cells of a share that are in memory.
fn fetch_ready<'b, F: Files + ?Sized>(files: &F, share: Vec<Wanted<'b>>) -> Done<'b> {
    let mut sorted = Sorted::of(share);
    let mut failed = sorted.fetch_parts(files);
    let mut left = sorted.read(files, true, &mut failed);
    left.sort_unstable();
    let mut next = left.into_iter().peekable();
    let cells = sorted.raw.into_iter().chain(sorted.encoded).enumerate();
    let waits = cells.filter(|(k, _)| next.next_if_eq(k).is_some());
    Done { failed, left: waits.map(|(_, cell)| cell).collect() }
}

/// Reads cells that must wait, on several threads if there are many and the device is fast
/// enough to keep them busy. One thread waits for remote storages.
fn wait_for_all<F: Files + ?Sized>(files: &F, mut cells: Vec<Wanted<'_>>) -> Vec<Failure> {
    let pool = Pool::compute();
    let threads = pool.width().min(cells.len() / WAITING_MIN).max(1);
    let is_far = |(_, cell, _): &Wanted<'_>| {
        files.file(cell.file).source().storage.cost().latency > Cost::DEVICE.latency
    };
    if threads == 1 || cells.iter().any(is_far) {
        return wait_for(files, cells);
    }
    cells.sort_by_key(|(_, cell, _)| (cell.file, cell.offset));
    let mut shares = Vec::with_capacity(threads);
    for k in (0..threads).rev() {
        shares.push(cells.split_off(k * cells.len() / (k + 1)));
    }
    pool.map_each(shares, &|share| wait_for(files, share)).into_iter().flatten().collect()
}

/// Reads cells, of all files together, on this thread.
fn wait_for<F: Files + ?Sized>(files: &F, mut cells: Vec<Wanted<'_>>) -> Vec<Failure> {
    let mut failed = Vec::new();
    while !cells.is_empty() {
        let mut bytes = 0;
        let end = cells.iter().position(|(_, cell, _)| {
            bytes += if cell.is_encoded() { cell.stored } else { 0 };
            bytes > WAITING_BYTES
        });
        let later = cells.split_off(end.unwrap_or(cells.len()).max(1));
        let mut sorted = Sorted::of(std::mem::replace(&mut cells, later));
        failed.extend(sorted.fetch_parts(files));
        sorted.read(files, false, &mut failed);
    }
    failed
}

/// Cells of a batch by how they are read.
struct Sorted<'b> {
    /// The stored bytes are the value.
    raw: Vec<Wanted<'b>>,
    /// Decoded one by one.
    encoded: Vec<Wanted<'b>>,
    /// Parts of groups.
    parts: Vec<Wanted<'b>>,
}

impl<'b> Sorted<'b> {
    fn of(share: Vec<Wanted<'b>>) -> Sorted<'b> {
        let mut sorted = Sorted { raw: share, encoded: Vec::new(), parts: Vec::new() };
        if sorted.raw.iter().any(|(_, cell, _)| cell.is_encoded()) {
            let is_part = |cell: &Cell| matches!(cell.form, Form::Part(_));
            let all = std::mem::take(&mut sorted.raw).into_iter();
            let (raw, encoded) = all.partition(|(_, cell, _)| !cell.is_encoded());
            sorted.raw = raw;
            (sorted.parts, sorted.encoded) =
                Vec::into_iter(encoded).partition(|(_, cell, _)| is_part(cell));
        }
        for cells in [&mut sorted.raw, &mut sorted.encoded] {
            if !cells.is_sorted_by_key(|(_, cell, _)| cell.file) {
                cells.sort_by_key(|(_, cell, _)| cell.file);
            }
        }
        sorted
    }

    /// Reads raw and encoded cells: those in memory if `ready`, else all. Returns the numbers
    /// of those not read, counted through raw and encoded ones.
    fn read<F: Files + ?Sized>(
        &mut self,
        files: &F,
        ready: bool,
        failed: &mut Vec<Failure>,
    ) -> Vec<usize> {
        if self.encoded.is_empty() {
            return read_cells(files, &mut self.raw, &mut [], &mut [], ready, failed);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let bytes = self.encoded.iter().map(|(_, cell, _)| cell.stored).sum();
            let source = files.file(self.encoded[0].1.file).source();
            let left = match source.make_room(scratch, bytes) {
                Ok(()) => {
                    read_cells(files, &mut self.raw, &mut self.encoded, scratch, ready, failed)
                }
                Err(_) => {
                    let left = read_cells(files, &mut self.raw, &mut [], &mut [], ready, failed);
                    for one in self.encoded.chunks_mut(1) {
                        match source.make_room(scratch, one[0].1.stored) {
                            Ok(()) => {
                                read_cells(files, &mut [], one, scratch, false, failed);
                            }
                            Err(error) => failed.push((one[0].0, error.at_record(one[0].1.row))),
                        }
                    }
                    left
                }
            };
            if scratch.capacity() > KEEP {
                *scratch = Vec::new();
            }
            left
        })
    }

    /// Copies values out of their groups.
    fn fetch_parts<F: Files + ?Sized>(&mut self, files: &F) -> Vec<Failure> {
        let mut failed = Vec::new();
        let mut latest: Option<(u32, u64, Arc<Group>)> = None;
        for (k, cell, buf) in &mut self.parts {
            let Form::Part(start) = cell.form else { continue };
            let file = files.file(cell.file);
            let group = match &latest {
                Some((of, offset, group)) if (*of, *offset) == (cell.file, cell.offset) => {
                    Ok(Arc::clone(group))
                }
                _ => file.group(cell),
            };
            let copied = group.and_then(|group| {
                let value = group.bytes.get(start as usize..(start + cell.raw) as usize);
                let value = value.ok_or_else(|| {
                    file.source().corrupt(cell.offset, "the file was changed while it was read")
                })?;
                buf.copy_from_slice(value);
                latest = Some((cell.file, cell.offset, group));
                Ok(())
            });
            if let Err(error) = copied {
                failed.push((*k, error.at_record(cell.row)));
            }
        }
        failed
    }
}

/// Reads cells, each kind sorted by file, encoded ones through `scratch`: those in memory if
/// `ready`, else all. Returns the numbers of those not read, counted through raw and encoded ones.
fn read_cells<F: Files + ?Sized>(
    files: &F,
    raw: &mut [Wanted<'_>],
    encoded: &mut [Wanted<'_>],
    scratch: &mut [u8],
    ready: bool,
    failed: &mut Vec<Failure>,
) -> Vec<usize> {
    let num_raw = raw.len();
    let cells: Vec<(usize, Cell)> =
        raw.iter().chain(&*encoded).map(|(number, cell, _)| (*number, *cell)).collect();
    let mut reads: Vec<Read<'_>> = Vec::with_capacity(cells.len());
    reads.extend(raw.iter_mut().map(|(_, cell, buf)| read_of(cell, buf)));
    let mut rest = scratch;
    reads.extend(encoded.iter().map(|(_, cell, _)| {
        read_of(cell, rest.split_off_mut(..cell.stored as usize).expect("there is room"))
    }));
    let mut landed = |k: usize, read: &mut Read<'_>, outcome: io::Result<()>| {
        let (number, cell) = &cells[k];
        if outcome.is_err() || read.crc != cell.crc {
            let error = failure_of(files.file(cell.file), cell, read.crc, outcome);
            return failed.push((*number, error));
        }
        if k >= num_raw
            && let Err(error) = files.file(cell.file).decode(cell, read.buf, encoded[k - num_raw].2)
        {
            failed.push((*number, error.at_record(cell.row)));
        }
    };
    let mut groups = Vec::new();
    let mut rest = &mut reads[..];
    for group in cells.chunk_by(|(_, a), (_, b)| a.file == b.file) {
        let reads = rest.split_off_mut(..group.len()).expect("one read for each cell");
        let storage = files.file(group[0].1.file).source().storage;
        groups.push(storage::Group { storage, reads });
    }
    if !ready {
        storage::read_all(groups, &mut landed);
        return Vec::new();
    }
    let mut left = Vec::new();
    let mut first = 0;
    for storage::Group { storage, reads } in groups {
        let waits =
            storage.read_ready(reads, &mut |k, read, outcome| landed(first + k, read, outcome));
        left.extend(waits.into_iter().map(|k| first + k));
        first += reads.len();
    }
    left
}
