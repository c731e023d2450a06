//! A record file, open for reading.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::chain;
use super::contents::{self, Front, Source};
use super::fetch::Cell;
use super::pages::{Loader, Pages};
use crate::compression::{self, Codec};
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::checksum::Seed;
use crate::format::ingot::{
    BlockKind, DictionaryEntry, Directory, FieldKind, Header, Page, Schema, TRAILER_LEN,
};
use crate::process;
use crate::storage::ReadAt;

/// What to do with a file that does not end in a closing trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Refuse it.
    Whole,
    /// Read the rows that are committed.
    Partial,
}

/// Figures about a file, from its directory alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// Rows.
    pub rows: u64,
    /// Cells of all rows.
    pub cells: u64,
    /// Bytes of the whole file.
    pub file_bytes: u64,
    /// Bytes of the index pages.
    pub index_bytes: u64,
    /// Number of index pages.
    pub pages: u64,
    /// Number of compression dictionaries.
    pub dictionaries: u64,
    /// Bytes of the compression dictionaries.
    pub dictionary_bytes: u64,
    /// Whether the file ends in a closing trailer.
    pub closed: bool,
}

/// A record file, open for reading: a snapshot of what was committed when it was
/// opened. Safe to use from several threads at once, and in the child of a fork.
pub struct Reader {
    storage: Arc<dyn ReadAt>,
    name: String,
    header: Header,
    seed: Seed,
    file_bytes: u64,
    closed: bool,
    generation: u64,
    pages: Pages,
    dictionaries: Vec<(DictionaryEntry, OnceLock<compression::Dictionary>)>,
}

impl Reader {
    /// Opens a file. Costs the header, the trailer and the directory, whatever the
    /// size of the file; `name` is what errors call it.
    pub fn open(storage: Arc<dyn ReadAt>, name: &str, mode: Mode) -> Result<Self> {
        let source = Source { storage: &*storage, name };
        let size = source.size()?;
        let header = match contents::read_header(source, size)? {
            Front::Header(header) => header,
            Front::Torn => {
                return Err(Error::Unfinished {
                    path: name.to_owned(),
                    rows: 0,
                    offset: size,
                    reason: "the file ends inside its header".to_owned(),
                });
            }
        };
        let (directory, closed) = match read_directory(source, &header, size) {
            Ok(directory) => (directory, true),
            Err(error @ Error::Storage { .. }) => return Err(error),
            Err(error) => (read_committed(source, &header, size, mode, &error)?, false),
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
            generation: process::generation(),
            pages: Pages::new(contents.pages.clone()),
            dictionaries,
        }
    }

    /// Returns a reader of the same snapshot for the child of a fork: locks that a thread
    /// of the parent held at that moment would never be released here.
    #[must_use]
    pub fn after_fork(&self) -> Self {
        let contents = Directory {
            pages: self.pages.entries().to_vec(),
            dictionaries: self.dictionaries().copied().collect(),
            header: Vec::new(),
        };
        let mut reader =
            Self::over(&self.storage, &self.name, &self.header, &contents, self.closed);
        reader.file_bytes = self.file_bytes;
        reader
    }

    /// The process generation this reader was made in; see [`process::generation`].
    pub fn generation(&self) -> u64 {
        self.generation
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
        if rows.len() > 1 {
            self.prepare(rows);
        }
        cells.reserve(rows.len());
        for (k, &row) in rows.iter().enumerate() {
            self.touch(rows, k);
            cells.push(self.locate_one(row, field)?);
        }
        Ok(())
    }

    /// Returns where field `field`, of kind cell, of `row` is. Both must exist.
    pub fn locate_one(&self, row: u64, field: usize) -> Result<Cell> {
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

    /// As [`Reader::locate_one`], but returns `None` instead of reading from the storage.
    pub fn locate_loaded(&self, row: u64, field: usize) -> Option<Result<Cell>> {
        let page = self.pages.find(row);
        let local = (row - self.pages.first_row(page)) as u32;
        let found = self.locate_in(self.pages.loaded(page)?, row, local, field);
        Some(found.map_err(|why| self.page_error(page, row, why)))
    }

    /// Returns where the elements `range` of sequence `field` of `row` are: one
    /// contiguous range of the file. A range that reaches past the end is an error.
    pub fn locate_elements(&self, row: u64, field: usize, range: Range<u64>) -> Result<Vec<Cell>> {
        self.check_field(field, FieldKind::Sequence)?;
        let len = self.num_elements(row, field)?;
        if range.start > range.end || range.end > len {
            return Err(Error::Invalid(format!(
                "{}: record {row} has {len} elements, not {} to {}",
                self.name, range.start, range.end
            )));
        }
        self.in_page(row, |page, local| {
            let cells = page.cells_of(self.schema(), local, field)?;
            let start = u64::from(cells.start);
            (start + range.start..start + range.end)
                .map(|cell| self.describe(page, row, field, cell as u32))
                .collect()
        })
    }

    /// Number of elements that sequence `field` has in `row`.
    pub fn num_elements(&self, row: u64, field: usize) -> Result<u64> {
        self.check_field(field, FieldKind::Sequence)?;
        self.in_page(
            row,
            |page, local| Ok(page.cells_of(self.schema(), local, field)?.len() as u64),
        )
    }

    /// Returns the values of column `field` for all rows, from the index pages alone.
    pub fn column(&self, field: usize) -> Result<Vec<u8>> {
        self.check_field(field, FieldKind::Column)?;
        let mut values = Vec::new();
        for page in 0..self.pages.entries().len() {
            let column = self
                .pages
                .with(page, &self.loader(), |page| page.column(self.schema(), field).to_vec())?;
            values.extend_from_slice(&column);
        }
        Ok(values)
    }

    /// Says that `cells` will be fetched soon; see [`ReadAt::announce`].
    pub fn announce(&self, cells: &[Cell]) -> bool {
        let ranges: Vec<Range<u64>> =
            cells.iter().map(|cell| cell.offset..cell.offset + cell.stored).collect();
        self.storage.announce(&ranges)
    }

    /// Says that `cell` is about to be fetched; see [`ReadAt::prefetch`].
    pub fn prefetch(&self, cell: &Cell) {
        self.storage.prefetch(cell.offset..cell.offset + cell.stored);
    }

    /// Returns the error for an index that no row has.
    pub fn out_of_range(&self, index: i64) -> Error {
        Error::Index { path: self.name.clone(), index, rows: self.num_rows() }
    }

    pub(super) fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
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

    /// Returns dictionary `number`, counted from 1, reading it if it is the first time.
    pub(super) fn dictionary(&self, number: u16) -> Result<&compression::Dictionary> {
        let Some((entry, slot)) = self.dictionaries.get(usize::from(number) - 1) else {
            let why = format!("dictionary {number} of {}", self.dictionaries.len());
            return Err(self.source().corrupt(0, Violation(why)));
        };
        if let Some(dictionary) = slot.get() {
            return Ok(dictionary);
        }
        let (block, crc) = self.source().dictionary(entry.offset, entry.len.into(), self.seed)?;
        let made = compression::Dictionary::new(&block.bytes).filter(|_| crc == entry.crc);
        let Some(made) = made else {
            let why = Violation("dictionary is not the one that was committed".to_owned());
            return Err(self.source().corrupt(entry.offset, why));
        };
        Ok(slot.get_or_init(|| made))
    }

    /// Calls `then` with the page of `row` and the row's number in it.
    fn in_page<T>(&self, row: u64, then: impl Fn(&Page, u32) -> Result<T, Violation>) -> Result<T> {
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
            number: page.first_cell + u64::from(cell),
            offset: entry.offset,
            stored: entry.stored,
            raw: entry.raw,
            crc: entry.crc,
            codec,
            dictionary: encoding.dictionary,
        })
    }

    /// Tells the processor which index entries are needed soon, when row `k` of `rows`, all
    /// of which must exist, is about to be located: it fetches several at a time.
    #[inline]
    pub fn touch(&self, rows: &[u64], k: usize) {
        const AHEAD: usize = 8;
        if !k.is_multiple_of(AHEAD) {
            return;
        }
        let first = if k == 0 { 0 } else { k + AHEAD };
        let mut touched = 0;
        for &row in rows.iter().take(k + 2 * AHEAD).skip(first) {
            let page = self.pages.find(row);
            if let Some(loaded) = self.pages.loaded(page) {
                touched ^= loaded.touch(row - self.pages.first_row(page));
            }
        }
        std::hint::black_box(touched);
    }

    /// Loads the index pages of rows, which must exist, in one go.
    pub fn prepare(&self, rows: &[u64]) {
        let pages = rows.iter().map(|&row| self.pages.find(row));
        let mut missing: Vec<usize> =
            pages.filter(|&page| self.pages.loaded(page).is_none()).collect();
        if !missing.is_empty() {
            self.pages.prepare(&mut missing, &self.loader());
        }
    }

    fn check_field(&self, field: usize, kind: FieldKind) -> Result<()> {
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

/// Reads the directory of a closed file.
fn read_directory(source: Source<'_>, header: &Header, size: u64) -> Result<Directory> {
    let offset = size.saturating_sub(TRAILER_LEN as u64);
    if offset < header.bytes.len() as u64 {
        return Err(source.corrupt(offset, Violation("no trailer".to_owned())));
    }
    let (trailer, _) = source.trailer(offset, header)?;
    if trailer.block.kind != BlockKind::Directory {
        let why = Violation("the last trailer does not close the file".to_owned());
        return Err(source.corrupt(offset, why));
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
) -> Result<Directory> {
    let last = chain::last_trailer(source, header, size)?;
    let chain = last.map(|last| chain::walk(source, header, last, false)).transpose();
    if mode == Mode::Whole {
        let (offset, reason) = match error {
            Error::Corrupt { offset, reason, .. } => (*offset, reason.clone()),
            other => (size, other.to_string()),
        };
        let rows = chain.ok().flatten().map_or(0, |chain| chain.rows());
        return Err(Error::Unfinished { path: source.name.to_owned(), rows, offset, reason });
    }
    Ok(chain?.map_or_else(Directory::default, |chain| chain.contents))
}
