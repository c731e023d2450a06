//! Which reads of a batch are one read of the device.

use std::io;

use super::{Cost, Landed, Read};

/// A run: reads that are near each other, in the order of their offsets.
#[derive(Debug)]
pub(super) struct Run<'r, 'a> {
    /// Where the run begins.
    pub offset: u64,
    /// Its length; more than a part only for a single read that is itself longer.
    pub len: usize,
    /// The reads it covers, each with its number in the batch.
    pub members: Vec<(usize, &'r mut Read<'a>)>,
}

impl Run<'_, '_> {
    /// Copies `bytes`, which begin `from` bytes into the run, to every read that wants them.
    pub fn fill(&mut self, from: usize, bytes: &[u8]) {
        for (_, read) in &mut self.members {
            let place = (read.offset - self.offset) as usize;
            let start = place.max(from);
            let end = (place + read.buf.len()).min(from + bytes.len());
            if start < end {
                read.buf[start - place..end - place]
                    .copy_from_slice(&bytes[start - from..end - from]);
            }
        }
    }

    /// Lands every read of the run, which is filled.
    pub fn land(&mut self, landed: &mut Landed<'_>) {
        for (number, read) in &mut self.members {
            landed(*number, read.add_up(), Ok(()));
        }
    }

    /// Lands every read of the run with its outcome.
    pub fn land_each(&mut self, outcomes: Vec<io::Result<()>>, landed: &mut Landed<'_>) {
        for ((number, read), outcome) in self.members.iter_mut().zip(outcomes) {
            landed(*number, read.add_up(), outcome);
        }
    }
}

/// Sorts the reads of a batch by offset and joins neighbours to runs. The reads are numbered
/// from `first` on.
///
/// Reads may overlap and repeat. Reads of no bytes ask nothing of the device and are left
/// out. Offsets that no file can have make runs of their own.
pub(super) fn coalesce<'r, 'a>(
    reads: &'r mut [Read<'a>],
    first: usize,
    cost: Cost,
) -> Vec<Run<'r, 'a>> {
    let numbered = reads.iter_mut().enumerate().map(|(k, read)| (first + k, read));
    let mut sorted: Vec<(usize, &mut Read<'a>)> =
        numbered.filter(|(_, read)| !read.buf.is_empty()).collect();
    sorted.sort_by_key(|(_, read)| read.offset);
    let mut runs: Vec<Run<'r, 'a>> = Vec::with_capacity(sorted.len());
    for (number, read) in sorted {
        if let Some(run) = runs.last_mut()
            && let Some(len) = joined(run, read, cost)
        {
            run.len = len;
            run.members.push((number, read));
        } else {
            let (offset, len) = (read.offset, read.buf.len());
            runs.push(Run { offset, len, members: vec![(number, read)] });
        }
    }
    runs
}

/// Returns the length `run` would have with `read` in it, if the two belong together.
fn joined(run: &Run<'_, '_>, read: &Read<'_>, cost: Cost) -> Option<usize> {
    let run_end = run.offset.checked_add(run.len as u64)?;
    let read_end = read.offset.checked_add(read.buf.len() as u64)?;
    let len = run_end.max(read_end) - run.offset;
    let is_near = read.offset <= run_end.checked_add(cost.gap)?;
    (is_near && len <= cost.part as u64).then_some(len as usize)
}
