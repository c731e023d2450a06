//! Writing bags.

use super::super::draft::{Draft, Finish, RecordWriter, SMALL, Spool, failed};
use super::packer::Packer;
use crate::error::Result;
use crate::format::Group;
use crate::format::bag::LIMIT_LEN;
use crate::storage::Append;

/// Bytes of records that are gathered before they are appended.
const BUFFER: usize = 1 << 20;

/// Bytes of limits that are gathered before they are appended.
const TABLE: usize = 64 << 10;

/// Records that are gathered before they are compressed, unless they have many bytes before.
const BATCH: usize = 8192;

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
}

/// Writes a bag, with its limits at its end or in a file of their own.
///
/// Limits never describe records that were not appended before them.
pub struct BagWriter {
    draft: Draft<Files>,
    /// What errors call the file that limits go to.
    limits_name: String,
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
        let limits_name = match &placement {
            Placement::Tail(_) => name.to_owned(),
            Placement::Separate(_, name) => name.clone(),
        };
        BagWriter {
            draft: Draft::new(name, Files { records, placement }, finish),
            limits_name,
            packer,
            pending: Group::default(),
            sync,
            end: 0,
            len: 0,
            out: Vec::new(),
            table: Vec::new(),
        }
    }

    /// Continues after `len` records that are in the files already and have `end` bytes.
    #[must_use]
    pub fn behind(mut self, len: u64, end: u64) -> BagWriter {
        (self.len, self.end) = (len, end);
        self
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
        let packed = packer.pack(&self.pending).map_err(|why| self.draft.invalid(why));
        let packed = self.draft.keep(packed)?;
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

    fn append_records(&mut self) -> Result<()> {
        let outcome = self.draft.file()?.records.append(&self.out);
        self.out.clear();
        self.out.shrink_to(2 * BUFFER);
        self.draft.note(self.end, "write", outcome)
    }

    fn append_all(&mut self) -> Result<()> {
        self.append_records()?;
        let sync = self.sync && !self.table.is_empty();
        let Files { records, placement } = self.draft.file()?;
        let outcome = match placement {
            Placement::Tail(spool) => spool.append.append(&self.table),
            Placement::Separate(limits, _) => {
                if sync && let Err(source) = records.sync() {
                    return self.draft.note(self.end, "sync", Err(source));
                }
                let outcome = limits.append(&self.table);
                outcome.and_then(|()| if sync { limits.sync() } else { Ok(()) })
            }
        };
        self.table.clear();
        let at = self.len * LIMIT_LEN;
        self.draft.keep(outcome.map_err(|source| failed(&self.limits_name, at, "write", source)))
    }

    fn finish(&mut self, whole: bool) -> Result<()> {
        (self.out, self.table, self.pending) = (Vec::new(), Vec::new(), Group::default());
        self.draft.finish(whole)
    }
}

impl RecordWriter for BagWriter {
    fn append(&mut self, record: &[u8]) -> Result<u64> {
        self.draft.check()?;
        if self.packer.is_some() {
            self.draft.reserve(&mut self.pending.bytes, self.len, record)?;
            self.pending.push(record);
            if self.pending.bytes.len() >= BUFFER || self.pending.len() >= BATCH {
                self.pack()?;
            }
        } else {
            self.draft.reserve(&mut self.out, self.len, record)?;
            self.out.extend_from_slice(record);
            self.limit(record.len());
            self.spill()?;
        }
        self.len += 1;
        Ok(self.len - 1)
    }

    fn is_cheap(&self, len: usize) -> bool {
        let gathers = match &self.packer {
            Some(_) => self.pending.bytes.len() + len < BUFFER && self.pending.len() + 1 < BATCH,
            None => {
                self.out.len() + len < BUFFER && self.table.len() + (LIMIT_LEN as usize) < TABLE
            }
        };
        len < SMALL && gathers
    }

    /// Brings all records so far into the files, then their limits: readers of a bag with
    /// separate limits see them.
    fn flush(&mut self) -> Result<()> {
        self.draft.check()?;
        self.pack()?;
        self.append_all()
    }

    fn size(&mut self) -> Result<Option<u64>> {
        self.pack()?;
        Ok(Some(self.end + self.len * LIMIT_LEN))
    }

    fn close(&mut self) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        self.flush()?;
        let Files { records, placement } = self.draft.file()?;
        if let Placement::Tail(spool) = placement {
            let outcome = spool
                .pour(&mut **records)
                .and_then(|()| if self.sync { records.sync() } else { records.check() });
            self.draft.note(self.end, "write", outcome)?;
        }
        self.finish(true)
    }

    /// Gives up the bag: one with its limits at its end does not appear, another keeps what was
    /// flushed. A second call does nothing.
    fn abandon(&mut self) -> Result<()> {
        self.finish(false)
    }

    fn num_rows(&self) -> u64 {
        self.len
    }

    fn is_closed(&self) -> bool {
        self.draft.is_closed()
    }
}
