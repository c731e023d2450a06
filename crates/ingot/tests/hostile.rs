//! Files made to harm: every checksum is right, what they say is not. Each gets an
//! error of ours, after little work and in little memory.

#![allow(unsafe_code)]

#[path = "support/allocator.rs"]
mod allocator;
#[path = "support/cpu.rs"]
mod cpu;
#[path = "support/forge.rs"]
mod forge;
mod support;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allocator::peak_of;
use cpu::cpu_time_of;
use forge::{Forge, put};
use ingot::compression::Codec;
use ingot::format::checksum;
use ingot::format::ingot::{
    BlockKind, DictionaryEntry, Directory, Encoding, FieldKind, HEADER_MAX, Header, PageBuilder,
    PageEntry, Schema, Trailer,
};
use ingot::records::{self, Compression, Files as _, Mode, Reader, Table as _};
use ingot::storage::Memory;
use support::{
    ID, NAME, Random, append_rows, column_of, create, names_the_file, open, options, random_rows,
    read_rows, record_rows, recover, schema_of, shared, without_columns,
};

/// Memory that a hostile file may cost beyond its own size.
const MEMORY: usize = 96 << 20;

/// Processor time that a hostile file may cost, all that is tried on it together.
const TIME: Duration = Duration::from_secs(5);

/// The test that holds this runs alone: the allocator counts for all threads.
struct Alone(#[allow(dead_code)] MutexGuard<'static, ()>);

fn alone() -> Alone {
    static ALONE: Mutex<()> = Mutex::new(());
    Alone(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Does all that can be done to a file, and checks the cost. Returns the errors,
/// each of which names the file.
fn try_all(_: &Alone, what: &str, bytes: &[u8]) -> Vec<String> {
    let storage = Memory::from(bytes.to_vec());
    let mut errors = Vec::new();
    let run = || {
        for mode in [Mode::Whole, Mode::Partial] {
            match open(&storage, mode) {
                Ok(reader) => read_all(&reader, &mut errors),
                Err(error) => note(&mut errors, &error),
            }
        }
        change_all(&storage, &mut errors);
    };
    let ((outcome, peak), took) = cpu_time_of(|| peak_of(|| catch_unwind(AssertUnwindSafe(run))));
    assert!(outcome.is_ok(), "{what}: panicked");
    assert!(took < TIME, "{what}: took {took:?}");
    // The file itself, what is repaired, and one more that a block of it may take.
    let allowed = MEMORY + 3 * bytes.len();
    assert!(peak < allowed, "{what}: took {} MiB, {} allowed", peak >> 20, allowed >> 20);
    errors
}

fn note(errors: &mut Vec<String>, error: &ingot::Error) {
    assert!(names_the_file(error), "{error}");
    errors.push(error.to_string());
}

fn read_all(reader: &Reader, errors: &mut Vec<String>) {
    for row in (0..reader.num_rows()).take(100).chain([reader.num_rows().saturating_sub(1)]) {
        if reader.num_rows() == 0 {
            break;
        }
        let mut cells = Vec::new();
        let located = support::locate_row(reader, row, &mut |found| {
            cells.extend_from_slice(&found.cells()[..found.cells().len().min(100)]);
        });
        if let Err(error) = located {
            note(errors, &error);
        }
        for cell in cells {
            let mut value = vec![0; cell.raw as usize];
            if let Err(error) = reader.fetch(&[cell], &mut [&mut value]) {
                note(errors, &error);
            }
        }
    }
    for (field, _) in reader.schema().of_kind(FieldKind::Column) {
        if let Err(error) = reader.column(field) {
            note(errors, &error);
        }
    }
    match reader.verify(&mut |_| Ok(())) {
        Ok(found) => errors.extend(found.damaged.into_iter().map(|damage| damage.reason)),
        Err(error) => note(errors, &error),
    }
}

/// Appends to the file and recovers it: the result is whole, or an error.
fn change_all(storage: &Memory, errors: &mut Vec<String>) {
    let copy = Memory::from(storage.bytes());
    let none = options(Compression::None);
    match records::append(&shared(&copy), Box::new(copy.clone()), NAME, none, &mut || Ok(())) {
        Ok((mut writer, recovery)) => {
            writer.close().unwrap();
            check_whole(&copy, recovery.rows);
        }
        Err(error) => note(errors, &error),
    }
    drop(copy);
    match recover(storage) {
        Ok(recovery) => check_whole(storage, recovery.rows),
        Err(error) => note(errors, &error),
    }
}

fn check_whole(storage: &Memory, rows: u64) {
    let reader = open(storage, Mode::Whole).expect("a recovered file is whole");
    assert_eq!(reader.num_rows(), rows);
}

fn refuse(alone: &Alone, what: &str, bytes: &[u8]) {
    let errors = try_all(alone, what, bytes);
    assert!(!errors.is_empty(), "{what}: nothing is said");
}

/// Returns the bytes of a file with this JSON in its header, its checksum right.
fn with_json(json: &[u8]) -> Vec<u8> {
    let mut bytes = Header::new(ID, Schema::records(), "{}").unwrap().bytes[..32].to_vec();
    bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
    let crc = checksum::unseeded(&[&bytes[..], json].concat());
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(json);
    bytes
}

#[test]
fn a_forged_file_that_is_honest_reads_right() {
    let alone = alone();
    let bytes = Forge::records().plain().plain().closed();
    assert_eq!(try_all(&alone, "honest", &bytes), [""; 0]);
    let reader = open(&Memory::from(bytes), Mode::Whole).unwrap();
    let rows: Vec<_> = read_rows(&reader).into_iter().map(Result::unwrap).collect();
    let once = [b"first".to_vec(), Vec::new(), b"third".to_vec()];
    assert_eq!(rows, record_rows(&[once.clone(), once].concat()));
}

type PatchDirectory = fn(&mut Directory);

#[test]
fn inconsistent_directories_are_rejected() {
    let alone = alone();
    let lies: &[(&str, PatchDirectory)] = &[
        ("page behind the end", |directory| directory.pages[0].offset = 1 << 40),
        ("page at the end of all offsets", |directory| {
            directory.pages[1] =
                PageEntry { offset: u64::MAX - 1, len: u32::MAX, ..directory.pages[1] };
        }),
        ("page over the directory", |directory| directory.pages[1].len += 200),
        ("page of 4 GiB", |directory| directory.pages[0].len = u32::MAX),
        ("page of no bytes", |directory| directory.pages[0].len = 0),
        ("page twice", |directory| directory.pages.push(directory.pages[1])),
        ("pages out of order", |directory| directory.pages.reverse()),
        ("pages that overlap", |directory| directory.pages[0].len += 200),
        ("page of no rows", |directory| directory.pages[0].rows = 0),
        ("no page has rows", |directory| {
            directory.pages.iter_mut().for_each(|page| page.rows = 0);
        }),
        ("too many rows", |directory| directory.pages[0].rows = u32::MAX),
        ("too many cells", |directory| directory.pages[0].cells = u32::MAX),
        ("too few cells", |directory| directory.pages[1].cells = 1),
        ("another page", |directory| directory.pages[0].crc ^= 1),
        ("page is the header", |directory| {
            directory.pages[0].offset = 0;
            directory.pages[0].len = 77;
        }),
        ("dictionary behind the end", |directory| {
            directory.dictionaries.push(DictionaryEntry {
                offset: 1 << 50,
                len: 9,
                crc: 0,
                field: 0,
            });
        }),
        ("dictionary of 4 GiB", |directory| {
            directory.dictionaries.push(DictionaryEntry {
                offset: 0,
                len: u32::MAX,
                crc: 0,
                field: 0,
            });
        }),
        ("dictionary of another field", |directory| {
            directory.dictionaries.push(DictionaryEntry { offset: 4, len: 9, crc: 0, field: 99 });
        }),
    ];
    for (what, lie) in lies {
        refuse(&alone, what, &Forge::records().plain().plain().close(lie, |_| {}));
    }
    for (what, at, value) in [
        ("more pages than the directory holds", 16, u64::MAX),
        ("pages whose size overflows", 16, u64::MAX / 24 + 2),
        ("a header of all bytes", 24, u64::MAX),
        ("a directory belongs elsewhere", 8, 7),
    ] {
        let patch = |block: &mut Vec<u8>| put(block, at, &value.to_le_bytes());
        refuse(&alone, what, &Forge::records().plain().close(|_| {}, patch));
    }
    let patch = |block: &mut Vec<u8>| put(block, 4, &u32::MAX.to_le_bytes());
    refuse(&alone, "dictionaries of all numbers", &Forge::records().plain().close(|_| {}, patch));
}

#[test]
fn inconsistent_pages_are_rejected() {
    let alone = alone();
    // format.md, "Index page": 48 bytes, 4 for the encoding, then entries of 8.
    let (entries, word) = (52, 8);
    let lies: &[(&str, usize, &[u8])] = &[
        ("unknown flags", 4, &[4]),
        ("wide without being so", 4, &[1]),
        ("lengths that are not there", 4, &[2]),
        ("too many fields", 6, &[2]),
        ("no fields", 6, &[0]),
        ("another place", 8, &[1]),
        ("cells behind the page", 16, &[0xff; 8]),
        ("cells in the header", 16, &[0; 8]),
        ("other rows", 24, &[9]),
        ("other cells", 32, &[9]),
        ("huge row count", 40, &[0xff; 4]),
        ("no rows", 40, &[0; 4]),
        ("huge cell count", 44, &[0xff; 4]),
        ("huge row and cell count", 40, &[0xff; 8]),
        ("unknown codec", 48, &[9]),
        ("reserved byte", 49, &[1]),
        ("cells run backwards", entries, &[5, 0, 0, 0, 0, 0, 0, 0, 4]),
        ("cell ends behind the page", entries, &[0xff; 4]),
        ("another end", entries + 2 * word, &[9]),
        ("another checksum", entries + 4, &[0, 0, 0, 0]),
    ];
    for (what, at, value) in lies {
        let mut forge = Forge::records();
        forge.page(&[(b"first", 5), (b"", 0), (b"third", 5)], Encoding::default(), |block| {
            put(block, *at, value);
        });
        refuse(&alone, what, &forge.plain().closed());
        refuse(&alone, what, &forge.bytes[..forge.bytes.len() - 1]);
    }
    for (what, keep) in [("page cut short", 40), ("page without entries", 52), ("no page", 0)] {
        let mut forge = Forge::records();
        forge.page(&[(b"first", 5)], Encoding::default(), |block| block.truncate(keep));
        refuse(&alone, what, &forge.closed());
    }
}

#[test]
fn wide_pages_that_overflow_are_rejected() {
    let alone = alone();
    for (what, entry) in [
        ("end of all bytes", [u64::MAX, 0]),
        ("end that overflows with the base", [u64::MAX - 40, 0]),
        ("value of all bytes", [5, u64::MAX]),
        ("value of 2^63 bytes", [5, 1 << 63]),
        ("value shorter than stored", [5, 4]),
    ] {
        let mut forge = Forge::records();
        forge.page(&[(b"first", 5)], Encoding { codec: 1, dictionary: 0 }, |block| {
            block.truncate(52);
            put(block, 4, &[3]);
            block.extend_from_slice(&entry[0].to_le_bytes());
            block.extend_from_slice(&[0; 4]);
            block.extend_from_slice(&entry[1].to_le_bytes());
        });
        refuse(&alone, what, &forge.closed());
    }
}

#[test]
fn inconsistent_sequences_are_rejected() {
    let alone = alone();
    let schema = schema_of(&[
        (FieldKind::Sequence, None),
        (FieldKind::Cell, None),
        (FieldKind::Sequence, None),
        (FieldKind::Column, Some(2)),
    ]);
    // Three rows; the first sequence has 2, 0, 1 elements, the second 1, 1, 0: eight cells.
    let (entries, cells) = (48 + 4 * 4, 8);
    let ends = entries + cells * 8;
    let lies: &[(&str, [u32; 6])] = &[
        ("ends that run backwards", [2, 1, 3, 1, 2, 2]),
        ("ends of all numbers", [u32::MAX, u32::MAX, 3, u32::MAX, 2, 2]),
        ("elements of another row", [9, 9, 3, 1, 2, 2]),
        ("another total", [2, 2, 4, 1, 2, 2]),
        ("totals that overflow", [2, 2, u32::MAX, 1, 2, u32::MAX]),
        ("elements past the page", [0, 0, 3, 0, 8, 2]),
    ];
    let forge = |patch: &dyn Fn(&mut Vec<u8>)| {
        let mut forge = Forge::new(schema.clone());
        let base = forge.position();
        let mut builder = PageBuilder::new(&schema, base, 0, 0);
        for cell in 0..cells as u64 {
            let value = [cell as u8; 3];
            builder.push_cell(3, 3, forge.seed().cell(cell, &value));
            forge.bytes.extend_from_slice(&value);
        }
        builder.push_rows(3, &[vec![2, 0, 1], vec![1, 1, 0]], &[b"aabbcc".to_vec()]);
        forge.built(&builder, patch);
        forge.closed()
    };
    let honest = open(&Memory::from(forge(&|_| {})), Mode::Whole).unwrap();
    assert_eq!(honest.num_elements(0, 0).unwrap(), 2);
    assert_eq!(honest.column(3).unwrap(), b"aabbcc");
    for (what, lie) in lies {
        let bytes = forge(&|block: &mut Vec<u8>| {
            for (k, end) in lie.iter().enumerate() {
                put(block, ends + 4 * k, &end.to_le_bytes());
            }
        });
        refuse(&alone, what, &bytes);
    }
}

/// Returns a zstd frame, as cells have it, that expands to `len` zeros.
fn zstd_bomb(len: usize) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..len >> 20 {
        encoder.write_all(&zeros).unwrap();
    }
    // Cells go without the magic number.
    encoder.finish().unwrap()[4..].to_vec()
}

/// Returns an LZ4 block that expands to about `len` zeros.
fn lz4_bomb(len: usize) -> Vec<u8> {
    let mut block = vec![0x1f, 0, 1, 0];
    block.resize(block.len() + len / 255, 0xff);
    block.extend_from_slice(&[0, 0x50, 0, 0, 0, 0, 0]);
    block
}

#[test]
fn decompression_bombs_are_rejected() {
    let alone = alone();
    for (codec, bomb) in [(Codec::Zstd, zstd_bomb(1 << 30)), (Codec::Lz4, lz4_bomb(1 << 30))] {
        let stored = bomb.len() as u64;
        let honest_limit = (64 << 20) + stored * 256;
        for raw in [
            stored + 1,
            stored + 1000,
            64 << 20,
            honest_limit.min(88 << 20),
            honest_limit + 1,
            1 << 40,
            u64::MAX,
        ] {
            let mut forge = Forge::records();
            let encoding = Encoding { codec: codec.code(), dictionary: 0 };
            forge.page(&[(&bomb, raw)], encoding, |_| {});
            refuse(&alone, &format!("{codec:?} bomb of {stored} bytes as {raw}"), &forge.closed());
        }
    }
}

#[test]
fn a_small_frame_that_says_it_is_large_is_rejected_without_the_memory() {
    let alone = alone();
    for codec in [Codec::Zstd, Codec::Lz4, Codec::None] {
        for raw in [9, 1 << 20, 64 << 20, (64 << 20) + 8 * 256, 1 << 32, 1 << 62] {
            let mut forge = Forge::records();
            let encoding = Encoding { codec: codec.code(), dictionary: 0 };
            let cell: (&[u8], u64) = (b"8 bytes.", raw);
            forge.page(&[cell; 3], encoding, |_| {});
            refuse(&alone, &format!("{codec:?}: 8 bytes as {raw}"), &forge.closed());
        }
    }
}

#[test]
fn dictionaries_out_of_range_or_of_garbage_are_rejected() {
    let alone = alone();
    let mut random = Random(1);
    let garbage = random.bytes(300);
    let magic = [&[0x37, 0xa4, 0x30, 0xec][..], &garbage].concat();
    for (what, bytes, number) in [
        ("dictionary 1 of 0", None, 1),
        ("dictionary 2 of 1", Some(&garbage), 2),
        ("the last dictionary there can be", Some(&garbage), u16::MAX),
        ("a dictionary of garbage", Some(&magic), 1),
        ("an empty dictionary", Some(&Vec::new()), 1),
    ] {
        let mut forge = Forge::records();
        if let Some(bytes) = bytes {
            forge.dictionary(bytes);
        }
        let encoding = Encoding { codec: Codec::Zstd.code(), dictionary: number };
        forge.page(&[(b"not a frame at all", 500)], encoding, |_| {});
        refuse(&alone, what, &forge.closed());
    }
}

#[test]
fn one_dictionary_that_is_listed_many_times_is_rejected() {
    let alone = alone();
    let mut forge = Forge::records();
    forge.dictionary(&Random(2).bytes(8 << 20));
    for number in 1..40 {
        let encoding = Encoding { codec: Codec::Zstd.code(), dictionary: number };
        forge.page(&[(b"not a frame at all", 500)], encoding, |_| {});
    }
    let again = |directory: &mut Directory| {
        directory.dictionaries = vec![directory.dictionaries[0]; 4000];
    };
    refuse(&alone, "a dictionary of 8 MiB 4000 times", &forge.close(again, |_| {}));
}

#[test]
fn inconsistent_trailers_are_rejected() {
    let alone = alone();
    type Lie = fn(&mut Trailer);
    let lies: &[(&str, Lie)] = &[
        ("block that begins before the file", |trailer| {
            trailer.block.len = trailer.offset + 1;
            trailer.block.offset = u64::MAX;
        }),
        ("block of the whole file", |trailer| {
            trailer.block.len = trailer.offset;
            trailer.block.offset = 0;
        }),
        ("its own predecessor", |trailer| trailer.previous.0 = trailer.offset),
        ("a predecessor behind it", |trailer| trailer.previous.0 = trailer.offset + 96),
        ("a predecessor at the end of all offsets", |trailer| trailer.previous.0 = u64::MAX),
        ("a predecessor in the header", |trailer| trailer.previous.0 = 8),
        ("another predecessor", |trailer| trailer.previous.1 ^= 1),
        ("all rows there can be", |trailer| trailer.rows = u64::MAX),
        ("all cells there can be", |trailer| trailer.cells = u64::MAX),
        ("no rows", |trailer| trailer.rows = 0),
        ("another place", |trailer| trailer.offset += 1),
        ("synced bytes behind it", |trailer| trailer.durable = u64::MAX),
        ("a dictionary that is none", |trailer| trailer.block.kind = BlockKind::Dictionary),
        ("a directory that is none", |trailer| trailer.block.kind = BlockKind::Directory),
        ("a mark with a block", |trailer| trailer.block.kind = BlockKind::Mark),
    ];
    for (what, lie) in lies {
        for close in [false, true] {
            let mut forge = Forge::records();
            forge.plain().plain();
            let page = forge.directory.pages[1];
            forge.bytes.truncate((page.offset + u64::from(page.len)) as usize);
            forge.previous = (forge.directory.pages[0].offset + 80, 0);
            forge.trailer(BlockKind::Page, page.len.into(), page.crc, lie);
            if close {
                forge.closed();
            }
            refuse(&alone, what, &forge.bytes);
        }
    }
}

#[test]
fn inconsistent_headers_are_rejected() {
    let alone = alone();
    let deep = |depth: usize| {
        let metadata = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        format!("{{\"fields\":[{{\"name\":\"a\",\"kind\":\"cell\"}}],\"metadata\":{metadata}}}")
    };
    let field = "{\"name\":\"a\",\"kind\":\"cell\"}";
    let fields = |fields: &str| format!("{{\"fields\":[{fields}],\"metadata\":{{}}}}");
    let many = |count: usize| {
        let all: Vec<String> =
            (0..count).map(|k| format!("{{\"name\":\"{k}\",\"kind\":\"cell\"}}")).collect();
        fields(&all.join(","))
    };
    let width =
        |width: &str| fields(&format!("{{\"name\":\"a\",\"kind\":\"column\",\"width\":{width}}}"));
    for (what, json) in [
        ("metadata 1000 deep", deep(1000)),
        ("metadata a million deep", deep(1_000_000)),
        ("a million open brackets", "[".repeat(1_000_000)),
        ("fields a million deep", fields(&"[".repeat(1_000_000))),
        ("no fields", fields("")),
        ("4097 fields", many(4097)),
        ("half a million fields", many(500_000)),
        ("a field twice", fields(&[field, field].join(","))),
        ("a key twice", format!("{{\"fields\":[{field}],\"fields\":[],\"metadata\":{{}}}}")),
        ("a width of 0", width("0")),
        ("a width of 65537", width("65537")),
        ("a width below 0", width("-1")),
        ("a width that is no number", width("1e999")),
        ("a column without a width", fields("{\"name\":\"a\",\"kind\":\"column\"}")),
        ("an unknown kind", fields("{\"name\":\"a\",\"kind\":\"blob\"}")),
        ("metadata that is a list", format!("{{\"fields\":[{field}],\"metadata\":[]}}")),
        ("no metadata", format!("{{\"fields\":[{field}]}}")),
        ("nothing", String::new()),
        ("metadata full of numbers", {
            let numbers = "0,".repeat(HEADER_MAX / 2 - 100);
            format!("{{\"fields\":[{field}],\"metadata\":{{\"a\":[{numbers}1e999]}}}}")
        }),
    ] {
        refuse(&alone, what, &with_json(json.as_bytes()));
    }
    refuse(&alone, "JSON that is no text", &with_json(b"{\"fields\":[{\"name\":\"\xff\"}]}"));
    refuse(&alone, "JSON above the limit", &with_json(&vec![b' '; HEADER_MAX + 1]));
    let mut bytes = Forge::records().plain().closed();
    put(&mut bytes, 32, &u32::MAX.to_le_bytes());
    refuse(&alone, "JSON of 4 GiB", &bytes);
    let len = bytes.len() as u32;
    put(&mut bytes, 32, &len.to_le_bytes());
    refuse(&alone, "JSON of the whole file", &bytes);
}

#[test]
fn large_metadata_opens_in_little_memory() {
    let _alone = alone();
    let numbers = "0,".repeat(HEADER_MAX / 2 - 100);
    let metadata = format!("{{\"a\":[{numbers}0]}}");
    let header = Header::new(ID, Schema::records(), &metadata).unwrap();
    let storage = Memory::from(header.bytes);
    let (reader, peak) = peak_of(|| open(&storage, Mode::Partial).unwrap());
    assert!(peak < MEMORY, "{} MiB", peak >> 20);
    assert_eq!(reader.header().metadata, metadata);
}

#[test]
fn records_that_look_like_parts_of_the_file_are_only_records() {
    let _alone = alone();
    let schema = Schema::records();
    let inner =
        support::closed_file(&schema, &[&random_rows(9, 40, 3)], options(Compression::None));
    let outer = Memory::new();
    let mut writer = create(outer.clone(), &schema, options(Compression::None));
    let mut rows = random_rows(5, 60, 4);
    append_rows(&mut writer, &rows);
    writer.flush().unwrap();
    let first = outer.bytes();
    let trailer = first[first.len() - 96..].to_vec();
    let page = first[first.len() - 96 * 2 - 100..first.len() - 96 * 2].to_vec();
    let copies = record_rows(&[trailer.clone(), page, first.clone(), inner.clone(), trailer]);
    append_rows(&mut writer, &copies);
    rows.extend(copies);
    writer.flush().unwrap();
    let committed = outer.bytes().len();
    append_rows(&mut writer, &record_rows(&[first, inner]));
    writer.submit().unwrap();
    writer.abandon();
    assert!(outer.bytes().len() > committed, "the last rows are there but not committed");

    let reader = open(&outer, Mode::Partial).unwrap();
    let found: Vec<_> = read_rows(&reader).into_iter().map(Result::unwrap).collect();
    assert!(found == rows);
    assert!(open(&outer, Mode::Whole).is_err());
    let recovery = recover(&outer).unwrap();
    assert_eq!(recovery.rows as usize, rows.len());
    let reader = open(&outer, Mode::Whole).unwrap();
    let found: Vec<_> = read_rows(&reader).into_iter().map(Result::unwrap).collect();
    assert!(found == rows);
    assert_eq!(reader.verify(&mut |_| Ok(())).unwrap().damaged, []);
}

#[test]
fn data_full_of_page_beginnings_is_searched_quickly() {
    let alone = alone();
    // What each of these says it is reaches to the end of the data, so that checking
    // them all would take the square of its length.
    let len = 4 << 20;
    let header = Header::new(ID, Schema::records(), "{}").unwrap();
    let start = header.bytes.len();
    let mut data = Vec::with_capacity(len);
    while data.len() + 100 < len {
        let rest = len - data.len();
        let cells = ((rest - 56) / 8) as u32;
        data.extend_from_slice(b"IPAG\0\0\x01\0");
        data.extend_from_slice(&((start + data.len() - 8) as u64).to_le_bytes());
        data.extend_from_slice(&(start as u64).to_le_bytes());
        data.extend_from_slice(&[0; 16]);
        data.extend_from_slice(&cells.to_le_bytes());
        data.extend_from_slice(&cells.to_le_bytes());
        data.extend_from_slice(&[0; 8]);
    }
    data.resize(len, 0);
    let torn = [&header.bytes[..], &data].concat();
    refuse(&alone, "torn end", &torn);

    let mut forge = Forge::records();
    forge.page(&[(&data, data.len() as u64)], Encoding::default(), |_| {}).plain();
    let page = forge.directory.pages[0];
    let trailer = (page.offset + u64::from(page.len)) as usize;
    forge.bytes[trailer + 30] ^= 1;
    refuse(&alone, "damaged trailer", &forge.bytes);
}

#[test]
fn cells_that_share_their_bytes_cost_no_memory_for_each() {
    let alone = alone();
    // Ends that go up and down: every second cell is all of the data.
    let data = Random(5).bytes(4 << 20);
    let mut forge = Forge::records();
    let mut cells: Vec<(&[u8], u64)> = vec![(&[], 0); 4000];
    cells[0] = (&data, data.len() as u64);
    let end = (data.len() as u32).to_le_bytes();
    forge.page(&cells, Encoding::default(), |block| {
        for cell in (1..4000).step_by(2) {
            put(block, 52 + 8 * cell, &[0; 4]);
            put(block, 52 + 8 * (cell - 1), &end);
        }
    });
    refuse(&alone, "4 MiB 2000 times", &forge.closed());
}

#[test]
fn the_error_of_a_column_names_the_first_row_of_the_bad_page() {
    let schema = schema_of(&[(FieldKind::Column, Some(1)), (FieldKind::Cell, None)]);
    let mut forge = Forge::new(schema.clone());
    for (first, rows) in [(0, 3), (3, 4)] {
        let mut page = PageBuilder::new(&schema, forge.position(), first, first);
        for _ in 0..rows {
            page.push_cell(0, 0, forge.seed().cell(page.next_cell(), b""));
        }
        page.push_rows(rows, &[], &[vec![7; rows as usize]]);
        forge.built(&page, |_| {});
    }
    let mut bytes = forge.closed();
    assert_eq!(open(&Memory::from(bytes.clone()), Mode::Whole).unwrap().column(0).unwrap(), [7; 7]);
    bytes[forge.directory.pages[1].offset as usize + 50] ^= 1;
    let error = open(&Memory::from(bytes), Mode::Whole).unwrap().column(0).unwrap_err();
    assert!(matches!(error, ingot::Error::Corrupt { record: Some(3), .. }), "{error}");
}

#[test]
fn columns_come_from_honest_pages_alone() {
    let alone = alone();
    let schema = schema_of(&[(FieldKind::Column, Some(3)), (FieldKind::Cell, None)]);
    let rows: Vec<support::Row> = (0..5)
        .map(|k| vec![support::Item::Column(vec![k; 3]), support::Item::Cell(vec![k; 10])])
        .collect();
    let bytes = support::closed_file(&schema, &[&rows], options(Compression::None));
    let reader = open(&Memory::from(bytes.clone()), Mode::Whole).unwrap();
    assert_eq!(reader.column(0).unwrap(), column_of(&rows, 0));
    let found = read_rows(&reader);
    assert_eq!(*found[4].as_ref().unwrap(), without_columns(&rows[4]));
    for at in 0..bytes.len() - 4 {
        let mut lie = bytes.clone();
        put(&mut lie, at, &[0xff; 4]);
        try_all(&alone, "four bytes of ones", &lie);
    }
}
