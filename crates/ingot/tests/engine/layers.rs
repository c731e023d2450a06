//! Shards with deleted rows and with added and replaced fields, against plain vectors.

use std::fs;
use std::path::Path;

use ingot::Error;
use ingot::format::ingot::{FieldKind, Schema};
use ingot::records::deletes::{self, Claim};
use ingot::records::{
    Ask, Compression, Deleted, Listed, Mode, Options, Reader, Rows, Sequence, Table as _, Writer,
    path,
};
use ingot::storage::{LocalFile, Memory};

use crate::support::layers::{
    ALL, FIELDS, Mask, REQUIRED, Shard, Values, bitmap_of, cut, nothing, random_range,
    random_values, read, schema_of, write_file,
};
use crate::support::{Item, Random};

/// Returns random shards in a folder.
fn shards_in(folder: &Path, count: usize, random: &mut Random) -> Vec<Shard> {
    let path = |number: usize| folder.join(format!("{number:03}.ingot"));
    (0..count).map(|number| Shard::random(path(number), random)).collect()
}

fn rows_of(shards: &[Shard]) -> ingot::Result<Rows> {
    let listed = shards.iter().map(|shard| shard.listed.clone()).collect();
    Rows::listed(listed, Some(schema_of(ALL)))
}

/// Returns what is stored in field `place` of the schema: a value, or whether there is one.
fn stored(row: &Values, place: usize) -> Item {
    if place < FIELDS.len() {
        return row[place].clone().unwrap_or_else(|| nothing(place));
    }
    let flagged = (0..FIELDS.len()).filter(|&field| FIELDS[field].3).nth(place - FIELDS.len());
    Item::Column(vec![u8::from(row[flagged.unwrap()].is_some())])
}

fn whole(field: usize) -> Ask {
    Ask { field, elements: None }
}

/// Compares everything that can be read with what was written.
fn check(rows: &Rows, expected: &[&Values], random: &mut Random) {
    assert_eq!(rows.num_rows(), expected.len() as u64);
    let picks: Vec<u64> = match expected.len() {
        0 => Vec::new(),
        len => (0..50).map(|_| random.below(len) as u64).collect(),
    };
    let all: Vec<u64> = (0..rows.num_rows()).collect();
    let fields = rows.schema().fields().to_vec();
    for numbers in [&picks, &all] {
        let of =
            |place: usize| numbers.iter().map(move |&row| stored(expected[row as usize], place));
        let asks: Vec<Ask> = (0..fields.len()).map(whole).collect();
        let found = read(rows, numbers, &asks).unwrap();
        for (place, items) in found.into_iter().enumerate() {
            assert_eq!(items, of(place).collect::<Vec<_>>(), "{}", fields[place].name);
        }
        for (place, field) in fields.iter().enumerate() {
            match field.kind {
                FieldKind::Column => {
                    assert_eq!(rows.values(numbers, place).unwrap(), bytes_of(of(place)));
                }
                FieldKind::Cell => {
                    let sizes = of(place).map(|item| bytes_of([item]).len() as u64);
                    assert_eq!(rows.sizes(numbers, place).unwrap(), sizes.collect::<Vec<_>>());
                }
                FieldKind::Sequence => {
                    let count = |item: Item| matches!(item, Item::Sequence(_)).then_some(item);
                    let counts = of(place).filter_map(count).map(|item| match item {
                        Item::Sequence(elements) => elements.len() as u64,
                        _ => unreachable!("only sequences are left"),
                    });
                    assert_eq!(rows.count(numbers, place).unwrap(), counts.collect::<Vec<_>>());
                    let ranges: Vec<_> = numbers.iter().map(|_| random_range(random)).collect();
                    let parts = of(place).zip(&ranges).map(|(item, &range)| cut(&item, range));
                    let ask = Ask { field: place, elements: Some(ranges.clone()) };
                    let found = read(rows, numbers, &[ask]).unwrap();
                    assert_eq!(found, [parts.collect::<Vec<_>>()]);
                }
            }
        }
    }
    for (place, _) in rows.schema().of_kind(FieldKind::Column) {
        let values = bytes_of(expected.iter().map(|row| stored(row, place)));
        assert_eq!(rows.column(place, 0..rows.num_rows()).unwrap(), values);
        let (count, width) = (rows.num_rows(), values.len() / rows.num_rows().max(1) as usize);
        let part = count / 3..count - count / 4;
        let bytes = part.start as usize * width..part.end as usize * width;
        assert_eq!(rows.column(place, part).unwrap(), values[bytes]);
    }
    let past = [expected.len() as u64];
    assert!(matches!(rows.find(&past, &[whole(0)]), Err(Error::Index { .. })));
}

fn bytes_of(items: impl IntoIterator<Item = Item>) -> Vec<u8> {
    let bytes = |item| match item {
        Item::Cell(bytes) | Item::Column(bytes) => bytes,
        Item::Sequence(elements) => elements.concat(),
    };
    items.into_iter().flat_map(bytes).collect()
}

fn check_shards(shards: &[Shard], random: &mut Random) {
    let rows = rows_of(shards).unwrap();
    let expected: Vec<&Values> = shards.iter().flat_map(Shard::live_rows).collect();
    check(&rows, &expected, random);
    check(&rows.after_fork(), &expected, random);
    let files = rows.files();
    let live = shards.iter().map(|shard| shard.live_rows().count() as u64);
    assert_eq!(files.row_counts().collect::<Vec<_>>(), live.collect::<Vec<_>>());
    let num_files = shards.iter().map(|Shard { listed, .. }| {
        1 + listed.columns.len() + usize::from(listed.deleted.is_some())
    });
    assert_eq!(files.fingerprints().unwrap().len(), num_files.sum::<usize>());
    let bytes = shards.iter().flat_map(|shard| paths_of(&shard.listed));
    let bytes: u64 = bytes.map(|path| path.metadata().unwrap().len()).sum();
    let stats = files.stats().unwrap();
    assert_eq!((stats.rows, stats.file_bytes), (expected.len() as u64, bytes));
    let mut told = Vec::new();
    let verified = files.verify(&mut |done| {
        told.push(done);
        Ok(())
    });
    let verified = verified.unwrap();
    assert_eq!((verified.rows, verified.damaged), (expected.len() as u64, Vec::new()));
    assert!(told.is_sorted() && told.last().is_none_or(|&last| last <= verified.rows), "{told:?}");
}

fn paths_of(listed: &Listed) -> Vec<&Path> {
    let deleted = listed.deleted.iter().map(|deleted| deleted.path.as_path());
    let columns = listed.columns.iter().map(|columns| columns.path.as_path());
    [listed.path.as_path()].into_iter().chain(deleted).chain(columns).collect()
}

#[test]
fn any_stack_of_files_reads_as_the_rows_that_are_left() {
    for seed in 0..80 {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let count = 1 + random.below(4);
        check_shards(&shards_in(folder.path(), count, &mut random), &mut random);
    }
}

#[test]
fn a_hundred_shards_are_opened_when_they_are_needed_and_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(7);
    check_shards(&shards_in(folder.path(), 100, &mut random), &mut random);
}

#[test]
fn a_shard_may_have_64_files_of_columns() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(3);
    let mut shard = Shard::new(folder.path().join("a.ingot"), REQUIRED, 12, &mut random);
    for number in 0..64 {
        shard.add_columns(1 << (number % FIELDS.len()), &mut random);
    }
    shard.delete((0..12).map(|row| row % 3 > 0).collect());
    let mut shards = vec![shard];
    check_shards(&shards, &mut random);
    shards[0].add_columns(1, &mut random);
    assert_refused(rows_of(&shards), "a.ingot", "more than 64 files of columns");
}

#[test]
fn without_a_schema_the_fields_are_those_of_the_first_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(11);
    let mut shards: Vec<Shard> = ["a", "b"]
        .map(|name| Shard::new(folder.path().join(name), REQUIRED, 20, &mut random))
        .into();
    shards[1].add_columns(ALL, &mut random);
    shards[0].delete(vec![false; 20]);
    let listed: Vec<Listed> = shards.iter().map(|shard| shard.listed.clone()).collect();
    let rows = Rows::listed(listed.clone(), None).unwrap();
    assert_eq!(*rows.schema(), schema_of(REQUIRED));
    let expected: Vec<&Values> = shards[1].live_rows().collect();
    check(&rows, &expected, &mut random);
    let other = Shard::new(folder.path().join("c"), ALL, 20, &mut random);
    let refused = Rows::listed([listed, vec![other.listed]].concat(), None);
    assert_refused(refused, "c", "its fields differ from those of the other files");
}

#[test]
fn records_are_numbered_without_deleted_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records.ingot");
    let options = Options { compression: Compression::None, sync: false, ..Options::default() };
    let mut writer = path::create(&path, Schema::records(), "{}", options).unwrap();
    for record in 0..100_u32 {
        writer.append(&record.to_le_bytes()).unwrap();
    }
    writer.close().unwrap();
    let live: Vec<bool> = (0..100).map(|row| row % 7 == 2).collect();
    let bitmap = folder.path().join("deletes");
    let (id, _) = deletes::create(&bitmap, writer.id(), 100, &bitmap_of(&live), false).unwrap();
    let deleted = Deleted { path: bitmap, id, count: 86 };
    let listed = Listed { deleted: Some(deleted), ..Listed::plain(path, 100, None) };
    let files = Sequence::listed(vec![listed], None).unwrap();
    let mut cells = Vec::new();
    files.locate_many(&(0..14).collect::<Vec<_>>(), &mut cells).unwrap();
    let start = files.open_file(0).unwrap().find(0).unwrap().unwrap().offset;
    let places: Vec<u64> = cells.iter().map(|cell| (cell.offset - start) / 4).collect();
    assert_eq!(places, (0..14).map(|k| 7 * k + 2).collect::<Vec<_>>());
    assert_eq!(cells.iter().map(|cell| cell.row).collect::<Vec<_>>(), (0..14).collect::<Vec<_>>());
}

fn assert_refused<T>(outcome: ingot::Result<T>, file: &str, why: &str) {
    let error = outcome.err().expect("it is refused");
    assert!(matches!(error, Error::Format { .. }), "{error:?}");
    let message = error.to_string();
    assert!(message.contains(why) && message.contains(file), "{message}");
}

/// Returns a shard of 30 rows, of which 3, 4 and 17 are deleted, with a file of columns.
fn layered(folder: &Path) -> Shard {
    let mut random = Random(5);
    let mut shard = Shard::new(folder.join("rows.ingot"), REQUIRED, 30, &mut random);
    shard.add_columns(0b1000, &mut random);
    shard.delete((0..30).map(|row| ![3, 4, 17].contains(&row)).collect());
    shard
}

#[test]
fn a_damaged_bitmap_is_an_error_and_no_row_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let shard = layered(folder.path());
    let deleted = shard.listed.deleted.as_ref().unwrap();
    let claim = Claim { id: deleted.id, of: shard.listed.id, rows: 30, count: 3 };
    let good = deletes::read(&deleted.path.as_path().into(), &claim).unwrap();
    let bytes = fs::read(&deleted.path).unwrap();
    let rows = rows_of(&[layered_clone(&shard)]).unwrap();
    let mut refused = 0;
    let mut check = |damaged: &[u8], what: String, is_cut: bool| {
        fs::write(&deleted.path, damaged).unwrap();
        match deletes::read(&deleted.path.as_path().into(), &claim) {
            // Some bytes are needed only if others are damaged.
            Ok(found) => assert!(found.live == good.live && !is_cut, "{what}"),
            Err(error) => {
                refused += 1;
                let message = error.to_string();
                assert!(message.contains("rows.ingot.deletes"), "{what}: {message}");
                assert!(!message.contains("partial=True"), "{what}: {message}");
                let is_ours = matches!(
                    error,
                    Error::Corrupt { record: None, .. }
                        | Error::Format { .. }
                        | Error::Version { .. }
                );
                assert!(is_ours, "{what}: {error:?}");
                assert!(rows_of(&[layered_clone(&shard)]).is_err(), "{what}");
            }
        }
        let found = rows.files().verify(&mut |_| Ok(())).unwrap();
        assert_eq!(found.rows, 27);
        assert!(!found.damaged.is_empty(), "{what} is not found");
        assert!(found.damaged.iter().all(|one| one.record.is_none()), "{what}: {found:?}");
    };
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        check(&damaged, format!("bit {} of byte {place}", place % 8), false);
        check(&bytes[..place], format!("cut to {place} bytes"), true);
    }
    assert!(refused > bytes.len(), "{refused} of {} were refused", 2 * bytes.len());
    fs::remove_file(&deleted.path).unwrap();
    assert!(matches!(rows_of(&[layered_clone(&shard)]), Err(Error::Storage { .. })));
}

fn layered_clone(shard: &Shard) -> Shard {
    Shard { listed: shard.listed.clone(), rows: shard.rows.clone(), live: shard.live.clone() }
}

#[test]
fn a_bitmap_must_be_the_one_that_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let shard = layered(folder.path());
    let refused = |change: fn(&mut Listed), file: &str, why: &str| {
        let mut other = layered_clone(&shard);
        change(&mut other.listed);
        assert_refused(rows_of(&[other]), file, why);
    };
    let bitmap = "rows.ingot.deletes";
    refused(|it| it.deleted.as_mut().unwrap().id[0] ^= 1, bitmap, "another file is in its place");
    refused(|it| it.deleted.as_mut().unwrap().count = 2, bitmap, "3 of 30 rows, but the manifest");
    refused(
        |it| it.deleted.as_mut().unwrap().count = 31,
        "rows.ingot",
        "31 of 30 rows are deleted",
    );
    refused(|it| it.deleted.as_mut().unwrap().path = it.path.clone(), "rows.ingot", "its id is");
    // A bitmap of a file without a listed id belongs to the file that is there.
    let other = folder.path().join("other");
    let (id, _) = deletes::create(&other, [7; 16], 30, &[1, 0, 0, 0], false).unwrap();
    let mut listed = shard.listed.clone();
    listed.deleted = Some(Deleted { path: other, id, count: 1 });
    for id in [listed.id, None] {
        let listed = vec![Listed { id, ..listed.clone() }];
        let refused = Rows::listed(listed, Some(schema_of(ALL)));
        assert_refused(refused, "other", "it deletes rows of file 0707");
    }
}

/// Writes records and metadata as a bitmap, whatever they are, and reads it.
fn read_forged(metadata: &str, records: &[&[u8]], schema: Schema) -> ingot::Result<u64> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forged");
    let options = Options { compression: Compression::Lz4, sync: false, ..Options::default() };
    let mut writer = path::create(&path, schema, metadata, options)?;
    for record in records {
        writer.append(record)?;
    }
    writer.close()?;
    let claim = Claim { id: writer.id(), of: Some([7; 16]), rows: 12, count: 2 };
    deletes::read(&path.as_path().into(), &claim).map(|found| found.live.len())
}

#[test]
fn a_bitmap_whose_content_contradicts_itself_is_refused() {
    let of = "07".repeat(16);
    let metadata = format!(r#"{{"deletes": "{of}", "rows": 12, "count": 2, "later": [1]}}"#);
    let good: &[&[u8]] = &[&[0b1000_0001, 0]];
    assert_eq!(read_forged(&metadata, good, Schema::records()).unwrap(), 10);
    let refused: [(&[&[u8]], &str); 7] = [
        (&[&[1, 0]], "it deletes 1 rows, but says 2"),
        (&[&[1, 0b0001_0000]], "behind the last"),
        (&[], "0 records"),
        (&[&[3, 0], &[]], "2 records"),
        (&[&[3, 0, 0]], "has 3 bytes, not 2"),
        (&[&[3]], "has 1 bytes, not 2"),
        (&[&[]], "has 0 bytes, not 2"),
    ];
    for (records, why) in refused {
        assert_refused(read_forged(&metadata, records, Schema::records()), "forged", why);
    }
    let texts = ["{}", r#"{"rows": 12, "count": 2}"#, r#"{"deletes": 7, "rows": 12, "count": 2}"#];
    let short = format!(r#"{{"deletes": "+{}", "rows": 12, "count": 2}}"#, &of[1..]);
    let negative = metadata.replace(": 2", ": -2");
    for text in texts.into_iter().chain([short.as_str(), &negative]) {
        let refused = read_forged(text, good, Schema::records());
        assert_refused(refused, "forged", "not a bitmap of deleted rows");
    }
    let more = metadata.replace(": 12", ": 13");
    assert_refused(read_forged(&more, good, Schema::records()), "forged", "2 of 13 rows");
    let typed = Schema::new(schema_of(0b10).fields().to_vec()).unwrap();
    assert_refused(read_forged(&metadata, good, typed), "forged", "not a bitmap of deleted rows");
}

#[test]
fn writing_a_bitmap_refuses_bits_behind_the_last_row_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    for (rows, bitmap) in [(12, &[0_u8, 0x10][..]), (12, &[0][..]), (0, &[0][..]), (9, &[][..])] {
        let path = folder.path().join("bitmap");
        let error = deletes::create(&path, [1; 16], rows, bitmap, true).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
        assert!(!path.exists());
    }
    let storage = Memory::new();
    let bitmap = vec![0x55; 200_000];
    let name = "in memory";
    let written =
        deletes::write(Box::new(storage.clone()), name, [1; 16], 1_600_000, &bitmap, true);
    let (id, nbytes) = written.unwrap();
    assert_eq!(nbytes, storage.bytes().len() as u64);
    let open = Reader::open(std::sync::Arc::new(storage), name, Mode::Whole, &mut || Ok(()));
    let file = open.unwrap();
    assert_eq!(file.num_rows(), 4, "64 KiB in each record but the last");
    let claim = Claim { id, of: None, rows: 1_600_000, count: 800_000 };
    let found = deletes::read_from(&file, &claim).unwrap();
    assert_eq!((found.of, found.live.to_deleted()), ([1; 16], Some(bitmap)));
}

#[test]
fn a_file_of_columns_must_fit_its_shard() {
    let folder = tempfile::tempdir().unwrap();
    let shard = layered(folder.path());
    let file = "rows.ingot.0";
    let refused = |change: &dyn Fn(&mut Listed), why: &str| {
        let mut other = layered_clone(&shard);
        change(&mut other.listed);
        assert_refused(rows_of(&[other]), file, why);
    };
    refused(&|it| it.columns[0].id[3] ^= 1, "another file is in its place");
    refused(&|it| it.columns[0].fields.clear(), r#"only the file has the field "maybe text""#);
    refused(
        &|it| it.columns[0].fields.push("more".to_owned()),
        r#"only the manifest has the field "more""#,
    );
    let replace = |mask: Mask, rows: usize| {
        let path = &shard.listed.columns[0].path;
        fs::remove_file(path).unwrap();
        let values = random_values(rows, &mut Random(1));
        write_file(path, mask, &values, Compression::None, 100)
    };
    let id = replace(0b1000, 29);
    refused(&|it| it.columns[0].id = id, "the file has 29 rows, but the manifest says 30");
    // A field of another kind, and an optional one that does not say where there are values.
    let kinds = [
        (FieldKind::Sequence, true, "is a sequence of type Cell?, but a cell of type Cell?"),
        (FieldKind::Cell, false, r#"it lacks the column "maybe text?""#),
    ];
    for (kind, is_flagged, why) in kinds {
        let mut fields = schema_of(0b1000).fields().to_vec();
        fields[0].kind = kind;
        fields.truncate(1 + usize::from(is_flagged));
        let path = &shard.listed.columns[0].path;
        fs::remove_file(path).unwrap();
        let options = Options { sync: false, ..Options::default() };
        let made = path::create(path, Schema::new(fields).unwrap(), "{}", options);
        let mut writer: Writer = made.unwrap();
        for _ in 0..30 {
            let mut row = vec![match kind {
                FieldKind::Cell => Item::Cell(Vec::new()),
                _ => Item::Sequence(Vec::new()),
            }];
            row.extend(is_flagged.then(|| Item::Column(vec![0])));
            crate::support::append_row(&mut writer, &row).unwrap();
        }
        writer.close().unwrap();
        refused(&|it| it.columns[0].id = writer.id(), why);
    }
}

#[test]
fn a_field_that_no_file_has_must_be_optional() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(2);
    let path = |name: &str| folder.path().join(name);
    let good = Shard::new(path("good.ingot"), ALL, 5, &mut random);
    let mut bad = Shard::new(path("bad.ingot"), 0b101, 5, &mut random);
    let why = r#"it lacks the field "text", which is not optional"#;
    assert_refused(rows_of(&[layered_clone(&good), layered_clone(&bad)]), "bad.ingot", why);
    bad.add_columns(0b10, &mut random);
    check_shards(&[good, bad], &mut random);
}

#[test]
fn asking_for_a_missing_field_as_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let shard = Shard::new(folder.path().join("a"), REQUIRED, 5, &mut Random(2));
    let rows = rows_of(&[shard]).unwrap();
    for refused in [
        rows.count(&[0], 3).map(drop),
        rows.sizes(&[0], 4).map(drop),
        rows.values(&[0], 5).map(drop),
        rows.column(3, 0..rows.num_rows()).map(drop),
        rows.column(99, 0..rows.num_rows()).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
}

/// Flips a byte of a file.
fn damage(path: &Path, offset: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[offset as usize] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

fn reader_at(path: &Path) -> Reader {
    let storage = std::sync::Arc::new(LocalFile::open(path).unwrap());
    Reader::open(storage, &path.display().to_string(), Mode::Whole, &mut || Ok(())).unwrap()
}

/// Returns a row, or another near it, whose text is not empty, and where the text begins.
fn text_of(shard: &Shard, path: &Path, wanted: bool) -> (u64, u64) {
    let reader = reader_at(path);
    let field = reader.schema().fields().iter().position(|field| field.kind == FieldKind::Cell);
    let cells = (5..shard.rows.len() as u64).map(|row| reader.locate_field(row, field.unwrap()));
    let mut found = cells
        .map(Result::unwrap)
        .filter(|cell| cell.stored > 0 && shard.live[cell.row as usize] == wanted);
    let cell = found.next().expect("some text is not empty");
    (cell.row, cell.offset)
}

#[test]
fn errors_name_rows_as_they_are_counted_without_deleted_ones() {
    for place in [0, 1] {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random(21);
        let mut shards: Vec<Shard> = ["a", "b"]
            .map(|name| Shard::new(folder.path().join(name), ALL, 40, &mut random))
            .into();
        shards.iter_mut().for_each(|shard| shard.add_columns(0b10, &mut random));
        shards.iter_mut().for_each(|shard| shard.delete((0..40).map(|row| row % 3 == 1).collect()));
        let path = [&shards[1].listed.path, &shards[1].listed.columns[0].path][place].clone();
        let (row, offset) = text_of(&shards[1], &path, true);
        damage(&path, offset);
        let number = 13 + row / 3;
        let rows = rows_of(&shards).unwrap();
        if place == 1 {
            let error = read(&rows, &[0, number, 20], &[whole(1)]).unwrap_err();
            let Error::Corrupt { record, offset: found, .. } = &error else { panic!("{error:?}") };
            assert_eq!((*record, *found), (Some(number), offset));
        }
        let found = rows.files().verify(&mut |_| Ok(())).unwrap();
        assert_eq!((found.rows, found.damaged.len()), (26, 1));
        let one = &found.damaged[0];
        assert_eq!((one.record, one.records, one.offset), (Some(number), 1, offset));
        assert!(one.reason.contains(&format!("record {number}: ")), "{}", one.reason);
    }
}

#[test]
fn damage_of_a_deleted_row_belongs_to_no_other_row() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(22);
    let mut shard = Shard::new(folder.path().join("a.ingot"), ALL, 40, &mut random);
    shard.delete((0..40).map(|row| row % 2 == 0).collect());
    let (row, offset) = text_of(&shard, &shard.listed.path, false);
    damage(&shard.listed.path, offset);
    let rows = rows_of(&[layered_clone(&shard)]).unwrap();
    let expected: Vec<&Values> = shard.live_rows().collect();
    check(&rows, &expected, &mut random);
    let found = rows.files().verify(&mut |_| Ok(())).unwrap();
    let [one] = &found.damaged[..] else { panic!("{found:?}") };
    assert_eq!((one.record, one.records, one.offset), (None, 0, offset));
    let told = format!("deleted row {row} of {}: ", shard.listed.path.display());
    assert!(one.reason.starts_with(&told), "{}", one.reason);
}

#[test]
fn a_damaged_page_affects_the_rows_in_it_that_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let values = random_values(30, &mut Random(1));
    let path = folder.path().join("a.ingot");
    let id = write_file(&path, REQUIRED, &values, Compression::None, 10);
    let live: Vec<bool> = (0..30).map(|row| !(10..23).contains(&row)).collect();
    let mut shard = Shard { listed: Listed::plain(path.clone(), 30, Some(id)), rows: values, live };
    shard.delete(shard.live.clone());
    // The pages begin with their magic.
    let bytes = fs::read(&path).unwrap();
    let pages: Vec<usize> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..].starts_with(b"IPAG")).collect();
    assert_eq!(pages.len(), 3);
    damage(&path, pages[1] as u64 + 60);
    let rows = rows_of(&[layered_clone(&shard)]).unwrap();
    assert_eq!(
        rows.column(0, 0..rows.num_rows()).unwrap().len(),
        4 * 17,
        "no row of the page is left"
    );
    let found = rows.files().verify(&mut |_| Ok(())).unwrap();
    assert!(found.damaged.iter().all(|one| one.record.is_none()), "{found:?}");
    let told = "deleted rows 10 to 19 of ";
    assert!(found.damaged.iter().any(|one| one.reason.starts_with(told)), "{found:?}");

    damage(&path, pages[2] as u64 + 60);
    let rows = rows_of(&[shard]).unwrap();
    let error = rows.column(0, 0..rows.num_rows()).unwrap_err();
    assert!(matches!(error, Error::Corrupt { record: Some(10), .. }), "{error:?}");
    let found = rows.files().verify(&mut |_| Ok(())).unwrap();
    let of_rows: Vec<_> = found.damaged.iter().filter(|one| one.record.is_some()).collect();
    assert_eq!(of_rows.len(), 1, "{found:?}");
    assert_eq!((of_rows[0].record, of_rows[0].records), (Some(10), 7));
}
