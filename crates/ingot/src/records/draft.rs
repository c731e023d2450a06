//! What the writers of all record files have in common.

use std::io;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::process;
use crate::storage::{Append, Read, ReadAt};

/// Called once, with whether the file is whole or was given up: publishes or removes it.
pub type Finish = Box<dyn FnOnce(bool) -> Result<()> + Send>;

/// Records shorter than this are summed and copied before another thread could begin to wait.
pub(super) const SMALL: usize = 16 << 10;

/// A file of records, open for writing.
///
/// After a failed write every call fails the same way: what reached the disk is not known.
/// A writer that is dropped gives up its file.
pub trait RecordWriter: Send {
    /// Adds a record and returns its number.
    fn append(&mut self, record: &[u8]) -> Result<u64>;

    /// Returns whether a record of `len` bytes would only be copied, and soon.
    fn is_cheap(&self, len: usize) -> bool;

    /// Brings all records so far to where readers find them, in a file that can be read before
    /// it is closed.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Bytes of the records so far, as they are stored, and of their index, where that is known
    /// before the file is closed.
    fn size(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Completes the file. A second call does nothing.
    fn close(&mut self) -> Result<()>;

    /// Gives up the file. A second call does nothing.
    fn abandon(&mut self) -> Result<()>;

    /// Number of records so far, those in the file before this writer included.
    fn num_rows(&self) -> u64;

    /// Whether the writer was closed or abandoned.
    fn is_closed(&self) -> bool;
}

/// What a writer writes to, until the file is whole or was given up.
///
/// A draft belongs to the process that made it: in the child of a fork there is nothing to
/// write to, and nothing is published or removed.
pub struct Draft<F> {
    name: String,
    generation: u64,
    failure: Arc<OnceLock<Error>>,
    open: Option<(F, Finish)>,
}

impl<F> Draft<F> {
    /// Begins a draft that errors call `name`.
    pub fn new(name: &str, file: F, finish: Finish) -> Self {
        Self::sharing(name, file, finish, Arc::default())
    }

    /// As [`Draft::new`], where a thread that works for the writer notes its failure, too.
    pub fn sharing(name: &str, file: F, finish: Finish, failure: Arc<OnceLock<Error>>) -> Self {
        let (name, generation) = (name.to_owned(), process::generation());
        Draft { name, generation, failure, open: Some((file, finish)) }
    }

    /// Returns what errors call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the file is whole or was given up.
    pub fn is_closed(&self) -> bool {
        self.open.is_none()
    }

    /// Whether this is the child of the process that writes the file.
    pub fn is_foreign(&self) -> bool {
        self.generation != process::generation()
    }

    /// Fails if writing cannot continue.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.check_process()?;
        self.check_sound()?;
        if self.is_closed() {
            return Err(Error::Closed { path: self.name.clone(), what: "writer" });
        }
        Ok(())
    }

    /// Returns what is written to, if writing can continue.
    pub fn file(&mut self) -> Result<&mut F> {
        self.check()?;
        Ok(&mut self.open.as_mut().expect("it is open").0)
    }

    /// Fails in the child of the process that writes the file.
    #[inline]
    pub fn check_process(&self) -> Result<()> {
        if !self.is_foreign() {
            return Ok(());
        }
        let reason = "this writer belongs to the parent process; a file has one writer";
        Err(self.invalid(reason))
    }

    /// Fails as the writer has failed before.
    #[inline]
    pub fn check_sound(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Remembers a failure, after which nothing more can be written.
    pub fn keep<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.inspect_err(|error| drop(self.failure.set(error.clone())))
    }

    /// As [`Draft::keep`], for the outcome of a call of the storage.
    pub fn note<T>(&self, offset: u64, action: &'static str, outcome: io::Result<T>) -> Result<T> {
        self.keep(outcome.map_err(|source| failed(&self.name, offset, action, source)))
    }

    /// Returns the error for what cannot be written.
    pub fn invalid(&self, why: impl std::fmt::Display) -> Error {
        Error::Invalid(format!("{}: {why}", self.name))
    }

    /// Makes room in `bytes` for a record.
    pub fn reserve(&self, bytes: &mut Vec<u8>, number: u64, record: &[u8]) -> Result<()> {
        let room = bytes.try_reserve(record.len());
        room.map_err(|_| Error::memory(&self.name, record.len() as u64).at_record(number))
    }

    /// Sets what happens at the end.
    pub fn then(&mut self, finish: Finish) {
        if let Some((_, then)) = &mut self.open {
            *then = finish;
        }
    }

    /// Takes the file without publishing or removing it.
    pub fn take(&mut self) -> Option<(F, Finish)> {
        self.open.take()
    }

    /// Publishes the file if it is whole, or gives it up. A second call does nothing.
    pub fn finish(&mut self, whole: bool) -> Result<()> {
        match self.open.take() {
            // The file stays locked until it has its name.
            Some((_file, finish)) if !self.is_foreign() => finish(whole),
            _ => Ok(()),
        }
    }
}

impl<F> Drop for Draft<F> {
    fn drop(&mut self) {
        // The error has nowhere to go.
        let _ = self.finish(false);
    }
}

/// Returns the error for a failed call of a storage.
pub(super) fn failed(name: &str, offset: u64, action: &'static str, source: io::Error) -> Error {
    Error::Storage { path: name.to_owned(), record: None, offset, action, source: source.into() }
}

/// Bytes are brought to their place in parts of this size.
const PART: usize = 1 << 20;

/// A file that grows at one end and is read at the other.
pub struct Spool {
    /// Takes the bytes.
    pub append: Box<dyn Append>,
    /// Gives them back.
    pub read: Arc<dyn ReadAt>,
}

impl Spool {
    /// Appends all that is in the spool to `target`.
    pub fn pour(&self, target: &mut dyn Append) -> io::Result<()> {
        self.append.check()?;
        let size = self.read.size()?;
        let mut bytes = vec![0; size.min(PART as u64) as usize];
        for offset in (0..size).step_by(PART) {
            let part = &mut bytes[..(size - offset).min(PART as u64) as usize];
            let mut found = Ok(());
            self.read
                .read_many(&mut [Read::new(offset, part)], &mut |_, _, outcome| found = outcome);
            found?;
            target.append(part)?;
        }
        Ok(())
    }
}
