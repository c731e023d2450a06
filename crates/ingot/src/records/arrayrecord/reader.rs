//! An ArrayRecord file as a container.

use std::sync::Arc;

use super::super::cache::Pin;
use super::super::container::{Cell, Container, Form, Stats, Stored};
use super::super::content::content;
use super::super::groups::Groups;
use super::super::locate::Missing;
use super::super::source::Source;
use super::super::verification::Verification;
use crate::error::{Error, Result};
use crate::format::arrayrecord::{FILE_LEN_MIN, Index, SIGNATURE_LEN, postscript, signature};
use crate::format::riegeli::{Chunk, Kind, block, simple, transposed};
use crate::format::{Group, Violation, bail};
use crate::limit::Growth;
use crate::storage::ReadAt;

/// Bytes that the record of a footer takes at most, the first one and those of chunks.
const FOOTER_BYTES_MAX: (u64, u64) = (1 << 20, 256);

/// Chunks that decode to more than this are decoded only if the memory has room for that.
const LARGE: u64 = 64 << 20;

/// An ArrayRecord file, open for reading. The positions of its chunks are in memory.
#[derive(Clone)]
pub struct ArrayRecord {
    storage: Arc<dyn ReadAt>,
    name: String,
    index: Arc<Index>,
    groups: Groups,
    file_bytes: u64,
    footer: Footer,
}

/// Where the index came from.
#[derive(Clone, Copy)]
pub(super) struct Footer {
    pub offset: u64,
    pub bytes: u64,
    pub hash: u64,
}

impl ArrayRecord {
    /// Returns whether a file that begins with `front` is a Riegeli file.
    pub fn is_prefix(front: &[u8]) -> bool {
        front.get(..SIGNATURE_LEN).is_some_and(|front| front == signature())
    }

    /// Opens a file and reads its index; `name` is what errors call it.
    pub fn open(storage: Arc<dyn ReadAt>, name: &str) -> Result<ArrayRecord> {
        let source = Source { storage: &*storage, name };
        let size = source.size()?;
        if size < FILE_LEN_MIN || !size.is_multiple_of(block::LEN) {
            let why = format!(
                "an ArrayRecord file cannot have {size} bytes: it is truncated, or its writer was \
                 not closed"
            );
            return Err(source.corrupt(size, why));
        }
        let front = source.read(0, SIGNATURE_LEN as u64)?;
        if front != signature() {
            return Err(source.corrupt(0, "the signature is damaged"));
        }
        let last = size - block::LEN;
        let tail = source.read(last, block::LEN)?;
        let corrupt = |offset: u64, what: &str, why: Violation| {
            source.corrupt(offset, format!("{what}: {why}"))
        };
        let offset = Chunk::decode(&tail, last)
            .and_then(|chunk| postscript::decode(&chunk))
            .map_err(|why| corrupt(last, "postscript", why))?;
        if offset < SIGNATURE_LEN as u64 || offset >= last {
            let why = format!("says that the footer begins at {offset}");
            return Err(corrupt(last, "postscript", Violation(why)));
        }
        let bytes = source.read(offset, last - offset)?;
        let chunk = Chunk::decode(&bytes, offset).map_err(|why| corrupt(offset, "footer", why))?;
        let header = chunk.header;
        let decode = || {
            let most = FOOTER_BYTES_MAX.0 + header.records.saturating_mul(FOOTER_BYTES_MAX.1);
            if header.kind != Kind::SIMPLE || header.decoded_len > most {
                bail!("not a list of chunks");
            }
            Index::decode(&simple::decode(&chunk)?, offset)
        };
        let index = decode().map_err(|why| corrupt(offset, "footer", why))?;
        let footer = Footer { offset, bytes: chunk.end - offset, hash: header.data_hash };
        let (name, index) = (name.to_owned(), Arc::new(index));
        Ok(ArrayRecord { storage, name, index, groups: Groups::new(), file_bytes: size, footer })
    }

    /// Returns where the records are.
    pub fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(super) fn footer(&self) -> Footer {
        self.footer
    }

    /// Returns whether a chunk has one record of known length, which is decoded to its
    /// place at once.
    fn is_alone(&self, chunk: usize) -> bool {
        let rows = self.index.rows(chunk);
        rows.end - rows.start == 1 && self.index.decoded_len(chunk).is_some()
    }

    fn part(&self, row: u64, chunk: usize, group: &Group, inner: u64) -> Cell {
        let range = group.range(inner as usize);
        let form = Form::Part(range.start as u64);
        Cell::unsummed(row, self.index.range(chunk), range.len() as u64, form)
    }

    fn chunk_at(&self, offset: u64) -> Result<usize> {
        let found = self.index.chunk_at(offset);
        found.ok_or_else(|| Error::Invalid(format!("{}: no chunk begins at {offset}", self.name)))
    }

    /// Decodes all records of a chunk.
    pub(super) fn unpack(&self, number: usize, stored: &[u8]) -> Result<Group> {
        let begin = self.index.range(number).start;
        let rows = self.index.rows(number);
        let decode = || {
            let chunk = Chunk::decode(stored, begin)?;
            check_chunk(&chunk, rows.end - rows.start, self.index.decoded_len(number))?;
            decode_group(&chunk)
        };
        let corrupt = |why| self.source().corrupt(begin, why).at_record(rows.start);
        let (header, _) = Chunk::measure(stored, begin).map_err(corrupt)?;
        self.check_memory(rows.start, stored.len() as u64, header.decoded_len)?;
        decode().map_err(corrupt)
    }

    /// Rejects what grows too much, or does not fit in memory, once it is decoded.
    #[inline]
    fn check_memory(&self, row: u64, stored: u64, bytes: u64) -> Result<()> {
        Growth::default()
            .add(stored, bytes)
            .map_err(|why| Error::format(&self.name, format!("record {row}: {why}")))?;
        if bytes <= LARGE {
            return Ok(());
        }
        let room =
            usize::try_from(bytes).is_ok_and(|len| Vec::<u8>::new().try_reserve(len).is_ok());
        if room { Ok(()) } else { Err(Error::memory(&self.name, bytes).at_record(row)) }
    }
}

/// Checks that a chunk holds what the footer says.
fn check_chunk(chunk: &Chunk<'_>, records: u64, decoded_len: Option<u64>) -> Result<(), Violation> {
    let header = &chunk.header;
    if header.records != records || decoded_len.is_some_and(|len| len != header.decoded_len) {
        bail!(
            "the chunk has {} records of {} bytes, which differs from the footer",
            header.records,
            header.decoded_len
        );
    }
    Ok(())
}

/// Decodes the records of a chunk of any kind.
pub(super) fn decode_group(chunk: &Chunk<'_>) -> Result<Group, Violation> {
    match chunk.header.kind {
        Kind::SIMPLE => simple::decode(chunk),
        Kind::TRANSPOSED => transposed::decode(chunk),
        Kind(letter) => {
            Err(Violation(format!("a chunk of the unknown kind {:?}", char::from(letter))))
        }
    }
}

impl Stored for ArrayRecord {
    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }

    fn decode(&self, cell: &Cell, stored: &[u8], value: &mut [u8]) -> Result<()> {
        let mut decode = || {
            let chunk = Chunk::decode(stored, cell.offset)?;
            check_chunk(&chunk, 1, Some(cell.raw))?;
            if chunk.header.kind == Kind::SIMPLE {
                return simple::decode_one(&chunk, value);
            }
            value.copy_from_slice(&decode_group(&chunk)?.bytes);
            Ok(())
        };
        decode().map_err(|why| self.source().corrupt(cell.offset, why))
    }

    fn group(&self, cell: &Cell) -> Result<Arc<Group>> {
        let chunk = self.chunk_at(cell.offset)?;
        self.groups.get_or_load(cell.offset, || {
            self.unpack(chunk, &self.source().read(cell.offset, cell.stored)?)
        })
    }
}

impl Container for ArrayRecord {
    fn num_rows(&self) -> u64 {
        self.index.records()
    }

    #[inline]
    fn find(&self, row: u64) -> Option<Result<Cell>> {
        let (chunk, inner) = self.index.place(row);
        if self.is_alone(chunk) {
            let raw = self.index.decoded_len(chunk).unwrap_or_default();
            let cell = Cell::unsummed(row, self.index.range(chunk), raw, Form::Chunk);
            return Some(self.check_memory(row, cell.stored, raw).map(|()| cell));
        }
        let group = self.groups.get(self.index.range(chunk).start)?;
        Some(Ok(self.part(row, chunk, &group, inner)))
    }

    fn missing(&self, rows: &[u64]) -> Vec<Missing<'_>> {
        let chunks = rows.iter().map(|&row| self.index.place(row).0);
        let mut chunks: Vec<usize> = chunks.filter(|&chunk| !self.is_alone(chunk)).collect();
        chunks.sort_unstable();
        chunks.dedup();
        let mut room = Groups::budget() / 2;
        chunks.retain(|&chunk| {
            let range = self.index.range(chunk);
            if self.groups.get(range.start).is_some() {
                return false;
            }
            let has_room = room > 0;
            let len = self.index.decoded_len(chunk).unwrap_or(0).max(range.end - range.start);
            room = room.saturating_sub(len);
            has_room
        });
        let missing = chunks.into_iter().map(|chunk| {
            let range = self.index.range(chunk);
            let (offset, len) = (range.start, range.end - range.start);
            Missing { number: chunk as u64, source: self.source(), offset, len }
        });
        missing.collect()
    }

    fn load(&self, number: u64, bytes: Vec<u8>) -> Result<Pin> {
        let chunk = number as usize;
        let load = || self.unpack(chunk, &bytes);
        Ok(self.groups.get_or_load(self.index.range(chunk).start, load)?)
    }

    fn stats(&self) -> Stats {
        Stats::of_records(self.num_rows(), self.file_bytes, self.footer.bytes)
    }

    fn fingerprint(&self) -> Result<Vec<u8>> {
        let content = content(self.source())?;
        let footer = [self.footer.offset, self.footer.hash].map(u64::to_le_bytes);
        Ok([content, footer.concat()].concat())
    }

    fn info(&self) -> String {
        let options = serde_json::json!({
            "options": self.index.options(),
            "group_size": self.index.group_size(),
        });
        options.to_string()
    }

    fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        super::verify::verify(self, progress)
    }

    fn after_fork(&self) -> Arc<dyn Container> {
        Arc::new(self.clone())
    }
}
