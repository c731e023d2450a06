//! Bags that Bagz and Granular have written, and what becomes of damaged ones.
//!
//! The files are in `tests/data/bagz` and `tests/data/granular`; the manifests beside them say
//! what is in each.

use crate::support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingot::compression::Dictionary;
use ingot::records::{
    Bag, BagOptions, BagWriter, Container, Existing, Files as _, Mode, Packer, Packing, Placement,
    RecordWriter as _, Spool, find, open, open_bag, write_bag,
};
use ingot::storage::Memory;
use ingot::{Error, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};
use support::{Random, read_records as read};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name)
}

fn manifest(folder: &str) -> Value {
    serde_json::from_slice(&std::fs::read(data(folder).join("manifest.json")).unwrap()).unwrap()
}

fn digest(record: &[u8]) -> String {
    Sha256::digest(record).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks records against a list of lengths and digests.
fn check(what: &str, records: Vec<Result<Vec<u8>>>, said: &Value) {
    let said = said.as_array().unwrap();
    assert_eq!(records.len(), said.len(), "{what}");
    for (k, (record, said)) in records.into_iter().zip(said).enumerate() {
        let record = record.unwrap();
        assert_eq!(record.len() as u64, said[0].as_u64().unwrap(), "{what} {k}");
        assert_eq!(digest(&record), said[1].as_str().unwrap(), "{what} {k}");
    }
}

fn open_any(path: &Path) -> Arc<dyn Container> {
    open(&path.into(), Mode::Whole, true, &mut || Ok(())).unwrap()
}

fn read_any(path: &Path) -> Vec<Result<Vec<u8>>> {
    read(open_any(path))
}

#[test]
fn bags_of_bagz_are_read() {
    let manifest = manifest("bagz");
    let dictionary = manifest["dictionary_utf8"].as_str().unwrap().as_bytes();
    for (name, said) in manifest["files"].as_object().unwrap() {
        let path = data("bagz").join(name);
        let options = match name.as_str() {
            _ if said["records"].is_null() => continue,
            "dict.bagz" => Packing::Zstd(Dictionary::new(dictionary).map(Arc::new)),
            "forced_zstd.bag" => Packing::Zstd(None),
            "plain_ext.rec" => Packing::Plain,
            _ => {
                check(name, read_any(&path), &said["records"]);
                continue;
            }
        };
        let options = BagOptions { packing: options, leading_zero: false };
        let bag = open_bag(&path, None, options).unwrap();
        check(name, read(Arc::new(bag)), &said["records"]);
    }
}

#[test]
fn invalid_bags_are_rejected() {
    for name in ["bad_align.bag", "bad_offset.bag", "bad_short.bag"] {
        let error =
            open(&data("bagz").join(name).as_path().into(), Mode::Whole, true, &mut || Ok(()))
                .err()
                .unwrap();
        assert!(matches!(error, Error::Corrupt { .. }), "{name}: {error}");
    }
    let found = read_any(&data("bagz/bad_order.bag"));
    assert!(found.iter().any(Result::is_err));
    let found = read_any(&data("bagz/bad_zstd_record2.bagz"));
    for (k, record) in found.iter().enumerate() {
        assert_eq!(record.is_err(), k == 2, "{k}");
    }
    let Err(Error::Corrupt { record, .. }) = &found[2] else { panic!("{:?}", found[2]) };
    assert_eq!(*record, Some(2));
}

#[test]
fn written_records_are_read_back() {
    let mut random = Random(5);
    let records: Vec<Vec<u8>> = (0..500)
        .map(|_| {
            let len = random.below(4) * random.below(900);
            vec![random.below(256) as u8; len]
        })
        .collect();
    for zstd in [false, true] {
        let memory = Memory::new();
        let packer = zstd.then(|| Packer::new(3, b"").unwrap());
        let finish = Box::new(|_| Ok(()));
        let spooled = Memory::new();
        let spool = Spool { append: Box::new(spooled.clone()), read: Arc::new(spooled) };
        let mut writer = BagWriter::new(
            Box::new(memory.clone()),
            Placement::Tail(spool),
            "x",
            packer,
            false,
            finish,
        );
        for (k, record) in records.iter().enumerate() {
            assert_eq!(writer.append(record).unwrap(), k as u64);
        }
        writer.close().unwrap();
        let packing = if zstd { Packing::Zstd(None) } else { Packing::Plain };
        let options = BagOptions { packing, leading_zero: false };
        let bag = Arc::new(Bag::open(Arc::new(memory), None, "x", options).unwrap());
        let found: Vec<Vec<u8>> =
            read(Arc::clone(&bag) as _).into_iter().map(Result::unwrap).collect();
        assert!(found == records);
        assert_eq!(bag.verify(&mut |_| Ok(())).unwrap().damaged, []);
    }
}

#[test]
fn damaged_bags_never_panic() {
    let bytes = std::fs::read(data("bagz/comp.bagz")).unwrap();
    let mut random = Random(6);
    for trial in 0..20_000 {
        let mut bytes = bytes.clone();
        if trial % 3 == 0 {
            bytes.truncate(random.below(bytes.len()));
        }
        for _ in 0..random.below(4) {
            if let Some(last) = bytes.len().checked_sub(1) {
                let at = if random.below(2) == 0 {
                    last - random.below(400.min(last + 1))
                } else {
                    random.below(last + 1)
                };
                bytes[at] ^= 1 << random.below(8);
            }
        }
        let options = BagOptions { packing: Packing::Zstd(None), leading_zero: trial % 2 == 0 };
        if let Ok(bag) = Bag::open(Arc::new(Memory::from(bytes)), None, "x", options) {
            for record in read_bounded(&bag).into_iter().filter_map(Result::err) {
                assert!(matches!(record, Error::Corrupt { .. } | Error::Memory { .. }), "{record}");
            }
        }
    }
}

/// Reads the records that are not absurdly long.
fn read_bounded(bag: &Bag) -> Vec<Result<()>> {
    (0..bag.num_rows())
        .map(|row| {
            let cell = find(bag, row)?;
            if cell.raw > 1 << 24 {
                return Ok(());
            }
            bag.fetch(&[cell], &mut [&mut vec![0; cell.raw as usize][..]])
        })
        .collect()
}

/// Calls `then` with the path and the records of every bag that the manifest tells of.
fn each_bag(said: &Value, folder: &Path, then: &mut dyn FnMut(&Path, &Value)) {
    for (name, said) in said.as_object().unwrap() {
        let place = folder.join(name);
        if name.ends_with(".bag") && !said["records"].is_null() {
            then(&place, &said["records"]);
        } else if said.is_object() {
            each_bag(said, &place, then);
        }
    }
}

#[test]
fn bags_of_granular_are_read() {
    let manifest = manifest("granular");
    let mut bags = 0;
    for generation in ["v1", "v2", "v3"] {
        for (folder, said) in manifest[generation].as_object().unwrap() {
            let Some(files) = said.get("files") else { continue };
            each_bag(files, &data("granular").join(folder), &mut |path, records| {
                let options =
                    BagOptions { leading_zero: generation == "v1", ..BagOptions::default() };
                let found = match generation {
                    "v1" => read(Arc::new(open_bag(path, None, options).unwrap())),
                    _ => read_any(path),
                };
                check(&path.display().to_string(), found, records);
                bags += 1;
            });
        }
    }
    assert!(bags > 80, "{bags}");
}

/// Returns a folder of its own for a test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ingot-bag-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn write(path: &Path, limits: Option<&Path>, existing: Existing) -> Result<BagWriter> {
    write_bag(path, limits, existing, None, false)
}

fn texts(path: &Path, limits: Option<&Path>) -> Vec<String> {
    let bag = open_bag(path, limits, BagOptions::default()).unwrap();
    let records =
        read(Arc::new(bag)).into_iter().map(|record| String::from_utf8(record.unwrap()).unwrap());
    records.collect()
}

#[test]
fn a_tail_bag_appears_when_it_is_closed() {
    let folder = folder("tail");
    let path = folder.join("x.bag");
    let mut writer = write(&path, None, Existing::Replace).unwrap();
    for k in 0..100_000 {
        writer.append(format!("{k}").as_bytes()).unwrap();
    }
    writer.flush().unwrap();
    assert!(!path.exists());
    assert!(matches!(write(&path, None, Existing::Replace).err(), Some(Error::Locked { .. })));
    writer.close().unwrap();
    let found = texts(&path, None);
    assert!(found.iter().enumerate().all(|(k, text)| *text == format!("{k}")));
    assert_eq!(
        (found.len(), writer.size().unwrap().unwrap()),
        (100_000, std::fs::metadata(&path).unwrap().len())
    );

    let mut writer = write(&path, None, Existing::Replace).unwrap();
    writer.append(b"other").unwrap();
    writer.abandon().unwrap();
    assert_eq!(texts(&path, None), found);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    let error = write(&path, None, Existing::Refuse).err().unwrap();
    assert!(matches!(error, Error::Storage { .. }), "{error}");
    assert!(matches!(write(&path, None, Existing::Continue).err(), Some(Error::Invalid(_))));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn records_flushed_to_a_separate_bag_are_visible() {
    let folder = folder("separate");
    let (path, limits) = (folder.join("x.bag"), folder.join("x.idx"));
    let mut writer = write(&path, Some(&limits), Existing::Refuse).unwrap();
    assert_eq!(texts(&path, Some(&limits)), [""; 0]);
    writer.append(b"one").unwrap();
    writer.append(b"").unwrap();
    writer.flush().unwrap();
    writer.append(b"lost").unwrap();
    assert_eq!(texts(&path, Some(&limits)), ["one", ""]);
    let second = write(&path, Some(&limits), Existing::Continue);
    assert!(matches!(second.err(), Some(Error::Locked { .. })));
    drop(writer);
    assert_eq!(texts(&path, Some(&limits)), ["one", ""]);
    assert!(write(&path, Some(&limits), Existing::Refuse).is_err());

    let mut writer = write(&path, Some(&limits), Existing::Continue).unwrap();
    assert_eq!(writer.append(b"two").unwrap(), 2);
    writer.close().unwrap();
    assert_eq!(texts(&path, Some(&limits)), ["one", "", "two"]);
    let mut writer = write(&path, Some(&limits), Existing::Replace).unwrap();
    writer.append(b"anew").unwrap();
    writer.close().unwrap();
    assert_eq!(texts(&path, Some(&limits)), ["anew"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_torn_pair_continues_after_its_last_limit() {
    let folder = folder("torn");
    let (path, limits) = (folder.join("x.bag"), folder.join("x.idx"));
    let mut table: Vec<u8> = [3_u64, 6].iter().flat_map(|limit| limit.to_le_bytes()).collect();
    table.extend([9, 0, 0]);
    std::fs::write(&path, b"onetwothr").unwrap();
    std::fs::write(&limits, &table).unwrap();
    let mut writer = write(&path, Some(&limits), Existing::Continue).unwrap();
    assert_eq!(writer.append(b"3").unwrap(), 2);
    writer.close().unwrap();
    assert_eq!(texts(&path, Some(&limits)), ["one", "two", "3"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"onetwo3");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_incomplete_pair_is_left_alone() {
    let folder = folder("short");
    let (path, limits) = (folder.join("x.bag"), folder.join("x.idx"));
    std::fs::write(&path, b"onetw").unwrap();
    let table: Vec<u8> = [3_u64, 6].iter().flat_map(|limit| limit.to_le_bytes()).collect();
    std::fs::write(&limits, &table).unwrap();
    let error = write(&path, Some(&limits), Existing::Continue).err().unwrap();
    assert!(matches!(error, Error::Corrupt { record: Some(1), .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"onetw");
    assert_eq!(std::fs::read(&limits).unwrap(), table);

    std::fs::remove_file(&limits).unwrap();
    let error = write(&path, Some(&limits), Existing::Continue).err().unwrap();
    assert!(matches!(error, Error::Format { .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"onetw");
    assert!(!limits.exists());
    std::fs::remove_dir_all(&folder).unwrap();
}
