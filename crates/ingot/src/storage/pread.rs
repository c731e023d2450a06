//! Positioned reads: the way that works everywhere.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::coalesce::{Run, coalesce};
use super::{Cost, Landed, Read, ReadAt, past_end};
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
            match self.file.read_at(buf, offset) {
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

    /// Fills the reads of a run, and returns what became of each. Where the run as a whole
    /// fails, its reads are tried one by one: bytes that no read wants fail none.
    pub(super) fn fill_run(&self, run: &mut Run<'_, '_>) -> Vec<io::Result<()>> {
        if run.members.len() > 1 {
            let mut bytes = vec![0; run.len];
            if self.fill(run.offset, &mut bytes).is_ok() {
                run.fill(0, &bytes);
                return run.members.iter().map(|_| Ok(())).collect();
            }
        }
        run.members.iter_mut().map(|(_, read)| self.fill(read.offset, read.buf)).collect()
    }
}

impl ReadAt for Pread {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        if let [read] = reads {
            let outcome = self.fill(read.offset, read.buf);
            return landed(0, read.add_up(), outcome);
        }
        read_files(vec![(self, 0, reads)], landed);
    }
}

/// Reads a batch over many files; the reads of each are numbered from a number on.
pub(super) fn read_files(groups: Vec<(&Pread, usize, &mut [Read<'_>])>, landed: &mut Landed<'_>) {
    let mut runs = Vec::new();
    for (file, first, reads) in groups {
        land_empty(reads, first, landed);
        let of_file = coalesce(reads, first, Cost::DEVICE);
        runs.extend(of_file.into_iter().map(|run| (file, run)));
    }
    let is_large = runs.iter().map(|(_, run)| run.len).sum::<usize>() > SPREAD_BYTES_MIN;
    let mut waits = 0;
    for k in 0..runs.len() {
        let (file, run) = &mut runs[k];
        let begun = Instant::now();
        let outcomes = file.fill_run(run);
        waits += usize::from(begun.elapsed() > copying_time(run.len));
        run.land_each(outcomes, landed);
        if is_large && waits == SPREAD_WAITS {
            return spread(runs.split_off(k + 1), landed);
        }
    }
}

fn spread(runs: Vec<(&Pread, Run<'_, '_>)>, landed: &mut Landed<'_>) {
    let filled = Pool::blocking().map_each(runs, &|(file, mut run)| {
        let outcomes = file.fill_run(&mut run);
        (run, outcomes)
    });
    for (mut run, outcomes) in filled {
        run.land_each(outcomes, landed);
    }
}

/// Returns what reading `len` bytes that are in memory takes at most.
fn copying_time(len: usize) -> Duration {
    Duration::from_nanos(20_000 + len as u64)
}

/// Lands the reads of no bytes, which are numbered from `first` on with the others.
pub(super) fn land_empty(reads: &mut [Read<'_>], first: usize, landed: &mut Landed<'_>) {
    for (k, read) in reads.iter_mut().enumerate().filter(|(_, read)| read.buf.is_empty()) {
        landed(first + k, read.add_up(), Ok(()));
    }
}
