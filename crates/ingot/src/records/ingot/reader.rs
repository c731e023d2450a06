//! A record file, open for reading.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::super::cache::Pin;
use super::super::container::{Cell, Container, Form, Stats, Stored, Table};
use super::super::locate::{Missing, prepare};
use super::super::open::Mode;
use super::super::source::{Source, Watch};
use super::super::verification::Verification;
use super::chain;
use super::front::{self, Front};
use super::pages::{Loader, Pages};
use crate::compression::{self, Codec};
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::checksum::Seed;
use crate::format::ingot::{
    BlockKind, DictionaryEntry, Directory, FieldKind, Header, Page, Schema, TRAILER_LEN,
};
use crate::storage::{ReadAt, has_writer};

/// An Ingot file, open for reading: a snapshot of what was committed when it was
/// opened. Safe to use from several threads at once, and in the child of a fork.
pub struct Reader {
    storage: Arc<dyn ReadAt>,
    name: String,
    header: Header,
    seed: Seed,
    file_bytes: u64,
    closed: bool,
    pages: Pages,
    dictionaries: Vec<(DictionaryEntry, OnceLock<compression::Dictionary>)>,
}

impl Reader {
    /// Opens a file. Costs the header, the trailer and the directory, whatever the
    /// size of the file; `name` is what errors call it. A file that is not closed is
    /// searched for its last commit, under the eyes of `watch`.
    pub fn open(
        storage: Arc<dyn ReadAt>,
        name: &str,
        mode: Mode,
        watch: &mut Watch<'_>,
    ) -> Result<Self> {
        let source = Source { storage: &*storage, name };
        let size = source.size()?;
        let header = match front::read_header(source, size)? {
            Front::Header(header) => header,
            Front::Torn => {
                return Err(Error::Unfinished {
                    path: name.to_owned(),
                    rows: 0,
                    writing: has_writer(Path::new(name)),
                    offset: size,
                    reason: "the file ends inside its header".to_owned(),
                });
            }
        };
        let (directory, closed) = match read_directory(source, &header, size) {
            Ok(directory) => (directory, true),
            Err(error @ Error::Storage { .. }) => return Err(error),
            Err(error) => (read_committed(source, &header, size, mode, &error, watch)?, false),
        };
        let mut reader = Self::over(&storage, name, &header, &directory, closed);
        reader.file_bytes = size;
        Ok(reader)
    }

    /// Returns a reader of contents that are known already.
    pub(super) fn over(
        storage: &Arc<dyn ReadAt>,
        name: &str,
        header: &Header,
        contents: &Directory,
        closed: bool,
    ) -> Self {
        let dictionaries =
            contents.dictionaries.iter().map(|&entry| (entry, OnceLock::new())).collect();
        Reader {
            storage: Arc::clone(storage),
            name: name.to_owned(),
            seed: header.seed(),
            header: header.clone(),
            file_bytes: 0,
            closed,
            pages: Pages::new(contents.pages.clone()),
            dictionaries,
        }
    }

    /// Returns what errors call this file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the header: id, schema and metadata.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the schema.
    pub fn schema(&self) -> &Schema {
        &self.header.schema
    }

    /// Number of rows.
    pub fn num_rows(&self) -> u64 {
        self.pages.num_rows()
    }

    /// Whether the file ended in a closing trailer when it was opened.
    pub fn is_closed_file(&self) -> bool {
        self.closed
    }

    /// Returns figures about the file.
    pub fn stats(&self) -> Stats {
        let entries = self.pages.entries();
        Stats {
            rows: self.num_rows(),
            cells: self.pages.num_cells(),
            file_bytes: self.file_bytes,
            index_bytes: entries.iter().map(|page| u64::from(page.len)).sum(),
            pages: entries.len() as u64,
            dictionaries: self.dictionaries.len() as u64,
            dictionary_bytes: self.dictionaries.iter().map(|(entry, _)| u64::from(entry.len)).sum(),
            closed: self.closed,
        }
    }

    /// Appends to `cells` where field `field`, of kind cell, of each of `rows` is.
    pub fn locate(&self, rows: &[u64], field: usize, cells: &mut Vec<Cell>) -> Result<()> {
        self.check_field(field, FieldKind::Cell)?;
        if let Some(&row) = rows.iter().find(|&&row| row >= self.num_rows()) {
            return Err(self.out_of_range(row as i64));
        }
        let _pins = prepare(&[(self, rows.to_vec())]);
        cells.reserve(rows.len());
        for &row in rows {
            cells.push(self.locate_one(row, field)?);
        }
        Ok(())
    }

    /// Returns where field `field`, of kind cell, of `row` is. Both must exist.
    pub(super) fn locate_one(&self, row: u64, field: usize) -> Result<Cell> {
        self.in_page(row, |page, local| self.locate_in(page, row, local, field))
    }

    fn locate_in(
        &self,
        page: &Page,
        row: u64,
        local: u32,
        field: usize,
    ) -> Result<Cell, Violation> {
        let cell = if self.schema().is_records() {
            local
        } else {
            page.cells_of(self.schema(), local, field)?.start
        };
        self.describe(page, row, field, cell)
    }

    /// Returns the values of column `field` in all rows, from the index pages alone.
    pub fn column(&self, field: usize) -> Result<Vec<u8>> {
        let mut values = Vec::new();
        self.append_column(field, 0..self.num_rows(), None, &mut values)?;
        Ok(values)
    }

    /// Returns the error for an index that is out of range.
    pub fn out_of_range(&self, index: i64) -> Error {
        Error::Index { path: self.name.clone(), index, rows: self.num_rows() }
    }

    pub(super) fn seed(&self) -> Seed {
        self.seed
    }

    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }

    pub(super) fn loader(&self) -> Loader<'_> {
        Loader { source: self.source(), schema: self.schema(), seed: self.seed }
    }

    pub(super) fn dictionaries(&self) -> impl Iterator<Item = &DictionaryEntry> {
        self.dictionaries.iter().map(|(entry, _)| entry)
    }

    /// Returns dictionary `number`, counted from 1, and reads it if need be.
    fn dictionary(&self, number: u16) -> Result<&compression::Dictionary> {
        let Some((entry, slot)) = self.dictionaries.get(usize::from(number) - 1) else {
            let why = format!("dictionary {number} of {}", self.dictionaries.len());
            return Err(self.source().corrupt(0, why));
        };
        if let Some(dictionary) = slot.get() {
            return Ok(dictionary);
        }
        let (block, crc) = self.source().dictionary(entry.offset, entry.len.into(), self.seed)?;
        let made = compression::Dictionary::new(&block.bytes).filter(|_| crc == entry.crc);
        let Some(made) = made else {
            let why = "dictionary is not the one that was committed";
            return Err(self.source().corrupt(entry.offset, why));
        };
        Ok(slot.get_or_init(|| made))
    }

    /// Calls `then` with the page of `row` and the row's number in it.
    pub(super) fn in_page<T>(
        &self,
        row: u64,
        then: impl FnOnce(&Page, u32) -> Result<T, Violation>,
    ) -> Result<T> {
        if row >= self.num_rows() {
            return Err(self.out_of_range(row as i64));
        }
        let page = self.pages.find(row);
        let local = (row - self.pages.first_row(page)) as u32;
        let found = self
            .pages
            .with(page, &self.loader(), |loaded| then(loaded, local))
            .map_err(|error| error.at_record(row))?;
        found.map_err(|why| self.page_error(page, row, why))
    }

    fn page_error(&self, page: usize, row: u64, why: Violation) -> Error {
        self.source().corrupt(self.pages.entries()[page].offset, why).at_record(row)
    }

    pub(super) fn describe(
        &self,
        page: &Page,
        row: u64,
        field: usize,
        cell: u32,
    ) -> Result<Cell, Violation> {
        let entry = page.cell(cell)?;
        let encoding = page.encoding(field);
        let codec = Codec::of(encoding.codec)
            .ok_or_else(|| Violation(format!("codec {} is unknown", encoding.codec)))?;
        Ok(Cell {
            row,
            offset: entry.offset,
            stored: entry.stored,
            raw: entry.raw,
            sum: Sum::Crc32c,
            before: self.seed.before_cell(page.first_cell + u64::from(cell)),
            crc: entry.crc,
            file: 0,
            codec,
            dictionary: encoding.dictionary,
            form: Form::Alone,
        })
    }

    pub(super) fn check_field(&self, field: usize, kind: FieldKind) -> Result<()> {
        match self.schema().fields().get(field) {
            Some(found) if found.kind == kind => Ok(()),
            Some(found) => Err(Error::Invalid(format!(
                "{}: field {:?} is of kind {:?}, not {kind:?}",
                self.name, found.name, found.kind
            ))),
            None => Err(Error::Invalid(format!("{}: there is no field {field}", self.name))),
        }
    }
}

impl Stored for Reader {
    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }

    fn decode(&self, cell: &Cell, stored: &[u8], value: &mut [u8]) -> Result<()> {
        let dictionary = match cell.dictionary {
            0 => None,
            number => Some(self.dictionary(number)?),
        };
        compression::decompress(cell.codec, dictionary, stored, value)
            .map_err(|failure| self.source().undecoded(cell.offset, failure))
    }
}

impl Container for Reader {
    fn num_rows(&self) -> u64 {
        self.pages.num_rows()
    }

    #[inline]
    fn find(&self, row: u64) -> Option<Result<Cell>> {
        let page = self.pages.find(row);
        let local = (row - self.pages.first_row(page)) as u32;
        let found = self.locate_in(&*self.pages.loaded(page)?, row, local, RECORD);
        Some(found.map_err(|why| self.page_error(page, row, why)))
    }

    fn missing(&self, rows: &[u64]) -> Vec<Missing<'_>> {
        self.pages.missing(rows, self.source())
    }

    fn load(&self, number: u64, bytes: Vec<u8>) -> Result<Pin> {
        Ok(self.pages.load(number as usize, bytes, &self.loader())?)
    }

    fn touch(&self, row: u64) {
        let page = self.pages.find(row);
        if let Some(loaded) = self.pages.loaded(page) {
            std::hint::black_box(loaded.touch(row - self.pages.first_row(page)));
        }
    }

    fn stats(&self) -> Stats {
        Reader::stats(self)
    }

    fn metadata(&self) -> &str {
        &self.header.metadata
    }

    fn fingerprint(&self) -> Result<Vec<u8>> {
        Ok(self.header.id.to_vec())
    }

    fn table(&self) -> Option<&dyn Table> {
        Some(self)
    }

    fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        Reader::verify(self, progress)
    }

    fn after_fork(&self) -> Arc<dyn Container> {
        let contents = Directory {
            pages: self.pages.entries().to_vec(),
            dictionaries: self.dictionaries().copied().collect(),
            header: Vec::new(),
        };
        let mut reader =
            Self::over(&self.storage, &self.name, &self.header, &contents, self.closed);
        reader.file_bytes = self.file_bytes;
        Arc::new(reader)
    }
}

/// The single field of a record file.
const RECORD: usize = 0;

/// Reads the directory of a closed file.
fn read_directory(source: Source<'_>, header: &Header, size: u64) -> Result<Directory> {
    let offset = size.saturating_sub(TRAILER_LEN as u64);
    if offset < header.bytes.len() as u64 {
        return Err(source.corrupt(offset, "not a trailer"));
    }
    let (trailer, _) = source.trailer(offset, header)?;
    if trailer.block.kind != BlockKind::Directory {
        return Err(source.corrupt(offset, "the last trailer does not close the file"));
    }
    source.directory(&trailer, header.seed())
}

/// Finds what is committed in a file that is not closed, or refuses it.
fn read_committed(
    source: Source<'_>,
    header: &Header,
    size: u64,
    mode: Mode,
    error: &Error,
    watch: &mut Watch<'_>,
) -> Result<Directory> {
    let last = chain::last_trailer(source, header, size, watch)?;
    let chain = last.map(|last| chain::walk(source, header, last, false, watch)).transpose();
    if mode == Mode::Whole {
        let (offset, reason) = match error {
            Error::Corrupt { offset, reason, .. } => (*offset, reason.clone()),
            other => (size, other.to_string()),
        };
        let rows = chain.ok().flatten().map_or(0, |chain| chain.rows());
        let (path, writing) = (source.name.to_owned(), has_writer(Path::new(source.name)));
        return Err(Error::Unfinished { path, rows, writing, offset, reason });
    }
    Ok(chain?.map_or_else(Directory::default, |chain| chain.contents))
}
