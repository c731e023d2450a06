//! The interface of all containers, whatever their bytes look like.

use std::ops::Range;
use std::sync::Arc;

use super::cache::Pin;
use super::live::Live;
use super::locate::Missing;
use super::source::Source;
use super::verification::Verification;
use crate::compression::Codec;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::Group;
use crate::format::foreign::Coding;
use crate::format::ingot::Schema;

/// How a value is encoded in the stored bytes of its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Stored as is, or compressed with the cell's codec.
    Alone,
    /// In a way of the container's own.
    Chunk,
    /// In a group of records that is decoded as a whole, [`Stored::group`], from this byte on.
    Part(u64),
    /// In the way of another format.
    Foreign(Coding),
}

/// Where a value is and how to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The row it belongs to.
    pub row: u64,
    /// Where its stored bytes begin.
    pub offset: u64,
    /// How many bytes are stored.
    pub stored: u64,
    /// How many bytes the value has.
    pub raw: u64,
    /// How the stored bytes are summed.
    pub sum: Sum,
    /// The checksum before the first of them.
    pub before: u32,
    /// The checksum after the last.
    pub crc: u32,
    /// Which file of a sequence it is in.
    pub file: u32,
    /// How the stored bytes are compressed, if `raw` differs from `stored`.
    pub codec: Codec,
    /// The dictionary, counted from 1; 0 for none.
    pub dictionary: u16,
    /// How the value is encoded.
    pub form: Form,
}

impl Cell {
    /// Returns a cell without a checksum of its own, in a range of the file.
    pub fn unsummed(row: u64, range: Range<u64>, raw: u64, form: Form) -> Cell {
        Cell {
            row,
            offset: range.start,
            stored: range.end - range.start,
            raw,
            sum: Sum::None,
            before: 0,
            crc: 0,
            file: 0,
            codec: Codec::None,
            dictionary: 0,
            form,
        }
    }

    /// Returns the cell of a missing value: it is empty, and there is nothing to read.
    pub(super) fn missing(row: u64) -> Cell {
        Cell::unsummed(row, 0..0, 0, Form::Alone)
    }

    /// Whether there is nothing to read, and nothing to verify.
    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        self.stored == 0 && self.sum == Sum::None && !self.is_encoded()
    }

    /// Whether the stored bytes differ from the value.
    pub fn is_encoded(&self) -> bool {
        self.raw != self.stored || self.form != Form::Alone
    }
}

/// A file that cells are stored in: its bytes, and how encoded cells are decoded.
pub trait Stored: Send + Sync {
    /// Returns where its bytes are, and what errors call it.
    fn source(&self) -> Source<'_>;

    /// Decodes the value of a cell from its stored bytes, which match the cell's checksum if it
    /// has one. Called for cells that are encoded, but not as a [`Form::Part`].
    fn decode(&self, cell: &Cell, _stored: &[u8], _value: &mut [u8]) -> Result<()> {
        Err(Error::Invalid(format!("{}: no encoded cell at {}", self.source().name, cell.offset)))
    }

    /// Returns the group that a cell of the form [`Form::Part`] is in.
    fn group(&self, cell: &Cell) -> Result<Arc<Group>> {
        Err(Error::Invalid(format!("{}: no group at {}", self.source().name, cell.offset)))
    }
}

/// An open file of records: says where each is. Safe to use from several threads at once.
///
/// Parts of its index may not be in memory. Nothing here reads them: [`Container::missing`]
/// names them, [`Container::load`] takes their bytes; see [`locate`](super::locate).
pub trait Container: Stored {
    /// Number of records.
    fn num_rows(&self) -> u64;

    /// Returns where record `row`, which must exist, is; `None` if parts of the index that are
    /// not loaded are needed for that.
    fn find(&self, row: u64) -> Option<Result<Cell>>;

    /// Returns parts of the index that must be loaded before the records at `rows`, which must
    /// exist, can be found. For one row that is not found there is at least one.
    fn missing(&self, _rows: &[u64]) -> Vec<Missing<'_>> {
        Vec::new()
    }

    /// Loads a missing part from its bytes. It stays in memory for as long as the pin is held.
    fn load(&self, number: u64, _bytes: Vec<u8>) -> Result<Pin> {
        Err(Error::Invalid(format!("{}: no part {number} to load", self.source().name)))
    }

    /// Says that record `row`, which must exist, will be looked for soon. Does not wait.
    fn touch(&self, _row: u64) {}

    /// Returns the fields of its rows, if they have fields.
    fn table(&self) -> Option<&dyn Table> {
        None
    }

    /// Returns figures about the file.
    fn stats(&self) -> Stats;

    /// Returns the user's metadata as JSON.
    fn metadata(&self) -> &str {
        "{}"
    }

    /// Returns what is particular to the format, as JSON.
    fn info(&self) -> String {
        "{}".to_owned()
    }

    /// Returns a few bytes that differ between files, and between a file and its successor. A
    /// copy of the file has the same.
    fn fingerprint(&self) -> Result<Vec<u8>>;

    /// Reads every byte and checks every checksum. `progress` is called with the records
    /// done and may stop the work by returning an error.
    fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification>;

    /// Returns the same file for the child of a fork: locks that a thread of the parent
    /// held at that moment would never be released here.
    fn after_fork(&self) -> Arc<dyn Container>;
}

/// Rows of fields: says where the values of each are. Fields are named by their place in the
/// schema; a field of another kind than is asked for is an error.
pub trait Table: Send + Sync {
    /// Returns the fields.
    fn schema(&self) -> &Schema;

    /// Returns where field `field` of `row`, which must be of kind cell, is.
    fn locate_field(&self, row: u64, field: usize) -> Result<Cell>;

    /// Returns where the list of the elements of sequence `field` of `row` is, and the file that
    /// holds it, if that list must be read to locate them.
    fn list(&self, _row: u64, _field: usize) -> Result<Option<(Cell, &dyn Stored)>> {
        Ok(None)
    }

    /// Returns what becomes of an error of reading a [`Table::list`].
    fn unlisted(&self, error: Error) -> Error {
        error
    }

    /// Returns where the elements `range` of sequence `field` of `row` are: one contiguous range
    /// of the file. A range that reaches past the end is an error. `list` is the content of the
    /// list, empty if there is none.
    fn locate_elements(
        &self,
        row: u64,
        field: usize,
        range: Range<u64>,
        list: &[u8],
    ) -> Result<Vec<Cell>>;

    /// Number of elements that sequence `field` has in `row`.
    fn num_elements(&self, row: u64, field: usize) -> Result<u64>;

    /// Appends the value of column `field` in `row` to `values`.
    fn column_value(&self, row: u64, field: usize, values: &mut Vec<u8>) -> Result<()>;

    /// Appends the values of column `field` in consecutive rows, which must exist, or in those of
    /// them that are live, to `values`; many pages are read at a time, and none without a live row.
    /// The error of a bad page names its first row.
    fn append_column(
        &self,
        field: usize,
        rows: Range<u64>,
        live: Option<&Live>,
        values: &mut Vec<u8>,
    ) -> Result<()>;
}

/// Figures about a file, from its directory alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

impl Stats {
    /// Returns the figures of a whole file of records without fields.
    pub(super) fn of_records(rows: u64, file_bytes: u64, index_bytes: u64) -> Stats {
        let (cells, pages, closed) = (rows, 1, true);
        Stats { rows, cells, file_bytes, index_bytes, pages, closed, ..Stats::default() }
    }

    /// Returns the figures of two files together.
    pub(super) fn and(&self, other: &Stats) -> Stats {
        Stats {
            rows: self.rows + other.rows,
            cells: self.cells + other.cells,
            file_bytes: self.file_bytes + other.file_bytes,
            index_bytes: self.index_bytes + other.index_bytes,
            pages: self.pages + other.pages,
            dictionaries: self.dictionaries + other.dictionaries,
            dictionary_bytes: self.dictionary_bytes + other.dictionary_bytes,
            closed: self.closed && other.closed,
        }
    }
}
