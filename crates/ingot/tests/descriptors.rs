//! More files than a process may have descriptors.
#![allow(unsafe_code)]

mod support;

use std::sync::{Mutex, MutexGuard, PoisonError};

use ingot::format::ingot::Schema;
use ingot::records::{Ask, Cell, Compression, Files, Mode, Rows, Sequence};
use ingot::storage::Memory;
use support::layers::{ALL, REQUIRED, Shard, Values, read, schema_of};
use support::{Random, append_rows, create, options, record_rows};

fn record_of(file: usize, row: usize) -> Vec<u8> {
    format!("record {row} of file {file}").into_bytes()
}

fn records(file: usize) -> Vec<u8> {
    let storage = Memory::new();
    let mut writer = create(storage.clone(), &Schema::records(), options(Compression::None));
    append_rows(&mut writer, &record_rows(&[record_of(file, 0), record_of(file, 1)]));
    writer.close().unwrap();
    storage.bytes()
}

fn fetch(files: &Sequence, cell: Cell) -> ingot::Result<Vec<u8>> {
    let mut value = vec![0; cell.raw as usize];
    files.fetch(&[cell], &mut [&mut value])?;
    Ok(value)
}

/// Lets the process have few descriptors. One test at a time may count them.
fn limited() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: a plain call; only the tests of this file are in its process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    alone
}

#[test]
fn files_of_columns_and_bitmaps_take_no_more_descriptors_than_others() {
    let _alone = limited();
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(1);
    let shards: Vec<Shard> = (0..40)
        .map(|number| {
            let path = folder.path().join(format!("{number:02}.ingot"));
            let mut shard = Shard::new(path, REQUIRED, 10, &mut random);
            (0..5).for_each(|field| shard.add_columns(1 << field, &mut random));
            shard.delete((0..10).map(|row| row % 2 == number % 2).collect());
            shard
        })
        .collect();
    let listed = shards.iter().map(|shard| shard.listed.clone()).collect();
    let rows = Rows::listed(listed, Some(schema_of(ALL))).unwrap();
    let expected: Vec<&Values> = shards.iter().flat_map(Shard::live_rows).collect();
    for _ in 0..3 {
        let numbers: Vec<u64> = (0..100).map(|_| random.below(200) as u64).collect();
        let found = read(&rows, &numbers, &[Ask { field: 1, elements: None }]).unwrap();
        let texts = numbers.iter().map(|&row| expected[row as usize][1].clone().unwrap());
        assert_eq!(found[0], texts.collect::<Vec<_>>());
    }
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(descriptors < 60, "{descriptors} descriptors for 280 files");
    assert_eq!(rows.files().verify(&mut |_| Ok(())).unwrap().damaged, []);
}

#[test]
fn files_that_are_not_used_are_closed_and_opened_again() {
    let _alone = limited();
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..300)
        .map(|file| {
            let path = folder.path().join(format!("{file:04}.ingot"));
            std::fs::write(&path, records(file)).unwrap();
            path
        })
        .collect();
    let files = Sequence::open(&paths, Mode::Whole, true, &mut || Ok(())).unwrap();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(descriptors < 60, "{descriptors} descriptors for 300 files");
    for file in [0_usize, 299, 150, 3, 200, 0] {
        let cell = files.locate(2 * file as u64 + 1).unwrap();
        assert_eq!(fetch(&files, cell).unwrap(), record_of(file, 1));
    }
    // All that were closed are refused if something else has taken their place.
    let cells: Vec<Cell> = (0..300).map(|file| files.locate(2 * file).unwrap()).collect();
    for path in &paths {
        let other = path.with_extension("other");
        std::fs::write(&other, records(9_999)).unwrap();
        std::fs::rename(&other, path).unwrap();
    }
    let mut refused = 0;
    for (file, &cell) in cells.iter().enumerate() {
        match fetch(&files, cell) {
            Ok(value) => assert_eq!(value, record_of(file, 0)),
            Err(error) => {
                assert!(error.to_string().contains("was replaced"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused >= 300 - descriptors, "{refused} files were refused");
}
