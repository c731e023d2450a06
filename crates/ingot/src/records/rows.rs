//! Rows of several fields, over one or more files.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::container::{Cell, Container, Stored, Table};
use super::fetch::{Files, check_growth};
use super::listing::Listed;
use super::open::Mode;
use super::sequence::{Sequence, in_file};
use super::shards::Spot;
use super::stack::Stack;
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

/// Shards whose rows have the same fields, one after the other. A snapshot of what was there when
/// it was opened. Safe to use from several threads at once.
///
/// A field that is optional may be missing in a whole shard: its values are zeros, empty cells, and
/// sequences without elements, and nothing is read for them.
pub struct Rows {
    files: Arc<Sequence>,
    schema: Arc<Schema>,
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

    /// Returns the rows of shards that a list describes: they are opened when they are needed.
    /// Their fields are those of `schema`, or else those of the first file, which all others must
    /// have then.
    pub fn listed(shards: Vec<Listed>, schema: Option<Schema>) -> Result<Rows> {
        let files = Arc::new(Sequence::listed(shards, schema)?);
        if files.num_files() == 0 {
            return Err(Error::Invalid("no files to open".to_owned()));
        }
        let schema = match files.shards().schema() {
            Some(schema) => Arc::clone(schema),
            None => Arc::new(table_of(&**files.open_file(0)?)?.schema().clone()),
        };
        Ok(Rows { files, schema })
    }

    /// Returns the rows of shards that have these fields.
    #[cfg(test)]
    pub(super) fn over(files: Arc<Sequence>, schema: Schema) -> Rows {
        Rows { files, schema: Arc::new(schema) }
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
        let schema = first.map(|(_, schema)| Arc::new(schema.clone()));
        let schema = schema.ok_or_else(|| Error::Invalid("no files to open".to_owned()))?;
        Ok(Rows { files, schema })
    }

    /// Returns the files.
    pub fn files(&self) -> &Sequence {
        &self.files
    }

    /// Returns the fields of a row.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Number of rows.
    pub fn num_rows(&self) -> u64 {
        self.files.num_rows()
    }

    /// Returns the same rows for the child of a fork.
    #[must_use]
    pub fn after_fork(&self) -> Rows {
        Rows { files: Arc::new(self.files.after_fork()), schema: Arc::clone(&self.schema) }
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
        let fields = asks.iter().map(|ask| ask.field);
        let (spots, _pins) = self.files.prepare_fields(rows, fields)?;
        let lists = self.lists(&spots, asks)?;
        let mut lists = lists.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        asks.iter().map(|ask| self.find_field(&spots, ask, &mut lists)).collect()
    }

    /// `lists` are those of all sequences that are left.
    fn find_field<'l>(
        &self,
        spots: &[Spot<'_>],
        ask: &Ask,
        lists: &mut impl Iterator<Item = &'l [u8]>,
    ) -> Result<Found> {
        match self.kind(ask.field) {
            Some(FieldKind::Column) => {
                let mut values = Vec::new();
                self.numbers(spots, ask.field, &mut values)?;
                Ok(Found::Numbers(values))
            }
            Some(FieldKind::Sequence) => self.elements(spots, ask, lists),
            _ => self.cells(spots, ask.field).map(Found::Cells),
        }
    }

    fn kind(&self, field: usize) -> Option<FieldKind> {
        self.schema().fields().get(field).map(|field| field.kind)
    }

    /// Returns which file of a shard a field is in, its number after that of the first file, and
    /// the field's place there. None if it is missing in the shard; it must be of this kind then.
    #[inline]
    fn origin<'s>(
        &self,
        stack: &'s Stack,
        field: usize,
        kind: FieldKind,
    ) -> Result<Option<(&'s dyn Table, u32, usize)>> {
        match stack.origin(field) {
            Some((place, own)) => Ok(Some((table_of(&**stack.file(place))?, place as u32, own))),
            None if self.kind(field) == Some(kind) => Ok(None),
            None => Err(Error::Invalid(format!("there is no field {field} of kind {kind:?}"))),
        }
    }

    /// Returns where field `field`, of kind cell, of each row is.
    fn cells(&self, spots: &[Spot<'_>], field: usize) -> Result<Vec<Cell>> {
        let mut cells = Vec::with_capacity(spots.len());
        for &Spot { row, local, stack, first } in spots {
            cells.push(match self.origin(stack, field, FieldKind::Cell)? {
                Some((table, place, own)) => {
                    in_file(table.locate_field(local, own), first + place, row)?
                }
                None => Cell { file: first, ..Cell::missing(row) },
            });
        }
        Ok(cells)
    }

    /// Reads the lists of elements of all sequences that are asked for, of all rows, in one go.
    /// Lists that are not needed are empty, or left out behind the last.
    fn lists(&self, spots: &[Spot<'_>], asks: &[Ask]) -> Result<Vec<Vec<u8>>> {
        let is_sequence = |ask: &&Ask| self.kind(ask.field) == Some(FieldKind::Sequence);
        let (mut cells, mut files, mut count) = (Vec::new(), BTreeMap::new(), 0);
        let mut tables = Vec::new();
        for ask in asks.iter().filter(is_sequence) {
            for &Spot { row, local, stack, first } in spots {
                if let Some((table, place, own)) =
                    self.origin(stack, ask.field, FieldKind::Sequence)?
                    && let list = table.list(local, own)
                    && let Some((cell, stored)) = list.map_err(|error| error.at_record(row))?
                {
                    files.insert(first + place, stored);
                    cells.push((count, Cell { row, file: first + place, ..cell }));
                    tables.push(table);
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
            Some((k, error)) => Err(tables[k].unlisted(error)),
            None => Ok(lists),
        }
    }

    /// Returns where the wanted elements of a sequence of rows are, whose lists are next.
    fn elements<'l>(
        &self,
        spots: &[Spot<'_>],
        ask: &Ask,
        lists: &mut impl Iterator<Item = &'l [u8]>,
    ) -> Result<Found> {
        let (mut cells, mut counts) = (Vec::new(), Vec::with_capacity(spots.len()));
        for (k, (&Spot { row, local, stack, first }, list)) in spots.iter().zip(lists).enumerate() {
            let origin = self.origin(stack, ask.field, FieldKind::Sequence)?;
            let Some((table, place, own)) = origin else {
                counts.push(0);
                continue;
            };
            let (start, stop, step) = match &ask.elements {
                Some(ranges) => ranges[k],
                None => (0, u64::MAX, NonZeroUsize::MIN),
            };
            let found = table.num_elements(local, own).and_then(|len| {
                let (start, stop) = (start.min(len), stop.min(len));
                table.locate_elements(local, own, start..stop.max(start), list)
            });
            let found = found.map_err(|error| error.at_record(row))?.into_iter();
            let before = cells.len();
            let found = found.step_by(step.get());
            cells.extend(found.map(|cell| Cell { row, file: first + place, ..cell }));
            counts.push((cells.len() - before) as u64);
        }
        Ok(Found::Elements(cells, counts))
    }

    /// Returns how many elements sequence `field` has in each of `rows`.
    pub fn count(&self, rows: &[u64], field: usize) -> Result<Vec<u64>> {
        self.check(rows)?;
        let mut counts = Vec::with_capacity(rows.len());
        for some in rows.chunks(TOGETHER) {
            let (spots, _pins) = self.files.prepare_fields(some, std::iter::once(field))?;
            for Spot { row, local, stack, .. } in spots {
                let count = match self.origin(stack, field, FieldKind::Sequence)? {
                    Some((table, _, own)) => table.num_elements(local, own),
                    None => Ok(0),
                };
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
            let (spots, _pins) = self.files.prepare_fields(some, std::iter::once(field))?;
            sizes.extend(self.cells(&spots, field)?.iter().map(|cell| cell.raw));
        }
        Ok(sizes)
    }

    /// Returns the values of column `field` in consecutive rows, from the index alone.
    pub fn column(&self, field: usize, rows: Range<u64>) -> Result<Vec<u8>> {
        if !rows.is_empty() {
            self.check(&[rows.end - 1])?;
        }
        let width = self.width(field);
        let bytes = rows.end.saturating_sub(rows.start).saturating_mul(width as u64);
        let mut values = Vec::new();
        let room = values.try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX));
        room.map_err(|_| Error::memory(self.files.name(), bytes))?;
        let shards = self.files.shards();
        let some = shards.holding(&rows);
        shards.open_some(some.clone())?;
        for k in some {
            let (first, end) = (shards.first_row(k), shards.first_row(k + 1));
            let part = rows.start.saturating_sub(first)..rows.end.min(end) - first;
            if part.is_empty() {
                continue;
            }
            let stack = shards.stack(k)?;
            let Some((table, _, own)) = self.origin(stack, field, FieldKind::Column)? else {
                values.resize(values.len() + (part.end - part.start) as usize * width, 0);
                continue;
            };
            let live = stack.deletes().map(|deletes| &deletes.live);
            let held = stack.row(part.start)..stack.row(part.end - 1) + 1;
            let appended = table.append_column(own, held, live, &mut values);
            appended.map_err(|error| error.renumbered(|row| first + stack.position(row)))?;
        }
        Ok(values)
    }

    /// Returns the values of column `field` in each of `rows`.
    pub fn values(&self, rows: &[u64], field: usize) -> Result<Vec<u8>> {
        self.check(rows)?;
        let mut values = Vec::new();
        for some in rows.chunks(TOGETHER) {
            let (spots, _pins) = self.files.prepare_fields(some, std::iter::once(field))?;
            self.numbers(&spots, field, &mut values)?;
        }
        Ok(values)
    }

    /// Appends the values of column `field` to `values`.
    fn numbers(&self, spots: &[Spot<'_>], field: usize, values: &mut Vec<u8>) -> Result<()> {
        let bytes = spots.len().saturating_mul(self.width(field));
        let room = values.try_reserve(bytes);
        room.map_err(|_| Error::memory(self.files.name(), bytes as u64))?;
        for &Spot { row, local, stack, .. } in spots {
            match self.origin(stack, field, FieldKind::Column)? {
                Some((table, _, own)) => {
                    let value = table.column_value(local, own, values);
                    value.map_err(|error| error.at_record(row))?;
                }
                None => values.resize(values.len() + self.width(field), 0),
            }
        }
        Ok(())
    }

    /// Bytes of a value of a column.
    fn width(&self, field: usize) -> usize {
        self.schema.fields().get(field).and_then(|field| field.width).unwrap_or(0) as usize
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
