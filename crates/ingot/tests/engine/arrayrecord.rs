//! ArrayRecord files: written, read back, damaged, cut short, and with chunks of any size.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use ingot::format::Group;
use ingot::format::arrayrecord::footer::Entry;
use ingot::format::arrayrecord::{Footer, postscript, signature};
use ingot::format::riegeli::{Compression, Encoder, chunk, simple};
use ingot::records::{
    ArCodec, ArOptions, ArWriter, ArrayRecord, Container, Files as _, RecordWriter as _, find,
    prepare,
};
use ingot::storage::{Failure, Faulty, Memory};
use ingot::{Error, Result};
use support::Random;

const PLAIN: ArOptions = ArOptions {
    group_size: 1,
    codec: ArCodec::None,
    transpose: None,
    pad_to_block: false,
    sync: false,
};

const CODECS: [ArCodec; 6] = [
    ArCodec::None,
    ArCodec::Zstd(3, 20),
    ArCodec::Zstd(-7, 31),
    ArCodec::Brotli(6, None),
    ArCodec::Brotli(1, Some(26)),
    ArCodec::Snappy,
];

/// Returns records of many lengths, empty ones among them.
fn sample(count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    (0..count)
        .map(|_| {
            let len = [0, 1, 30, 700, 3000][random.below(5)] + random.below(3);
            (0..len).map(|k| if k % 3 == 0 { random.below(256) as u8 } else { 7 }).collect()
        })
        .collect()
}

fn write(records: &[Vec<u8>], options: ArOptions) -> Vec<u8> {
    let memory = Memory::new();
    let mut writer =
        ArWriter::new(Box::new(memory.clone()), "x", options, Box::new(|_| Ok(()))).unwrap();
    for (k, record) in records.iter().enumerate() {
        assert_eq!(writer.append(record).unwrap(), k as u64);
    }
    writer.close().unwrap();
    assert!(writer.is_closed());
    memory.bytes()
}

fn open(bytes: &[u8]) -> Result<ArrayRecord> {
    ArrayRecord::open(Arc::new(Memory::from(bytes.to_vec())), "sample")
}

/// Reads records in one batch.
fn read(file: &ArrayRecord, rows: &[u64]) -> Vec<Result<Vec<u8>>> {
    let _pins = prepare(&[(file, rows.to_vec())]);
    let mut found: Vec<Result<Vec<u8>>> = Vec::new();
    let (mut cells, mut places) = (Vec::new(), Vec::new());
    for (k, &row) in rows.iter().enumerate() {
        found.push(find(file, row).map(|cell| {
            cells.push(cell);
            places.push(k);
            vec![0; cell.raw as usize]
        }));
    }
    let mut bufs: Vec<&mut [u8]> = found.iter_mut().flatten().map(Vec::as_mut_slice).collect();
    for (k, error) in file.fetch_each(&cells, &mut bufs) {
        found[places[k]] = Err(error);
    }
    found
}

fn read_all(file: &ArrayRecord) -> Vec<Result<Vec<u8>>> {
    read(file, &(0..file.num_rows()).collect::<Vec<u64>>())
}

fn verify(file: &ArrayRecord) -> Vec<ingot::records::Damage> {
    file.verify(&mut |_| Ok(())).unwrap().damaged
}

#[test]
fn records_round_trip_whatever_the_options() {
    let records = sample(300, 1);
    for codec in CODECS {
        for group_size in [1, 2, 7, 299, 300, 1000] {
            for pad_to_block in [false, true] {
                if pad_to_block && group_size < 7 {
                    continue;
                }
                let options = ArOptions { group_size, codec, pad_to_block, ..PLAIN };
                let file = open(&write(&records, options)).unwrap();
                let found: Vec<Vec<u8>> = read_all(&file).into_iter().map(Result::unwrap).collect();
                assert!(found == records, "{options:?}");
                assert_eq!(file.index().options(), Some(&*options.text()));
                assert_eq!(verify(&file), [], "{options:?}");
                let rows = [299, 0, 150, 150, 7];
                for (&row, record) in rows.iter().zip(read(&file, &rows)) {
                    assert_eq!(record.unwrap(), records[row as usize]);
                }
            }
        }
    }
}

#[test]
fn files_without_records_are_files() {
    for group_size in [1, 100] {
        let bytes = write(&[], ArOptions { group_size, ..PLAIN });
        assert_eq!(bytes.len(), 131_072);
        let file = open(&bytes).unwrap();
        assert_eq!((file.num_rows(), verify(&file)), (0, Vec::new()));
    }
}

#[test]
fn a_truncated_file_is_never_taken_for_a_whole_one() {
    for options in [PLAIN, ArOptions { group_size: 50, codec: ArCodec::Zstd(3, 20), ..PLAIN }] {
        let bytes = write(&sample(200, 2), options);
        let lens = (0..bytes.len()).step_by(509).chain((0..bytes.len()).step_by(65_536));
        for len in lens.chain([1, 63, 64, 65, bytes.len() - 1]) {
            let error = open(&bytes[..len]).err().unwrap_or_else(|| panic!("{len} bytes opened"));
            assert!(matches!(error, Error::Corrupt { .. }), "{len}: {error}");
        }
        let more = [&bytes[..], &[0; 10]].concat();
        assert!(open(&more).is_err());
    }
}

/// Every byte of a file is flipped in one bit: what is read is right or an error, and
/// `verify` reports what was flipped.
#[test]
fn no_flipped_bit_changes_a_record() {
    let records = sample(40, 3);
    for options in [
        PLAIN,
        ArOptions { codec: ArCodec::Zstd(3, 20), ..PLAIN },
        ArOptions { group_size: 9, codec: ArCodec::Snappy, ..PLAIN },
        ArOptions { group_size: 9, codec: ArCodec::Brotli(4, None), ..PLAIN },
    ] {
        let mut bytes = write(&records, options);
        let end = open(&bytes).unwrap().stats().file_bytes as usize;
        let mut random = Random(4);
        let mut harmless = 0;
        for at in (0..5_000).chain((5_000..end).step_by(97)).chain(65_536..65_800) {
            let bit = 1 << random.below(8);
            bytes[at] ^= bit;
            match open(&bytes) {
                Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{at}: {error}"),
                Ok(file) => {
                    assert_ne!(verify(&file), [], "byte {at} was flipped unseen");
                    let found = read_all(&file);
                    harmless += usize::from(found.iter().all(Result::is_ok));
                    for (k, record) in found.into_iter().enumerate() {
                        match record {
                            Ok(record) => assert_eq!(record, records[k], "byte {at}"),
                            Err(Error::Corrupt { record, .. }) => assert!(record.is_some()),
                            Err(other) => panic!("byte {at}: {other}"),
                        }
                    }
                }
            }
            bytes[at] ^= bit;
        }
        assert!(harmless > 0, "padding does not matter to a record");
    }
}

/// Builds a file with chunks of any number of records.
fn build(groups: &[&[&[u8]]]) -> Vec<u8> {
    let mut out = signature();
    let mut position = out.len() as u64;
    let mut footer = Footer::default();
    let put = |group: &Group, out: &mut Vec<u8>, position: &mut u64| {
        let mut data = Vec::new();
        let mut encoder = Encoder::new(Compression::None);
        let header = simple::encode(group, &mut encoder, &mut data).unwrap();
        *position = chunk::append(out, *position, &header, &data);
    };
    for records in groups {
        let mut group = Group::default();
        records.iter().for_each(|record| group.push(record));
        let (decoded_len, count) = (group.bytes.len() as u64, group.len() as u64);
        footer.entries.push(Entry { offset: position, decoded_len, records: count });
        footer.records += count;
        put(&group, &mut out, &mut position);
    }
    let offset = position;
    put(&footer.encode("group_size:3"), &mut out, &mut position);
    position = chunk::pad(&mut out, position);
    put(&postscript::encode(offset), &mut out, &mut position);
    chunk::pad(&mut out, position);
    out
}

#[test]
fn chunks_of_different_sizes_are_read_right() {
    let bytes = build(&[&[b"a", b"bb"], &[b"ccc"], &[], &[b"d", b"", b"f"], &[b"g"]]);
    let file = open(&bytes).unwrap();
    let found: Vec<Vec<u8>> = read_all(&file).into_iter().map(Result::unwrap).collect();
    let expected: [&[u8]; 7] = [b"a", b"bb", b"ccc", b"d", b"", b"f", b"g"];
    assert_eq!(found, expected);
    assert_eq!((file.index().group_size(), verify(&file)), (None, Vec::new()));
}

#[test]
fn a_failed_write_fails_the_writer_and_publishes_nothing() {
    let records = sample(3000, 5);
    let mut failed = 0;
    for nth in 0..8 {
        let storage = Faulty::new(Memory::new()).fail_append(
            nth,
            3,
            Failure::Kind(std::io::ErrorKind::StorageFull),
        );
        let outcome = Arc::new(AtomicU8::new(0));
        let seen = Arc::clone(&outcome);
        let finish = Box::new(move |whole: bool| {
            seen.store(1 + u8::from(whole), Ordering::Relaxed);
            Ok(())
        });
        let mut writer = ArWriter::new(Box::new(storage), "x", PLAIN, finish).unwrap();
        let pushed: Result<Vec<u64>> = records.iter().map(|record| writer.append(record)).collect();
        let closed = writer.close();
        if pushed.is_ok() && closed.is_ok() {
            assert_eq!(outcome.load(Ordering::Relaxed), 2);
            continue;
        }
        failed += 1;
        let error = closed.expect_err("what failed goes on failing");
        assert!(matches!(error, Error::Storage { .. }), "{error}");
        drop(writer);
        assert_eq!(outcome.load(Ordering::Relaxed), 1, "nothing may appear");
    }
    assert!(failed > 0);
}
