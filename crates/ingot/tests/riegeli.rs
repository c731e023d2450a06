//! Chunks of Riegeli's record files: those that Riegeli itself has written, any records
//! there and back, and data that lies.
//!
//! The files are in `tests/data/arrayrecord`; the manifest beside them says what is in each.

#![allow(unsafe_code)]

#[path = "support/allocator.rs"]
mod allocator;
#[path = "support/cpu.rs"]
mod cpu;
mod support;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allocator::peak_of;
use cpu::cpu_time_of;
use ingot::compression::block::{self, Compressor, Method, Settings};
use ingot::format::Violation;
use ingot::format::riegeli::chunk::Header;
use ingot::format::riegeli::{Chunk, Compression, Encoder, Group, Kind, simple, transposed};
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use support::Random;

const ZSTD: Compression = Compression::Blocks(Settings::Zstd { level: 3, window_log: 20 });
const BROTLI: Compression = Compression::Blocks(Settings::Brotli { level: 6, window_log: 22 });
const SNAPPY: Compression = Compression::Blocks(Settings::Snappy);
const ALL: [Compression; 4] = [Compression::None, BROTLI, ZSTD, SNAPPY];

/// Bytes of a bucket unless the user asks for others.
const BUCKET: u64 = 256;

fn data(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/arrayrecord");
    std::fs::read(folder.join(name)).unwrap()
}

fn manifest() -> Value {
    serde_json::from_slice(&data("manifest.json")).unwrap()
}

/// The golden files, without the one that is compressed as a whole.
fn golden() -> Vec<(String, Vec<u8>)> {
    let manifest = manifest();
    let names = manifest["files"].as_object().unwrap().keys();
    let files: Vec<_> = names
        .filter(|name| name.ends_with(".array_record"))
        .map(|name| (name.clone(), data(name)))
        .collect();
    assert_eq!(files.len(), 12);
    files
}

/// Returns the chunks of a file, which leave nothing out.
fn chunks(file: &[u8]) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let mut begin = 0;
    while begin < file.len() as u64 {
        let chunk = Chunk::decode(&file[begin as usize..], begin).unwrap();
        begin = chunk.end;
        chunks.push(chunk);
    }
    assert_eq!(begin, file.len() as u64);
    chunks
}

/// Returns the chunks with records. The last two are the footer and the postscript.
fn chunks_with_records(file: &[u8]) -> Vec<Chunk<'_>> {
    let chunks = chunks(file);
    assert_eq!(chunks[0].header.kind, Kind::SIGNATURE);
    chunks.into_iter().filter(|chunk| chunk.header.records > 0).collect()
}

fn decode(chunk: &Chunk<'_>) -> Result<Group, Violation> {
    match chunk.header.kind {
        Kind::SIMPLE => simple::decode(chunk),
        Kind::TRANSPOSED => transposed::decode(chunk),
        Kind(letter) => panic!("a chunk of kind {letter}"),
    }
}

fn compression_of(chunk: &Chunk<'_>) -> Compression {
    ALL.into_iter().find(|compression| compression.letter() == chunk.data[0]).unwrap()
}

fn chunk_of(header: Header, data: &[u8]) -> Chunk<'_> {
    Chunk { header, data: data.into(), end: 0 }
}

fn group_of<R: AsRef<[u8]>>(records: &[R]) -> Group {
    let mut group = Group::default();
    for record in records {
        group.push(record.as_ref());
    }
    group
}

fn transpose(group: &Group, compression: Compression, bucket_len: u64) -> (Header, Vec<u8>) {
    let mut data = Vec::new();
    let mut encoder = Encoder::new(compression);
    let header = transposed::encode(group, &mut encoder, bucket_len, &mut data).unwrap();
    (header, data)
}

fn check_there_and_back(group: &Group, compression: Compression, bucket_len: u64) {
    let (header, data) = transpose(group, compression, bucket_len);
    let again = transpose(group, compression, bucket_len);
    assert!(again.1 == data, "the same records, but other bytes");
    let found = transposed::decode(&chunk_of(header, &data)).unwrap();
    assert!(found == *group, "{compression:?}");
}

/// The test that holds this runs alone: the allocator counts for all threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn golden_files_hold_the_records_of_the_manifest() {
    let _alone = alone();
    let manifest = manifest();
    for (name, file) in golden() {
        let chunks = chunks_with_records(&file);
        let mut found = Vec::new();
        for chunk in &chunks[..chunks.len() - 2] {
            let group = decode(chunk).unwrap();
            let hex = |hash: &[u8]| hash.iter().map(|byte| format!("{byte:02x}")).collect();
            found.extend(
                (0..group.len()).map(|k| Value::String(hex(&Sha256::digest(group.record(k))))),
            );
        }
        let set =
            &manifest["record_sets"][manifest["files"][&name]["record_set"].as_str().unwrap()];
        assert_eq!(set["sha256"], Value::Array(found), "{name}");
    }
}

#[test]
fn golden_chunks_come_out_of_their_records_again() {
    let _alone = alone();
    for (name, file) in golden() {
        for chunk in chunks_with_records(&file) {
            let compression = compression_of(&chunk);
            let group = decode(&chunk).unwrap();
            if chunk.header.kind == Kind::TRANSPOSED {
                check_there_and_back(&group, compression, BUCKET);
                continue;
            }
            let mut data = Vec::new();
            let header = simple::encode(&group, &mut Encoder::new(compression), &mut data).unwrap();
            if compression == SNAPPY {
                assert!(simple::decode(&chunk_of(header, &data)).unwrap() == group, "{name}");
            } else {
                assert!((header, &data[..]) == (chunk.header, &chunk.data[..]), "{name}");
            }
        }
    }
}

#[test]
fn transposed_chunks_are_about_as_small_as_the_golden_ones() {
    let _alone = alone();
    for (name, file) in golden() {
        for chunk in chunks_with_records(&file) {
            if chunk.header.kind == Kind::TRANSPOSED {
                let bucket_len = if name.contains("mixed") { 64 } else { BUCKET };
                let group = decode(&chunk).unwrap();
                let (_, data) = transpose(&group, compression_of(&chunk), bucket_len);
                let golden = chunk.data.len();
                assert!(data.len() <= golden + golden / 20, "{name}: {}, {golden}", data.len());
            }
        }
    }
}

#[test]
fn a_chunk_that_was_written_by_hand_is_read() {
    let _alone = alone();
    let layout =
        b"\x02\x02\x03\x06\x03\x06\x04\x12\x08\x08\x03\x01\x07\x07\x00\x00\x01\x01\x00\x00\x00";
    let chunk = forge(layout, b"\x2c\x02\x05\x02no\x02ok", b"\x06", 2, 13);
    let group = transposed::decode(&chunk).unwrap();
    assert!(group == group_of(&[&b"\x08\x05\x12\x02ok"[..], b"\x08\xac\x02\x12\x02no"]));
}

/// A message that holds others, so deep.
fn nested(depth: usize) -> Vec<u8> {
    let mut message = b"\x08\x05".to_vec();
    for k in 0..depth {
        let inner = std::mem::take(&mut message);
        put_field(&mut message, 1 + k as u64 % 3, &Field::Bytes(inner));
    }
    message
}

#[derive(Debug, Clone)]
enum Field {
    Varint(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(Vec<u8>),
    Group(Vec<u8>),
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_field(out: &mut Vec<u8>, number: u64, field: &Field) {
    let tag = |out: &mut Vec<u8>, wire_type: u64| put_varint(out, number << 3 | wire_type);
    match field {
        Field::Varint(value) => {
            tag(out, 0);
            put_varint(out, *value);
        }
        Field::Fixed64(value) => {
            tag(out, 1);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Field::Bytes(value) => {
            tag(out, 2);
            put_varint(out, value.len() as u64);
            out.extend_from_slice(value);
        }
        Field::Group(value) => {
            tag(out, 3);
            out.extend_from_slice(value);
            tag(out, 4);
        }
        Field::Fixed32(value) => {
            tag(out, 5);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let number = || prop_oneof![8 => 1..6_u64, 1 => 1..(1_u64 << 29)];
    let build = |fields: Vec<(u64, Field)>| {
        let mut message = Vec::new();
        fields.iter().for_each(|(number, field)| put_field(&mut message, *number, field));
        message
    };
    let leaf = || {
        prop_oneof![
            (0..6_u64).prop_map(Field::Varint),
            (any::<u64>(), 0..64_u32).prop_map(|(value, bits)| Field::Varint(value >> bits)),
            any::<u32>().prop_map(Field::Fixed32),
            any::<u64>().prop_map(Field::Fixed64),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(Field::Bytes),
        ]
    };
    let flat = prop::collection::vec((number(), leaf()), 0..8).prop_map(build);
    flat.prop_recursive(5, 60, 6, move |inner| {
        let field = prop_oneof![
            4 => leaf(),
            2 => inner.clone().prop_map(Field::Bytes),
            1 => inner.prop_map(Field::Group),
        ];
        prop::collection::vec((number(), field), 0..8).prop_map(build)
    })
}

fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let record = prop_oneof![
        8 => message(),
        2 => prop::collection::vec(any::<u8>(), 0..60),
        1 => Just(Vec::new()),
        1 => (0..130_usize).prop_map(nested),
    ];
    (prop::collection::vec(record, 0..12), 0..40_usize).prop_map(|(kinds, more)| {
        let again = kinds.iter().cycle().take(if kinds.is_empty() { 0 } else { more }).cloned();
        kinds.iter().cloned().chain(again.collect::<Vec<_>>()).collect()
    })
}

fn bucket_len() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 1, 64, BUCKET, u64::MAX])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_round_trip(records in records(), bucket_len in bucket_len()) {
        let _alone = alone();
        for compression in ALL {
            check_there_and_back(&group_of(&records), compression, bucket_len);
        }
    }

    #[test]
    fn damaged_data_never_costs_much(records in records(), seed in any::<u64>()) {
        let _alone = alone();
        let mut random = Random(seed);
        for compression in ALL {
            let group = group_of(&records);
            let (mut header, mut data) = transpose(&group, compression, BUCKET);
            for _ in 0..20 {
                damage(&mut data, &mut random);
                try_decode("damaged", &chunk_of(header, &data));
            }
            header.decoded_len = random.next() >> (40 + random.below(24));
            header.records = random.next() >> (40 + random.below(24));
            try_decode("lengths that lie", &chunk_of(header, &data));
        }
    }
}

/// Changes, removes or repeats some bytes.
fn damage(data: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(data.len());
    let end = at + random.below(data.len() - at + 1).min(8);
    match random.below(4) {
        0 => data[at] = random.next() as u8,
        1 => data[at] ^= 1 << random.below(8),
        2 if end - at < data.len() => drop(data.drain(at..end)),
        _ => {
            let copy = data[at..end].to_vec();
            let to = random.below(data.len());
            data.splice(to..to, copy);
        }
    }
}

/// Memory that any chunk may cost beyond what it stores and says.
const MEMORY: usize = 16 << 20;

/// Processor time that any chunk may cost.
const TIME: Duration = Duration::from_secs(2);

/// Decodes a chunk, checks what it costs, and returns what is wrong with it.
fn try_decode(what: &str, chunk: &Chunk<'_>) -> Option<String> {
    let ((outcome, peak), took) = cpu_time_of(|| peak_of(|| transposed::decode(chunk)));
    assert!(took < TIME, "{what}: took {took:?}");
    let said = (chunk.header.decoded_len + chunk.header.records) as usize;
    let allowed = MEMORY + 128 * said + 512 * chunk.data.len();
    assert!(peak < allowed, "{what}: took {} MiB, {} allowed", peak >> 20, allowed >> 20);
    outcome.err().map(|violation| violation.0)
}

/// Returns a chunk that is not compressed.
fn forge(
    layout: &[u8],
    buckets: &[u8],
    transitions: &[u8],
    records: u64,
    decoded_len: u64,
) -> Chunk<'static> {
    let mut data = vec![0];
    put_varint(&mut data, layout.len() as u64);
    for part in [layout, buckets, transitions] {
        data.extend_from_slice(part);
    }
    let header = Header::new(Kind::TRANSPOSED, records, decoded_len, &data);
    Chunk { header, data: data.into(), end: 0 }
}

/// Returns the layout of a machine without buffers.
fn machine(tags: &[u8], next: &[u8], first: u8) -> Vec<u8> {
    let count = tags.len() as u8;
    [&[0, 0, count][..], tags, next, &[first]].concat()
}

#[test]
fn inconsistent_layouts_are_rejected() {
    let _alone = alone();
    let refused = [
        ("an empty layout", &b""[..], "a number is truncated"),
        ("no states", b"\0\0\0\0", "number 0 of 0"),
        ("many buckets", b"\xff\xff\xff\xff\x0f\0\0", "layout of a chunk is truncated"),
        ("many buffers", b"\0\xff\xff\xff\xff\x0f\0", "layout of a chunk is truncated"),
        ("many states", b"\0\0\xff\xff\xff\xff\x0f\0\0", "layout of a chunk is truncated"),
        ("a bucket that is not there", b"\x01\0\x07\x01\x03\0\0", "a chunk is truncated"),
        ("a buffer without a bucket", b"\0\x01\x01\x01\x03\0\0", "beyond its bucket"),
        ("a tag that is reserved", b"\0\0\x01\x04\0\0", "a state with the tag 4"),
        ("a wire type that is none", b"\0\0\x01\x0f\0\0", "a state with the tag 15"),
        ("a tag of 33 bits", b"\0\0\x01\xff\xff\xff\xff\x1f\0\0", "a tag of 8589934591"),
        ("a state behind the last", b"\0\0\x01\x03\x02\0", "number 1 of 1"),
        ("a varint without subtype", b"\0\0\x01\x08\0", "layout of a chunk is truncated"),
        ("a subtype that is none", b"\0\0\x01\x08\0\x8a\0", "a varint of subtype 138"),
        ("a buffer that is none", b"\0\0\x01\x12\0\0\0", "number 0 of 0"),
        ("a first state that is none", b"\0\0\x01\x03\0\x01", "number 1 of 1"),
        ("more than a layout", b"\0\0\x01\x03\0\0\0", "bytes after the layout"),
    ];
    for (what, layout, why) in refused {
        let error = try_decode(what, &forge(layout, b"", b"", 1, 40)).expect(what);
        assert!(error.contains(why), "{what}: {error}");
    }
}

#[test]
fn inconsistent_machines_are_rejected() {
    let _alone = alone();
    let refused = [
        ("nothing for ever", machine(&[0, 0], &[3, 2], 0), &b""[..], "forever"),
        ("records for ever", machine(&[3], &[1], 0), b"", "forever"),
        ("a loop that is not reached", machine(&[3, 0], &[0, 3], 0), b"", "forever"),
        ("a transition too far", machine(&[3], &[0], 0), b"\x04", "to state 1 of 1"),
        ("more records", machine(&[3], &[0], 0), b"\x03", "more than 2 records"),
        ("fewer records", machine(&[3], &[0], 0), b"", "1 records, the chunk says 2"),
        ("fewer bytes", machine(&[3], &[0], 0), b"\0", "0 bytes, the chunk says 40"),
        ("half a record", machine(&[0x0b, 3], &[0, 0], 1), b"\x04\0", "does not begin"),
        ("more bytes", machine(&[0x0b], &[0], 0), &[3; 20], "more than the 40 bytes"),
        ("no end of a message", machine(&[2], &[0], 0), b"", "a submessage that does not end"),
        ("no beginning", machine(&[0x0e, 3], &[0, 0], 0), b"\x04", "does not begin"),
        ("many ends", machine(&[0x0e], &[0], 0), &[3; 20], "have room for"),
    ];
    for (what, layout, transitions, why) in refused {
        let error = try_decode(what, &forge(&layout, b"", transitions, 2, 40)).expect(what);
        assert!(error.contains(why), "{what}: {error}");
    }
}

#[test]
fn inconsistent_buffers_are_rejected() {
    let _alone = alone();
    // One bucket with one buffer, and one state that takes from it.
    let taking = |tag: &[u8], len: u8, more: &[u8]| {
        [&[1, 1, len, len, 1][..], tag, &[0], more, &[0]].concat()
    };
    let refused = [
        ("a varint", taking(b"\x08", 2, b"\x02\0"), &b"\x05\x06"[..], "fewer values"),
        ("a number", taking(b"\x0d", 3, b"\0"), b"abc", "fewer values"),
        ("bytes", taking(b"\x12", 3, b"\0"), b"\x03ab", "fewer values"),
        ("bytes without end", taking(b"\x12", 1, b"\0"), b"\x80", "a number is truncated"),
        (
            "bytes of all lengths",
            taking(b"\x12", 10, b"\0"),
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "fewer values",
        ),
        ("an opaque record", taking(b"\x01", 1, b"\0"), b"\x01", "fewer values"),
        ("two buckets", b"\x02\x01\x01\x01\x02\x01\x03\0\0".to_vec(), b"ab", "beyond its bucket"),
        ("half a bucket", b"\x01\x01\x02\x01\x01\x03\0\0".to_vec(), b"ab", "more than its buffers"),
    ];
    for (what, layout, buckets, why) in refused {
        let error = try_decode(what, &forge(&layout, buckets, b"", 1, 40)).expect(what);
        assert!(error.contains(why), "{what}: {error}");
    }
    let more = vec![0; 100];
    let layout = [&[1, 1, 100, 100, 1][..], &[3, 0, 0]].concat();
    let error = try_decode("values", &forge(&layout, &more, b"", 1, 40)).unwrap();
    assert!(error.contains("100 bytes of values, at most 50 are allowed"), "{error}");
}

#[test]
fn long_ways_through_states_that_do_nothing_take_no_time() {
    let _alone = alone();
    // A record, then 100 000 states in a row that always follow each other, again and again.
    let count = 100_000;
    let mut layout = vec![0, 0];
    put_varint(&mut layout, count);
    layout.extend((0..count).map(|k| if k == 0 { 3 } else { 0 }));
    put_varint(&mut layout, 1);
    for k in 1..count {
        put_varint(&mut layout, count + (k + 1) % count);
    }
    layout.push(0);
    let transitions = vec![3; 100_000];
    let chunk = forge(&layout, b"", &transitions, 400_001, 0);
    assert_eq!(try_decode("a long way", &chunk), None);
}

#[test]
fn many_empty_records_are_read_as_quickly_as_they_are_stored() {
    let _alone = alone();
    let group = group_of(&vec![b""; 200_000]);
    for compression in ALL {
        let (header, data) = transpose(&group, compression, BUCKET);
        assert!(data.len() < 60_000);
        assert_eq!(try_decode("empty records", &chunk_of(header, &data)), None);
    }
}

#[test]
fn a_window_that_is_not_needed_takes_no_memory() {
    let _alone = alone();
    let value = vec![0; 20 << 20];
    let mut stored = Vec::new();
    let settings = Settings::Brotli { level: 5, window_log: 30 };
    Compressor::new(settings).compress(&value, &mut stored).unwrap();
    assert!(stored.len() < 100, "{}", stored.len());
    for len in [0, 1, 1000, 1 << 20, 9 << 20] {
        let mut short = vec![0; len];
        let (outcome, peak) = peak_of(|| block::decompress(Method::Brotli, &stored, &mut short));
        assert!(outcome.is_err());
        assert!(peak < 3 * len + (1 << 20), "{len} bytes took {peak}");
    }
    let mut found = vec![1; value.len()];
    let (outcome, peak) = peak_of(|| block::decompress(Method::Brotli, &stored, &mut found));
    outcome.unwrap();
    assert!(found == value);
    assert!(peak < 2 * value.len(), "{peak}");
}
