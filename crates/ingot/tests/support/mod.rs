//! What the fault tests share: sample files with known rows, where their parts
//! are, and a reader that compares.

// Each test binary uses a part of this.
#![allow(dead_code, unused_imports)]

pub mod layers;
mod samples;

use std::ops::Range;
use std::sync::Arc;

use ingot::format::checksum::FileId;
use ingot::format::ingot::{Field, FieldKind, Schema};
use ingot::records::{
    self, Cell, Compression, Container, Files as _, Mode, Options, Reader, Sequence, Table as _,
    Value, Writer,
};
use ingot::storage::{Append, Memory, ReadAt};
use ingot::{Error, Result};
pub use samples::{Part, Sample, appended_file, closed_file, samples, unfinished_file};

/// What errors are to call a file.
pub const NAME: &str = "sample.ingot";

/// The id of sample files.
pub const ID: FileId = *b"0123456789abcdef";

/// A small generator (splitmix64): the same numbers for the same seed, everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// The value of one field of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Cell(Vec<u8>),
    Sequence(Vec<Vec<u8>>),
    Column(Vec<u8>),
}

pub type Row = Vec<Item>;

/// Returns rows of a plain record file.
pub fn record_rows(records: &[Vec<u8>]) -> Vec<Row> {
    records.iter().map(|record| vec![Item::Cell(record.clone())]).collect()
}

/// Returns a schema of fields named after their places.
pub fn schema_of(kinds: &[(FieldKind, Option<u32>)]) -> Schema {
    let fields = kinds
        .iter()
        .enumerate()
        .map(|(k, &(kind, width))| Field {
            name: format!("field{k}"),
            kind,
            width,
            type_name: None,
        })
        .collect();
    Schema::new(fields).unwrap()
}

/// Returns a schema with each kind of field in it, columns between the cells.
pub fn fields_schema() -> Schema {
    schema_of(&[
        (FieldKind::Column, Some(4)),
        (FieldKind::Cell, None),
        (FieldKind::Sequence, None),
        (FieldKind::Column, Some(3)),
        (FieldKind::Cell, None),
    ])
}

/// Returns rows for [`fields_schema`], empty cells and sequences among them.
pub fn fields_rows(count: usize, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    (0..count)
        .map(|k| {
            let elements = random.below(4);
            let mut cell = |below: usize| {
                let len = random.below(below);
                random.bytes(len)
            };
            vec![
                Item::Column((k as u32).to_le_bytes().to_vec()),
                Item::Cell(cell(40)),
                Item::Sequence((0..elements).map(|_| cell(20)).collect()),
                Item::Column(vec![k as u8, 7, 0xff]),
                Item::Cell(format!("row {k} of many, row {k} of many, row {k}").into_bytes()),
            ]
        })
        .collect()
}

/// Returns records that a dictionary makes much smaller.
pub fn similar_rows(range: Range<usize>) -> Vec<Row> {
    let records: Vec<Vec<u8>> = range
        .map(|k| {
            let mut random = Random(k as u64);
            let words = ["Lisbon", "Porto", "Braga", "Faro", "Evora", "Coimbra"];
            format!(
                "{{\"user\": {k}, \"city\": \"{}\", \"visited\": \"{}\", \"score\": {}}}",
                words[random.below(6)],
                words[random.below(6)],
                random.below(100_000)
            )
            .into_bytes()
        })
        .collect();
    record_rows(&records)
}

/// Returns records of random bytes, empty ones among them.
pub fn random_rows(count: usize, below: usize, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    let records: Vec<Vec<u8>> = (0..count)
        .map(|_| {
            let len = random.below(below);
            random.bytes(len)
        })
        .collect();
    record_rows(&records)
}

pub fn append_row(writer: &mut Writer, row: &Row) -> Result<u64> {
    let elements: Vec<Vec<&[u8]>> = row
        .iter()
        .map(|item| match item {
            Item::Sequence(elements) => elements.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        })
        .collect();
    let values: Vec<Value<'_>> = row
        .iter()
        .zip(&elements)
        .map(|(item, elements)| match item {
            Item::Cell(bytes) => Value::Cell(bytes),
            Item::Sequence(_) => Value::Sequence(elements),
            Item::Column(bytes) => Value::Column(bytes),
        })
        .collect();
    writer.append_row(&values)
}

pub fn append_rows(writer: &mut Writer, rows: &[Row]) {
    for row in rows {
        append_row(writer, row).unwrap();
    }
}

pub fn options(compression: Compression) -> Options {
    Options { compression, ..Options::default() }
}

pub fn create(target: impl Append + 'static, schema: &Schema, options: Options) -> Writer {
    let target = Box::new(target);
    Writer::create_with_id(target, NAME, schema.clone(), "{}", options, ID).unwrap()
}

pub fn open(storage: &Memory, mode: Mode) -> Result<Reader> {
    Reader::open(Arc::new(storage.clone()), NAME, mode, &mut || Ok(()))
}

pub fn shared(storage: &Memory) -> Arc<dyn ReadAt> {
    Arc::new(storage.clone())
}

pub fn recover(storage: &Memory) -> Result<records::Recovery> {
    let target = Box::new(storage.clone());
    records::recover(&shared(storage), target, NAME, options(Compression::None), &mut || Ok(()))
}

/// Reads every record of a container in one batch.
pub fn read_records(file: Arc<dyn Container>) -> Vec<Result<Vec<u8>>> {
    let file: Sequence = [file].into_iter().collect();
    let rows: Vec<u64> = (0..file.num_rows()).collect();
    let _pins = file.prepare(&rows);
    let mut records: Vec<Result<Vec<u8>>> = Vec::new();
    let mut cells = Vec::new();
    for row in rows {
        records.push(file.locate(row).map(|cell| {
            cells.push(cell);
            vec![0; cell.raw as usize]
        }));
    }
    let mut bufs: Vec<&mut [u8]> = records.iter_mut().flatten().map(Vec::as_mut_slice).collect();
    for (k, error) in file.fetch_each(&cells, &mut bufs) {
        records[cells[k].row as usize] = Err(error);
    }
    records
}

/// The cells and sequences of every row, or why a row cannot be read. Columns are left out.
pub fn read_rows(reader: &Reader) -> Vec<Result<Row>> {
    let (mut cells, mut places) = (Vec::new(), Vec::new());
    let mut rows: Vec<Result<Row>> = Vec::new();
    for row in 0..reader.num_rows() {
        let mut items = Vec::new();
        let located = locate_row(reader, row, &mut |found| {
            items.push(match &found {
                Located::Cell(_) => Item::Cell(Vec::new()),
                Located::Elements(found) => Item::Sequence(vec![Vec::new(); found.len()]),
            });
            for (element, cell) in found.cells().iter().enumerate() {
                places.push((row as usize, items.len() - 1, element));
                cells.push(*cell);
            }
        });
        rows.push(located.map(|()| items));
    }
    let mut buffers: Vec<Vec<u8>> = cells.iter().map(|cell| vec![0; cell.raw as usize]).collect();
    let mut bufs: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    let failures = reader.fetch_each(&cells, &mut bufs);
    for (&(row, item, element), buffer) in places.iter().zip(buffers) {
        if let Ok(items) = &mut rows[row] {
            match &mut items[item] {
                Item::Cell(bytes) => *bytes = buffer,
                Item::Sequence(elements) => elements[element] = buffer,
                Item::Column(_) => unreachable!("columns are left out"),
            }
        }
    }
    for (k, error) in failures {
        let row = places[k].0;
        if rows[row].is_ok() {
            rows[row] = Err(error);
        }
    }
    rows
}

pub enum Located {
    Cell([Cell; 1]),
    Elements(Vec<Cell>),
}

impl Located {
    pub fn cells(&self) -> &[Cell] {
        match self {
            Located::Cell(cell) => cell,
            Located::Elements(cells) => cells,
        }
    }
}

/// Calls `then` with every field of `row` that has cells.
pub fn locate_row(reader: &Reader, row: u64, then: &mut dyn FnMut(Located)) -> Result<()> {
    for (field, Field { kind, .. }) in reader.schema().fields().iter().enumerate() {
        match kind {
            FieldKind::Column => {}
            FieldKind::Cell => then(Located::Cell([reader.locate_field(row, field)?])),
            FieldKind::Sequence => {
                let len = reader.num_elements(row, field)?;
                then(Located::Elements(reader.locate_elements(row, field, 0..len, &[])?));
            }
        }
    }
    Ok(())
}

/// Returns a row without its columns.
pub fn without_columns(row: &Row) -> Row {
    row.iter().filter(|item| !matches!(item, Item::Column(_))).cloned().collect()
}

/// Returns the values of column `field` of all `rows`.
pub fn column_of(rows: &[Row], field: usize) -> Vec<u8> {
    rows.iter()
        .flat_map(|row| match &row[field] {
            Item::Column(bytes) => bytes.clone(),
            _ => panic!("field {field} is no column"),
        })
        .collect()
}

/// Whether an error begins with the name of the file, as all of ours about a file do.
pub fn names_the_file(error: &Error) -> bool {
    error.to_string().starts_with(&format!("{NAME}: "))
}
