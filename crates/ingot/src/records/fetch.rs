//! Reading the cells of a batch: bytes to their places, verified and decompressed.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::container::{Cell, Container, Form};
use super::contents::Source;
use crate::compression;
use crate::error::{Error, Result, copy_of};
use crate::format::checksum::mismatch;
use crate::format::{Group, Violation};
use crate::limit::Growth;
use crate::pool::Pool;
use crate::storage::Read;

/// Bytes of the shares that the threads take from a batch. An encoded cell counts
/// eight times.
const SHARE_BYTES: u64 = 32 << 10;

/// The same for data that is not in memory: the more ranges are asked for at once, the better.
const SHARE_BYTES_COLD: u64 = 256 << 10;

/// Shares of a batch, at most.
const SHARES: usize = 256;

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
    /// Returns the file that a cell is in, by its number.
    fn file(&self, number: u32) -> &dyn Container;

    /// Returns whether all files were served from memory lately.
    fn is_warm(&self) -> bool;

    /// Fills `bufs[k]`, which has `cells[k].raw` bytes, with the value of `cells[k]`.
    ///
    /// Every checksum is verified. Reads from several threads when that pays. The
    /// error is that of the first bad cell of the batch.
    fn fetch(&self, cells: &[Cell], bufs: &mut [&mut [u8]]) -> Result<()> {
        let first = self.fetch_each(cells, bufs).into_iter().min_by_key(|&(k, _)| k);
        first.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Fills `buf`, which has `cell.raw` bytes, with the value of `cell`.
    fn fetch_one(&self, cell: &Cell, buf: &mut [u8]) -> Result<()> {
        if cell.is_encoded() {
            let failure = fetch_share(self, vec![(0, *cell, buf)]).pop();
            return failure.map_or(Ok(()), |(_, error)| Err(error));
        }
        let mut found = !cell.crc;
        let file = self.file(cell.file);
        let source = Source::of(file);
        file.storage()
            .read_many(&mut [read_of(cell, buf)], &mut |_, read| found = read.crc)
            .map_err(|error| source.failed(cell.offset, error.source).at_record(cell.row))?;
        if found == cell.crc {
            return Ok(());
        }
        Err(source.corrupt(cell.offset, mismatch(cell.crc, found)).at_record(cell.row))
    }

    /// As [`Reader::fetch`], but goes on after a bad cell and returns all that failed.
    fn fetch_each(&self, cells: &[Cell], bufs: &mut [&mut [u8]]) -> Vec<Failure> {
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
    fn fetch_into<'b, E: Send>(
        &self,
        count: usize,
        mut next: impl FnMut(usize) -> Result<(Cell, &'b mut [u8]), E>,
        aside: impl FnOnce(&mut (dyn FnMut() + Send)),
    ) -> Result<Vec<Failure>, E> {
        let pool = Pool::compute();
        let warm = self.is_warm();
        let (bytes, most) = if warm {
            (SHARE_BYTES, count)
        } else {
            (SHARE_BYTES_COLD, count.div_ceil(pool.width()))
        };
        let least = count.div_ceil(SHARES);
        let shares: Vec<Mutex<Vec<Wanted<'b>>>> =
            (0..SHARES.min(count)).map(|_| Mutex::default()).collect();
        let failures = Mutex::new(Vec::new());
        let work = |k: usize| {
            let share = std::mem::take(&mut *shares[k].lock().expect("no panics under this lock"));
            let failed = fetch_share(self, share);
            if !failed.is_empty() {
                failures.lock().expect("no panics under this lock").extend(failed);
            }
        };
        let mut fed = Ok(());
        let feed = |publish: &dyn Fn(bool)| {
            let mut slots = shares.iter();
            let mut weight = 0;
            let mut cells = Vec::with_capacity(count.min(8));
            for k in 0..count {
                let (cell, buf) = match next(k) {
                    Ok(found) => found,
                    Err(error) => return fed = Err(error),
                };
                weight += if cell.is_encoded() { 8 * cell.raw } else { cell.raw };
                cells.push((k, cell, buf));
                let full = cells.len() >= most || (weight >= bytes && cells.len() >= least);
                if full || k + 1 == count {
                    let next = Vec::with_capacity(cells.len());
                    let share = std::mem::replace(&mut cells, next);
                    let slot = slots.next().expect("a share has at least `least` cells");
                    *slot.lock().expect("no panics under this lock") = share;
                    weight = 0;
                    publish(k + 1 < count);
                }
            }
        };
        pool.run_while(&work, feed, aside);
        fed?;
        Ok(failures.into_inner().expect("no panics under this lock"))
    }
}

/// Refuses cells that grow too much when they are decoded; see
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
    growth.add(cell.stored, cell.raw).map_err(|why| Error::Format {
        path: files.file(cell.file).name().to_owned(),
        reason: format!("record {}: {why}", cell.row),
    })
}

fn read_of<'b>(cell: &Cell, buf: &'b mut [u8]) -> Read<'b> {
    Read { offset: cell.offset, buf, sum: cell.sum, crc: cell.before }
}

/// Reads a share of a batch. Files that have to wait for a device wait at the same time.
fn fetch_share<F: Files + ?Sized>(files: &F, mut share: Vec<Wanted<'_>>) -> Vec<Failure> {
    let Some(&(_, Cell { file: first, .. }, _)) = share.first() else { return Vec::new() };
    if share.iter().all(|(_, cell, _)| cell.file == first) {
        return fetch_from(files.file(first), &mut share);
    }
    share.sort_by_key(|(_, cell, _)| cell.file);
    let groups = share.chunk_by_mut(|(_, a, _), (_, b, _)| a.file == b.file);
    let (mut here, mut away) = (Vec::new(), Vec::new());
    for group in groups {
        let file = files.file(group[0].1.file);
        let ranges: Vec<Range<u64>> =
            group.iter().map(|(_, cell, _)| cell.offset..cell.offset + cell.stored).collect();
        let brought = file.storage().announce(&ranges);
        if brought { &mut here } else { &mut away }.push(Mutex::new((file, group, Vec::new())));
    }
    let work = |k: usize| {
        let (file, group, failures) = &mut *away[k].lock().expect("no panics under this lock");
        *failures = fetch_from(*file, group);
    };
    Pool::blocking().run(away.len(), &work);
    let mut failures = Vec::new();
    for group in here {
        let (file, group, _) = group.into_inner().expect("no panics under this lock");
        failures.extend(fetch_from(file, group));
    }
    for group in away {
        failures.extend(group.into_inner().expect("no panics under this lock").2);
    }
    failures
}

/// Reads cells of one file on this thread.
fn fetch_from(file: &dyn Container, wanted: &mut [Wanted<'_>]) -> Vec<Failure> {
    if !wanted.iter().any(|(_, cell, _)| cell.is_encoded()) {
        return fetch_raw(file, wanted);
    }
    wanted.sort_by_key(|(_, cell, _)| matches!(cell.form, Form::Part(_)));
    let first_part = wanted.partition_point(|(_, cell, _)| !matches!(cell.form, Form::Part(_)));
    let (whole, parts) = wanted.split_at_mut(first_part);
    let mut failures = fetch_parts(file, parts);
    if !whole.is_empty() {
        SCRATCH.with_borrow_mut(|scratch| {
            failures.extend(fetch_mixed(file, whole, scratch));
            if scratch.capacity() > KEEP {
                *scratch = Vec::new();
            }
        });
    }
    failures
}

/// Copies values out of the groups that they are parts of.
fn fetch_parts(file: &dyn Container, wanted: &mut [Wanted<'_>]) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut latest: Option<(u64, Arc<Group>)> = None;
    for (k, cell, buf) in wanted {
        let Form::Part(start) = cell.form else { continue };
        let group = match &latest {
            Some((offset, group)) if *offset == cell.offset => Ok(Arc::clone(group)),
            _ => file.group(cell),
        };
        let copied = group.and_then(|group| {
            let value = group.bytes.get(start as usize..(start + cell.raw) as usize);
            let value = value.ok_or_else(|| {
                let why = Violation("the file was changed while it was read".to_owned());
                Source::of(file).corrupt(cell.offset, why)
            })?;
            buf.copy_from_slice(value);
            latest = Some((cell.offset, group));
            Ok(())
        });
        if let Err(error) = copied {
            failures.push((*k, error.at_record(cell.row)));
        }
    }
    failures
}

fn fetch_raw(file: &dyn Container, wanted: &mut [Wanted<'_>]) -> Vec<Failure> {
    let (cells, mut reads): (Vec<(usize, Cell)>, Vec<Read<'_>>) =
        wanted.iter_mut().map(|(k, cell, buf)| ((*k, *cell), read_of(cell, buf))).unzip();
    read_cells(file, &cells, &mut reads, &mut |_, _| Ok(()))
}

fn fetch_mixed(
    file: &dyn Container,
    wanted: &mut [Wanted<'_>],
    scratch: &mut Vec<u8>,
) -> Vec<Failure> {
    let source = Source::of(file);
    let total: u64 = wanted.iter().map(|(_, cell, _)| cell.stored).sum();
    if let Err(error) = source.make_room(scratch, total) {
        return match wanted {
            [(k, cell, _)] => vec![(*k, error.at_record(cell.row))],
            _ => wanted.chunks_mut(1).flat_map(|one| fetch_mixed(file, one, scratch)).collect(),
        };
    }
    let mut rest = &mut scratch[..];
    let (cells, mut reads): (Vec<(usize, Cell)>, Vec<Read<'_>>) = wanted
        .iter()
        .map(|(k, cell, _)| {
            let buf = rest.split_off_mut(..cell.stored as usize).expect("there is room");
            ((*k, *cell), read_of(cell, buf))
        })
        .unzip();
    read_cells(file, &cells, &mut reads, &mut |k, stored| {
        let (_, cell, buf) = &mut wanted[k];
        if cell.form == Form::Chunk {
            return file.decode(cell, stored, buf);
        }
        if !cell.is_encoded() {
            buf.copy_from_slice(stored);
            return Ok(());
        }
        let dictionary = match cell.dictionary {
            0 => None,
            number => Some(file.dictionary(number)?),
        };
        compression::decompress(cell.codec, dictionary, stored, buf)
            .map_err(|failure| source.undecoded(cell.offset, failure))
    })
}

/// Reads and verifies; `land` gets the verified bytes of each cell. Cells come with their
/// numbers in the batch, which failures are reported by.
fn read_cells(
    file: &dyn Container,
    cells: &[(usize, Cell)],
    reads: &mut [Read<'_>],
    land: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
) -> Vec<Failure> {
    let (source, storage) = (Source::of(file), file.storage());
    let mut failures: Vec<Failure> = Vec::new();
    let mut landed = vec![false; reads.len()];
    let mut check = |k: usize, read: &Read<'_>, failures: &mut Vec<Failure>| {
        let (number, cell) = &cells[k];
        let outcome = if read.crc == cell.crc {
            land(k, read.buf)
        } else {
            Err(source.corrupt(cell.offset, mismatch(cell.crc, read.crc)))
        };
        if let Err(error) = outcome {
            failures.push((*number, error.at_record(cell.row)));
        }
    };
    let outcome = storage.read_many(reads, &mut |k, read| {
        landed[k] = true;
        check(k, read, &mut failures);
    });
    let Err(error) = outcome else { return failures };
    // One range failed and took the rest of the batch with it: ask for each of the rest alone.
    for (k, read) in reads.iter_mut().enumerate() {
        if landed[k] {
            continue;
        }
        let (number, cell) = &cells[k];
        let mut one = [read_of(cell, &mut *read.buf)];
        let again = if k == error.index {
            Err(copy_of(&error.source))
        } else {
            storage.read_many(&mut one, &mut |_, _| {}).map_err(|error| error.source)
        };
        match again {
            Ok(()) => check(k, &one[0], &mut failures),
            Err(cause) => {
                failures.push((*number, source.failed(cell.offset, cause).at_record(cell.row)));
            }
        }
    }
    failures
}
