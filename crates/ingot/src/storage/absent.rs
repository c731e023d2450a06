//! The mapping of systems where faults on one cannot be survived: there is none.

use std::fs::File;
use std::io;
use std::iter::{Empty, empty};
use std::sync::Arc;

use super::{Read, ReadAt, ReadError};

/// A mapping that cannot be made, and could not be read.
#[derive(Debug)]
pub struct Mapping(());

pub(super) struct Visit;

impl Visit {
    pub fn cold(&self) -> Empty<usize> {
        empty()
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

    pub(super) fn copy_many(
        &self,
        _visit: &Visit,
        reads: &mut [Read<'_>],
        landed: &mut dyn FnMut(usize, &mut Read<'_>),
    ) -> Result<(), ReadError> {
        self.read_many(reads, landed)
    }
}

impl ReadAt for Mapping {
    fn size(&self) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn read_many(
        &self,
        _reads: &mut [Read<'_>],
        _landed: &mut dyn FnMut(usize, &mut Read<'_>),
    ) -> Result<(), ReadError> {
        Err(ReadError { index: 0, source: io::ErrorKind::Unsupported.into() })
    }
}
