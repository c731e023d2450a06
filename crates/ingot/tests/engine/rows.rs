//! Rows of any fields: every cell, range of elements and column comes back as it was written.

use crate::support;

use std::ops::Range;

use ingot::format::checksum::Seed;
use ingot::format::ingot::{FieldKind, PAGE_CELLS, Page, PageBuilder, Schema};
use ingot::records::{
    self, Cell, Compression, Files as _, Mode, Options, Reader, Table as _, find,
};
use ingot::storage::Memory;
use proptest::prelude::*;
use support::{
    ID, Item, Random, Row, append_row, append_rows, column_of, create, open, options, read_rows,
    schema_of, shared, without_columns,
};

type Kind = (FieldKind, Option<u32>);

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        3 => Just((FieldKind::Cell, None)),
        3 => Just((FieldKind::Sequence, None)),
        3 => prop::sample::select(vec![1, 2, 3, 4, 8, 16, 100, 5000])
            .prop_map(|width| (FieldKind::Column, Some(width))),
    ]
}

/// Empty, short, long and of one byte, long and of no pattern.
fn cell() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        1 => Just(Vec::new()),
        6 => prop::collection::vec(any::<u8>(), 0..30),
        3 => (any::<u8>(), 0..3000_usize).prop_map(|(byte, len)| vec![byte; len]),
        1 => (any::<u64>(), 0..60_000_usize).prop_map(|(seed, len)| Random(seed).bytes(len)),
    ]
}

fn item((kind, width): Kind) -> BoxedStrategy<Item> {
    match kind {
        FieldKind::Cell => cell().prop_map(Item::Cell).boxed(),
        FieldKind::Sequence => prop::collection::vec(cell(), 0..5).prop_map(Item::Sequence).boxed(),
        FieldKind::Column => any::<u64>()
            .prop_map(move |seed| Item::Column(Random(seed).bytes(width.unwrap_or(0) as usize)))
            .boxed(),
    }
}

fn compression() -> impl Strategy<Value = Compression> {
    prop::sample::select(vec![
        Compression::Auto,
        Compression::Zstd,
        Compression::Lz4,
        Compression::None,
    ])
}

#[derive(Debug, Clone, Copy)]
enum After {
    Nothing,
    Submit,
    Flush,
    /// Close the file and open it again for appending.
    Reopen(Compression),
}

fn after() -> impl Strategy<Value = After> {
    prop_oneof![
        12 => Just(After::Nothing),
        2 => Just(After::Submit),
        2 => Just(After::Flush),
        1 => compression().prop_map(After::Reopen),
    ]
}

#[derive(Debug, Clone)]
struct Plan {
    kinds: Vec<Kind>,
    rows: Vec<(Row, After)>,
    compression: Compression,
    sync: bool,
    seed: u64,
}

fn plan() -> impl Strategy<Value = Plan> {
    prop::collection::vec(kind(), 1..6).prop_flat_map(|kinds| {
        let row: Vec<_> = kinds.iter().map(|&kind| item(kind)).collect();
        let rows = prop::collection::vec((row, after()), 0..30);
        (Just(kinds), rows, compression(), any::<bool>(), any::<u64>()).prop_map(
            |(kinds, rows, compression, sync, seed)| Plan { kinds, rows, compression, sync, seed },
        )
    })
}

fn written(plan: &Plan) -> Memory {
    let storage = Memory::new();
    let mut settings = Options { sync: plan.sync, ..options(plan.compression) };
    let mut writer = create(storage.clone(), &schema_of(&plan.kinds), settings);
    for (number, (row, after)) in plan.rows.iter().enumerate() {
        assert_eq!(append_row(&mut writer, row).unwrap(), number as u64);
        match after {
            After::Nothing => {}
            After::Submit => writer.submit().unwrap(),
            After::Flush => {
                writer.flush().unwrap();
                assert_eq!(writer.num_committed(), number as u64 + 1);
            }
            After::Reopen(compression) => {
                writer.close().unwrap();
                settings.compression = *compression;
                let target = Box::new(storage.clone());
                let reopened = records::append(
                    &shared(&storage),
                    target,
                    support::NAME,
                    settings,
                    &mut || Ok(()),
                )
                .unwrap();
                assert!(reopened.1.was_whole);
                writer = reopened.0;
            }
        }
    }
    writer.close().unwrap();
    storage
}

fn fetched(reader: &Reader, cells: &[Cell]) -> Vec<Vec<u8>> {
    let mut values: Vec<Vec<u8>> = cells.iter().map(|cell| vec![0; cell.raw as usize]).collect();
    let mut bufs: Vec<&mut [u8]> = values.iter_mut().map(Vec::as_mut_slice).collect();
    reader.fetch(cells, &mut bufs).unwrap();
    values
}

/// Reads some rows of each field in any order, twice among them, and some ranges of elements.
fn check_selections(reader: &Reader, rows: &[Row], random: &mut Random) {
    let numbers: Vec<u64> = (0..20).map(|_| random.below(rows.len()) as u64).collect();
    for (field, declared) in reader.schema().fields().iter().enumerate() {
        match declared.kind {
            FieldKind::Cell => {
                let mut cells = Vec::new();
                reader.locate(&numbers, field, &mut cells).unwrap();
                for (&row, value) in numbers.iter().zip(fetched(reader, &cells)) {
                    assert!(rows[row as usize][field] == Item::Cell(value), "row {row}");
                }
            }
            FieldKind::Sequence => {
                for &row in &numbers {
                    let Item::Sequence(elements) = &rows[row as usize][field] else {
                        panic!("a sequence was written");
                    };
                    assert_eq!(reader.num_elements(row, field).unwrap(), elements.len() as u64);
                    let end = random.below(elements.len() + 1);
                    let range: Range<usize> = random.below(end + 1)..end;
                    let wanted = range.start as u64..range.end as u64;
                    let cells = reader.locate_elements(row, field, wanted, &[]).unwrap();
                    assert!(fetched(reader, &cells) == elements[range]);
                    let beyond = 0..elements.len() as u64 + 1;
                    assert!(reader.locate_elements(row, field, beyond, &[]).is_err());
                }
            }
            FieldKind::Column => {
                assert!(reader.column(field).unwrap() == column_of(rows, field));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn rows_round_trip(plan in plan()) {
        let storage = written(&plan);
        let rows: Vec<Row> = plan.rows.iter().map(|(row, _)| row.clone()).collect();
        let reader = open(&storage, Mode::Whole).unwrap();
        prop_assert_eq!(reader.num_rows(), rows.len() as u64);
        for (found, expected) in read_rows(&reader).into_iter().zip(&rows) {
            prop_assert!(found.unwrap() == without_columns(expected));
        }
        if !rows.is_empty() {
            check_selections(&reader, &rows, &mut Random(plan.seed));
        }
        let verified = reader.verify(&mut |_| Ok(())).unwrap();
        prop_assert_eq!(verified.damaged, []);
        prop_assert_eq!(verified.rows, rows.len() as u64);
        prop_assert!(find(&reader, rows.len() as u64).is_err());
    }
}

#[test]
fn fields_are_asked_for_by_their_kind() {
    let schema = support::fields_schema();
    let rows = support::fields_rows(3, 1);
    let bytes = support::closed_file(&schema, &[&rows], options(Compression::None));
    let reader = open(&Memory::from(bytes), Mode::Whole).unwrap();
    assert!(reader.column(1).is_err());
    assert!(reader.column(9).is_err());
    assert!(reader.num_elements(0, 0).is_err());
    assert!(reader.locate_elements(0, 1, 0..0, &[]).is_err());
    assert!(reader.locate(&[0], 2, &mut Vec::new()).is_err());
    assert!(reader.locate(&[0, 3], 1, &mut Vec::new()).is_err());
    assert!(reader.num_elements(3, 2).is_err());
}

#[test]
fn rows_that_do_not_fit_the_schema_are_rejected_and_leave_no_trace() {
    let schema = support::fields_schema();
    let rows = support::fields_rows(4, 2);
    let storage = Memory::new();
    let mut writer = create(storage.clone(), &schema, options(Compression::None));
    append_rows(&mut writer, &rows[..2]);
    let mut narrow = rows[2].clone();
    narrow[0] = Item::Column(vec![1, 2, 3]);
    let mut swapped = rows[2].clone();
    swapped.swap(1, 2);
    let short = rows[2][..4].to_vec();
    for row in [narrow, swapped, short] {
        assert!(append_row(&mut writer, &row).is_err());
    }
    assert!(writer.append(b"a record").is_err());
    append_rows(&mut writer, &rows[2..]);
    writer.close().unwrap();
    let reader = open(&storage, Mode::Whole).unwrap();
    let found: Vec<Row> = read_rows(&reader).into_iter().map(Result::unwrap).collect();
    assert_eq!(found, rows.iter().map(without_columns).collect::<Vec<_>>());
    assert_eq!(reader.column(3).unwrap(), column_of(&rows, 3));
}

#[test]
fn a_row_may_have_more_elements_than_a_page_has_cells() {
    let schema = schema_of(&[
        (FieldKind::Sequence, None),
        (FieldKind::Column, Some(1)),
        (FieldKind::Cell, None),
    ]);
    let elements = |count: usize| (0..count).map(|k| (k as u16).to_le_bytes().to_vec()).collect();
    let rows: Vec<Row> = [2, 3 * PAGE_CELLS as usize, 0, PAGE_CELLS as usize - 1, 5]
        .into_iter()
        .enumerate()
        .map(|(k, count)| {
            vec![
                Item::Sequence(elements(count)),
                Item::Column(vec![k as u8]),
                Item::Cell(vec![k as u8; 3]),
            ]
        })
        .collect();
    let bytes = support::closed_file(&schema, &[&rows], options(Compression::None));
    let reader = open(&Memory::from(bytes), Mode::Whole).unwrap();
    check_selections(&reader, &rows, &mut Random(7));
    let cells = reader.locate_elements(1, 0, 20_000..20_003, &[]).unwrap();
    assert_eq!(fetched(&reader, &cells), elements(20_003)[20_000..]);
    assert_eq!(cells[0].offset + 2, cells[1].offset, "elements stand one after the other");
}

#[test]
fn many_rows_fill_many_pages() {
    for compression in [Compression::None, Compression::Auto] {
        let rows: Vec<Row> =
            (0..30_000_u32).map(|k| vec![Item::Cell(k.to_string().into_bytes())]).collect();
        let bytes = support::closed_file(&Schema::records(), &[&rows], options(compression));
        let reader = open(&Memory::from(bytes), Mode::Whole).unwrap();
        assert!(reader.stats().pages >= 30_000 / u64::from(PAGE_CELLS));
        check_selections(&reader, &rows, &mut Random(8));
        let mut cells = Vec::new();
        let every: Vec<u64> = (0..30_000).rev().collect();
        reader.locate(&every, 0, &mut cells).unwrap();
        for (row, value) in every.iter().zip(fetched(&reader, &cells)) {
            assert_eq!(value, row.to_string().as_bytes());
        }
    }
}

#[test]
fn a_cell_may_be_larger_than_a_page_may_describe() {
    let rows: Vec<Row> = [5, 70 << 20, 0, 3 << 20]
        .into_iter()
        .map(|len| vec![Item::Cell((0..len).map(|k| (k * 7 / 3) as u8).collect())])
        .collect();
    let none = Options { sync: false, ..options(Compression::None) };
    let bytes = support::closed_file(&Schema::records(), &[&rows], none);
    let reader = open(&Memory::from(bytes), Mode::Whole).unwrap();
    for (row, expected) in read_rows(&reader).into_iter().zip(&rows) {
        assert!(row.unwrap() == *expected);
    }
}

#[test]
fn pages_hold_cells_beyond_4_gib() {
    const GIB: u64 = 1 << 30;
    let (schema, seed) = (Schema::records(), Seed::new(&ID));
    for lens in [
        vec![(GIB, GIB), (3 * GIB, 3 * GIB), (0, 0), (5 * GIB, 5 * GIB), (1, 1)],
        vec![(4 * GIB - 1, 4 * GIB - 1)],
        vec![(4 * GIB, 4 * GIB)],
        vec![(1 << 40, 1 << 40), (1 << 50, 1 << 50)],
        // The cells fit into 32 bits, what one of them expands to does not.
        vec![(100 << 20, 20 * GIB), (7, 7)],
    ] {
        for base in [100, 1 << 62] {
            let mut builder = PageBuilder::new(&schema, base, 40, 50);
            for (k, &(stored, raw)) in lens.iter().enumerate() {
                builder.push_cell(stored, raw, k as u32);
            }
            builder.push_rows(lens.len() as u32, &[], &[]);
            let offset = base + builder.data_len();
            let (block, crc) = builder.encode(offset, seed);
            assert_eq!(Page::measure(&block, &schema), Some(block.len()));
            let (page, found) = Page::decode(block, offset, &schema, seed).unwrap();
            assert_eq!((page.first_row, page.first_cell, found), (40, 50, crc));
            let mut place = base;
            for (k, &(stored, raw)) in lens.iter().enumerate() {
                let cell = page.cell(k as u32).unwrap();
                assert_eq!((cell.offset, cell.stored, cell.raw), (place, stored, raw));
                assert_eq!(cell.crc, k as u32);
                place += stored;
            }
            assert!(page.cell(lens.len() as u32).is_err());
        }
    }
}
