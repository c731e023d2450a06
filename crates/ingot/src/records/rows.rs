//! Rows of several fields, over one or more files.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use super::container::{Cell, Container, Stored, Table};
use super::fetch::{Files, check_growth};
use super::listing::Listed;
use super::open::Mode;
use super::sequence::{Sequence, in_file};
use crate::error::{Error, Result};
use crate::format::ingot::{FieldKind, Schema};

/// What is wanted of a field of some rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The field's place in the schema.
    pub field: usize,
    /// Of a sequence, the start, stop and step of the elements of each row; all if there are no
    /// ranges. A range that reaches past the end is cut there.
    pub elements: Option<Vec<(u64, u64, NonZeroUsize)>>,
}

/// What was found of a field of some rows.
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
    /// Returns where the values that must be fetched are.
    pub fn cells(&self) -> &[Cell] {
        match self {
            Found::Numbers(_) => &[],
            Found::Cells(cells) | Found::Elements(cells, _) => cells,
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
            return Err(Error::Invalid("no files to open".to_owned()));
        }
        table_of(&**files.open_file(0)?)?;
        Ok(Rows { files })
    }

    /// Returns the rows of files that are open.
    pub fn of(files: Arc<Sequence>) -> Result<Rows> {
        let mut first: Option<(&str, &Schema)> = None;
        for file in files.open_files()? {
            let schema = table_of(&**file)?.schema();
            let name = file.source().name;
            let (first, expected) = *first.get_or_insert((name, schema));
            if schema != expected {
                return Err(Error::format(
                    name,
                    format!("its fields differ from those of {first}"),
                ));
            }
        }
        if first.is_none() {
            return Err(Error::Invalid("no files to open".to_owned()));
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

    /// Finds what is asked of rows: numbers, and where other values are. What must be read for
    /// that is read together: parts of the index first, then lists of elements.
    pub fn find(&self, rows: &[u64], asks: &[Ask]) -> Result<Vec<Found>> {
        self.check(rows)?;
        let _pins = self.files.prepare(rows);
        let lists = self.lists(rows, asks)?;
        let mut lists = lists.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        asks.iter().map(|ask| self.find_field(rows, ask, &mut lists)).collect()
    }

    /// `lists` are those of all sequences that are left.
    fn find_field<'l>(
        &self,
        rows: &[u64],
        ask: &Ask,
        lists: &mut impl Iterator<Item = &'l [u8]>,
    ) -> Result<Found> {
        match self.kind(ask.field) {
            Some(FieldKind::Column) => self.numbers(rows, ask.field).map(Found::Numbers),
            Some(FieldKind::Sequence) => self.elements(rows, ask, lists),
            _ => self.cells(rows, ask.field).map(Found::Cells),
        }
    }

    fn kind(&self, field: usize) -> Option<FieldKind> {
        self.schema().fields().get(field).map(|field| field.kind)
    }

    /// Returns where field `field`, of kind cell, of each of `rows` is.
    fn cells(&self, rows: &[u64], field: usize) -> Result<Vec<Cell>> {
        let mut cells = Vec::with_capacity(rows.len());
        for &row in rows {
            let (file, local) = self.files.place(row);
            cells.push(in_file(self.table(file)?.locate_field(local, field), file, row)?);
        }
        Ok(cells)
    }

    /// Reads the lists of elements of all sequences that are asked for, of all rows, in one go.
    /// Lists that are not needed are empty, or left out behind the last.
    fn lists(&self, rows: &[u64], asks: &[Ask]) -> Result<Vec<Vec<u8>>> {
        let is_sequence = |ask: &&Ask| self.kind(ask.field) == Some(FieldKind::Sequence);
        let (mut cells, mut files, mut count) = (Vec::new(), BTreeMap::new(), 0);
        for ask in asks.iter().filter(is_sequence) {
            for &row in rows {
                let (file, local) = self.files.place(row);
                let list = self.table(file)?.list(local, ask.field);
                if let Some((cell, stored)) = list.map_err(|error| error.at_record(row))? {
                    files.insert(file as u32, stored);
                    cells.push((count, Cell { row, file: file as u32, ..cell }));
                }
                count += 1;
            }
        }
        if cells.is_empty() {
            return Ok(Vec::new());
        }
        let (numbers, cells): (Vec<usize>, Vec<Cell>) = cells.into_iter().unzip();
        check_growth(&files, &cells)?;
        let mut lists = vec![Vec::new(); count];
        for (&number, cell) in numbers.iter().zip(&cells) {
            files.file(cell.file).source().make_room(&mut lists[number], cell.raw)?;
        }
        let mut numbers = numbers.into_iter().peekable();
        let wanted = lists.iter_mut().enumerate().filter(|(k, _)| numbers.next_if_eq(k).is_some());
        let mut bufs: Vec<&mut [u8]> = wanted.map(|(_, list)| &mut list[..]).collect();
        let failed = files.fetch_each(&cells, &mut bufs).into_iter().min_by_key(|&(k, _)| k);
        match failed {
            Some((k, error)) => Err(self.table(cells[k].file as usize)?.unlisted(error)),
            None => Ok(lists),
        }
    }

    /// Returns where the wanted elements of a sequence of rows are, whose lists are next.
    fn elements<'l>(
        &self,
        rows: &[u64],
        ask: &Ask,
        lists: &mut impl Iterator<Item = &'l [u8]>,
    ) -> Result<Found> {
        let (mut cells, mut counts) = (Vec::new(), Vec::with_capacity(rows.len()));
        for (k, (&row, list)) in rows.iter().zip(lists).enumerate() {
            let (start, stop, step) = match &ask.elements {
                Some(ranges) => ranges[k],
                None => (0, u64::MAX, NonZeroUsize::MIN),
            };
            let (file, local) = self.files.place(row);
            let table = self.table(file)?;
            let found = table.num_elements(local, ask.field).and_then(|len| {
                let (start, stop) = (start.min(len), stop.min(len));
                table.locate_elements(local, ask.field, start..stop.max(start), list)
            });
            let found = found.map_err(|error| error.at_record(row))?.into_iter();
            let before = cells.len();
            let found = found.step_by(step.get());
            cells.extend(found.map(|cell| Cell { row, file: file as u32, ..cell }));
            counts.push((cells.len() - before) as u64);
        }
        Ok(Found::Elements(cells, counts))
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
        let mut sizes = Vec::with_capacity(rows.len());
        for some in rows.chunks(TOGETHER) {
            let _pins = self.files.prepare(some);
            sizes.extend(self.cells(some, field)?.iter().map(|cell| cell.raw));
        }
        Ok(sizes)
    }

    /// Returns the values of column `field` in all rows, from the index alone.
    pub fn column(&self, field: usize) -> Result<Vec<u8>> {
        let width = self.schema().fields().get(field).and_then(|field| field.width).unwrap_or(0);
        let bytes = self.num_rows().saturating_mul(width.into());
        let mut values = Vec::new();
        let room = values.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX));
        room.map_err(|_| Error::memory(self.files.name(), bytes))?;
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
    file.table().ok_or_else(|| Error::format(file.source().name, "its rows have no fields"))
}

impl Files for BTreeMap<u32, &dyn Stored> {
    fn file(&self, number: u32) -> &dyn Stored {
        self[&number]
    }
}

/// Fetches what was found in several data sets in one go: the values of each field into one
/// buffer, one after the other. `room` returns a buffer of at least this many bytes, if there is
/// memory for it.
pub fn fetch_found(
    parts: &[(&Rows, Vec<Found>)],
    mut room: impl FnMut(usize) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut together = Together { parts: Vec::with_capacity(parts.len()), ends: Vec::new() };
    let mut bases = Vec::with_capacity(parts.len());
    let mut buffers = Vec::with_capacity(parts.len());
    for (rows, found) in parts {
        check_growth(&*rows.files, found.iter().flat_map(Found::cells))?;
        bases.push(together.base_of(&rows.files));
        let lens = found.iter().map(|one| one.cells().iter().map(|cell| cell.raw).sum());
        let of_part = lens.map(|bytes: u64| {
            room(bytes as usize).ok_or_else(|| Error::memory(rows.files.name(), bytes))
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

/// The files of several data sets, numbered consecutively.
struct Together<'r> {
    parts: Vec<&'r Sequence>,
    ends: Vec<u32>,
}

impl<'r> Together<'r> {
    /// Returns the number of the first file of a data set, and adds it if it is new.
    fn base_of(&mut self, files: &'r Sequence) -> u32 {
        let known = self.parts.iter().position(|part| std::ptr::eq(*part, files));
        let place = known.unwrap_or(self.parts.len());
        let base = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        if known.is_none() {
            self.parts.push(files);
            self.ends.push(base + files.num_files() as u32);
        }
        base
    }
}

impl Files for Together<'_> {
    fn file(&self, number: u32) -> &dyn Stored {
        if let [files] = self.parts[..] {
            return files.file(number);
        }
        let part = self.ends.partition_point(|&end| end <= number);
        let base = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.parts[part].file(number - base)
    }
}
