//! Whole FFRecord files: any bytes, the checksum of their index right or not.

#![no_main]

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use ingot::crc::Sum;
use ingot::format::ffrecord::{Entry, HEAD_LEN, Index, measure};
use ingot::records::{Container as _, FfRecord, Files as _, find};
use ingot::storage::Memory;
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Memory that a file may cost beyond a few times its length.
const LIMIT: usize = 16 << 20;

/// Bytes of the records that are read at once.
const BATCH: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let (check, seal) = (choice % 2 == 0, choice % 4 < 2);
    let mut bytes = rest.to_vec();
    if seal {
        seal_index(&mut bytes);
    }
    bounded(LIMIT + 8 * bytes.len(), || {
        let index = read_index(&bytes, check);
        let storage = Arc::new(Memory::from(bytes.clone()));
        let file = FfRecord::open(storage, "fuzzed.ffr", check);
        assert_eq!(file.is_ok(), index.is_some());
        if let (Ok(file), Some(index)) = (file, index) {
            read_records(&bytes, &file, &index, check);
        }
    });
});

fn seal_index(bytes: &mut [u8]) {
    let head = &bytes[..bytes.len().min(HEAD_LEN)];
    if let Ok(len) = measure(head, bytes.len() as u64) {
        let crc = Sum::Crc32.append(0, &bytes[4..len as usize]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Reads the index of a file. Every record that it describes comes after it.
fn read_index(bytes: &[u8], check: bool) -> Option<Index> {
    let size = bytes.len() as u64;
    let len = measure(&bytes[..bytes.len().min(HEAD_LEN)], size).ok()?;
    let index = Index::decode(bytes[..len as usize].to_vec(), size, check).ok()?;
    assert!(!check || index.is_intact());
    assert_eq!(index.bytes().len() as u64, len);
    for entry in (0..index.len()).filter_map(|row| index.entry(row).ok()) {
        assert!(entry.offset >= len && entry.len <= size && entry.offset <= size - entry.len);
    }
    Some(index)
}

fn read_records(bytes: &[u8], file: &FfRecord, index: &Index, check: bool) {
    assert_eq!(file.num_rows(), index.len());
    let entries: Vec<Option<Entry>> = (0..index.len()).map(|row| index.entry(row).ok()).collect();
    let is_bad = |entry: &Option<Entry>| match entry {
        Some(entry) => check && Sum::Crc32.append(0, &bytes[place(entry)]) != entry.crc,
        None => true,
    };
    let bad: BTreeSet<u64> =
        (0..).zip(&entries).filter(|(_, e)| is_bad(e)).map(|(row, _)| row).collect();
    let mut failed = BTreeSet::new();
    let mut cells = Vec::new();
    let mut wanted = 0;
    for row in 0..index.len() {
        match find(file, row) {
            Ok(cell) => {
                wanted += cell.raw;
                cells.push(cell);
            }
            Err(_) => {
                failed.insert(row);
            }
        }
        if wanted < BATCH && row + 1 < index.len() {
            continue;
        }
        let mut records: Vec<Vec<u8>> =
            cells.iter().map(|cell| vec![0; cell.raw as usize]).collect();
        let mut bufs: Vec<&mut [u8]> = records.iter_mut().map(Vec::as_mut_slice).collect();
        failed.extend(file.fetch_each(&cells, &mut bufs).iter().map(|(k, _)| cells[*k].row));
        for (cell, record) in
            cells.iter().zip(&records).filter(|(cell, _)| !bad.contains(&cell.row))
        {
            let entry = entries[cell.row as usize].expect("it was found");
            assert!(*record == bytes[place(&entry)]);
        }
        cells.clear();
        wanted = 0;
    }
    assert_eq!(failed, bad);
    let damaged = file.verify(&mut |_| Ok(())).expect("memory can be read").damaged;
    let damaged: BTreeSet<u64> = damaged.iter().filter_map(|damage| damage.record).collect();
    assert_eq!(damaged, bad);
}

fn place(entry: &Entry) -> Range<usize> {
    entry.offset as usize..(entry.offset + entry.len) as usize
}
