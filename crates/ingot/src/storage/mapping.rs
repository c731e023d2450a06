//! A file as memory.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::memory::within;
use super::region::Region;
use super::residency::{Residency, Visit};
use super::{Cost, Landed, Read, ReadAt};

/// Ranges are copied, and announced to the device, in pieces of this size.
const PIECE_BYTES: usize = 16 << 20;

/// How many reads ahead of the copy the processor is told about.
const PREFETCH_DISTANCE: usize = 2;
const PREFETCH_BYTES_MAX: usize = 64 << 10;
const PREFETCH_STEP: usize = 1 << 10;

/// A file that is read through a [`Region`].
///
/// A page that cannot be read gives an error: the region is then damaged, and every read
/// through it fails from there on, whatever its range. Reads land in the order of the batch,
/// so of a failed batch exactly those before the failed one have landed.
///
/// The size is looked at now and then, and before each batch of half a megabyte, so soon after
/// a truncation a read can show zeros from the rest of a page: readers must check.
pub struct Mapping {
    region: Region,
    file: Arc<File>,
    residency: Residency,
    page_bytes: usize,
}

impl Mapping {
    /// Maps `file`, which must not be empty.
    pub fn new(file: Arc<File>) -> io::Result<Mapping> {
        let region = Region::map(&file)?;
        // SAFETY: sysconf only returns a number.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let mapping = Mapping { region, file, residency: Residency::default(), page_bytes };
        mapping.advise(0..mapping.region.len(), libc::MADV_RANDOM);
        Ok(mapping)
    }

    /// Returns whether the file could not be read at some place of the mapping.
    pub fn is_damaged(&self) -> bool {
        self.region.is_damaged()
    }

    /// Looks at what a batch asks for, before it is copied.
    pub(super) fn visit(&self, reads: &[Read<'_>]) -> Visit {
        let visit = self.residency.visit(self, reads);
        if visit.is_thorough() {
            let len = self.region.len() as u64;
            self.region.keep_guarded(self.file.metadata().is_ok_and(|now| now.len() < len));
        }
        visit
    }

    /// Copies what a batch asks for, after a visit: what is in memory, or all of it. Returns
    /// the numbers of the reads that were not copied, in ascending order.
    pub(super) fn copy_many(
        &self,
        visit: &Visit,
        reads: &mut [Read<'_>],
        all: bool,
        landed: &mut Landed<'_>,
    ) -> Vec<usize> {
        let mut cold = if all { &[][..] } else { visit.cold() };
        let mut left = Vec::new();
        if reads.len() > 1 {
            for first in reads.iter().take(PREFETCH_DISTANCE) {
                self.hint(first.offset, first.buf.len());
            }
        }
        for k in 0..reads.len() {
            if let Some(ahead) = reads.get(k + PREFETCH_DISTANCE) {
                self.hint(ahead.offset, ahead.buf.len());
            }
            let is_cold = cold.first() == Some(&k);
            if is_cold {
                cold = &cold[1..];
            }
            let read = &mut reads[k];
            if is_cold || self.copy(read).is_err() {
                left.push(k);
            } else {
                landed(k, read, Ok(()));
            }
        }
        self.residency.conclude(visit);
        left
    }

    fn copy(&self, read: &mut Read<'_>) -> io::Result<()> {
        let wanted = within(self.region.len(), read.offset, read.buf.len())?;
        self.check()?;
        let mut start = wanted.start;
        let mut crc = read.crc;
        for piece in read.buf.chunks_mut(PIECE_BYTES) {
            let next = (start + piece.len())..wanted.end.min(start + 2 * PIECE_BYTES);
            if !next.is_empty() {
                self.advise(next, libc::MADV_WILLNEED);
            }
            // SAFETY: `within` keeps the range inside the mapping, which only this
            // type points to. The bytes may change under the copy; nothing is
            // assumed of them.
            crc = unsafe { read.sum.copy(crc, self.region.as_ptr().add(start), piece) };
            start += piece.len();
            self.check()?;
        }
        read.crc = crc;
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        if self.region.is_damaged() {
            let why = "the file was truncated, or its device failed under the mapping";
            return Err(io::Error::other(why));
        }
        Ok(())
    }

    /// Tells the processor about one line of each KiB; its own prefetcher finds the rest.
    #[cfg(target_arch = "x86_64")]
    fn hint(&self, offset: u64, len: usize) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let Ok(range) = within(self.region.len(), offset, len.min(PREFETCH_BYTES_MAX)) else {
            return;
        };
        for place in range.step_by(PREFETCH_STEP) {
            // SAFETY: the address is inside the mapping; a prefetch never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.region.as_ptr().add(place).cast()) };
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn hint(&self, _offset: u64, _len: usize) {}

    /// Returns whether all of a range is in memory. A range that is not in the
    /// file counts as being there: there is nothing to bring.
    pub(super) fn is_resident(&self, offset: u64, len: usize) -> bool {
        const PAGES: usize = 1024;
        let range = match within(self.region.len(), offset, len) {
            Ok(range) if !range.is_empty() => range,
            _ => return true,
        };
        let first = range.start - range.start % self.page_bytes;
        let mut flags = [0_u8; PAGES];
        (first..range.end).step_by(PAGES * self.page_bytes).all(|start| {
            let end = range.end.min(start + PAGES * self.page_bytes);
            let flags = &mut flags[..(end - start).div_ceil(self.page_bytes)];
            // SAFETY: the range is inside the mapping and begins at a page; there
            // is a flag for each page of it.
            let status = unsafe {
                let address = self.region.as_ptr().add(start) as *mut libc::c_void;
                libc::mincore(address, end - start, flags.as_mut_ptr().cast())
            };
            status == 0 && flags.iter().all(|flag| flag & 1 == 1)
        })
    }

    /// Returns whether all of all ranges is in memory, as far as the system tells.
    pub(super) fn is_all_resident(&self, ranges: &[Range<u64>]) -> bool {
        !self.residency.is_blind()
            && ranges.iter().all(|range| {
                let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                self.is_resident(range.start, len)
            })
    }

    /// Asks the system to bring ranges into memory, neighbours as one, the first
    /// piece of each.
    pub(super) fn bring(&self, ranges: impl Iterator<Item = (u64, usize)>) {
        let mut pages: Vec<Range<usize>> = ranges
            .filter_map(|(offset, len)| {
                within(self.region.len(), offset, len.min(PIECE_BYTES)).ok()
            })
            .filter(|range| !range.is_empty())
            .map(|range| {
                let end = range.end.next_multiple_of(self.page_bytes).min(self.region.len());
                range.start - range.start % self.page_bytes..end
            })
            .collect();
        pages.sort_unstable_by_key(|range| range.start);
        let mut pages = pages.into_iter();
        let Some(mut run) = pages.next() else { return };
        for next in pages {
            if next.start <= run.end {
                run.end = run.end.max(next.end);
            } else {
                self.advise(std::mem::replace(&mut run, next), libc::MADV_WILLNEED);
            }
        }
        self.advise(run, libc::MADV_WILLNEED);
    }

    /// Advice may be refused, which costs speed alone.
    fn advise(&self, range: Range<usize>, advice: libc::c_int) {
        let start = range.start - range.start % self.page_bytes;
        // SAFETY: the range is inside the mapping, and neither advice changes its bytes.
        unsafe {
            let address = self.region.as_ptr().add(start) as *mut libc::c_void;
            libc::madvise(address, range.end - start, advice);
        }
    }
}

impl ReadAt for Mapping {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len().min(self.region.len() as u64))
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        let visit = self.visit(reads);
        self.bring(visit.cold().iter().map(|&k| (reads[k].offset, reads[k].buf.len())));
        for k in self.copy_many(&visit, reads, true, landed) {
            let outcome = self.copy(&mut reads[k]);
            landed(k, &mut reads[k], outcome);
        }
    }

    fn cost(&self) -> Cost {
        if self.residency.is_warm() { Cost::MEMORY } else { Cost::DEVICE }
    }

    fn is_ready(&self, ranges: &[Range<u64>]) -> bool {
        self.residency.is_warm() || self.is_all_resident(ranges)
    }

    fn prefetch(&self, range: Range<u64>) {
        self.hint(range.start, usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
    }
}

/// Returns how often the calling thread had to wait for a page, so far.
pub(super) fn major_faults() -> u64 {
    #[cfg(target_os = "linux")]
    const WHO: libc::c_int = libc::RUSAGE_THREAD;
    #[cfg(not(target_os = "linux"))]
    const WHO: libc::c_int = libc::RUSAGE_SELF;
    // SAFETY: a usage of zeros is a valid value for getrusage to fill.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(WHO, &mut usage);
        usage.ru_majflt as u64
    }
}
