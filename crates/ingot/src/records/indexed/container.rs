//! A file of another format and its index as a container.

use std::ops::Range;
use std::sync::Arc;

use super::entry::{Place, ROW_LEN, Width, row_place};
use crate::error::{Error, Result};
use crate::format::ingot::{FieldKind, Schema};
use crate::records::cache::Pin;
use crate::records::container::{Cell, Container, Form, Stats, Stored, Table};
use crate::records::live::Live;
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

    /// Returns the error for an impossible entry.
    #[cold]
    fn refused(&self, row: u64) -> Error {
        let why = format!(
            "the index does not belong to {}; remove the index to have it rebuilt",
            self.name
        );
        self.index.source().corrupt(0, why).at_record(row)
    }

    fn place(&self, row: u64) -> Result<Place> {
        let mut entry = Vec::with_capacity(ROW_LEN);
        self.looked_up(self.table().column_value(row, 0, &mut entry))?;
        row_place(&entry).ok_or_else(|| self.refused(row))
    }

    fn cell(&self, row: u64, place: Option<Place>) -> Result<Cell> {
        place.and_then(|place| place.cell(row, self.size)).ok_or_else(|| self.refused(row))
    }

    fn check(&self, field: usize, kind: FieldKind) -> Result<()> {
        let found = self.schema.as_ref().and_then(|schema| schema.fields().get(field));
        match found {
            Some(found) if found.kind == kind => Ok(()),
            _ => Err(Error::Invalid(format!("{}: field {field} is of another kind", self.name))),
        }
    }
}

impl Stored for Indexed {
    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }

    fn decode(&self, cell: &Cell, stored: &[u8], value: &mut [u8]) -> Result<()> {
        let Form::Foreign(coding) = cell.form else { return Err(self.refused(cell.row)) };
        let decoded = coding.decode(stored, value);
        decoded.map_err(|why| self.source().corrupt(cell.offset, why))
    }
}

impl Container for Indexed {
    fn num_rows(&self) -> u64 {
        self.index.num_rows()
    }

    fn find(&self, row: u64) -> Option<Result<Cell>> {
        self.index.missing(&[row]).is_empty().then(|| self.cell(row, Some(self.place(row)?)))
    }

    fn missing(&self, rows: &[u64]) -> Vec<Missing<'_>> {
        self.index.missing(rows)
    }

    fn load(&self, number: u64, bytes: Vec<u8>) -> Result<Pin> {
        self.looked_up(self.index.load(number, bytes))
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
        serde_json::json!({"index": self.index.source().name}).to_string()
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
        let start = self.place(row)?.offset;
        let mut entry = Vec::with_capacity(self.width.entry_len());
        self.looked_up(self.table().column_value(row, field + 1, &mut entry))?;
        self.cell(row, self.width.take(&entry, start))
    }

    fn list(&self, row: u64, field: usize) -> Result<Option<(Cell, &dyn Stored)>> {
        self.check(field, FieldKind::Sequence)?;
        let cell = self.looked_up(self.table().locate_field(row, field + 1))?;
        Ok(Some((cell, &*self.index)))
    }

    fn unlisted(&self, error: Error) -> Error {
        match self.looked_up::<()>(Err(error)) {
            Err(error) => error,
            Ok(()) => unreachable!("an error stays one"),
        }
    }

    fn locate_elements(
        &self,
        row: u64,
        field: usize,
        range: Range<u64>,
        list: &[u8],
    ) -> Result<Vec<Cell>> {
        self.check(field, FieldKind::Sequence)?;
        let start = self.place(row)?.offset;
        let len = self.width.entry_len();
        let wanted = list.get(range.start as usize * len..range.end as usize * len);
        let wanted = wanted.ok_or_else(|| {
            Error::Invalid(format!("{}: record {row} has no elements {range:?}", self.name))
        })?;
        wanted
            .chunks_exact(len)
            .map(|entry| self.cell(row, self.width.take(entry, start)))
            .collect()
    }

    fn num_elements(&self, row: u64, field: usize) -> Result<u64> {
        self.check(field, FieldKind::Sequence)?;
        let cell = self.looked_up(self.table().locate_field(row, field + 1))?;
        Ok(cell.raw / self.width.entry_len() as u64)
    }

    fn column_value(&self, row: u64, field: usize, values: &mut Vec<u8>) -> Result<()> {
        self.check(field, FieldKind::Column)?;
        self.looked_up(self.table().column_value(row, field + 1, values))
    }

    fn append_column(
        &self,
        field: usize,
        rows: Range<u64>,
        live: Option<&Live>,
        values: &mut Vec<u8>,
    ) -> Result<()> {
        self.check(field, FieldKind::Column)?;
        self.looked_up(self.table().append_column(field + 1, rows, live, values))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::records::indexed::{Request, open};
    use crate::records::ingot::Reader;
    use crate::records::open::Mode;
    use crate::records::{Ask, Rows, fetch_found, layout_of};
    use crate::storage::{Delayed, Location, Memory};

    const DELAY: Duration = Duration::from_millis(2);

    fn lines(file: usize) -> String {
        let line = |row| format!("{{\"t\": [\"{file}\", \"{row}\", \"{}\"]}}\n", "x".repeat(row));
        (0..32).map(line).collect()
    }

    /// Opens a file of JSON lines, and its index, on storages that share a clock.
    fn open_slow(path: &Path, folder: &Path, clock: &Arc<AtomicU64>) -> Arc<dyn Container> {
        let layout = layout_of(r#"{"format": "jsonlines"}"#).unwrap();
        let request = Request { folder: Some(folder.to_owned()), ..Request::of(layout) };
        let opened = open(&[Location::from(path).into()], &request, &mut |_, _| Ok(())).unwrap();
        let info: serde_json::Value =
            serde_json::from_str(&opened.as_ref().unwrap()[0].info()).unwrap();
        let slow = |path: &Path| -> Arc<dyn ReadAt> {
            let bytes = Memory::from(fs::read(path).unwrap());
            Arc::new(Delayed::new(bytes, DELAY).with_clock(clock))
        };
        let index = slow(Path::new(info["index"].as_str().unwrap()));
        Arc::new(Indexed {
            storage: slow(path),
            name: "slow".to_owned(),
            size: path.metadata().unwrap().len(),
            index: Arc::new(Reader::open(index, "index", Mode::Whole, &mut || Ok(())).unwrap()),
            schema: opened.unwrap()[0].table().map(|table| table.schema().clone()),
            width: Width::Narrow,
            fingerprint: Vec::new(),
        })
    }

    #[test]
    fn sequences_of_any_number_of_rows_take_three_waits() {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<_> =
            (0..4).map(|file| folder.path().join(format!("{file}.jsonl"))).collect();
        for (file, path) in paths.iter().enumerate() {
            fs::write(path, lines(file)).unwrap();
        }
        let clock = Arc::new(AtomicU64::new(0));
        let indexes = folder.path().join("indexes");
        let waits_of = |rows: &[u64]| {
            let files = paths.iter().map(|path| open_slow(path, &indexes, &clock)).collect();
            let set = Rows::of(Arc::new(files)).unwrap();
            let before = clock.load(Ordering::SeqCst);
            let found = set.find(rows, &[Ask { field: 0, elements: None }]).unwrap();
            let values = fetch_found(&[(&set, found)], |len| Some(vec![0; len])).unwrap();
            let expected = rows
                .iter()
                .map(|row| format!("{}{}{}", row / 32, row % 32, "x".repeat((row % 32) as usize)));
            assert_eq!(values[0][0], expected.collect::<String>().into_bytes());
            clock.load(Ordering::SeqCst) - before
        };
        for count in [1, 8, 64] {
            let rows: Vec<u64> = (0..count).map(|k| k * 7 % 128).collect();
            // On a busy machine a thread may come too late to wait with the others.
            let waits = (0..5).map(|_| waits_of(&rows)).min();
            assert_eq!(waits, Some(3), "pages of the index, lists of elements, elements");
        }
    }
}
