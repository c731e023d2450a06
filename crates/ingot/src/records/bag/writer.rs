//! Writing bags.

use std::io;

use super::super::spool::Spool;
use crate::compression::frame::Compressor;
use crate::error::{Error, Result};
use crate::format::bag::LIMIT_LEN;
use crate::process;
use crate::storage::Append;

/// Bytes of records that are gathered before they are appended.
const BUFFER: usize = 1 << 20;

/// Bytes of limits that are gathered before they are appended.
const TABLE: usize = 64 << 10;

/// What happens when writing ends: whether the bag is whole.
type Finish = Box<dyn FnOnce(bool) -> Result<()> + Send>;

/// Where limits go.
pub enum Placement {
    /// Behind the records when the bag is closed, and into a spool until then.
    Tail(Spool),
    /// Into a file of their own, which has the name that errors call it by.
    Separate(Box<dyn Append>, String),
}

/// The files of a bag, until it is closed.
struct Files {
    records: Box<dyn Append>,
    placement: Placement,
    finish: Finish,
}

/// Writes a bag, with its limits at its end or in a file of their own.
///
/// After a failed write every call fails the same way: what reached the disk is not known.
/// Limits never tell of records that were not appended before them.
pub struct BagWriter {
    files: Option<Files>,
    name: String,
    compressor: Option<Compressor>,
    sync: bool,
    /// Bytes of records so far.
    end: u64,
    len: u64,
    out: Vec<u8>,
    /// Limits that are not appended yet.
    table: Vec<u8>,
    failed: Option<Error>,
    generation: u64,
}

impl BagWriter {
    /// Begins a bag of empty files; `finish` is called when it is closed or abandoned.
    pub fn new(
        records: Box<dyn Append>,
        placement: Placement,
        name: &str,
        compressor: Option<Compressor>,
        sync: bool,
        finish: Finish,
    ) -> BagWriter {
        BagWriter {
            files: Some(Files { records, placement, finish }),
            name: name.to_owned(),
            compressor,
            sync,
            end: 0,
            len: 0,
            out: Vec::new(),
            table: Vec::new(),
            failed: None,
            generation: process::generation(),
        }
    }

    /// Goes on behind `len` records that are in the files already and have `end` bytes.
    #[must_use]
    pub fn behind(mut self, len: u64, end: u64) -> BagWriter {
        (self.len, self.end) = (len, end);
        self
    }

    /// Number of records so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no records yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the records so far, as they are stored, and of their limits.
    pub fn size(&self) -> u64 {
        self.end + self.len * LIMIT_LEN
    }

    /// Whether the writer was closed or abandoned.
    pub fn is_closed(&self) -> bool {
        self.files.is_none()
    }

    /// Returns whether a record of `len` bytes would only be copied.
    pub fn is_cheap(&self, len: usize) -> bool {
        self.compressor.is_none() && self.out.len() + len < BUFFER && self.table.len() < TABLE
    }

    fn check_open(&self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.again());
        }
        if self.is_closed() {
            return Err(Error::Closed { path: self.name.clone(), what: "writer" });
        }
        if self.generation != process::generation() {
            let message = format!("{}: the writer belongs to the process that made it", self.name);
            return Err(Error::Invalid(message));
        }
        Ok(())
    }

    /// After an error the bag cannot go on.
    fn remember<T>(&mut self, outcome: Result<T>) -> Result<T> {
        outcome.inspect_err(|error| self.failed = Some(error.again()))
    }

    /// Adds a record; returns its number.
    pub fn push(&mut self, record: &[u8]) -> Result<u64> {
        self.check_open()?;
        let start = self.out.len();
        match &mut self.compressor {
            Some(compressor) if !record.is_empty() => compressor
                .compress(record, &mut self.out)
                .map_err(|why| Error::Invalid(format!("{}: {why}", self.name)))?,
            _ => {
                self.out.try_reserve(record.len()).map_err(|_| Error::Memory {
                    path: self.name.clone(),
                    record: Some(self.len),
                    bytes: record.len() as u64,
                })?;
                self.out.extend_from_slice(record);
            }
        }
        self.end += (self.out.len() - start) as u64;
        self.table.extend_from_slice(&self.end.to_le_bytes());
        self.len += 1;
        if self.table.len() >= TABLE {
            let outcome = self.append_all();
            self.remember(outcome)?;
        } else if self.out.len() >= BUFFER {
            let outcome = self.append_records();
            self.remember(outcome)?;
        }
        Ok(self.len - 1)
    }

    /// Adds records.
    pub fn push_many(&mut self, records: &[&[u8]]) -> Result<()> {
        records.iter().try_for_each(|record| self.push(record).map(drop))
    }

    fn append_records(&mut self) -> Result<()> {
        let Some(files) = &mut self.files else { return Ok(()) };
        let outcome = files.records.append(&self.out);
        self.out.clear();
        self.out.shrink_to(2 * BUFFER);
        outcome.map_err(|source| failed(&self.name, self.end, "write", source))
    }

    /// Brings all records so far into the files, then their limits: those who read the bag
    /// by separate limits see them.
    pub fn flush(&mut self) -> Result<()> {
        self.check_open()?;
        let outcome = self.append_all();
        self.remember(outcome)
    }

    fn append_all(&mut self) -> Result<()> {
        self.append_records()?;
        let Some(files) = &mut self.files else { return Ok(()) };
        let sync = self.sync && !self.table.is_empty();
        let (outcome, name) = match &mut files.placement {
            Placement::Tail(spool) => (spool.append.append(&self.table), &self.name),
            Placement::Separate(limits, name) => {
                if sync {
                    let outcome = files.records.sync();
                    outcome.map_err(|source| failed(&self.name, self.end, "sync", source))?;
                }
                let outcome = limits.append(&self.table);
                (outcome.and_then(|()| if sync { limits.sync() } else { Ok(()) }), &*name)
            }
        };
        let offset = self.len * LIMIT_LEN - self.table.len() as u64;
        self.table.clear();
        outcome.map_err(|source| failed(name, offset, "write", source))
    }

    /// Completes the bag. A second call does nothing.
    pub fn close(&mut self) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        self.flush()?;
        if let Some(Files { records, placement: Placement::Tail(spool), .. }) = &mut self.files {
            let outcome = spool
                .pour(&mut **records)
                .and_then(|()| if self.sync { records.sync() } else { records.check() });
            let outcome = outcome.map_err(|source| failed(&self.name, self.end, "write", source));
            self.remember(outcome)?;
        }
        self.finish(true)
    }

    /// Gives the bag up: one with its limits at its end does not appear, of another stays
    /// what was flushed. A second call does nothing.
    pub fn abandon(&mut self) -> Result<()> {
        self.finish(false)
    }

    fn finish(&mut self, whole: bool) -> Result<()> {
        self.out = Vec::new();
        self.table = Vec::new();
        self.files.take().map_or(Ok(()), |files| (files.finish)(whole))
    }
}

impl Drop for BagWriter {
    fn drop(&mut self) {
        let _ = self.abandon();
    }
}

fn failed(name: &str, offset: u64, action: &'static str, source: io::Error) -> Error {
    Error::Storage { path: name.to_owned(), record: None, offset, action, source }
}
