//! FFRecord files that FFRecord itself has written, and what becomes of damaged ones.
//!
//! The files are in `tests/data/ffrecord`; the manifest beside them says what is in each.

use crate::support;

use std::path::PathBuf;
use std::sync::Arc;

use ingot::crc::Sum;
use ingot::format::ffrecord::tree::{self, Folder, Node};
use ingot::records::{Container, FfRecord, Files as _, Mode, Sequence, find};
use ingot::storage::{Landed, Memory, Read, ReadAt};
use ingot::{Error, Result};
use serde_json::Value;
use support::{Random, read_records};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ffrecord").join(name)
}

fn bytes_of(name: &str) -> Vec<u8> {
    std::fs::read(data(name)).unwrap()
}

/// Returns what the manifest says of each file.
fn manifest() -> serde_json::Map<String, Value> {
    let mut manifest: Value = serde_json::from_slice(&bytes_of("manifest.json")).unwrap();
    match manifest["files"].take() {
        Value::Object(files) => files,
        other => panic!("not a list of files: {other}"),
    }
}

fn open_with(bytes: &[u8], name: &str, check: bool) -> Result<FfRecord> {
    FfRecord::open(Arc::new(Memory::from(bytes.to_vec())), name, check)
}

fn open(bytes: &[u8]) -> Result<FfRecord> {
    open_with(bytes, "sample.ffr", true)
}

fn open_golden(name: &str) -> FfRecord {
    open_with(&bytes_of(name), name, true).unwrap()
}

fn read(file: &FfRecord) -> Vec<Result<Vec<u8>>> {
    read_records(Arc::new(file.clone()))
}

/// Reads every record of a file that is whole.
fn contents(file: &FfRecord) -> Vec<Vec<u8>> {
    read(file).into_iter().map(Result::unwrap).collect()
}

/// Checks what was read of a record against its entry in the manifest.
fn check_record(what: &str, bytes: &[u8], record: &[u8], said: &Value) {
    let number = |key: &str| said[key].as_u64().unwrap() as usize;
    assert_eq!(record.len(), number("size"), "{what}");
    assert_eq!(Sum::Crc32.append(0, record) as usize, number("crc32"), "{what}");
    assert!(record == &bytes[number("offset")..][..record.len()], "{what}");
}

/// Fails unless the error is that of damaged bytes and names the file, and the record if
/// it is that of one.
fn check_corrupt(error: &Error, name: &str, row: Option<u64>) {
    match error {
        Error::Corrupt { path, record, .. } => {
            assert_eq!((path.as_str(), *record), (name, row), "{error}");
        }
        other => panic!("not an error of damaged bytes: {other}"),
    }
}

/// Returns path and record of every file, and the path of every folder, each in order.
fn walk(root: &Folder) -> (Vec<(String, u64)>, Vec<String>) {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let mut left = vec![(String::new(), root)];
    while let Some((path, folder)) = left.pop() {
        for (name, node) in folder.entries() {
            let path = format!("{path}{}", std::str::from_utf8(name).unwrap());
            match node {
                Node::File(record) => files.push((path, *record)),
                Node::Folder(folder) => {
                    left.push((format!("{path}/"), folder));
                    folders.push(path);
                }
            }
        }
    }
    files.sort_by_key(|(_, record)| *record);
    folders.sort();
    (files, folders)
}

/// Returns the record of a packed folder's tree and the number of its files.
fn tree_of(name: &str) -> (Vec<u8>, u64) {
    let mut records = contents(&open_golden(name));
    let record = records.pop().expect("the tree is a record");
    (record, records.len() as u64)
}

#[test]
fn golden_files_hold_what_the_manifest_says() {
    let mut checked = 0;
    for (name, said) in manifest().iter().filter(|(_, said)| said["valid"] == true) {
        let (bytes, file) = (bytes_of(name), open_golden(name));
        assert_eq!(bytes.len() as u64, said["size"].as_u64().unwrap(), "{name}");
        assert_eq!(file.num_rows(), said["n"].as_u64().unwrap(), "{name}");
        let records = contents(&file);
        for key in ["records", "members"] {
            let Some(entries) = said[key].as_array() else { continue };
            for (record, entry) in records.iter().zip(entries) {
                check_record(name, &bytes, record, entry);
            }
            checked += entries.len();
        }
        if said.get("meta_record").is_some() {
            check_record(name, &bytes, records.last().unwrap(), &said["meta_record"]);
            checked += 1;
        }
        assert_eq!(file.verify(&mut |_| Ok(())).unwrap().damaged, [], "{name}");
    }
    assert_eq!(checked, 100 + 10 + 5 + 10 + 311 + 5 + 1, "every record that is described");
}

#[test]
fn an_empty_file_has_no_records() {
    let file = open_golden("empty.ffr");
    assert_eq!(file.num_rows(), 0);
    assert_eq!(read(&file).len(), 0);
}

#[test]
fn a_file_without_a_checksum_of_its_index_reads() {
    let file = open_golden("legacy_crc0.ffr");
    assert!(file.index().is_legacy());
    let lengths: Vec<usize> = contents(&file).iter().map(Vec::len).collect();
    assert_eq!(lengths.len(), 5);
    assert_eq!(lengths[..3], [1, 2, 0]);
}

#[test]
fn several_files_are_one_sequence() {
    let paths: Vec<PathBuf> = (0..4).map(|k| data(&format!("multi/PART_0000{k}.ffr"))).collect();
    let sequence = Sequence::open(&paths, Mode::Whole, true, &mut || Ok(())).unwrap();
    let expected = contents(&open_golden("small.ffr"));
    assert_eq!(sequence.num_rows(), expected.len() as u64);
    for (row, expected) in expected.iter().enumerate() {
        let cell = sequence.locate(row as u64).unwrap();
        let mut record = vec![0; cell.raw as usize];
        sequence.fetch(&[cell], &mut [&mut record]).unwrap();
        assert!(record == *expected, "record {row}");
    }
}

#[test]
fn a_flipped_bit_costs_one_record() {
    let (file, whole) = (open_golden("corrupted.ffr"), contents(&open_golden("mixed.ffr")));
    for (row, (record, expected)) in read(&file).into_iter().zip(&whole).enumerate() {
        match record {
            Ok(record) => assert!(row != 50 && record == *expected, "record {row}"),
            Err(error) => {
                assert_eq!(row, 50, "{error}");
                check_corrupt(&error, "corrupted.ffr", Some(50));
            }
        }
    }
    let damaged = file.verify(&mut |_| Ok(())).unwrap().damaged;
    assert_eq!(damaged.iter().map(|damage| damage.record).collect::<Vec<_>>(), [Some(50)]);
}

/// A file that says it goes on for longer than any memory.
struct Vast(Memory);

impl ReadAt for Vast {
    fn size(&self) -> std::io::Result<u64> {
        Ok(1 << 60)
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        self.0.read_many(reads, landed);
    }
}

#[test]
fn a_record_that_no_memory_holds_leaves_the_others_verified() {
    let mut bytes = bytes_of("small.ffr");
    let flipped = find(&open(&bytes).unwrap(), 3).unwrap().offset as usize;
    bytes[flipped] ^= 1;
    let file = FfRecord::open(Arc::new(Vast(Memory::from(bytes))), "vast.ffr", true).unwrap();
    let found = file.verify(&mut |_| Ok(())).unwrap();
    let records: Vec<_> = found.damaged.iter().map(|damage| damage.record).collect();
    assert_eq!((found.rows, &records[..]), (10, &[Some(3), Some(9)][..]));
    for (damage, why) in found.damaged.iter().zip(["checksum mismatch", "out of memory"]) {
        assert!(damage.reason.contains(why), "{}", damage.reason);
    }
}

#[test]
fn without_checks_damaged_bytes_are_returned() {
    let file = open_with(&bytes_of("corrupted.ffr"), "corrupted.ffr", false).unwrap();
    let (found, whole) = (contents(&file), contents(&open_golden("mixed.ffr")));
    for (row, (found, whole)) in found.iter().zip(&whole).enumerate() {
        let differ: Vec<usize> = (0..whole.len()).filter(|&k| found[k] != whole[k]).collect();
        assert_eq!(differ, if row == 50 { vec![1318] } else { vec![] }, "record {row}");
    }
}

#[test]
fn a_file_with_an_impossible_index_is_rejected() {
    for name in ["corrupted_header.ffr", "unfinished.ffr"] {
        let Err(error) = open_with(&bytes_of(name), name, true) else { panic!("{name} opens") };
        check_corrupt(&error, name, None);
    }
}

#[test]
fn records_before_the_cut_read_and_the_others_are_errors() {
    let whole = contents(&open_golden("small.ffr"));
    for (row, record) in read(&open_golden("truncated.ffr")).into_iter().enumerate() {
        match record {
            Ok(record) => assert!(row < 7 && record == whole[row], "record {row}"),
            Err(error) => {
                assert!(row >= 7, "{error}");
                check_corrupt(&error, "truncated.ffr", Some(row as u64));
            }
        }
    }
}

#[test]
fn a_file_truncated_anywhere_gives_whole_records_and_errors() {
    let bytes = bytes_of("small.ffr");
    let file = open(&bytes).unwrap();
    let (whole, index_len) = (contents(&file), file.index().bytes().len());
    let ends: Vec<u64> = (0..10)
        .map(|row| find(&file, row).map(|cell| cell.offset + cell.stored).unwrap())
        .collect();
    for len in 0..bytes.len() {
        let Ok(cut) = open(&bytes[..len]) else {
            assert!(len < index_len, "the index is whole at {len}");
            continue;
        };
        assert!(len >= index_len, "the index is cut at {len}");
        for (row, record) in read(&cut).into_iter().enumerate() {
            let reads = ends[row] <= len as u64;
            assert_eq!(record.is_ok(), reads, "record {row} of {len} bytes");
            assert!(record.is_err() || record.is_ok_and(|record| record == whole[row]));
        }
    }
}

#[test]
fn a_flipped_bit_never_gives_a_wrong_byte() {
    let mut bytes = bytes_of("small.ffr");
    let whole = contents(&open(&bytes).unwrap());
    let mut random = Random(71);
    let mut refused = 0;
    for _ in 0..20_000 {
        let (at, bit) = (random.below(bytes.len()), 1 << random.below(8));
        bytes[at] ^= bit;
        match open(&bytes) {
            Ok(file) => {
                let records = read(&file);
                assert_eq!(records.len(), whole.len());
                for (record, whole) in records.into_iter().zip(&whole) {
                    match record {
                        Ok(record) => assert!(record == *whole, "bit {bit} of byte {at}"),
                        Err(error) => {
                            refused += 1;
                            assert!(
                                error.to_string().starts_with("sample.ffr: record "),
                                "{error}"
                            );
                        }
                    }
                }
            }
            Err(error) => {
                refused += 1;
                check_corrupt(&error, "sample.ffr", None);
            }
        }
        bytes[at] ^= bit;
    }
    assert_eq!(refused, 20_000, "every flip is noticed once");
}

#[test]
fn the_trees_of_packed_folders_are_what_the_manifest_says() {
    let manifest = manifest();
    let said = &manifest["packed.ffr"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let members: Vec<(String, u64)> = said["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| (text(&member["path"]), member["index"].as_u64().unwrap()))
        .collect();
    let dirs: Vec<String> = said["dirs"].as_array().unwrap().iter().map(text).collect();
    let top: Vec<String> = said["top_level_list"].as_array().unwrap().iter().map(text).collect();
    for name in ["packed.ffr", "packed_proto2.ffr", "packed_proto3.ffr", "packed_proto5.ffr"] {
        let (record, num_files) = tree_of(name);
        let root = tree::decode(&record, num_files).unwrap();
        assert_eq!(walk(&root), (members.clone(), dirs.clone()), "{name}");
        assert!(root.entries().map(|(name, _)| &name[..]).eq(top.iter().map(String::as_bytes)));
    }
    let (record, num_files) = tree_of("packed_many.ffr");
    let many = (0..7000).map(|k| (format!("d/f{k:05}"), k)).collect();
    let root = tree::decode(&record, num_files).unwrap();
    assert_eq!(walk(&root), (many, vec!["d".to_owned()]));
    let (record, num_files) = tree_of("packed_empty.ffr");
    assert_eq!(tree::decode(&record, num_files).unwrap().entries().len(), 0);
}

#[test]
fn a_flipped_bit_in_a_tree_gives_a_tree_or_an_error() {
    let (mut record, num_files) = tree_of("packed.ffr");
    let mut random = Random(72);
    for _ in 0..20_000 {
        let (at, bit) = (random.below(record.len()), 1 << random.below(8));
        record[at] ^= bit;
        if let Ok(root) = tree::decode(&record, num_files) {
            let mut left = vec![&root];
            while let Some(folder) = left.pop() {
                for (_, node) in folder.entries() {
                    match node {
                        Node::File(row) => assert!(*row < num_files, "bit {bit} of byte {at}"),
                        Node::Folder(folder) => left.push(folder),
                    }
                }
            }
        }
        record[at] ^= bit;
    }
}
