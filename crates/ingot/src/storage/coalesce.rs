//! Which reads of a batch are one read of the device.

use super::Read;

/// Bytes between two reads that are cheaper to read along than to skip.
const GAP_MAX: u64 = 4 << 10;

/// Reads are not merged into runs longer than this.
const RUN_BYTES_MAX: u64 = 1 << 20;

/// A run: reads that are near each other, in the order of their offsets.
#[derive(Debug)]
pub(super) struct Run<'r, 'a> {
    /// Where the run begins.
    pub offset: u64,
    /// Its length; more than `RUN_BYTES_MAX` only for a single read that is itself longer.
    pub len: usize,
    /// The reads it covers, each with its place in the batch.
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

    /// Calls `landed` for every read of the run.
    pub fn land(&mut self, landed: &mut dyn FnMut(usize, &mut Read<'_>)) {
        for (index, read) in &mut self.members {
            landed(*index, read.add_up());
        }
    }
}

/// Sorts the reads of a batch by offset and merges neighbours into runs.
///
/// Reads may overlap and repeat. Reads of no bytes ask nothing of the device and
/// are left out. Offsets that no file can have make runs of their own.
pub(super) fn coalesce<'r, 'a>(reads: &'r mut [Read<'a>]) -> Vec<Run<'r, 'a>> {
    let mut sorted: Vec<(usize, &mut Read<'a>)> =
        reads.iter_mut().enumerate().filter(|(_, read)| !read.buf.is_empty()).collect();
    sorted.sort_by_key(|(_, read)| read.offset);
    let mut runs: Vec<Run<'r, 'a>> = Vec::with_capacity(sorted.len());
    for (index, read) in sorted {
        if let Some(run) = runs.last_mut()
            && let Some(len) = merged(run, read)
        {
            run.len = len;
            run.members.push((index, read));
        } else {
            let (offset, len) = (read.offset, read.buf.len());
            runs.push(Run { offset, len, members: vec![(index, read)] });
        }
    }
    runs
}

/// Returns the length `run` would have with `read` in it, if the two belong together.
fn merged(run: &Run<'_, '_>, read: &Read<'_>) -> Option<usize> {
    let run_end = run.offset.checked_add(run.len as u64)?;
    let read_end = read.offset.checked_add(read.buf.len() as u64)?;
    let len = run_end.max(read_end) - run.offset;
    (read.offset <= run_end.checked_add(GAP_MAX)? && len <= RUN_BYTES_MAX).then_some(len as usize)
}
