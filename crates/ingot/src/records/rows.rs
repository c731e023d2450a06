//! Rows of several fields, over one or more Ingot files.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::container::{Cell, Container};
use super::fetch::Files;
use super::reader::{Mode, Reader};
use super::sequence::Sequence;
use crate::error::{Error, Result};
use crate::format::ingot::{FieldKind, Schema};
use crate::limit::has_memory;

/// What is wanted of a field of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The field's place in the schema; not a column.
    pub field: usize,
    /// Which elements of a sequence; all if there is no range. One that reaches past the
    /// end is cut there.
    pub elements: Option<Range<u64>>,
    /// Every which element of these; 1 for all of them.
    pub step: NonZeroUsize,
}

/// Files whose rows have the same fields, one after the other. A snapshot of what was there
/// when it was opened. Safe to use from several threads at once.
pub struct Rows {
    files: Arc<Sequence>,
}

impl Rows {
    /// Opens files by their paths.
    pub fn open(
        paths: &[impl AsRef<Path>],
        mode: Mode,
        watch: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Rows> {
        Rows::of(Arc::new(Sequence::open(paths, mode, true, watch)?))
    }

    /// Returns the rows of files that are open.
    pub fn of(files: Arc<Sequence>) -> Result<Rows> {
        let mut first: Option<&Reader> = None;
        for file in files.files() {
            let reader = file.as_any().downcast_ref::<Reader>().ok_or_else(|| Error::Format {
                path: file.name().to_owned(),
                reason: "its rows have no fields: it is not an Ingot file".to_owned(),
            })?;
            let expected = *first.get_or_insert(reader);
            if reader.schema() != expected.schema() {
                return Err(Error::Format {
                    path: reader.name().to_owned(),
                    reason: format!("its fields differ from those of {}", expected.name()),
                });
            }
        }
        if first.is_none() {
            return Err(Error::Invalid("there are no files to open".to_owned()));
        }
        Ok(Rows { files })
    }

    /// Returns the files.
    pub fn files(&self) -> &Arc<Sequence> {
        &self.files
    }

    fn reader(&self, file: usize) -> &Reader {
        self.files.files()[file].as_any().downcast_ref().expect("checked when it was opened")
    }

    /// Returns the fields of a row.
    pub fn schema(&self) -> &Schema {
        self.reader(0).schema()
    }

    /// Number of rows.
    pub fn num_rows(&self) -> u64 {
        self.files.num_rows()
    }

    /// Returns the same rows for the child of a fork.
    pub fn after_fork(&self) -> Result<Rows> {
        Rows::of(Arc::new(self.files.after_fork()))
    }

    fn check(&self, rows: &[u64]) -> Result<()> {
        match rows.iter().find(|&&row| row >= self.num_rows()) {
            Some(&row) => Err(self.files.out_of_range(row as i64)),
            None => Ok(()),
        }
    }

    /// Appends to `cells` where field `field`, of kind cell, of each of `rows` is.
    pub fn locate(&self, rows: &[u64], field: usize, cells: &mut Vec<Cell>) -> Result<()> {
        self.check(rows)?;
        self.files.prepare(rows);
        cells.reserve(rows.len());
        for &row in rows {
            let (file, local) = self.files.place(row);
            let found = self.reader(file).locate_field(local, field);
            cells.push(in_file(found, file, row)?);
        }
        Ok(())
    }

    /// Returns where the wanted elements of a sequence, or the one cell of another field, of
    /// a row are.
    pub fn locate_wanted(&self, row: u64, wanted: &Wanted) -> Result<Vec<Cell>> {
        self.check(&[row])?;
        let (file, local) = self.files.place(row);
        let reader = self.reader(file);
        let is_sequence = reader
            .schema()
            .fields()
            .get(wanted.field)
            .is_some_and(|field| field.kind == FieldKind::Sequence);
        if !is_sequence {
            return Ok(vec![in_file(reader.locate_field(local, wanted.field), file, row)?]);
        }
        let found = reader.num_elements(local, wanted.field).and_then(|len| {
            let all = 0..len;
            let range = wanted.elements.as_ref().unwrap_or(&all);
            let range = range.start.min(len)..range.end.min(len);
            reader.locate_elements(local, wanted.field, range.start..range.end.max(range.start))
        });
        let cells = found.map_err(|error| error.at_record(row))?.into_iter();
        let cells = cells.step_by(wanted.step.get());
        Ok(cells.map(|cell| Cell { row, file: file as u32, ..cell }).collect())
    }

    /// Returns how many elements sequence `field` has in each of `rows`.
    pub fn count(&self, rows: &[u64], field: usize) -> Result<Vec<u64>> {
        self.check(rows)?;
        self.files.prepare(rows);
        rows.iter()
            .map(|&row| {
                let (file, local) = self.files.place(row);
                let count = self.reader(file).num_elements(local, field);
                count.map_err(|error| error.at_record(row))
            })
            .collect()
    }

    /// Returns the values of column `field` in all rows, from the index alone.
    pub fn column(&self, field: usize) -> Result<Vec<u8>> {
        let width = self.schema().fields().get(field).and_then(|field| field.width).unwrap_or(0);
        let bytes = self.num_rows().saturating_mul(width.into());
        // The column, that of a file, and the pages they come from.
        if !has_memory(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(3)) {
            return Err(Error::Memory { path: self.files.name().to_owned(), record: None, bytes });
        }
        let mut values = Vec::new();
        for file in 0..self.files.files().len() {
            values.extend(self.reader(file).column(field)?);
        }
        Ok(values)
    }

    /// Returns the values of column `field` in each of `rows`.
    pub fn values(&self, rows: &[u64], field: usize) -> Result<Vec<u8>> {
        self.check(rows)?;
        self.files.prepare(rows);
        let mut values = Vec::new();
        for &row in rows {
            let (file, local) = self.files.place(row);
            let value = self.reader(file).column_value(local, field, &mut values);
            value.map_err(|error| error.at_record(row))?;
        }
        Ok(values)
    }
}

fn in_file(found: Result<Cell>, file: usize, row: u64) -> Result<Cell> {
    match found {
        Ok(cell) => Ok(Cell { row, file: file as u32, ..cell }),
        Err(error) => Err(error.at_record(row)),
    }
}

impl Files for Rows {
    fn file(&self, number: u32) -> &dyn Container {
        self.files.file(number)
    }

    fn is_warm(&self) -> bool {
        self.files.is_warm()
    }
}
