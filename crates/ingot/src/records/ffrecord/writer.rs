//! Writing an FFRecord file.

use super::super::draft::{Draft, Finish, RecordWriter, SMALL, Spool};
use crate::error::{Error, Result};
use crate::format::ffrecord::{ENTRY_LEN, Entries, HEAD_LEN, RECORDS_MAX};
use crate::storage::Append;

/// Records are gathered into writes of this size.
const RUN: usize = 256 << 10;

/// Where the index, which is in front of the records, gets its room from.
pub enum Room {
    /// For exactly this many records.
    Announced(u64),
    /// Records wait in a spool until it is known how many there are.
    Spooled(Spool),
}

struct Files {
    target: Box<dyn Append>,
    room: Room,
}

impl Files {
    fn sink(&mut self) -> &mut dyn Append {
        match &mut self.room {
            Room::Spooled(spool) => &mut *spool.append,
            Room::Announced(_) => &mut *self.target,
        }
    }
}

/// Writes records, and the index in front of them when it is closed. Nothing is visible
/// under the name of the file before.
pub struct FfWriter {
    draft: Draft<Files>,
    entries: Entries,
    run: Vec<u8>,
    sync: bool,
}

impl FfWriter {
    /// Starts a file at the beginning of `target`.
    pub(in crate::records) fn new(
        target: Box<dyn Append>,
        room: Room,
        name: &str,
        sync: bool,
        finish: Finish,
    ) -> Result<FfWriter> {
        let mut left = match room {
            Room::Announced(records) => HEAD_LEN as u64 + ENTRY_LEN as u64 * records,
            Room::Spooled(_) => 0,
        };
        let mut draft = Draft::new(name, Files { target, room }, finish);
        let zeros = [0; 64 << 10];
        while left > 0 {
            let len = left.min(zeros.len() as u64);
            let outcome = draft.file()?.target.append(&zeros[..len as usize]);
            draft.note(0, "write", outcome)?;
            left -= len;
        }
        Ok(FfWriter { draft, entries: Entries::default(), run: Vec::with_capacity(RUN), sync })
    }

    /// Rejects more records than FFRecord itself could read.
    pub(in crate::records) fn check_count(name: &str, records: u64) -> Result<()> {
        if records <= RECORDS_MAX {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{name}: an FFRecord file holds at most {RECORDS_MAX} records, not {records}; use \
             several"
        )))
    }

    /// Appends the gathered records.
    fn spill(&mut self) -> Result<()> {
        let outcome = self.draft.file()?.sink().append(&self.run);
        self.run.clear();
        self.draft.note(0, "write", outcome)
    }
}

impl RecordWriter for FfWriter {
    fn append(&mut self, record: &[u8]) -> Result<u64> {
        let number = self.num_rows();
        if let Room::Announced(records) = self.draft.file()?.room
            && number >= records
        {
            let why = format!("all {number} announced records are written");
            return Err(self.draft.invalid(why));
        }
        FfWriter::check_count(self.draft.name(), number + 1)?;
        // The caller's bytes may change meanwhile, so each is read once and the copy is summed.
        let mut crc = 0;
        for piece in record.chunks(RUN) {
            if self.run.len() + piece.len() > RUN {
                self.spill()?;
            }
            let start = self.run.len();
            self.run.extend_from_slice(piece);
            crc = Entries::sum(crc, &self.run[start..]);
        }
        self.entries.push(record.len() as u64, crc);
        Ok(number)
    }

    fn is_cheap(&self, len: usize) -> bool {
        len < SMALL && self.run.len() + len <= RUN
    }

    /// Completes the file and makes it visible. A second call does nothing.
    ///
    /// If fewer records were written than announced, nothing happens but the error: the
    /// rest can still be written.
    fn close(&mut self) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let written = self.num_rows();
        if let Room::Announced(records) = self.draft.file()?.room
            && records != written
        {
            return Err(self.draft.invalid(format!(
                "{written} of {records} records were written; write the rest, or pass the \
                 actual n, or none"
            )));
        }
        self.spill()?;
        let index = self.entries.encode();
        let files = self.draft.file()?;
        let outcome = files.sink().check().and_then(|()| match &files.room {
            Room::Announced(_) => files.target.rewrite(0, &index),
            Room::Spooled(spool) => {
                files.target.append(&index).and_then(|()| spool.pour(&mut *files.target))
            }
        });
        let outcome = outcome.and_then(|()| if self.sync { files.target.sync() } else { Ok(()) });
        self.draft.note(0, "write", outcome)?;
        self.draft.finish(true)
    }

    /// Gives up the file. What had its name before stays.
    fn abandon(&mut self) -> Result<()> {
        self.draft.finish(false)
    }

    fn num_rows(&self) -> u64 {
        self.entries.len()
    }

    fn is_closed(&self) -> bool {
        self.draft.is_closed()
    }
}
