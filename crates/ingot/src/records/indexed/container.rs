//! A file of another format and its index as a container.

use std::ops::Range;
use std::sync::Arc;

use super::entry::{ROW_LEN, Width, row_place};
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::ingot::{FieldKind, Schema};
use crate::records::cache::Pin;
use crate::records::container::{Cell, Container, Stats, Table};
use crate::records::fetch::Files;
use crate::records::locate::Missing;
use crate::records::source::Source;
use crate::records::verification::{Verification, verify_records};
use crate::storage::ReadAt;

/// A file whose rows an index finds. Row `k` of the index is about row `k` of the file.
pub struct Indexed {
    pub(super) storage: Arc<dyn ReadAt>,
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) index: Arc<dyn Container>,
    pub(super) schema: Option<Schema>,
    pub(super) width: Width,
    pub(super) fingerprint: Vec<u8>,
}

impl Indexed {
    fn table(&self) -> &dyn Table {
        self.index.table().expect("an index has fields")
    }

    /// Returns the error for an entry that cannot be.
    #[cold]
    fn refused(&self, row: u64) -> Error {
        let why = format!(
            "the index does not belong to {}; remove the index, it is then built again",
            self.name
        );
        Source::of(&*self.index).corrupt(0, Violation(why)).at_record(row)
    }

    fn row_start(&self, row: u64) -> Result<u64> {
        let mut entry = Vec::with_capacity(ROW_LEN);
        self.table().column_value(row, 0, &mut entry)?;
        row_place(&entry).map(|place| place.offset).ok_or_else(|| self.refused(row))
    }

    fn check(&self, field: usize, kind: FieldKind) -> Result<()> {
        let found = self.schema.as_ref().and_then(|schema| schema.fields().get(field));
        match found {
            Some(found) if found.kind == kind => Ok(()),
            _ => Err(Error::Invalid(format!("{}: field {field} is of another kind", self.name))),
        }
    }
}

impl Container for Indexed {
    fn name(&self) -> &str {
        &self.name
    }

    fn storage(&self) -> &Arc<dyn ReadAt> {
        &self.storage
    }

    fn num_rows(&self) -> u64 {
        self.index.num_rows()
    }

    fn find(&self, row: u64) -> Result<Cell> {
        let mut entry = Vec::with_capacity(ROW_LEN);
        self.table().column_value(row, 0, &mut entry)?;
        let place = row_place(&entry);
        place.and_then(|place| place.cell(row, self.size)).ok_or_else(|| self.refused(row))
    }

    fn find_loaded(&self, row: u64) -> Option<Result<Cell>> {
        self.index.missing(&[row]).is_empty().then(|| self.find(row))
    }

    fn missing(&self, rows: &[u64]) -> Vec<Missing> {
        self.index.missing(rows)
    }

    fn load(&self, number: u64, bytes: Vec<u8>) -> Result<Pin> {
        self.index.load(number, bytes)
    }

    fn touch(&self, row: u64) {
        self.index.touch(row);
    }

    fn stats(&self) -> Stats {
        let index = self.index.stats();
        let cells = self.schema.as_ref().map_or(1, |schema| {
            schema.fields().iter().filter(|field| field.kind != FieldKind::Column).count() as u64
        });
        Stats {
            rows: index.rows,
            cells: cells * index.rows,
            file_bytes: self.size,
            index_bytes: index.file_bytes,
            pages: index.pages,
            closed: true,
            ..Stats::default()
        }
    }

    fn metadata(&self) -> &str {
        "{}"
    }

    fn fingerprint(&self) -> Result<Vec<u8>> {
        Ok(self.fingerprint.clone())
    }

    fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        verify_records(self, progress)
    }

    fn table(&self) -> Option<&dyn Table> {
        self.schema.as_ref().map(|_| self as &dyn Table)
    }

    fn info(&self) -> String {
        serde_json::json!({"index": self.index.name()}).to_string()
    }

    fn after_fork(&self) -> Arc<dyn Container> {
        Arc::new(Indexed {
            storage: Arc::clone(&self.storage),
            name: self.name.clone(),
            index: self.index.after_fork(),
            schema: self.schema.clone(),
            fingerprint: self.fingerprint.clone(),
            ..*self
        })
    }
}

impl Table for Indexed {
    fn schema(&self) -> &Schema {
        self.schema.as_ref().expect("asked only of rows with fields")
    }

    fn locate_field(&self, row: u64, field: usize) -> Result<Cell> {
        self.check(field, FieldKind::Cell)?;
        let start = self.row_start(row)?;
        let mut entry = Vec::with_capacity(self.width.entry_len());
        self.table().column_value(row, field + 1, &mut entry)?;
        let place = self.width.take(&entry, start);
        place.and_then(|place| place.cell(row, self.size)).ok_or_else(|| self.refused(row))
    }

    fn locate_elements(&self, row: u64, field: usize, range: Range<u64>) -> Result<Vec<Cell>> {
        self.check(field, FieldKind::Sequence)?;
        let start = self.row_start(row)?;
        let cell = self.table().locate_field(row, field + 1)?;
        let mut entries = vec![0; cell.raw as usize];
        Alone(&*self.index).fetch_one(&cell, &mut entries)?;
        let len = self.width.entry_len();
        let wanted = entries.get(range.start as usize * len..range.end as usize * len);
        let wanted = wanted.ok_or_else(|| {
            Error::Invalid(format!("{}: record {row} has no elements {range:?}", self.name))
        })?;
        let cells = wanted.chunks_exact(len).map(|entry| {
            let place = self.width.take(entry, start);
            place.and_then(|place| place.cell(row, self.size)).ok_or_else(|| self.refused(row))
        });
        cells.collect()
    }

    fn num_elements(&self, row: u64, field: usize) -> Result<u64> {
        self.check(field, FieldKind::Sequence)?;
        let cell = self.table().locate_field(row, field + 1)?;
        Ok(cell.raw / self.width.entry_len() as u64)
    }

    fn column_value(&self, row: u64, field: usize, values: &mut Vec<u8>) -> Result<()> {
        self.check(field, FieldKind::Column)?;
        self.table().column_value(row, field + 1, values)
    }

    fn append_column(&self, field: usize, values: &mut Vec<u8>) -> Result<()> {
        self.check(field, FieldKind::Column)?;
        self.table().append_column(field + 1, values)
    }
}

impl Files for Indexed {
    fn file(&self, _number: u32) -> &dyn Container {
        self
    }
}

/// One file.
struct Alone<'a>(&'a dyn Container);

impl Files for Alone<'_> {
    fn file(&self, _number: u32) -> &dyn Container {
        self.0
    }
}
