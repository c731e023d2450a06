//! A record file, open for writing.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

use super::super::draft::{Draft, RecordWriter, failed};
use super::pending::{Packed, Pending, Value};
use super::tail::{Beginning, Tail};
use super::training::{Compression, Decision, Decisions, SAMPLE};
use crate::error::{Error, Result};
use crate::format::checksum::FileId;
use crate::format::ingot::{Field, FieldKind, Header, Schema};
use crate::limit::has_room_for_thread;
use crate::storage::Append;

/// Rows are handed over in batches of about this many bytes.
const BATCH: usize = 1 << 20;

/// How a writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How cells are compressed.
    pub compression: Compression,
    /// Level of zstd.
    pub level: i32,
    /// Whether flush and close wait until the device has the bytes.
    pub sync: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { compression: Compression::Auto, level: 3, sync: true }
    }
}

/// A record file, open for writing, in one pass and in bounded memory.
///
/// A thread of the writer's own checksums, compresses and writes while the caller
/// prepares the next rows. After an error every later call fails with the same
/// error: what was committed before it stays.
pub struct Writer {
    draft: Draft<Drain>,
    id: FileId,
    schema: Schema,
    batch: Pending,
    limit: usize,
    rows: u64,
    /// The bytes of all rows that this writer was given.
    bytes: u64,
    committed: Arc<AtomicU64>,
    decisions: Arc<Mutex<Decisions>>,
}

/// The writer's thread, and the ways to it.
struct Drain {
    commands: SyncSender<Command>,
    spare: Receiver<Pending>,
    thread: JoinHandle<()>,
}

/// What the writer's thread does with the rows it receives.
enum Command {
    Write(Pending),
    Flush(Pending, SyncSender<()>),
    Close(Pending),
}

impl Writer {
    /// Starts a new file. `metadata` is the text of a JSON object.
    pub fn create(
        storage: Box<dyn Append>,
        name: &str,
        schema: Schema,
        metadata: &str,
        options: Options,
    ) -> Result<Self> {
        Self::create_with_id(storage, name, schema, metadata, options, random_id()?)
    }

    /// As [`Writer::create`] with a chosen id, so that the same rows give the same bytes.
    pub fn create_with_id(
        storage: Box<dyn Append>,
        name: &str,
        schema: Schema,
        metadata: &str,
        options: Options,
        id: FileId,
    ) -> Result<Self> {
        let header = Header::new(id, schema, metadata)
            .map_err(|why| Error::Invalid(format!("{name}: {why}")))?;
        let mut tail = Tail::new(storage, name, header.clone(), options, Beginning::default());
        tail.write_header()?;
        Self::start(tail, name, id, header.schema, options)
    }

    /// Appends to a file that was settled by [`super::recovery::settle`].
    pub(super) fn start(
        tail: Tail,
        name: &str,
        id: FileId,
        schema: Schema,
        options: Options,
    ) -> Result<Self> {
        let rows = tail.committed();
        let committed = Arc::new(AtomicU64::new(rows));
        let decisions = tail.decisions();
        let failure = Arc::default();
        let (commands, taken) = sync_channel(2);
        let (returned, spare) = sync_channel(4);
        let (told, noted) = (Arc::clone(&committed), Arc::clone(&failure));
        if !has_room_for_thread() {
            return Err(Error::memory(name, BATCH as u64));
        }
        let thread = thread::Builder::new()
            .name("ingot-writer".to_owned())
            .spawn(move || drain(tail, &taken, &returned, &told, &noted))
            .map_err(|source| failed(name, 0, "start of a thread", source))?;
        let trains = matches!(options.compression, Compression::Auto | Compression::Zstd);
        let drain = Drain { commands, spare, thread };
        Ok(Writer {
            draft: Draft::sharing(name, drain, Box::new(|_| Ok(())), failure),
            id,
            batch: Pending::new(&schema),
            schema,
            limit: if trains { SAMPLE } else { BATCH },
            rows,
            bytes: 0,
            committed,
            decisions,
        })
    }

    /// Has `finish` called when the file is whole or was given up; it gets which, and the rows
    /// that are committed.
    pub(super) fn then(
        mut self,
        finish: impl FnOnce(bool, u64) -> Result<()> + Send + 'static,
    ) -> Self {
        let committed = Arc::clone(&self.committed);
        self.draft.then(Box::new(move |whole| finish(whole, committed.load(Ordering::Acquire))));
        self
    }

    /// Compresses as another writer with the same schema and options has decided, instead of
    /// trying what suits the first rows. Is called before there are any.
    pub fn assume(&mut self, decisions: Decisions) -> Result<()> {
        self.draft.check()?;
        let fields = self.schema.fields();
        if decisions.len() != fields.len() {
            let (found, wanted) = (decisions.len(), fields.len());
            return Err(self.draft.invalid(format!("{found} decisions for {wanted} fields")));
        }
        let is_open = |(field, known): (&Field, &Option<Decision>)| {
            field.kind != FieldKind::Column && !known.as_ref().is_some_and(Decision::is_settled)
        };
        if !fields.iter().zip(&decisions).any(is_open) {
            self.limit = BATCH;
        }
        *self.decisions.lock().expect("no panics under this lock") = decisions;
        Ok(())
    }

    /// Returns how the fields are compressed, as far as that is decided; all of it once the
    /// writer is closed.
    pub fn decisions(&self) -> Result<Decisions> {
        // In the child of a fork the lock may be held by a thread that is not there.
        self.draft.check_process()?;
        Ok(self.decisions.lock().expect("no panics under this lock").clone())
    }

    /// Returns what errors call this file.
    pub fn name(&self) -> &str {
        self.draft.name()
    }

    /// Returns the id in the header of the file.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Returns the fields of a row.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Rows appended so far, those in the file before this writer included.
    pub fn num_rows(&self) -> u64 {
        self.rows
    }

    /// The size of the rows that this writer was given, before compression.
    pub fn num_bytes(&self) -> u64 {
        self.bytes
    }

    /// Rows that are committed: they survive whatever happens to this process.
    pub fn num_committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// Whether the writer was closed or abandoned.
    pub fn is_closed(&self) -> bool {
        self.draft.is_closed()
    }

    /// Adds a row to a plain record file and returns its number. If [`Writer::is_full`]
    /// says so afterwards, [`Writer::submit`] is due.
    pub fn push(&mut self, record: &[u8]) -> Result<u64> {
        self.draft.check()?;
        if !self.schema.is_records() {
            return Err(self.draft.invalid("rows have several fields"));
        }
        self.make_room(record.len())?;
        self.batch.push_record(record);
        self.rows += 1;
        self.bytes += record.len() as u64;
        Ok(self.rows - 1)
    }

    /// Adds a row of several fields and returns its number; see [`Writer::push`].
    pub fn push_row(&mut self, values: &[Value<'_>]) -> Result<u64> {
        self.draft.check()?;
        let bytes = values.iter().map(Value::len).sum();
        self.make_room(bytes)?;
        self.batch.push(&self.schema, self.rows, values)?;
        self.rows += 1;
        self.bytes += bytes as u64;
        Ok(self.rows - 1)
    }

    /// Makes room in the batch for a row of `bytes` bytes.
    #[inline]
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        let room = self.batch.bytes.try_reserve(bytes);
        room.map_err(|_| Error::memory(self.name(), bytes as u64).at_record(self.rows))
    }

    /// Adds `count` rows, each field packed by itself.
    pub fn extend_packed(&mut self, fields: &[Packed<'_>], count: usize) -> Result<()> {
        let short = || Error::Invalid("a field has fewer values than there are rows".to_owned());
        let kinds: Vec<FieldKind> = self.schema.fields().iter().map(|field| field.kind).collect();
        let is_like = |(kind, field): (&FieldKind, &Packed<'_>)| {
            (*kind == FieldKind::Sequence) == field.counts.is_some()
        };
        if kinds.len() != fields.len() || !kinds.iter().zip(fields).all(is_like) {
            return Err(Error::Invalid("a row has one value for each field".to_owned()));
        }
        let mut elements: Vec<Vec<&[u8]>> = Vec::with_capacity(fields.len());
        for field in fields {
            let count = field.counts.map_or(0, |_| field.ends.len());
            let cells = (0..count).map(|k| field.value(k));
            elements.push(cells.collect::<Option<_>>().ok_or_else(short)?);
        }
        let mut firsts = vec![0_usize; fields.len()];
        let mut values: Vec<Value<'_>> = Vec::with_capacity(fields.len());
        for row in 0..count {
            values.clear();
            for (k, field) in fields.iter().enumerate() {
                let first = firsts[k];
                let number =
                    field.counts.map_or(Some(1), |counts| Some(*counts.get(row)? as usize));
                firsts[k] =
                    number.and_then(|number| first.checked_add(number)).ok_or_else(short)?;
                let value = match kinds[k] {
                    FieldKind::Sequence => elements[k].get(first..firsts[k]).map(Value::Sequence),
                    FieldKind::Cell => field.value(first).map(Value::Cell),
                    FieldKind::Column => field.value(first).map(Value::Column),
                };
                values.push(value.ok_or_else(short)?);
            }
            self.push_row(&values)?;
            if self.is_full() {
                self.submit()?;
            }
        }
        Ok(())
    }

    /// Whether enough rows have gathered to be handed over.
    pub fn is_full(&self) -> bool {
        self.batch.is_full(self.limit)
    }

    /// Hands the gathered rows to the writer's thread; waits while it is two batches behind.
    pub fn submit(&mut self) -> Result<()> {
        self.draft.check()?;
        self.send(Command::Write)?;
        self.limit = BATCH;
        self.draft.check_sound()
    }

    /// As [`Writer::push`] and, when due, [`Writer::submit`].
    pub fn append(&mut self, record: &[u8]) -> Result<u64> {
        let row = self.push(record)?;
        if self.is_full() {
            self.submit()?;
        }
        Ok(row)
    }

    /// As [`Writer::push_row`] and, when due, [`Writer::submit`].
    pub fn append_row(&mut self, values: &[Value<'_>]) -> Result<u64> {
        let row = self.push_row(values)?;
        if self.is_full() {
            self.submit()?;
        }
        Ok(row)
    }

    /// Commits all rows so far: they survive a crash of the process and, with
    /// [`Options::sync`], of the machine.
    pub fn flush(&mut self) -> Result<()> {
        self.draft.check()?;
        let (answer, done) = sync_channel(1);
        self.send(|batch| Command::Flush(batch, answer))?;
        // The thread drops the answer unsent only if it ends: it has noted why, or panicked.
        let answered = done.recv().is_ok();
        self.draft.check_sound()?;
        if answered { Ok(()) } else { Err(self.crashed()) }
    }

    /// Returns the error for a thread that has ended without a word; what it was writing is
    /// not committed.
    fn crashed(&self) -> Error {
        failed(self.name(), 0, "write", io::Error::other("the writer's thread panicked"))
    }

    /// Commits all rows and makes the file whole. A second call does nothing, but fails
    /// if the first one did.
    pub fn close(&mut self) -> Result<()> {
        if self.is_closed() {
            return self.draft.check_sound();
        }
        self.draft.check_process()?;
        let sent = self.send(Command::Close);
        let finished = self.stop(sent.is_ok());
        sent.and(self.draft.check_sound()).and(finished)
    }

    /// Leaves the file as it is, with the rows that are committed.
    pub fn abandon(&mut self) {
        if !self.draft.is_foreign() {
            // A failed cleanup affects nothing else.
            let _ = self.stop(false);
        }
    }

    fn send(&mut self, command: impl FnOnce(Pending) -> Command) -> Result<()> {
        let drain = self.draft.file()?;
        let spare = drain.spare.try_recv().unwrap_or_else(|_| Pending::new(&self.schema));
        let batch = std::mem::replace(&mut self.batch, spare);
        if drain.commands.send(command(batch)).is_err() {
            self.draft.check_sound()?;
            return Err(self.crashed());
        }
        Ok(())
    }

    /// Waits for the thread and ends the draft, which is whole if nothing failed.
    fn stop(&mut self, whole: bool) -> Result<()> {
        let Some((Drain { commands, spare, thread }, finish)) = self.draft.take() else {
            return Ok(());
        };
        drop((commands, spare));
        let ended = thread.join().map_err(|_| self.crashed());
        let ended = self.draft.keep(ended).and_then(|()| self.draft.check_sound());
        finish(whole && ended.is_ok())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.draft.is_foreign() {
            // The thread at the other end lives in the parent process.
            std::mem::forget(self.draft.take());
        }
        self.abandon();
    }
}

impl RecordWriter for Writer {
    fn append(&mut self, record: &[u8]) -> Result<u64> {
        Writer::append(self, record)
    }

    fn is_cheap(&self, len: usize) -> bool {
        len < BATCH && !self.batch.is_full_with(len, self.limit)
    }

    fn flush(&mut self) -> Result<()> {
        Writer::flush(self)
    }

    fn close(&mut self) -> Result<()> {
        Writer::close(self)
    }

    fn abandon(&mut self) -> Result<()> {
        Writer::abandon(self);
        Ok(())
    }

    fn num_rows(&self) -> u64 {
        self.rows
    }

    fn is_closed(&self) -> bool {
        self.draft.is_closed()
    }
}

/// Returns the id of a new file.
pub(super) fn random_id() -> Result<FileId> {
    let mut id = FileId::default();
    getrandom::fill(&mut id)
        .map_err(|error| Error::Invalid(format!("no randomness for the id of a file: {error}")))?;
    Ok(id)
}

/// Executes commands until the last, or until one fails, and publishes what is committed.
fn drain(
    mut tail: Tail,
    commands: &Receiver<Command>,
    spare: &SyncSender<Pending>,
    committed: &AtomicU64,
    failure: &OnceLock<Error>,
) {
    let tell = |tail: &Tail, outcome: Result<()>| {
        committed.store(tail.committed(), Ordering::Release);
        outcome.map_err(|error| drop(failure.set(error))).is_ok()
    };
    for command in commands {
        let outcome = match &command {
            Command::Write(batch) => tail.write(batch, false),
            Command::Flush(batch, _) => tail.write(batch, true).and_then(|()| tail.flush()),
            Command::Close(batch) => tail.write(batch, true).and_then(|()| tail.close()),
        };
        if !tell(&tail, outcome) {
            return;
        }
        let mut batch = match command {
            Command::Write(batch) | Command::Close(batch) => batch,
            Command::Flush(batch, answer) => {
                let _ = answer.send(());
                batch
            }
        };
        batch.clear();
        let _ = spare.try_send(batch);
    }
    let outcome = tail.push();
    tell(&tail, outcome);
}
