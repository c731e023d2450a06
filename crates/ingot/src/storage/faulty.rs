//! A storage that fails as planned, for tests.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Append, Cost, Identity, Landed, Read, ReadAt, past_end};

/// The error of a planned failure.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// An error of this kind.
    Kind(io::ErrorKind),
    /// The error the operating system reports by this number.
    Errno(i32),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        match failure {
            Failure::Kind(kind) => kind.into(),
            Failure::Errno(errno) => io::Error::from_raw_os_error(errno),
        }
    }
}

/// A storage whose operations fail, or whose bytes differ, as planned.
///
/// Operations are numbered from 0, each kind by itself; every read of a batch
/// has its own number. A planned failure happens once.
///
/// ```
/// use ingot::storage::{Append, Failure, Faulty, Memory};
///
/// let mut disk = Faulty::new(Memory::new()).fail_append(1, 2, Failure::Errno(28));
/// disk.append(b"whole").unwrap();
/// disk.append(b"torn").unwrap_err();
/// assert_eq!(disk.into_inner().bytes(), b"wholeto");
/// ```
#[derive(Debug, Default)]
pub struct Faulty<S> {
    inner: S,
    reads: AtomicU64,
    appends: u64,
    syncs: u64,
    failing_reads: Vec<(u64, Failure)>,
    failing_appends: Vec<(u64, usize, Failure)>,
    failing_syncs: Vec<(u64, Failure)>,
    flips: Vec<(u64, u8)>,
    size: Option<u64>,
}

impl<S> Faulty<S> {
    /// Returns `inner` with no faults.
    pub fn new(inner: S) -> Faulty<S> {
        Faulty {
            inner,
            reads: AtomicU64::new(0),
            appends: 0,
            syncs: 0,
            failing_reads: Vec::new(),
            failing_appends: Vec::new(),
            failing_syncs: Vec::new(),
            flips: Vec::new(),
            size: None,
        }
    }

    /// Makes read number `nth` fail.
    #[must_use]
    pub fn fail_read(mut self, nth: u64, failure: Failure) -> Self {
        self.failing_reads.push((nth, failure));
        self
    }

    /// Makes append number `nth` fail after the first `written` of its bytes.
    #[must_use]
    pub fn fail_append(mut self, nth: u64, written: usize, failure: Failure) -> Self {
        self.failing_appends.push((nth, written, failure));
        self
    }

    /// Makes sync number `nth` fail.
    #[must_use]
    pub fn fail_sync(mut self, nth: u64, failure: Failure) -> Self {
        self.failing_syncs.push((nth, failure));
        self
    }

    /// Shows bit `bit` (0 is the lowest) of the byte at `offset` inverted.
    #[must_use]
    pub fn flip(mut self, offset: u64, bit: u8) -> Self {
        self.flips.push((offset, bit));
        self
    }

    /// Shows no more than the first `size` bytes.
    #[must_use]
    pub fn cut(mut self, size: u64) -> Self {
        self.size = Some(size);
        self
    }

    /// Returns the number of reads so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Returns the storage underneath.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// Returns the error planned for read `nth` of `len` bytes at `offset`.
    fn read_failure(&self, nth: u64, offset: u64, len: usize) -> Option<io::Error> {
        if let Some((_, failure)) = self.failing_reads.iter().find(|(planned, _)| *planned == nth) {
            return Some((*failure).into());
        }
        let end = offset.checked_add(len as u64);
        let cut = self.size.is_some_and(|size| end.is_none_or(|end| end > size));
        (cut && len > 0).then(past_end)
    }

    fn apply_flips(&self, offset: u64, bytes: &mut [u8]) {
        for (place, bit) in &self.flips {
            let place = place.checked_sub(offset).and_then(|place| usize::try_from(place).ok());
            if let Some(byte) = place.and_then(|place| bytes.get_mut(place)) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}

impl<S: ReadAt> ReadAt for Faulty<S> {
    fn size(&self) -> io::Result<u64> {
        let size = self.inner.size()?;
        Ok(self.size.map_or(size, |cut| cut.min(size)))
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(Identity { size: self.size()?, ..self.inner.identity()? })
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        let first = self.reads.fetch_add(reads.len() as u64, Ordering::Relaxed);
        let mut failures: Vec<Option<io::Error>> = reads
            .iter()
            .zip(first..)
            .map(|(read, nth)| self.read_failure(nth, read.offset, read.buf.len()))
            .collect();
        let seeds: Vec<u32> = reads.iter().map(|read| read.crc).collect();
        self.inner.read_many(reads, &mut |k, read, outcome| {
            self.apply_flips(read.offset, read.buf);
            read.crc = seeds[k];
            landed(k, read.add_up(), failures[k].take().map_or(outcome, Err));
        });
    }

    fn cost(&self) -> Cost {
        self.inner.cost()
    }
}

impl<S: Append> Append for Faulty<S> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let nth = self.appends;
        self.appends += 1;
        match self.failing_appends.iter().find(|(planned, ..)| *planned == nth) {
            Some(&(_, written, failure)) => {
                self.inner.append(&bytes[..written.min(bytes.len())])?;
                Err(failure.into())
            }
            None => self.inner.append(bytes),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let nth = self.syncs;
        self.syncs += 1;
        match self.failing_syncs.iter().find(|(planned, _)| *planned == nth) {
            Some((_, failure)) => Err((*failure).into()),
            None => self.inner.sync(),
        }
    }

    fn check(&self) -> io::Result<()> {
        self.inner.check()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.rewrite(offset, bytes)
    }
}
