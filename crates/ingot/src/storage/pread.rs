//! Positioned reads: the way that works everywhere.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::coalesce::{Run, coalesce};
use super::{Read, ReadAt, ReadError, past_end};
use crate::pool::Pool;

/// Batches of fewer bytes are read by the calling thread alone: other threads
/// would take longer to wake up.
const SPREAD_BYTES_MIN: usize = 64 << 10;

/// How often the calling thread waits before it asks others for help: once may
/// be that another thread had its core.
const SPREAD_WAITS: usize = 2;

/// A file that is read with one system call per run of neighbouring ranges. The
/// calling thread begins; once it has to wait for a device, other threads take a
/// share of what is left of a large batch.
#[derive(Clone, Debug)]
pub struct Pread {
    file: Arc<File>,
}

impl Pread {
    /// Returns the file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns a reader of `file`.
    pub fn new(file: Arc<File>) -> Pread {
        Pread { file }
    }

    /// Fills `buf` from `offset`. Interrupted and short reads are continued.
    pub(super) fn fill(&self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > i64::MAX as u64) && !buf.is_empty() {
            return Err(past_end());
        }
        while !buf.is_empty() {
            match read_at(&self.file, buf, offset) {
                Ok(0) => return Err(past_end()),
                Ok(count) => {
                    buf = &mut buf[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fills the reads of a run. Where the run as a whole fails, its reads are
    /// tried one by one: bytes that nobody asked for must not fail a batch, and
    /// the error must name the read that it belongs to.
    pub(super) fn fill_run(&self, run: &mut Run<'_, '_>) -> Result<(), ReadError> {
        if run.members.len() > 1 {
            let mut bytes = vec![0; run.len];
            if self.fill(run.offset, &mut bytes).is_ok() {
                run.fill(0, &bytes);
                return Ok(());
            }
        }
        for (index, read) in &mut run.members {
            self.fill(read.offset, read.buf)
                .map_err(|source| ReadError { index: *index, source })?;
        }
        Ok(())
    }
}

impl ReadAt for Pread {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_many(
        &self,
        reads: &mut [Read<'_>],
        landed: &mut dyn FnMut(usize, &mut Read<'_>),
    ) -> Result<(), ReadError> {
        if let [read] = reads {
            self.fill(read.offset, read.buf).map_err(|source| ReadError { index: 0, source })?;
            landed(0, read.add_up());
            return Ok(());
        }
        land_empty(reads, landed);
        let mut runs = coalesce(reads);
        let is_large = runs.iter().map(|run| run.len).sum::<usize>() > SPREAD_BYTES_MIN;
        let mut waits = 0;
        for k in 0..runs.len() {
            let begun = Instant::now();
            self.fill_run(&mut runs[k])?;
            waits += usize::from(begun.elapsed() > copying_time(runs[k].len));
            runs[k].land(landed);
            if is_large && waits == SPREAD_WAITS {
                return self.spread(runs.split_off(k + 1), landed);
            }
        }
        Ok(())
    }
}

impl Pread {
    fn spread(
        &self,
        runs: Vec<Run<'_, '_>>,
        landed: &mut dyn FnMut(usize, &mut Read<'_>),
    ) -> Result<(), ReadError> {
        let tasks: Vec<_> = runs.into_iter().map(|run| Mutex::new((run, Ok(())))).collect();
        Pool::blocking().run(tasks.len(), &|k| {
            let (run, outcome) = &mut *tasks[k].lock().unwrap_or_else(PoisonError::into_inner);
            *outcome = self.fill_run(run);
        });
        for task in tasks {
            let (mut run, outcome) = task.into_inner().unwrap_or_else(PoisonError::into_inner);
            outcome?;
            run.land(landed);
        }
        Ok(())
    }
}

/// Returns what reading `len` bytes that are in memory takes at most.
fn copying_time(len: usize) -> Duration {
    Duration::from_nanos(20_000 + len as u64)
}

/// Calls `landed` for the reads of no bytes.
pub(super) fn land_empty(reads: &mut [Read<'_>], landed: &mut dyn FnMut(usize, &mut Read<'_>)) {
    for (index, read) in reads.iter_mut().enumerate().filter(|(_, read)| read.buf.is_empty()) {
        landed(index, read.add_up());
    }
}

#[cfg(unix)]
fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    match std::os::windows::fs::FileExt::seek_read(file, buf, offset) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        outcome => outcome,
    }
}
