//! Small files of every shape, and what each of their bytes belongs to.

use std::ops::Range;

use ingot::format::ingot::{BlockKind, Header, Page, Schema, TRAILER_LEN, Trailer};
use ingot::records::{self, Compression, Mode, Options, Reader};
use ingot::storage::Memory;

use super::{
    NAME, Row, append_rows, create, fields_rows, fields_schema, locate_row, open, options,
    random_rows, shared, similar_rows,
};

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
        let mut pages = self.parts.iter().filter_map(|(_, part)| match part {
            Part::Page(rows) if rows.contains(&row) => Some(rows.clone().collect()),
            _ => None,
        });
        pages.next().expect("every row has a page")
    }

    /// Whether the file says that `row` had reached the device when a flush returned.
    pub fn secured(&self, row: usize) -> bool {
        let reader = open(&Memory::from(self.bytes.clone()), Mode::Partial).unwrap();
        let last = last_trailer(&self.bytes, reader.header()).expect("something is committed");
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

/// Appends to a file and closes it again.
pub fn appended_file(bytes: Vec<u8>, rows: &[Row], options: Options) -> Vec<u8> {
    let storage = Memory::from(bytes);
    let target = Box::new(storage.clone());
    let (mut writer, _) =
        records::append(&shared(&storage), target, NAME, options, &mut || Ok(())).unwrap();
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
