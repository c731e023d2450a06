//! Writing an FFRecord file.

use super::super::spool::Spool;
use crate::error::{Error, Result};
use crate::format::ffrecord::{ENTRY_LEN, Entries, HEAD_LEN, RECORDS_MAX};
use crate::storage::Append;

/// Records are gathered into writes of this size.
const RUN: usize = 256 << 10;

/// Called once at the end, with whether the file is whole: publishes or removes it.
pub type Finish = Box<dyn FnOnce(bool) -> Result<()> + Send>;

/// Writes records, and the index in front of them when it is closed. Nothing is visible
/// under the name of the file before.
///
/// After a failed write every call fails the same way: what reached the disk is not known.
pub struct FfWriter {
    name: String,
    target: Box<dyn Append>,
    spool: Option<Spool>,
    expected: Option<u64>,
    entries: Entries,
    run: Vec<u8>,
    sync: bool,
    failed: Option<Error>,
    finish: Option<Finish>,
}

impl FfWriter {
    /// Starts a file of exactly `records` records at the beginning of `target`.
    pub(in crate::records) fn sized(
        target: Box<dyn Append>,
        name: &str,
        records: u64,
        sync: bool,
        finish: Finish,
    ) -> Result<FfWriter> {
        let mut writer = FfWriter::new(target, None, name, Some(records), sync, finish);
        let mut left = HEAD_LEN as u64 + ENTRY_LEN as u64 * records;
        let zeros = [0; 64 << 10];
        while left > 0 {
            let len = left.min(zeros.len() as u64);
            let outcome = writer.target.append(&zeros[..len as usize]);
            writer.note(outcome)?;
            left -= len;
        }
        Ok(writer)
    }

    /// Starts a file of any number of records, which are kept in `spool` until it is closed.
    pub(in crate::records) fn spooled(
        target: Box<dyn Append>,
        spool: Spool,
        name: &str,
        sync: bool,
        finish: Finish,
    ) -> FfWriter {
        FfWriter::new(target, Some(spool), name, None, sync, finish)
    }

    fn new(
        target: Box<dyn Append>,
        spool: Option<Spool>,
        name: &str,
        expected: Option<u64>,
        sync: bool,
        finish: Finish,
    ) -> FfWriter {
        FfWriter {
            name: name.to_owned(),
            target,
            spool,
            expected,
            entries: Entries::default(),
            run: Vec::with_capacity(RUN),
            sync,
            failed: None,
            finish: Some(finish),
        }
    }

    /// Refuses more records than FFRecord itself could read.
    pub(in crate::records) fn check_count(name: &str, records: u64) -> Result<()> {
        if records <= RECORDS_MAX {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{name}: an FFRecord file holds at most {RECORDS_MAX} records, not {records}; use \
             several"
        )))
    }

    /// Number of records so far.
    pub fn len(&self) -> u64 {
        self.entries.len()
    }

    /// Whether there are no records yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether [`FfWriter::close`] or [`FfWriter::abandon`] was called with success.
    pub fn is_closed(&self) -> bool {
        self.finish.is_none()
    }

    /// Adds a record and returns its number.
    pub fn push(&mut self, record: &[u8]) -> Result<u64> {
        self.check_usable()?;
        let number = self.len();
        if self.expected.is_some_and(|expected| number >= expected) {
            return Err(Error::Invalid(format!(
                "{}: all {number} records that were announced are written",
                self.name
            )));
        }
        FfWriter::check_count(&self.name, number + 1)?;
        if self.run.len() + record.len() > RUN {
            self.flush()?;
        }
        if record.len() < RUN {
            self.run.extend_from_slice(record);
        } else {
            let outcome = self.sink().append(record);
            self.note(outcome)?;
        }
        self.entries.push(record);
        Ok(number)
    }

    /// Completes the file and makes it visible. A second call does nothing.
    ///
    /// If fewer records were written than announced, nothing happens but the error: the
    /// rest can still be written.
    pub fn close(&mut self) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        self.check_usable()?;
        if let Some(expected) = self.expected.filter(|&expected| expected != self.len()) {
            return Err(Error::Invalid(format!(
                "{}: {} of {expected} records were written; write the rest, or give n as it is, \
                 or none",
                self.name,
                self.len()
            )));
        }
        self.flush()?;
        let outcome = self.sink().check();
        self.note(outcome)?;
        let index = self.entries.encode();
        let outcome = match &self.spool {
            None => self.target.rewrite(0, &index),
            Some(spool) => self.target.append(&index).and_then(|()| spool.pour(&mut *self.target)),
        };
        self.note(outcome)?;
        if self.sync {
            let outcome = self.target.sync();
            self.note(outcome)?;
        }
        self.end(true)
    }

    /// Gives the file up. What was there under its name before stays.
    pub fn abandon(&mut self) -> Result<()> {
        self.end(false)
    }

    fn end(&mut self, whole: bool) -> Result<()> {
        self.run = Vec::new();
        self.spool = None;
        self.finish.take().map_or(Ok(()), |finish| finish(whole))
    }

    fn check_usable(&self) -> Result<()> {
        match &self.failed {
            Some(error) => Err(error.again()),
            None if self.is_closed() => {
                Err(Error::Closed { path: self.name.clone(), what: "writer" })
            }
            None => Ok(()),
        }
    }

    fn sink(&mut self) -> &mut dyn Append {
        match &mut self.spool {
            Some(spool) => &mut *spool.append,
            None => &mut *self.target,
        }
    }

    fn flush(&mut self) -> Result<()> {
        let run = std::mem::take(&mut self.run);
        let outcome = self.sink().append(&run);
        self.run = run;
        self.run.clear();
        self.note(outcome)
    }

    fn note(&mut self, outcome: std::io::Result<()>) -> Result<()> {
        outcome.map_err(|source| {
            let error = failed(&self.name, 0, source);
            self.failed = Some(error.again());
            error
        })
    }
}

impl Drop for FfWriter {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = self.abandon();
    }
}

fn failed(name: &str, offset: u64, source: std::io::Error) -> Error {
    Error::Storage { path: name.to_owned(), record: None, offset, action: "write", source }
}
