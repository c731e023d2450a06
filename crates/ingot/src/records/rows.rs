//! Rows of several fields, over one or more Ingot files.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::container::{Cell, Container, Table};
use super::fetch::{Files, check_growth};
use super::listing::Listed;
use super::open::Mode;
use super::sequence::Sequence;
use crate::error::{Error, Result};
use crate::format::ingot::{FieldKind, Schema};
use crate::limit::has_memory;

/// What is wanted of a field of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The field's place in the schema.
    pub field: usize,
    /// Which elements of a sequence; all if there is no range. One that reaches past the
    /// end is cut there.
    pub elements: Option<Range<u64>>,
    /// Step between elements; 1 for all of them.
    pub step: NonZeroUsize,
}

/// What is wanted of a field of many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The field's place in the schema.
    pub field: usize,
    /// Of a sequence, which elements of each row, from where to where and every which; all if
    /// there are no ranges.
    pub elements: Option<Vec<(u64, u64, NonZeroUsize)>>,
}

/// What there is of a field in many rows.
#[derive(Debug)]
pub enum Found {
    /// The values of a column, one after the other.
    Numbers(Vec<u8>),
    /// Where each value is.
    Cells(Vec<Cell>),
    /// Where the elements of a sequence are, and how many there are of each row.
    Elements(Vec<Cell>, Vec<u64>),
}

impl Found {
    /// Returns where the values are that must be fetched.
    pub fn cells(&self) -> &[Cell] {
        match self {
            Found::Numbers(_) => &[],
            Found::Cells(cells) | Found::Elements(cells, _) => cells,
        }
    }
}

/// What there is of a field in one row.
#[derive(Debug)]
pub enum Part {
    /// The value of a column.
    Number(Vec<u8>),
    /// Where the value is.
    Cell(Cell),
    /// Where the elements of a sequence are.
    Elements(Vec<Cell>),
}

impl Part {
    /// Returns where the values are that must be fetched.
    pub fn cells(&self) -> &[Cell] {
        match self {
            Part::Number(_) => &[],
            Part::Cell(cell) => std::slice::from_ref(cell),
            Part::Elements(cells) => cells,
        }
    }
}

/// Files whose rows have the same fields, one after the other. A snapshot of what was there
/// when it was opened. Safe to use from several threads at once.
pub struct Rows {
    files: Arc<Sequence>,
}

impl Rows {
    /// Opens files by their paths.
    pub fn open(
        paths: &[impl AsRef<Path> + Sync],
        mode: Mode,
        watch: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Rows> {
        Rows::of(Arc::new(Sequence::open(paths, mode, true, watch)?))
    }

    /// Returns the rows of files that a list describes: they are opened when they are needed.
    pub fn listed(files: Vec<Listed>) -> Result<Rows> {
        let files = Arc::new(Sequence::listed(files)?);
        if files.num_files() == 0 {
            return Err(Error::Invalid("there are no files to open".to_owned()));
        }
        table_of(&**files.open_file(0)?)?;
        Ok(Rows { files })
    }

    /// Returns the rows of files that are open.
    pub fn of(files: Arc<Sequence>) -> Result<Rows> {
        let mut first: Option<(&str, &Schema)> = None;
        for file in files.open_files()? {
            let schema = table_of(&**file)?.schema();
            let (name, expected) = *first.get_or_insert((file.name(), schema));
            if schema != expected {
                return Err(Error::Format {
                    path: file.name().to_owned(),
                    reason: format!("its fields differ from those of {name}"),
                });
            }
        }
        if first.is_none() {
            return Err(Error::Invalid("there are no files to open".to_owned()));
        }
        Ok(Rows { files })
    }

    /// Returns the files.
    pub fn files(&self) -> &Sequence {
        &self.files
    }

    fn table(&self, file: usize) -> Result<&dyn Table> {
        table_of(&**self.files.open_file(file)?)
    }

    /// Returns the fields of a row.
    pub fn schema(&self) -> &Schema {
        self.table(0).expect("opened first").schema()
    }

    /// Number of rows.
    pub fn num_rows(&self) -> u64 {
        self.files.num_rows()
    }

    /// Returns the same rows for the child of a fork.
    #[must_use]
    pub fn after_fork(&self) -> Rows {
        Rows { files: Arc::new(self.files.after_fork()) }
    }

    fn check(&self, rows: &[u64]) -> Result<()> {
        match rows.iter().find(|&&row| row >= self.num_rows()) {
            Some(&row) => Err(self.files.out_of_range(row as i64)),
            None => Ok(()),
        }
    }

    /// Finds what is asked of rows: numbers, and where other values are. What must be read of
    /// the index for that is read in one go.
    pub fn find(&self, rows: &[u64], asks: &[Ask]) -> Result<Vec<Found>> {
        self.check(rows)?;
        let _pins = self.files.prepare(rows);
        asks.iter().map(|ask| self.find_field(rows, ask)).collect()
    }

    fn find_field(&self, rows: &[u64], ask: &Ask) -> Result<Found> {
        let kind = self.schema().fields().get(ask.field).map(|field| field.kind);
        if kind == Some(FieldKind::Column) {
            return self.numbers(rows, ask.field).map(Found::Numbers);
        }
        if kind != Some(FieldKind::Sequence) {
            let mut cells = Vec::with_capacity(rows.len());
            for &row in rows {
                let (file, local) = self.files.place(row);
                let found = self.table(file)?.locate_field(local, ask.field);
                cells.push(in_file(found, file, row)?);
            }
            return Ok(Found::Cells(cells));
        }
        let (mut cells, mut counts) = (Vec::new(), Vec::with_capacity(rows.len()));
        for (k, &row) in rows.iter().enumerate() {
            let range = ask.elements.as_ref().map(|ranges| ranges[k]);
            let elements = range.map(|(start, stop, _)| start..stop);
            let step = range.map_or(NonZeroUsize::MIN, |(_, _, step)| step);
            let wanted = Wanted { field: ask.field, elements, step };
            let before = cells.len();
            cells.extend(self.elements(row, &wanted)?);
            counts.push((cells.len() - before) as u64);
        }
        Ok(Found::Elements(cells, counts))
    }

    /// As [`Rows::find`], for one row.
    pub fn find_row(&self, row: u64, wanted: &[Wanted]) -> Result<Vec<Part>> {
        self.check(&[row])?;
        let _pins = self.files.prepare(&[row]);
        let (file, local) = self.files.place(row);
        let table = self.table(file)?;
        let mut parts = Vec::with_capacity(wanted.len());
        for one in wanted {
            let kind = table.schema().fields().get(one.field).map(|field| field.kind);
            parts.push(match kind {
                Some(FieldKind::Column) => self.numbers(&[row], one.field).map(Part::Number)?,
                Some(FieldKind::Sequence) => self.elements(row, one).map(Part::Elements)?,
                _ => in_file(table.locate_field(local, one.field), file, row).map(Part::Cell)?,
            });
        }
        Ok(parts)
    }

    /// Returns where the wanted elements of a sequence of a row are.
    fn elements(&self, row: u64, wanted: &Wanted) -> Result<Vec<Cell>> {
        let (file, local) = self.files.place(row);
        let table = self.table(file)?;
        let found = table.num_elements(local, wanted.field).and_then(|len| {
            let all = 0..len;
            let range = wanted.elements.as_ref().unwrap_or(&all);
            let range = range.start.min(len)..range.end.min(len);
            table.locate_elements(local, wanted.field, range.start..range.end.max(range.start))
        });
        let cells = found.map_err(|error| error.at_record(row))?.into_iter();
        let cells = cells.step_by(wanted.step.get());
        Ok(cells.map(|cell| Cell { row, file: file as u32, ..cell }).collect())
    }

    /// Returns how many elements sequence `field` has in each of `rows`.
    pub fn count(&self, rows: &[u64], field: usize) -> Result<Vec<u64>> {
        self.check(rows)?;
        let mut counts = Vec::with_capacity(rows.len());
        for some in rows.chunks(TOGETHER) {
            let _pins = self.files.prepare(some);
            for &row in some {
                let (file, local) = self.files.place(row);
                let count = self.table(file)?.num_elements(local, field);
                counts.push(count.map_err(|error| error.at_record(row))?);
            }
        }
        Ok(counts)
    }

    /// Returns how many bytes field `field`, of kind cell, has in each of `rows`.
    pub fn sizes(&self, rows: &[u64], field: usize) -> Result<Vec<u64>> {
        self.check(rows)?;
        let ask = Ask { field, elements: None };
        let mut sizes = Vec::with_capacity(rows.len());
        for some in rows.chunks(TOGETHER) {
            let _pins = self.files.prepare(some);
            sizes.extend(self.find_field(some, &ask)?.cells().iter().map(|cell| cell.raw));
        }
        Ok(sizes)
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
        for (k, file) in self.files.open_files()?.into_iter().enumerate() {
            let appended = table_of(&**file)?.append_column(field, &mut values);
            appended.map_err(|error| error.behind(self.files.first_row(k)))?;
        }
        Ok(values)
    }

    /// Returns the values of column `field` in each of `rows`.
    pub fn values(&self, rows: &[u64], field: usize) -> Result<Vec<u8>> {
        self.check(rows)?;
        let mut values = Vec::new();
        for some in rows.chunks(TOGETHER) {
            let _pins = self.files.prepare(some);
            values.extend(self.numbers(some, field)?);
        }
        Ok(values)
    }

    fn numbers(&self, rows: &[u64], field: usize) -> Result<Vec<u8>> {
        let mut values = Vec::new();
        for &row in rows {
            let (file, local) = self.files.place(row);
            let value = self.table(file)?.column_value(local, field, &mut values);
            value.map_err(|error| error.at_record(row))?;
        }
        Ok(values)
    }
}

/// Rows that are looked up together.
const TOGETHER: usize = 4096;

fn table_of(file: &dyn Container) -> Result<&dyn Table> {
    file.table().ok_or_else(|| Error::Format {
        path: file.name().to_owned(),
        reason: "its rows have no fields".to_owned(),
    })
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
}

/// Fetches what was found in several data sets in one go: the values of each field into one
/// buffer, one after the other. `room` gives a buffer of at least so many bytes, if there is
/// memory for it.
pub fn fetch_found(
    parts: &[(&Rows, Vec<Found>)],
    mut room: impl FnMut(usize) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut together = Together { parts: Vec::with_capacity(parts.len()), ends: Vec::new() };
    let mut bases = Vec::with_capacity(parts.len());
    let mut buffers = Vec::with_capacity(parts.len());
    for (rows, found) in parts {
        check_growth(*rows, found.iter().flat_map(Found::cells))?;
        bases.push(together.base_of(rows));
        let lens = found.iter().map(|one| one.cells().iter().map(|cell| cell.raw).sum());
        let of_part = lens.map(|bytes: u64| {
            let path = rows.files.name().to_owned();
            room(bytes as usize).ok_or(Error::Memory { path, record: None, bytes })
        });
        buffers.push(of_part.collect::<Result<Vec<Vec<u8>>>>()?);
    }
    let mut values: Vec<(Cell, &mut [u8])> = Vec::new();
    for (((_, found), buffers), base) in parts.iter().zip(&mut buffers).zip(bases) {
        for (one, buffer) in found.iter().zip(buffers) {
            let mut rest = &mut buffer[..];
            values.extend(one.cells().iter().map(|cell| {
                let value = rest.split_off_mut(..cell.raw as usize).expect("sized for all");
                (Cell { file: base + cell.file, ..*cell }, value)
            }));
        }
    }
    // Cells of a row are neighbours in the file.
    if !values.is_sorted_by_key(|(cell, _)| cell.row) {
        values.sort_by_key(|(cell, _)| cell.row);
    }
    let (cells, mut bufs): (Vec<Cell>, Vec<&mut [u8]>) = values.into_iter().unzip();
    together.fetch(&cells, &mut bufs)?;
    Ok(buffers)
}

/// The files of several data sets, numbered through.
struct Together<'r> {
    parts: Vec<&'r Rows>,
    ends: Vec<u32>,
}

impl<'r> Together<'r> {
    /// Returns the number of the first file of a data set; one that is here twice has one.
    fn base_of(&mut self, rows: &'r Rows) -> u32 {
        let known = self.parts.iter().position(|part| std::ptr::eq(*part, rows));
        let place = known.unwrap_or(self.parts.len());
        let base = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        if known.is_none() {
            self.parts.push(rows);
            self.ends.push(base + rows.files.num_files() as u32);
        }
        base
    }
}

impl Files for Together<'_> {
    fn file(&self, number: u32) -> &dyn Container {
        if let [rows] = self.parts[..] {
            return rows.file(number);
        }
        let part = self.ends.partition_point(|&end| end <= number);
        let base = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.parts[part].file(number - base)
    }
}
