//! Writing bags.

use crate::compression::frame::Compressor;
use crate::error::{Error, Result};
use crate::format::bag::LIMIT_LEN;
use crate::storage::Append;

/// Bytes that are gathered before they are appended.
const BUFFER: usize = 1 << 20;

/// What happens when writing ends: whether the bag is whole.
type Finish = Box<dyn FnOnce(bool) -> Result<()> + Send>;

/// Writes a bag, with its limits at its end or in a file of their own.
pub struct BagWriter {
    records: Box<dyn Append>,
    /// Where limits go, if not behind the records.
    limits: Option<Box<dyn Append>>,
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
    finish: Option<Finish>,
}

impl BagWriter {
    /// Begins a bag of empty files; `finish` is called when it is closed or abandoned.
    pub fn new(
        records: Box<dyn Append>,
        limits: Option<Box<dyn Append>>,
        name: &str,
        compressor: Option<Compressor>,
        sync: bool,
        finish: Finish,
    ) -> BagWriter {
        BagWriter {
            records,
            limits,
            name: name.to_owned(),
            compressor,
            sync,
            end: 0,
            len: 0,
            out: Vec::new(),
            table: Vec::new(),
            failed: None,
            finish: Some(finish),
        }
    }

    /// Number of records so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no records yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the writer was closed or abandoned.
    pub fn is_closed(&self) -> bool {
        self.finish.is_none()
    }

    fn check_open(&self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.again());
        }
        if self.is_closed() {
            return Err(Error::Closed { path: self.name.clone(), what: "writer" });
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
            _ => self.out.extend_from_slice(record),
        }
        self.end += (self.out.len() - start) as u64;
        self.table.extend_from_slice(&self.end.to_le_bytes());
        self.len += 1;
        if self.out.len() >= BUFFER {
            let outcome = self.append_records();
            self.remember(outcome)?;
        }
        Ok(self.len - 1)
    }

    fn append_records(&mut self) -> Result<()> {
        let outcome = self.records.append(&self.out);
        self.out.clear();
        outcome.map_err(|source| self.storage_error("write", source))
    }

    fn storage_error(&self, action: &'static str, source: std::io::Error) -> Error {
        let (path, offset) = (self.name.clone(), self.end);
        Error::Storage { path, record: None, offset, action, source }
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
        if self.sync {
            self.records.sync().map_err(|source| self.storage_error("sync", source))?;
        }
        let Some(limits) = &mut self.limits else { return Ok(()) };
        let outcome = limits.append(&self.table);
        let outcome = outcome.and_then(|()| if self.sync { limits.sync() } else { Ok(()) });
        self.table.clear();
        outcome.map_err(|source| self.storage_error("write", source))
    }

    /// Completes the bag. A second call does nothing.
    pub fn close(&mut self) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        self.check_open()?;
        if self.limits.is_none() {
            debug_assert_eq!(self.table.len() as u64, self.len * LIMIT_LEN);
            self.out.append(&mut self.table);
        }
        self.flush()?;
        self.finish.take().map_or(Ok(()), |finish| finish(true))
    }

    /// Gives the bag up. A second call does nothing.
    pub fn abandon(&mut self) -> Result<()> {
        self.finish.take().map_or(Ok(()), |finish| finish(false))
    }
}

impl Drop for BagWriter {
    fn drop(&mut self) {
        let _ = self.abandon();
    }
}
