//! Turning batches of rows into segments of the file.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::super::draft::failed;
use super::pending::Pending;
use super::training::{self, Choice, Decision, Decisions};
use super::writer::Options;
use crate::compression::{Codec, Compressor};
use crate::error::{Error, Result};
use crate::format::checksum::FileId;
use crate::format::ingot::{
    Block, BlockKind, Dictionary, DictionaryEntry, Directory, Encoding, FieldKind, Header,
    PAGE_CELLS, PAGE_DATA, PageBuilder, PageEntry, Schema, Trailer, raw_limit,
};
use crate::pool::Pool;
use crate::storage::Append;

/// Cells of about this many bytes are compressed by one thread at a time.
const COMPRESS: usize = 64 << 10;

/// Bytes go to the storage in runs that end at multiples of this. Larger ones make Linux
/// look for large pieces of memory, which a virtual machine may have given back to its
/// host: 0.4 GB/s was seen then, and 3 GB/s with these, with little to gain otherwise.
const RUN: u64 = 64 << 10;

/// How many short batches of a file are tried.
const TRIES: u32 = 8;

/// The end of the file: everything that a writer adds goes through here.
pub struct Tail {
    storage: Box<dyn Append>,
    header: Header,
    options: Options,
    name: String,
    /// Length of the file, with what is still pending.
    position: u64,
    /// Bytes that are not in the storage yet.
    pending: Vec<u8>,
    /// Commits that are not all in the storage yet: where each ends, and the rows up to it.
    pending_commits: VecDeque<(u64, u64)>,
    /// Rows whose commit is in the storage.
    committed: u64,
    /// Last trailer: offset and checksum.
    previous: (u64, u32),
    rows: u64,
    cells: u64,
    durable: u64,
    contents: Directory,
    page: PageBuilder,
    /// For each field how it is compressed; `None` until that is known.
    fields: Vec<Option<FieldEncoder>>,
    decisions: Arc<Mutex<Decisions>>,
}

struct FieldEncoder {
    encoding: Encoding,
    /// One for each thread that may work at once.
    compressors: Vec<Mutex<Compressor>>,
    /// Batches of this file that were tried; at [`TRIES`] no more are.
    tries: u32,
}

/// Cells as they are stored.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    /// Stored length, raw length and checksum of each.
    entries: Vec<(u64, u64, u32)>,
}

/// Bytes for which there was no memory.
struct NoMemory(u64);

/// What is in a file already when a writer starts at its end.
#[derive(Default)]
pub struct Beginning {
    pub position: u64,
    pub previous: (u64, u32),
    pub rows: u64,
    pub cells: u64,
    pub durable: u64,
    pub contents: Directory,
}

impl Tail {
    pub fn new(
        storage: Box<dyn Append>,
        name: &str,
        header: Header,
        options: Options,
        at: Beginning,
    ) -> Self {
        let page = PageBuilder::new(&header.schema, at.position, at.rows, at.cells);
        let fields = header.schema.fields();
        Tail {
            storage,
            name: name.to_owned(),
            options,
            position: at.position,
            pending: Vec::new(),
            pending_commits: VecDeque::new(),
            committed: at.rows,
            previous: at.previous,
            rows: at.rows,
            cells: at.cells,
            durable: at.durable,
            contents: Directory { header: header.bytes.clone(), ..at.contents },
            page,
            fields: fields.iter().map(|_| None).collect(),
            decisions: Arc::new(Mutex::new(vec![None; fields.len()])),
            header,
        }
    }

    /// Returns the id of the file.
    pub fn id(&self) -> FileId {
        self.header.id
    }

    /// Returns the schema of the file.
    pub fn schema(&self) -> &Schema {
        &self.header.schema
    }

    /// Returns how fields are compressed. What is there before the first rows is taken over.
    pub fn decisions(&self) -> Arc<Mutex<Decisions>> {
        Arc::clone(&self.decisions)
    }

    /// Commits a page that stands at the end of the file already.
    pub fn adopt_page(&mut self, page: PageEntry) -> Result<()> {
        self.contents.pages.push(page);
        self.rows += u64::from(page.rows);
        self.cells += u64::from(page.cells);
        self.commit_appended(BlockKind::Page, page.len.into(), page.crc)?;
        self.push()
    }

    /// Rows whose commit is in the storage.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Adds the header of a new file.
    pub fn write_header(&mut self) -> Result<()> {
        let bytes = self.header.bytes.clone();
        self.append(&bytes)?;
        self.page = PageBuilder::new(&self.header.schema, self.position, 0, 0);
        self.push()
    }

    /// Adds the cells of a batch, and commits a page whenever one is full. `last`
    /// says that no more rows may come before the next commit.
    pub fn write(&mut self, batch: &Pending, last: bool) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        let fields = batch.fields(&self.header.schema);
        self.choose(batch, &fields, last)?;
        let cells = self.page.num_cells() + batch.ends.len();
        if self.page.rows() > 0 && cells > PAGE_CELLS as usize {
            self.commit_page()?;
        }
        let encodings: Vec<Encoding> = self
            .fields
            .iter()
            .map(|field| field.as_ref().map_or_else(Encoding::default, |field| field.encoding))
            .collect();
        self.page.set_encodings(&encodings);
        if encodings.iter().all(|encoding| encoding.codec == Codec::None.code()) {
            self.write_raw(batch)?;
        } else {
            self.write_compressed(batch, &fields)?;
        }
        self.page.push_rows(batch.rows, &batch.counts, &batch.columns);
        let cells = self.page.num_cells().max(self.page.rows() as usize);
        if self.page.data_len() >= PAGE_DATA || cells >= PAGE_CELLS as usize {
            self.commit_page()?;
        }
        Ok(())
    }

    /// Commits what was written and, unless the user waived it, waits for the device.
    pub fn flush(&mut self) -> Result<()> {
        self.commit_page()?;
        self.push()?;
        if self.options.sync && self.durable < self.position {
            self.sync()?;
            self.commit(BlockKind::Mark, &[], 0)?;
            self.push()?;
        }
        self.check()
    }

    /// Makes the file whole: directory, then the closing trailer.
    pub fn close(&mut self) -> Result<()> {
        self.commit_page()?;
        let (block, crc) = self.contents.encode(self.position, self.header.seed());
        self.append(&block)?;
        if self.options.sync {
            self.sync()?;
        }
        self.commit_appended(BlockKind::Directory, block.len() as u64, crc)?;
        if self.options.sync {
            self.sync()?;
        } else {
            self.push()?;
        }
        self.check()
    }

    fn write_raw(&mut self, batch: &Pending) -> Result<()> {
        let seed = self.header.seed();
        for k in 0..batch.ends.len() {
            let cell = batch.cell(k);
            let crc = seed.cell(self.page.next_cell(), cell);
            self.page.push_cell(cell.len() as u64, cell.len() as u64, crc);
        }
        self.append(&batch.bytes)
    }

    fn write_compressed(&mut self, batch: &Pending, fields: &[u16]) -> Result<()> {
        let groups = group(batch);
        let seed = self.header.seed();
        let first = self.page.next_cell();
        let encoders = &self.fields;
        let outputs = Pool::compute().map(groups.len(), &|task| {
            let Encoded { mut bytes, mut entries } = Encoded::default();
            for k in groups[task].clone() {
                let (cell, start) = (batch.cell(k), bytes.len());
                let encoder = encoders[usize::from(fields[k])].as_ref().expect("chosen before");
                encoder.encode(cell, task, &mut bytes)?;
                let crc = seed.cell(first + k as u64, &bytes[start..]);
                entries.push(((bytes.len() - start) as u64, cell.len() as u64, crc));
            }
            Ok(Encoded { bytes, entries })
        });
        for output in outputs {
            let Encoded { bytes, entries } = output.map_err(|NoMemory(bytes)| {
                Error::memory(&self.name, bytes).at_record(self.page.next_row())
            })?;
            for (stored, raw, crc) in entries {
                self.page.push_cell(stored, raw, crc);
            }
            self.append(&bytes)?;
        }
        Ok(())
    }

    /// Settles how each field is compressed as soon as there are enough values. A short
    /// batch, of few rows before a flush, gets what suits it and leaves the choice open.
    fn choose(&mut self, batch: &Pending, fields: &[u16], last: bool) -> Result<()> {
        let Options { compression, level, .. } = self.options;
        for k in 0..self.fields.len() {
            let is_column = self.header.schema.fields()[k].kind == FieldKind::Column;
            let tries = self.fields[k].as_ref().map_or(0, |field| field.tries);
            if is_column || tries >= TRIES {
                continue;
            }
            let values: Vec<&[u8]> = (0..batch.ends.len())
                .filter(|&cell| usize::from(fields[cell]) == k)
                .map(|cell| batch.cell(cell))
                .collect();
            if values.is_empty() {
                continue;
            }
            let known = self.decisions.lock().expect("no panics under this lock")[k].clone();
            if let Some(known) = known.as_ref().filter(|known| known.is_settled()) {
                self.adopt(k, &known.choice, TRIES)?;
                continue;
            }
            let choice = training::choose(compression, level, &values);
            let stays = self.fields[k].as_ref().is_some_and(|field| field.is(&choice));
            let bytes = values.iter().map(|value| value.len() as u64).sum();
            let choice =
                known.as_ref().filter(|_| stays).map_or(choice, |known| known.choice.clone());
            let decision = Decision::after(known.as_ref(), choice, bytes, !last);
            let tries = if decision.is_settled() { TRIES } else { tries + 1 };
            match &mut self.fields[k] {
                Some(field) if stays => field.tries = tries,
                _ => self.adopt(k, &decision.choice, tries)?,
            }
            self.decisions.lock().expect("no panics under this lock")[k] = Some(decision);
        }
        Ok(())
    }

    /// Compresses field `field` as chosen from here on. A page has one encoding for
    /// each field, so the open one is committed first.
    fn adopt(&mut self, field: usize, choice: &Choice, tries: u32) -> Result<()> {
        self.commit_page()?;
        let mut encoding = Encoding { codec: choice.codec.code(), dictionary: 0 };
        let room = self.contents.dictionaries.len() < usize::from(u16::MAX);
        let dictionary = if room { &choice.dictionary[..] } else { &[] };
        if !dictionary.is_empty() {
            let block = Dictionary { field: field as u32, bytes: dictionary.to_vec() };
            let (block, crc) = block.encode(self.position, self.header.seed());
            self.contents.dictionaries.push(DictionaryEntry {
                offset: self.position,
                len: block.len() as u32,
                crc,
                field: field as u32,
            });
            self.commit(BlockKind::Dictionary, &block, crc)?;
            encoding.dictionary = self.contents.dictionaries.len() as u16;
        }
        let compressors = (0..Pool::compute().width())
            .map(|_| Compressor::new(choice.codec, self.options.level, dictionary))
            .map(Mutex::new)
            .collect();
        self.fields[field] = Some(FieldEncoder { encoding, compressors, tries });
        Ok(())
    }

    fn commit_page(&mut self) -> Result<()> {
        if self.page.rows() == 0 {
            return Ok(());
        }
        let (block, crc) = self.page.encode(self.position, self.header.seed());
        let len = u32::try_from(block.len()).map_err(|_| {
            Error::Invalid(format!("{}: the index of one page exceeds 4 GiB", self.name))
        })?;
        self.contents.pages.push(PageEntry {
            offset: self.position,
            len,
            crc,
            rows: self.page.rows(),
            cells: self.page.num_cells() as u32,
        });
        (self.rows, self.cells) = (self.page.next_row(), self.page.next_cell());
        self.commit(BlockKind::Page, &block, crc)
    }

    fn commit(&mut self, kind: BlockKind, block: &[u8], crc: u32) -> Result<()> {
        self.append(block)?;
        self.commit_appended(kind, block.len() as u64, crc)
    }

    /// Writes the trailer of a block that was just appended.
    fn commit_appended(&mut self, kind: BlockKind, len: u64, crc: u32) -> Result<()> {
        let trailer = Trailer {
            offset: self.position,
            block: Block { kind, offset: self.position - len, len, crc },
            previous: self.previous,
            rows: self.rows,
            cells: self.cells,
            durable: self.durable,
        };
        let (bytes, crc) = trailer.encode(&self.header.id);
        self.pending_commits.push_back((self.position + bytes.len() as u64, self.rows));
        self.append(&bytes)?;
        self.previous = (trailer.offset, crc);
        self.page = PageBuilder::new(&self.header.schema, self.position, self.rows, self.cells);
        Ok(())
    }

    fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = (RUN - self.position % RUN) as usize;
            let (piece, rest) = bytes.split_at(room.min(bytes.len()));
            if self.pending.is_empty() && piece.len() == RUN as usize {
                self.write_out(piece)?;
                self.position += RUN;
            } else {
                self.pending.extend_from_slice(piece);
                self.position += piece.len() as u64;
            }
            if self.position.is_multiple_of(RUN) {
                self.push()?;
            }
            bytes = rest;
        }
        Ok(())
    }

    /// Hands everything to the storage.
    pub fn push(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.position -= pending.len() as u64;
        self.write_out(&pending)?;
        self.position += pending.len() as u64;
        self.pending = pending;
        self.pending.clear();
        while let Some(&(end, rows)) = self.pending_commits.front()
            && end <= self.position
        {
            self.committed = rows;
            self.pending_commits.pop_front();
        }
        Ok(())
    }

    fn write_out(&mut self, bytes: &[u8]) -> Result<()> {
        self.storage.append(bytes).map_err(|source| self.failed("write", source))
    }

    fn sync(&mut self) -> Result<()> {
        self.push()?;
        self.storage.sync().map_err(|source| self.failed("sync", source))?;
        self.durable = self.position;
        Ok(())
    }

    /// Makes sure that what was committed is in a file that others can open.
    fn check(&self) -> Result<()> {
        self.storage.check().map_err(|source| self.failed("commit", source))
    }

    fn failed(&self, action: &'static str, source: std::io::Error) -> Error {
        failed(&self.name, self.position, action, source).at_record(self.page.next_row())
    }
}

impl FieldEncoder {
    /// Whether `choice` would change nothing.
    fn is(&self, choice: &Choice) -> bool {
        self.encoding.codec == choice.codec.code() && choice.dictionary.is_empty()
    }

    /// Appends the stored form of `value` to `out`.
    fn encode(&self, value: &[u8], task: usize, out: &mut Vec<u8>) -> Result<(), NoMemory> {
        let start = out.len();
        let compressor = &self.compressors[task % self.compressors.len()];
        let len = compressor.lock().expect("no panics under this lock").compress(value, out);
        if len.is_none_or(|len| value.len() as u64 > raw_limit(len as u64)) {
            out.truncate(start);
            out.try_reserve(value.len()).map_err(|_| NoMemory(value.len() as u64))?;
            out.extend_from_slice(value);
        }
        Ok(())
    }
}

/// Cuts a batch into runs of cells that are compressed together.
fn group(batch: &Pending) -> Vec<std::ops::Range<usize>> {
    let (mut groups, mut first, mut begin) = (Vec::new(), 0, 0);
    for (k, &end) in batch.ends.iter().enumerate() {
        if end - begin >= COMPRESS || k + 1 == batch.ends.len() {
            groups.push(first..k + 1);
            (first, begin) = (k + 1, end);
        }
    }
    groups
}
