//! Writing bags.

use std::io;

use super::super::spool::Spool;
use super::packer::Packer;
use crate::error::{Error, Result};
use crate::format::Group;
use crate::format::bag::LIMIT_LEN;
use crate::process;
use crate::storage::Append;

/// Bytes of records that are gathered before they are appended.
const BUFFER: usize = 1 << 20;

/// Bytes of limits that are gathered before they are appended.
const TABLE: usize = 64 << 10;

/// Records that are gathered before they are compressed, unless they have many bytes before.
const BATCH: usize = 8192;

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
    packer: Option<Packer>,
    /// Records that are not compressed yet.
    pending: Group,
    sync: bool,
    /// Bytes of the records so far but for those that are not compressed yet.
    end: u64,
    len: u64,
    /// Records that are not appended yet.
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
        packer: Option<Packer>,
        sync: bool,
        finish: Finish,
    ) -> BagWriter {
        BagWriter {
            files: Some(Files { records, placement, finish }),
            name: name.to_owned(),
            packer,
            pending: Group::default(),
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
    pub fn size(&mut self) -> Result<u64> {
        let outcome = self.pack();
        self.remember(outcome)?;
        Ok(self.end + self.len * LIMIT_LEN)
    }

    /// Whether the writer was closed or abandoned.
    pub fn is_closed(&self) -> bool {
        self.files.is_none()
    }

    /// Returns whether a record of `len` bytes would only be copied.
    pub fn is_cheap(&self, len: usize) -> bool {
        match &self.packer {
            Some(_) => self.pending.bytes.len() + len < BUFFER && self.pending.len() + 1 < BATCH,
            None => {
                self.out.len() + len < BUFFER && self.table.len() + (LIMIT_LEN as usize) < TABLE
            }
        }
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
        let room = match &self.packer {
            Some(_) => &mut self.pending.bytes,
            None => &mut self.out,
        };
        room.try_reserve(record.len()).map_err(|_| Error::Memory {
            path: self.name.clone(),
            record: Some(self.len),
            bytes: record.len() as u64,
        })?;
        if self.packer.is_some() {
            self.pending.push(record);
            if self.pending.bytes.len() >= BUFFER || self.pending.len() >= BATCH {
                let outcome = self.pack();
                self.remember(outcome)?;
            }
        } else {
            self.out.extend_from_slice(record);
            self.limit(record.len());
            let outcome = self.spill();
            self.remember(outcome)?;
        }
        self.len += 1;
        Ok(self.len - 1)
    }

    /// Notes where a record of `len` bytes ends.
    fn limit(&mut self, len: usize) {
        self.end += len as u64;
        self.table.extend_from_slice(&self.end.to_le_bytes());
    }

    /// Compresses the records that are not.
    fn pack(&mut self) -> Result<()> {
        let Some(packer) = self.packer.as_ref().filter(|_| !self.pending.is_empty()) else {
            return Ok(());
        };
        let packed = packer.pack(&self.pending);
        let packed = packed.map_err(|why| Error::Invalid(format!("{}: {why}", self.name)))?;
        self.pending.clear();
        self.pending.bytes.shrink_to(2 * BUFFER);
        for group in packed {
            (0..group.len()).for_each(|k| self.limit(group.range(k).len()));
            self.out.extend_from_slice(&group.bytes);
            self.spill()?;
        }
        Ok(())
    }

    /// Appends what was gathered, if it is much.
    fn spill(&mut self) -> Result<()> {
        match self {
            BagWriter { table, .. } if table.len() >= TABLE => self.append_all(),
            BagWriter { out, .. } if out.len() >= BUFFER => self.append_records(),
            _ => Ok(()),
        }
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
        let outcome = self.pack().and_then(|()| self.append_all());
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
        self.table.clear();
        outcome.map_err(|source| failed(name, self.len * LIMIT_LEN, "write", source))
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
        (self.out, self.table, self.pending) = (Vec::new(), Vec::new(), Group::default());
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
