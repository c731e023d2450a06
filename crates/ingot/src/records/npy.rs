//! Arrays in `.npy` files, and in `.npz` files that are not compressed: rows along the first
//! axis. No index is needed: every row has the same size.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::container::{Cell, Container, Form, Stats, Stored, Table};
use super::derived::{Change, Places, Stamp};
use super::live::Live;
use super::open::{Format, reading};
use super::source::{Source, Watch};
use super::verification::{Damage, Verification, verify_records};
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::foreign::kind::field;
use crate::format::foreign::npy::{HEAD_MAX, Head, Refusal};
use crate::format::ingot::{FieldKind, Schema};
use crate::storage::{Location, ReadAt};

/// `.npy` files.
pub static FORMAT: Format = Format {
    name: "npy",
    title: "an .npy file",
    suffixes: &[".npy"],
    is_checked: false,
    begins: |front| front.starts_with(b"\x93NUMPY"),
    open: |opening, _| {
        let size = opening.storage.size().unwrap_or(0);
        let arrays = vec![Array { name: ARRAY.to_owned(), start: 0, len: size, crc: None }];
        Ok(Arc::new(Npy::open(opening.location, opening.storage, arrays)?))
    },
};

/// The field of an `.npy` file.
pub const ARRAY: &str = "array";

/// Rows that a file may have without a byte in any of them.
const EMPTY_ROWS_MAX: u64 = 1 << 24;

/// An array in a file.
#[derive(Debug, Clone)]
pub struct Array {
    /// What the field is called.
    pub name: String,
    /// Where its `.npy` file begins.
    pub start: u64,
    /// How many bytes that has.
    pub len: u64,
    /// The CRC-32 of these bytes, where one is stored.
    pub crc: Option<u32>,
}

/// A file of no more bytes is verified whenever it is opened. A larger one is verified once, and
/// that is remembered until it is written to.
const VERIFIED: u64 = 1 << 20;

/// Bytes that are verified at a time.
const STEP: u64 = 4 << 20;

/// What is remembered of a file whose arrays were verified.
#[derive(Debug, Serialize, Deserialize)]
struct Verified {
    arrays: u32,
    data: Stamp,
}

/// The version of that note.
const VERSION: u32 = 1;

/// Arrays of one file, row by row.
#[derive(Clone)]
pub struct Npy {
    storage: Arc<dyn ReadAt>,
    name: String,
    size: u64,
    rows: u64,
    schema: Schema,
    /// Where each field begins, and how many bytes it has in a row.
    places: Vec<(u64, u64)>,
    arrays: Vec<Array>,
    stamp: Stamp,
}

impl Npy {
    /// Opens the arrays of a file. Their checksums are verified by [`Npy::open_path`] and
    /// [`Container::verify`] alone.
    pub fn open(location: &Location, storage: Arc<dyn ReadAt>, arrays: Vec<Array>) -> Result<Npy> {
        let name = location.name();
        let source = Source { storage: &*storage, name: &name };
        let size = source.size()?;
        let stamp = Stamp::of(source)?;
        let (mut places, mut fields) = (Vec::new(), Vec::new());
        let mut rows: Option<(u64, String)> = None;
        for Array { name: array, start, len, .. } in &arrays {
            let (start, len) = (*start, *len);
            let refused = |why: &str| source.corrupt(start, format!("{array}: {why}"));
            if start.checked_add(len).is_none_or(|end| end > size) {
                return Err(refused("the array reaches past the end of the file"));
            }
            let front = source.read(start, len.min(HEAD_MAX as u64 + 16))?;
            let unusable = |why: &str| Error::format(&name, format!("{array}: {why}"));
            let head = Head::decode(&front).map_err(|refusal| match refusal {
                Refusal::Damaged(why) => refused(&why.0),
                Refusal::Elements(why) => unusable(&why.0),
            })?;
            let needed = head.len().and_then(|bytes| bytes.checked_add(head.start as u64));
            if needed.is_none_or(|needed| needed > len) {
                return Err(refused("the file ends inside the array"));
            }
            if head.is_swapped {
                let why = "only little-endian arrays can be read in place; save \
                           array.astype(array.dtype.newbyteorder(\"<\"))";
                return Err(unusable(why));
            }
            if head.is_fortran && head.shape.len() > 1 {
                let why = "only arrays in C order can be read in place; save \
                           numpy.ascontiguousarray(array)";
                return Err(unusable(why));
            }
            let Some((&count, shape)) = head.shape.split_first() else {
                return Err(unusable("the array has no axis, so it has no rows"));
            };
            match &rows {
                Some((known, other)) if *known != count => {
                    return Err(unusable(&format!("it has {count} rows, but {other} has {known}")));
                }
                _ => rows = Some((count, array.clone())),
            }
            let lengths: String = shape.iter().map(|length| format!(",{length}")).collect();
            fields.push(field(array, &format!("array({}{lengths})", head.number.name()), false));
            let elements = shape.iter().product::<u64>();
            places.push((start + head.start as u64, elements * head.number.width() as u64));
        }
        let schema = Schema::new(fields).map_err(|why| Error::format(&name, why.0))?;
        let rows = rows.map_or(0, |(rows, _)| rows);
        if rows > EMPTY_ROWS_MAX && places.iter().all(|&(_, len)| len == 0) {
            return Err(source.corrupt(0, format!("{rows} rows have no bytes")));
        }
        Ok(Npy { storage, name, size, rows, schema, places, arrays, stamp })
    }

    /// Opens the arrays of the file at a path, and verifies their checksums unless that was done
    /// since the file was written; a note in `folder`, or in the usual places, remembers that.
    pub fn open_path(
        path: &Path,
        arrays: Vec<Array>,
        folder: Option<&Path>,
        watch: &mut Watch<'_>,
    ) -> Result<Npy> {
        let location = Location::from(path);
        let opened = Npy::open(&location, reading(&location)?, arrays)?;
        if opened.arrays.iter().all(|array| array.crc.is_none()) {
            return Ok(opened);
        }
        let notes = Places::of(&location, "arrays", "sum", folder);
        if opened.size > VERIFIED {
            for known in notes.notes::<Verified>().filter(|known| known.arrays == VERSION) {
                match opened.stamp.since(&known.data) {
                    Change::Same => return Ok(opened),
                    Change::Damaged(offset) => {
                        let why = "these bytes differ from those that were verified, although the \
                                   file was not written to: it is damaged; copy it again";
                        return Err(opened.source().corrupt(offset, why.to_owned()));
                    }
                    Change::Unsure | Change::Changed => {}
                }
            }
        }
        for array in &opened.arrays {
            opened.verify_array(array, watch)?;
        }
        if opened.size > VERIFIED {
            notes.save_note(&Verified { arrays: VERSION, data: opened.stamp.clone() });
        }
        Ok(opened)
    }

    /// Reads all bytes of an array. Fails if they do not have the checksum that is stored.
    fn verify_array(&self, array: &Array, watch: &mut Watch<'_>) -> Result<()> {
        let Some(expected) = array.crc else { return Ok(()) };
        let (source, mut crc, mut buffer) = (self.source(), 0, Vec::new());
        let end = array.start + array.len;
        for start in (array.start..end).step_by(STEP as usize) {
            watch()?;
            let len = STEP.min(end - start);
            source.make_room(&mut buffer, len)?;
            source.read_into(start, &mut buffer[..len as usize])?;
            crc = Sum::Crc32.append(crc, &buffer[..len as usize]);
        }
        if crc == expected {
            return Ok(());
        }
        let why = format!(
            "{}: its checksum is {crc:08x}, but the archive lists {expected:08x}: the array is \
             damaged; copy the file again",
            array.name
        );
        Err(source.corrupt(array.start, why))
    }

    fn range(&self, row: u64, field: usize) -> Result<Range<u64>> {
        let place = self.places.get(field).filter(|_| row < self.rows);
        let &(base, len) = place.ok_or_else(|| {
            let (path, index, rows) = (self.name.clone(), row as i64, self.rows);
            Error::Index { path, index, rows }
        })?;
        Ok(base + row * len..base + (row + 1) * len)
    }
}

impl Stored for Npy {
    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }
}

impl Container for Npy {
    fn num_rows(&self) -> u64 {
        self.rows
    }

    fn find(&self, row: u64) -> Option<Result<Cell>> {
        Some(self.locate_field(row, 0))
    }

    fn stats(&self) -> Stats {
        let cells = self.rows * self.places.len() as u64;
        Stats { rows: self.rows, cells, file_bytes: self.size, closed: true, ..Stats::default() }
    }

    fn fingerprint(&self) -> Result<Vec<u8>> {
        Ok(self.stamp.content())
    }

    fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        let mut found = verify_records(self, progress)?;
        for array in &self.arrays {
            let outcome = self.verify_array(array, &mut || progress(self.rows));
            match outcome {
                Ok(()) => {}
                Err(error @ (Error::Corrupt { .. } | Error::Storage { .. })) => {
                    found.damaged.push(Damage::of(&error, 0..self.rows, array.start));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn table(&self) -> Option<&dyn Table> {
        Some(self)
    }

    fn after_fork(&self) -> Arc<dyn Container> {
        Arc::new(self.clone())
    }
}

impl Table for Npy {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn locate_field(&self, row: u64, field: usize) -> Result<Cell> {
        let range = self.range(row, field)?;
        let len = range.end - range.start;
        Ok(Cell::unsummed(row, range, len, Form::Alone))
    }

    fn locate_elements(
        &self,
        row: u64,
        field: usize,
        _range: Range<u64>,
        _list: &[u8],
    ) -> Result<Vec<Cell>> {
        Err(self.no_sequence(row, field))
    }

    fn num_elements(&self, row: u64, field: usize) -> Result<u64> {
        Err(self.no_sequence(row, field))
    }

    fn column_value(&self, row: u64, field: usize, values: &mut Vec<u8>) -> Result<()> {
        let range = self.range(row, field)?;
        let start = values.len();
        values.resize(start + (range.end - range.start) as usize, 0);
        self.source().read_into(range.start, &mut values[start..])
    }

    fn append_column(
        &self,
        field: usize,
        rows: Range<u64>,
        live: Option<&Live>,
        values: &mut Vec<u8>,
    ) -> Result<()> {
        let mut append = |rows: Range<u64>| {
            if rows.is_empty() {
                return Ok(());
            }
            let (first, last) = (self.range(rows.start, field)?, self.range(rows.end - 1, field)?);
            let start = values.len();
            let source = self.source();
            source.make_room(values, start as u64 + last.end - first.start)?;
            source.read_into(first.start, &mut values[start..])
        };
        match live {
            None => append(rows),
            Some(live) => live.runs(rows).try_for_each(append),
        }
    }
}

impl Npy {
    fn no_sequence(&self, row: u64, field: usize) -> Error {
        let kind = self.schema.fields().get(field).map_or(FieldKind::Cell, |field| field.kind);
        Error::Invalid(format!("{}: row {row}: field {field} is of kind {kind:?}", self.name))
    }
}
