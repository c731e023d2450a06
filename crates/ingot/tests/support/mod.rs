//! What the fault tests share: sample files with known rows, where their parts
//! are, and a reader that compares.

// Each test binary uses a part of this.
#![allow(dead_code)]

use std::ops::Range;
use std::sync::Arc;

use ingot::format::checksum::FileId;
use ingot::format::ingot::{
    BlockKind, Field, FieldKind, Header, Page, Schema, TRAILER_LEN, Trailer,
};
use ingot::records::{self, Cell, Compression, Mode, Options, Reader, Value, Writer};
use ingot::storage::{Append, Memory, ReadAt};
use ingot::{Error, Result};

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
    Reader::open(Arc::new(storage.clone()), NAME, mode)
}

pub fn shared(storage: &Memory) -> Arc<dyn ReadAt> {
    Arc::new(storage.clone())
}

pub fn recover(storage: &Memory) -> Result<records::Recovery> {
    let target = Box::new(storage.clone());
    records::recover(&shared(storage), target, NAME, options(Compression::None))
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
            FieldKind::Cell => then(Located::Cell([reader.locate_one(row, field)?])),
            FieldKind::Sequence => {
                let len = reader.num_elements(row, field)?;
                then(Located::Elements(reader.locate_elements(row, field, 0..len)?));
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

/// A file whose rows and layout are known.
pub struct Sample {
    pub name: &'static str,
    pub schema: Schema,
    /// All rows that are committed in it.
    pub rows: Vec<Row>,
    pub bytes: Vec<u8>,
    /// Whether it ends in a closing trailer.
    pub closed: bool,
    /// Lengths at which the file was whole before it was appended to, with their rows.
    pub earlier: Vec<(usize, usize)>,
    pub parts: Vec<(Range<usize>, Part)>,
    /// Rows with a cell that needs a dictionary.
    pub dictionary_rows: Vec<usize>,
}

/// What a byte of a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Header,
    /// A cell of this row.
    Cell(usize),
    /// The index page of these rows.
    Page(Range<usize>),
    Dictionary,
    /// A directory; `last` if it is the one that a reader uses.
    Directory {
        last: bool,
    },
    /// A trailer; the rows are those that it commits.
    Trailer {
        last: bool,
        rows: Range<usize>,
    },
    /// Behind the last trailer.
    Torn,
}

impl Sample {
    fn new(
        name: &'static str,
        schema: &Schema,
        rows: Vec<Row>,
        bytes: Vec<u8>,
        closed: bool,
    ) -> Sample {
        let storage = Memory::from(bytes.clone());
        let reader = open(&storage, Mode::Partial).unwrap();
        assert_eq!(reader.num_rows(), rows.len() as u64, "{name}");
        let (parts, dictionary_rows) = layout(&bytes, &reader);
        let (schema, earlier) = (schema.clone(), Vec::new());
        Sample { name, schema, rows, bytes, closed, earlier, parts, dictionary_rows }
    }

    /// Returns the part that the byte at `offset` belongs to.
    pub fn part(&self, offset: usize) -> &Part {
        let k = self.parts.partition_point(|(range, _)| range.end <= offset);
        &self.parts[k].1
    }

    /// Returns the rows that share an index page with `row`.
    pub fn page_of(&self, row: usize) -> Vec<usize> {
        let pages = self.parts.iter().filter_map(|(_, part)| match part {
            Part::Page(rows) if rows.contains(&row) => Some(rows.clone().collect()),
            _ => None,
        });
        pages.last().expect("every row has a page")
    }

    /// Whether the file says that `row` had reached the device when a flush returned.
    pub fn secured(&self, row: usize) -> bool {
        let header = open(&Memory::from(self.bytes.clone()), Mode::Partial).unwrap();
        let last = last_trailer(&self.bytes, header.header()).expect("something is committed");
        self.parts
            .iter()
            .all(|(range, part)| *part != Part::Cell(row) || range.end as u64 <= last.durable)
    }
}

/// Tells the parts of a file that is not damaged, in file order and without gaps.
fn layout(bytes: &[u8], reader: &Reader) -> (Vec<(Range<usize>, Part)>, Vec<usize>) {
    let header = reader.header();
    let mut parts = vec![(0..header.bytes.len(), Part::Header)];
    let mut dictionary_rows = Vec::new();
    for row in 0..reader.num_rows() {
        locate_row(reader, row, &mut |found| {
            for cell in found.cells() {
                let start = cell.offset as usize;
                parts.push((start..start + cell.stored as usize, Part::Cell(row as usize)));
                if cell.dictionary != 0 && cell.raw != cell.stored {
                    dictionary_rows.push(row as usize);
                }
            }
        })
        .unwrap();
    }
    let last = last_trailer(bytes, header).expect("something is committed");
    parts.push((last.offset as usize + TRAILER_LEN..bytes.len(), Part::Torn));
    let mut next = Some(last);
    let mut directories = 0;
    while let Some(trailer) = next {
        let (start, end) = (trailer.block.offset as usize, trailer.offset as usize);
        let mut rows = 0..0;
        let part = match trailer.block.kind {
            BlockKind::Mark => None,
            BlockKind::Dictionary => Some(Part::Dictionary),
            BlockKind::Directory => {
                directories += 1;
                Some(Part::Directory { last: directories == 1 })
            }
            BlockKind::Page => {
                let block = bytes[start..end].to_vec();
                let (page, _) =
                    Page::decode(block, start as u64, &header.schema, header.seed()).unwrap();
                rows = page.first_row as usize..page.first_row as usize + page.rows as usize;
                Some(Part::Page(rows.clone()))
            }
        };
        parts.extend(part.map(|part| (start..end, part)));
        let last = trailer.offset == last.offset;
        parts.push((end..end + TRAILER_LEN, Part::Trailer { last, rows }));
        let before = trailer.previous.0 as usize;
        next = (before != 0).then(|| decode_trailer(bytes, before, header).unwrap());
    }
    parts.retain(|(range, _)| !range.is_empty());
    parts.sort_by_key(|(range, _)| range.start);
    assert!(parts.windows(2).all(|pair| pair[0].0.end == pair[1].0.start), "no gaps: {parts:?}");
    assert_eq!(parts.last().unwrap().0.end, bytes.len());
    (parts, dictionary_rows)
}

pub fn decode_trailer(bytes: &[u8], offset: usize, header: &Header) -> Option<Trailer> {
    let candidate = bytes.get(offset..offset + TRAILER_LEN)?;
    Trailer::decode(candidate, offset as u64, &header.id).ok().map(|(trailer, _)| trailer)
}

pub fn last_trailer(bytes: &[u8], header: &Header) -> Option<Trailer> {
    (0..bytes.len()).rev().find_map(|offset| decode_trailer(bytes, offset, header))
}

/// Writes rows in runs with a flush behind each but the last, and closes the file.
pub fn closed_file(schema: &Schema, runs: &[&[Row]], options: Options) -> Vec<u8> {
    let storage = Memory::new();
    let mut writer = create(storage.clone(), schema, options);
    for (k, run) in runs.iter().enumerate() {
        if k > 0 {
            writer.flush().unwrap();
        }
        append_rows(&mut writer, run);
    }
    writer.close().unwrap();
    storage.bytes()
}

/// Writes rows in runs with a flush behind each; those of `torn` are never committed.
pub fn unfinished_file(
    schema: &Schema,
    runs: &[&[Row]],
    torn: &[Row],
    options: Options,
) -> Vec<u8> {
    let storage = Memory::new();
    let mut writer = create(storage.clone(), schema, options);
    for run in runs {
        append_rows(&mut writer, run);
        writer.flush().unwrap();
    }
    append_rows(&mut writer, torn);
    if !torn.is_empty() {
        writer.submit().unwrap();
    }
    writer.abandon();
    storage.bytes()
}

/// Goes on at the end of a file and closes it again.
pub fn appended_file(bytes: Vec<u8>, rows: &[Row], options: Options) -> Vec<u8> {
    let storage = Memory::from(bytes);
    let target = Box::new(storage.clone());
    let (mut writer, _) = records::append(&shared(&storage), target, NAME, options).unwrap();
    append_rows(&mut writer, rows);
    writer.close().unwrap();
    storage.bytes()
}

/// Small files of every shape.
pub fn samples() -> Vec<Sample> {
    let records = Schema::records();
    let fields = fields_schema();
    let none = options(Compression::None);
    let zstd = options(Compression::Zstd);
    let lz4 = options(Compression::Lz4);
    let waived = Options { sync: false, ..none };

    let plain = random_rows(20, 60, 1);
    let similar = similar_rows(0..120);
    let few = similar_rows(0..12);
    let (flushed, typed) = (random_rows(24, 40, 2), fields_rows(15, 3));
    let first = closed_file(&records, &[&flushed[..9]], none);
    let second = appended_file(first.clone(), &flushed[9..16], none);
    let third = appended_file(second.clone(), &flushed[16..], none);

    let closed = |name, schema: &Schema, rows: &[Row], bytes| {
        Sample::new(name, schema, rows.to_vec(), bytes, true)
    };
    let unfinished = |name, schema: &Schema, rows: &[Row], bytes| {
        Sample::new(name, schema, rows.to_vec(), bytes, false)
    };
    let mut appended = closed("appended", &records, &flushed, third);
    appended.earlier = vec![(first.len(), 9), (second.len(), 16)];
    let dictionary = closed_file(&records, &[&similar], zstd);
    let samples = vec![
        closed("plain", &records, &plain, closed_file(&records, &[&plain], none)),
        closed("dictionary", &records, &similar, dictionary),
        closed("lz4", &records, &few, closed_file(&records, &[&few], lz4)),
        closed(
            "segments",
            &records,
            &flushed,
            closed_file(&records, &[&flushed[..8], &flushed[8..9], &flushed[9..]], none),
        ),
        closed("fields", &fields, &typed, closed_file(&fields, &[&typed[..9], &typed[9..]], zstd)),
        appended,
        unfinished(
            "unfinished",
            &records,
            &flushed[..18],
            unfinished_file(&records, &[&flushed[..9], &flushed[9..18]], &flushed[18..], none),
        ),
        unfinished(
            "unfinished without syncs",
            &records,
            &flushed,
            unfinished_file(&records, &[&flushed[..9], &flushed[9..]], &[], waived),
        ),
        unfinished(
            "unfinished fields",
            &fields,
            &typed,
            unfinished_file(&fields, &[&typed[..4], &typed[4..]], &typed[..3], lz4),
        ),
        unfinished(
            "unfinished dictionary",
            &records,
            &similar,
            unfinished_file(&records, &[&similar[..100], &similar[100..]], &few, zstd),
        ),
    ];
    let with = samples.iter().filter(|sample| !sample.dictionary_rows.is_empty());
    assert_eq!(with.count(), 2, "both files that should have a dictionary do");
    samples
}

/// Whether an error begins with the name of the file, as all of ours about a file do.
pub fn names_the_file(error: &Error) -> bool {
    error.to_string().starts_with(&format!("{NAME}: "))
}
