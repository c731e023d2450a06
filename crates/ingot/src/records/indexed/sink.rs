//! Writing an index, row by row.

use std::collections::HashMap;
use std::fmt::Display;

use super::entry::{Place, Width, row_entry};
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::foreign::Coding;
use crate::format::foreign::kind::Kind;
use crate::format::foreign::number::Given;
use crate::format::ingot::{Field, FieldKind};
use crate::limit;
use crate::records::ingot::{Value, Writer};

/// Takes what a layout finds in a file, and writes it to the index.
pub struct Sink<'a> {
    writer: &'a mut Writer,
    name: &'a str,
    kinds: Vec<Option<Kind>>,
    width: Width,
    /// What the index says of each field of this row.
    values: Vec<Vec<u8>>,
    seen: Vec<bool>,
    /// Fields that this row has named, with a value or without.
    met: Vec<bool>,
    offset: u64,
    rows: u64,
    /// Whether a row was too large for narrow entries.
    pub is_too_narrow: bool,
    /// Whether a value that no field takes is an error.
    pub is_strict: bool,
    /// Bytes that the index may have.
    pub max_bytes: u64,
    /// Bytes that it has.
    bytes: u64,
    /// Lines that are not rows, before this one.
    pub skipped: u64,
    /// How rows are counted in errors: a line is number 1 if it is the first.
    unit: &'static str,
}

impl<'a> Sink<'a> {
    /// Returns a sink for rows of `fields`; `name` is what errors call the data.
    pub fn new(
        writer: &'a mut Writer,
        name: &'a str,
        fields: &[Field],
        width: Width,
        unit: &'static str,
    ) -> Sink<'a> {
        let (values, seen) = (vec![Vec::new(); fields.len()], vec![false; fields.len()]);
        let kinds = Kind::of_fields(fields);
        Sink {
            writer,
            name,
            kinds,
            width,
            values,
            met: seen.clone(),
            seen,
            offset: 0,
            rows: 0,
            is_too_narrow: false,
            is_strict: false,
            max_bytes: u64::MAX,
            bytes: 0,
            skipped: 0,
            unit,
        }
    }

    /// Begins a row at an offset.
    pub fn begin(&mut self, offset: u64) {
        self.offset = offset;
        self.values.iter_mut().for_each(Vec::clear);
        self.seen.fill(false);
        self.met.fill(false);
    }

    /// Rejects a field that the row has named before.
    pub fn meet(&mut self, field: usize) -> Result<()> {
        if !std::mem::replace(&mut self.met[field], true) {
            return Ok(());
        }
        let name = &self.kind(field).name;
        Err(self.refuse(format!("two members are named {name:?}; rename one")))
    }

    /// Returns the numbers of the fields by their names; flags, which the sink fills, are left out.
    pub fn fields(&self) -> HashMap<String, usize> {
        let named = self.kinds.iter().zip(0..).filter_map(|(kind, k)| Some((kind.as_ref()?, k)));
        named.map(|(kind, k)| (kind.name.clone(), k)).collect()
    }

    /// Number of rows that were ended.
    pub fn num_rows(&self) -> u64 {
        self.rows
    }

    /// Returns what a field asks for.
    pub fn kind(&self, field: usize) -> &Kind {
        self.kinds[field].as_ref().expect("layouts fill fields, not flags")
    }

    /// Gives a column its number.
    pub fn number(&mut self, field: usize, given: Given) -> Result<()> {
        let kind = self.kinds[field].as_ref().expect("layouts fill fields, not flags");
        let number =
            kind.number.ok_or_else(|| Violation(format!("{} holds no numbers", kind.base)));
        self.values[field].clear();
        let put = number.and_then(|number| number.put(given, &mut self.values[field]));
        put.map_err(|why| self.misfit(field, &why))?;
        self.seen[field] = true;
        Ok(())
    }

    /// Gives a column the bytes of its number.
    pub fn column(&mut self, field: usize, bytes: &[u8]) {
        self.values[field].clear();
        self.values[field].extend_from_slice(bytes);
        self.seen[field] = true;
    }

    /// Gives a field its value, which is stored as `stored` at an offset.
    pub fn cell(&mut self, field: usize, offset: u64, stored: &[u8], coding: Coding) -> Result<()> {
        let place = self.placed(field, offset, stored, coding)?;
        self.place(field, place)
    }

    fn placed(&self, field: usize, offset: u64, stored: &[u8], coding: Coding) -> Result<Place> {
        let raw = if coding == Coding::RAW {
            stored.len()
        } else {
            coding.value(stored).map_err(|why| self.misfit(field, &why))?.len()
        };
        let crc = Sum::Crc32c.append(0, stored);
        Ok(Place { offset, stored: stored.len() as u64, raw: raw as u64, crc, coding })
    }

    /// As [`Sink::cell`], when the caller has summed the stored bytes.
    pub fn place(&mut self, field: usize, place: Place) -> Result<()> {
        self.check_len(field, place.raw)?;
        self.values[field].clear();
        self.put(field, &place)?;
        self.seen[field] = true;
        Ok(())
    }

    fn put(&mut self, field: usize, place: &Place) -> Result<()> {
        if self.width.put(place, self.offset, &mut self.values[field]).is_none() {
            self.is_too_narrow = true;
            return Err(self.misfit(field, "the row is too large for this index"));
        }
        Ok(())
    }

    /// Gives a field that is a sequence no element yet.
    pub fn sequence(&mut self, field: usize) {
        self.values[field].clear();
        self.seen[field] = true;
    }

    /// Adds an element to a sequence.
    pub fn element(
        &mut self,
        field: usize,
        offset: u64,
        stored: &[u8],
        coding: Coding,
    ) -> Result<()> {
        let place = self.placed(field, offset, stored, coding)?;
        self.check_len(field, place.raw)?;
        self.put(field, &place)
    }

    fn check_len(&self, field: usize, raw: u64) -> Result<()> {
        let kind = self.kind(field);
        let (Some(number), true) = (kind.number, kind.kind != FieldKind::Column) else {
            return Ok(());
        };
        let width = number.width() as u64;
        let fits = match kind.count {
            Some(count) => count.checked_mul(width) == Some(raw),
            None => raw.is_multiple_of(width),
        };
        if fits {
            return Ok(());
        }
        let numbers = raw / width;
        Err(self.misfit(field, format!("expected {}, found {numbers} numbers", kind.base)))
    }

    /// Ends the row: it has `len` bytes, with this checksum.
    pub fn end(&mut self, len: u64, crc: u32) -> Result<()> {
        for field in 0..self.kinds.len() {
            let Some(kind) = &self.kinds[field] else { continue };
            let (present, column) = (kind.present, kind.number.filter(|_| kind.is_column()));
            if let Some(flag) = present {
                self.column(flag, &[self.seen[field].into()]);
            } else if !self.seen[field] {
                return Err(self.misfit(field, "it has no value"));
            }
            if !self.seen[field] {
                match (column, kind_of(&self.kinds, field)) {
                    (Some(number), _) => self.values[field] = vec![0; number.width()],
                    (None, FieldKind::Cell) => self.put(field, &Place::NOWHERE)?,
                    _ => {}
                }
            }
        }
        let row = row_entry(self.offset, len, crc);
        let mut values = Vec::with_capacity(self.values.len() + 1);
        values.push(Value::Column(&row));
        values.extend(self.values.iter().zip(&self.kinds).map(|(value, kind)| match kind {
            Some(Kind { kind: FieldKind::Sequence, .. }) => Value::Cell(value),
            _ => Value::Column(value),
        }));
        self.bytes += self.values.iter().map(Vec::len).sum::<usize>() as u64 + row.len() as u64;
        if self.bytes > self.max_bytes {
            return Err(self.too_many());
        }
        self.writer.append_row(&values)?;
        self.rows += 1;
        Ok(())
    }

    /// Returns the error for a value that does not fit its field.
    #[cold]
    pub fn misfit(&self, field: usize, why: impl Display) -> Error {
        let kind = self.kind(field);
        let optional = if kind.present.is_some() { "?" } else { "" };
        let reason = format!(
            "{}: field {:?} is {}{optional}, but {why}; give ingot.open a spec that fits all rows",
            self.place_name(),
            kind.name,
            kind.base,
        );
        Error::format(self.name, reason)
    }

    #[cold]
    fn too_many(&self) -> Error {
        let reason = format!(
            "{}: the index of this file needs more than {} bytes, the limit for a file of this \
             size; give ingot.open a spec with fewer of its {} fields, or set {} to the bytes that \
             an index may have",
            self.place_name(),
            self.max_bytes,
            self.kinds.iter().flatten().count(),
            limit::MAX_INDEX_BYTES,
        );
        Error::format(self.name, reason)
    }

    /// Rejects a value without a field, unless users have chosen the fields.
    pub fn unknown(&self, name: &str) -> Result<()> {
        if !self.is_strict {
            return Ok(());
        }
        let why = format!(
            "{name:?} appears here for the first time; give ingot.open a spec, with this field \
             or without it"
        );
        Err(self.refuse(why))
    }

    /// Returns the error for a row.
    #[cold]
    pub fn refuse(&self, why: impl Display) -> Error {
        Error::format(self.name, format!("{}, offset {}: {why}", self.place_name(), self.offset))
    }

    fn place_name(&self) -> String {
        let first = u64::from(self.unit == "line");
        format!("{} {}", self.unit, self.rows + self.skipped + first)
    }
}

fn kind_of(kinds: &[Option<Kind>], field: usize) -> FieldKind {
    kinds[field].as_ref().map_or(FieldKind::Column, |kind| kind.kind)
}
