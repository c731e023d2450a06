//! Writing ArrayRecord files.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::super::draft::{Draft, Finish, RecordWriter, SMALL};
use super::encoders::Encoders;
use super::options::Options;
use crate::background::Task;
use crate::error::Result;
use crate::format::Group;
use crate::format::arrayrecord::footer::Entry;
use crate::format::arrayrecord::{Footer, postscript, signature};
use crate::format::riegeli::{Compression, Encoder, chunk, simple};
use crate::storage::Append;

/// Records are encoded once they have this many bytes.
const BATCH_BYTES: usize = 1 << 20;

/// Or once there are this many.
const BATCH_RECORDS: usize = 16 << 10;

/// How a write ended, and the buffers it was from.
type Written = (io::Result<()>, Vec<Vec<u8>>);

/// Writes an ArrayRecord file. Records are encoded in batches, on all cores.
pub struct ArWriter {
    draft: Draft<Arc<Mutex<Box<dyn Append>>>>,
    /// Bytes that are on their way to the file.
    writing: Option<Task<Written>>,
    encoders: Encoders,
    options: Options,
    footer: Footer,
    /// Where the next chunk begins.
    position: u64,
    /// Records that are not encoded yet.
    pending: Group,
    /// Bytes that are not appended yet.
    out: Vec<Vec<u8>>,
}

impl ArWriter {
    /// Begins a file; `finish` is called when it is closed or abandoned.
    pub fn new(
        file: Box<dyn Append>,
        name: &str,
        options: Options,
        finish: Finish,
    ) -> Result<ArWriter> {
        options.check()?;
        let signature = signature();
        Ok(ArWriter {
            draft: Draft::new(name, Arc::new(Mutex::new(file)), finish),
            writing: None,
            encoders: Encoders::new(options),
            options,
            footer: Footer::default(),
            position: signature.len() as u64,
            pending: Group::default(),
            out: vec![signature],
        })
    }

    fn is_full(&self, bytes: usize, records: usize) -> bool {
        (bytes >= BATCH_BYTES || records >= BATCH_RECORDS)
            && records as u64 >= self.options.group_size
    }

    /// Encodes the groups that are whole; with `last` also what is left.
    fn encode_pending(&mut self, last: bool) -> Result<()> {
        let size = usize::try_from(self.options.group_size).unwrap_or(usize::MAX);
        let pending = std::mem::take(&mut self.pending);
        let whole = if last { pending.len() } else { pending.len() / size * size };
        let groups: Vec<Range<usize>> = (0..whole)
            .step_by(size)
            .map(|from| from..whole.min(from.saturating_add(size)))
            .collect();
        let shares =
            self.encoders.encode(&pending, &groups).map_err(|why| self.draft.invalid(why))?;
        let mut positions = Vec::with_capacity(shares.len());
        for share in &shares {
            positions.push(self.position);
            for header in &share.headers {
                let (decoded_len, records) = (header.decoded_len, header.records);
                self.footer.entries.push(Entry { offset: self.position, decoded_len, records });
                self.footer.records += records;
                self.position =
                    header.end(self.position).expect("a file has fewer than 2^64 bytes");
                if self.options.pad_to_block {
                    self.position = chunk::padded(self.position);
                }
            }
        }
        self.out.extend(self.encoders.frame(shares, &positions));
        self.send()?;
        let mut left = pending;
        if whole == left.len() {
            left.clear();
        } else {
            left = left.view(whole..left.len()).to_group();
        }
        self.pending = left;
        Ok(())
    }

    /// Sends what is there to the file, while more is encoded.
    fn send(&mut self) -> Result<()> {
        self.settle()?;
        let file = Arc::clone(self.draft.file()?);
        let out = Arc::new(Mutex::new(std::mem::take(&mut self.out)));
        let write = move || -> Written {
            let mut file = file.lock().expect("no panics under this lock");
            let out = std::mem::take(&mut *out.lock().expect("no panics under this lock"));
            (out.iter().try_for_each(|piece| file.append(piece)), out)
        };
        match Task::spawn(write.clone()) {
            Some(task) => {
                self.writing = Some(task);
                Ok(())
            }
            // A thread that cannot be had leaves the work to this one.
            None => self.conclude(write()),
        }
    }

    fn conclude(&self, (outcome, buffers): Written) -> Result<()> {
        self.encoders.put_back(buffers);
        self.draft.note(self.position, "write", outcome)
    }

    /// Waits for what was sent to the file.
    fn settle(&mut self) -> Result<()> {
        let Some(task) = self.writing.take() else { return Ok(()) };
        if self.draft.is_foreign() {
            return Ok(()); // The thread that would answer lives in the parent process.
        }
        self.conclude(task.wait())
    }

    fn write_end(&mut self) -> Result<()> {
        self.encode_pending(true)?;
        let footer = self.position;
        let listed = self.footer.encode(&self.options.text());
        self.put(&listed, self.options.compression())?;
        self.put(&postscript::encode(footer), Compression::None)?;
        self.send()?;
        self.settle()?;
        let file = Arc::clone(self.draft.file()?);
        let mut file = file.lock().expect("no panics under this lock");
        let synced = if self.options.sync { file.sync() } else { Ok(()) };
        self.draft.note(self.position, "sync", synced)
    }

    /// Adds a chunk, and zeros up to the next block.
    fn put(&mut self, group: &Group, compression: Compression) -> Result<()> {
        let (mut data, mut out) = (Vec::new(), Vec::new());
        let header = simple::encode(group, &mut Encoder::new(compression), &mut data)
            .map_err(|why| self.draft.invalid(why))?;
        self.position = chunk::append(&mut out, self.position, &header, &data);
        self.position = chunk::pad(&mut out, self.position);
        self.out.push(out);
        Ok(())
    }
}

impl RecordWriter for ArWriter {
    fn append(&mut self, record: &[u8]) -> Result<u64> {
        self.draft.check()?;
        let number = self.num_rows();
        self.draft.reserve(&mut self.pending.bytes, number, record)?;
        self.pending.push(record);
        if self.is_full(self.pending.bytes.len(), self.pending.len()) {
            let done = self.encode_pending(false);
            self.draft.keep(done)?;
        }
        Ok(number)
    }

    fn is_cheap(&self, len: usize) -> bool {
        len < SMALL && !self.is_full(self.pending.bytes.len() + len, self.pending.len() + 1)
    }

    /// Writes what is left and the index, and lets the file appear. A second call does nothing.
    fn close(&mut self) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        self.draft.check()?;
        let outcome = self.write_end();
        self.draft.keep(outcome)?;
        self.draft.finish(true)
    }

    /// Gives up the file: nothing appears under its name. A second call does nothing.
    fn abandon(&mut self) -> Result<()> {
        let _ = self.settle();
        self.draft.finish(false)
    }

    fn num_rows(&self) -> u64 {
        self.footer.records + self.pending.len() as u64
    }

    fn is_closed(&self) -> bool {
        self.draft.is_closed()
    }
}

impl Drop for ArWriter {
    fn drop(&mut self) {
        let _ = self.abandon();
    }
}
