//! The mapping of systems where faults on one cannot be survived: there is none.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::{Landed, Read, ReadAt};

/// A mapping that cannot be made, and could not be read.
#[derive(Debug)]
pub struct Mapping(());

/// A region that cannot be made.
#[derive(Debug)]
pub struct Region(());

impl Region {
    /// Fails with `Unsupported`.
    pub fn map(_file: &File) -> io::Result<Region> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns a pointer to nothing.
    pub fn as_ptr(&self) -> *const u8 {
        std::ptr::null()
    }

    /// Returns 0.
    #[expect(clippy::len_without_is_empty, reason = "there is no region")]
    pub fn len(&self) -> usize {
        0
    }

    /// Returns true.
    pub fn is_damaged(&self) -> bool {
        true
    }
}

pub(super) struct Visit;

impl Visit {
    pub fn cold(&self) -> &[usize] {
        &[]
    }
}

impl Mapping {
    /// Fails with `Unsupported`.
    pub fn new(_file: Arc<File>) -> io::Result<Mapping> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn visit(&self, _reads: &[Read<'_>]) -> Visit {
        Visit
    }

    pub(super) fn bring(&self, _ranges: impl Iterator<Item = (u64, usize)>) {}

    pub(super) fn copy_many(
        &self,
        _visit: &Visit,
        reads: &mut [Read<'_>],
        _all: bool,
        _landed: &mut Landed<'_>,
    ) -> Vec<usize> {
        (0..reads.len()).collect()
    }
}

impl ReadAt for Mapping {
    fn size(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        for (k, read) in reads.iter_mut().enumerate() {
            landed(k, read, Err(io::ErrorKind::Unsupported.into()));
        }
    }
}
