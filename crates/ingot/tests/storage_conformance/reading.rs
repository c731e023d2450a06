//! What every storage promises its readers.

use std::fs::File;
use std::io::ErrorKind;
use std::thread;

use ingot::crc::Sum;
use ingot::storage::{Group, Read, read_all};

use super::fixture::{Fixture, MIB, Random, evict, read};
use super::process::{Ended, fork};

#[test]
fn a_storage_knows_its_size() {
    for size in [0, 1, 4096, 10_000] {
        for (name, storage) in Fixture::new(size).storages() {
            assert_eq!(storage.size().unwrap(), size as u64, "{name}");
        }
    }
}

#[test]
fn one_range_is_read() {
    let fixture = Fixture::new(10_000);
    for range in [(0, 1), (0, 10_000), (4095, 2), (4096, 4096), (9_999, 1), (511, 513)] {
        fixture.check(&[range]);
    }
}

#[test]
fn an_empty_batch_reads_nothing() {
    Fixture::new(100).check(&[]);
}

#[test]
fn ranges_may_come_in_any_order_repeat_overlap_and_touch() {
    let fixture = Fixture::new(100_000);
    fixture.check(&[(50_000, 100), (0, 100), (99_000, 1_000), (20_000, 5)]);
    fixture.check(&[(7, 100), (7, 100), (7, 100), (7, 99)]);
    fixture.check(&[(0, 1_000), (500, 1_000), (0, 10_000), (999, 1), (400, 10)]);
    fixture.check(&[(0, 100), (100, 100), (200, 100), (300, 4_096), (4_396, 1)]);
    fixture.check(&[(0, 10), (4_106, 10), (8_213, 10), (40_000, 10)]);
}

#[test]
fn ranges_of_no_bytes_are_read_anywhere() {
    let fixture = Fixture::new(10_000);
    fixture.check(&[(0, 0), (10_000, 0), (5_000, 10), (5_005, 0)]);
    for (name, storage) in fixture.storages() {
        read(&*storage, &[(20_000, 0), (1, 1)]).unwrap_or_else(|_| panic!("{name}"));
    }
}

#[test]
fn the_last_bytes_are_read_whatever_the_size() {
    for size in [1, 511, 512, 513, 4095, 4096, 4097, MIB - 1, MIB + 1] {
        let fixture = Fixture::new(size);
        fixture.check(&[(size - 1, 1), (0, size), (size / 2, size - size / 2)]);
    }
}

#[test]
fn a_range_past_the_end_is_an_error_that_names_the_read() {
    let fixture = Fixture::new(10_000);
    for past in [(9_999, 2), (10_000, 1), (12_288, 1), (MIB, 1), (0, 10_001)] {
        for (name, storage) in fixture.storages() {
            let error = read(&*storage, &[(10, 10), (5_000, 100), past, (20, 10)]).unwrap_err();
            assert_eq!(error.index, 2, "{name}: {past:?}");
            assert_eq!(error.source.kind(), ErrorKind::UnexpectedEof, "{name}: {past:?}");
            let error = read(&*storage, &[past]).unwrap_err();
            assert_eq!(error.source.kind(), ErrorKind::UnexpectedEof, "{name}: {past:?}");
        }
    }
}

#[test]
fn offsets_that_no_file_has_are_past_the_end() {
    for (name, storage) in Fixture::new(10_000).storages() {
        for offset in [i64::MAX as usize - 1, i64::MAX as usize + 1, usize::MAX - 1] {
            for batch in [&[(offset, 5)][..], &[(0, 5), (offset, 5)]] {
                let error = read(&*storage, batch).unwrap_err();
                assert_eq!(error.index, batch.len() - 1, "{name}: {offset}");
                assert_eq!(error.source.kind(), ErrorKind::UnexpectedEof, "{name}: {offset}");
            }
        }
    }
}

#[test]
fn an_empty_storage_has_nothing_to_read() {
    for (name, storage) in Fixture::new(0).storages() {
        assert_eq!(read(&*storage, &[(0, 0)]).unwrap(), [b""], "{name}");
        let error = read(&*storage, &[(0, 1)]).unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::UnexpectedEof, "{name}");
    }
}

#[test]
fn long_ranges_are_read_along_with_short_ones() {
    let fixture = Fixture::new(40 * MIB);
    fixture.check(&[(3, 10 * MIB), (20 * MIB + 1, 10 * MIB), (5, 5), (39 * MIB, 777)]);
    fixture.check(&[(1, 39 * MIB)]);
}

#[test]
fn random_batches_give_the_bytes_that_were_written() {
    let fixture = Fixture::new(3 * MIB + 123);
    for (name, storage) in fixture.storages() {
        let mut random = Random(7);
        for _ in 0..1000 {
            fixture.check_one(name, &*storage, &random.ranges(fixture.bytes.len()));
        }
    }
}

#[test]
fn several_threads_read_one_storage_at_once() {
    let fixture = Fixture::new(2 * MIB + 5);
    for (name, storage) in fixture.storages() {
        thread::scope(|scope| {
            for seed in 0..4 {
                let (fixture, storage) = (&fixture, &*storage);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    for _ in 0..100 {
                        fixture.check_one(name, storage, &random.ranges(fixture.bytes.len()));
                    }
                });
            }
        });
    }
}

#[test]
fn bytes_that_are_not_in_memory_are_the_same_bytes() {
    let fixture = Fixture::new(4 * MIB + 77);
    File::open(&fixture.path).unwrap().sync_all().unwrap();
    let mut random = Random(3);
    for (name, storage) in fixture.storages() {
        for _ in 0..20 {
            evict(&fixture.path);
            fixture.check_one(name, &*storage, &random.ranges(fixture.bytes.len()));
        }
    }
}

#[test]
fn readiness_is_known_without_reading() {
    let fixture = Fixture::new(MIB);
    File::open(&fixture.path).unwrap().sync_all().unwrap();
    for (name, storage) in fixture.storages() {
        evict(&fixture.path);
        let _ = storage.is_ready(&[5..5_000, 3..3, 900_000..u64::MAX, 100_000..200_000]);
        fixture.check_one(name, &*storage, &[(5, 4_995), (100_000, 100_000)]);
        assert!(storage.cost().depth > 0, "{name}");
    }
}

#[test]
fn a_read_that_fails_fails_alone() {
    let fixture = Fixture::new(MIB);
    for (name, storage) in fixture.storages() {
        let (mut good, mut bad) = (vec![[0; 100]; 63], [0; 10]);
        let mut reads: Vec<Read<'_>> =
            good.iter_mut().enumerate().map(|(k, buf)| Read::new(k as u64 * 15_000, buf)).collect();
        reads.insert(20, Read::new(MIB as u64 - 5, &mut bad));
        let mut failed = Vec::new();
        storage.read_many(&mut reads, &mut |k, _, outcome| {
            failed.extend(outcome.err().map(|error| (k, error.kind())));
        });
        assert_eq!(failed, [(20, std::io::ErrorKind::UnexpectedEof)], "{name}");
        for (k, bytes) in good.iter().enumerate() {
            assert!(bytes[..] == fixture.bytes[k * 15_000..][..100], "{name}");
        }
    }
}

#[test]
fn a_batch_over_many_storages_reads_them_all() {
    let fixture = Fixture::new(MIB);
    let storages = fixture.storages();
    let mut buffers = vec![[0; 300]; 4 * storages.len()];
    let mut reads: Vec<Read<'_>> = buffers
        .iter_mut()
        .enumerate()
        .map(|(k, buf)| Read { sum: Sum::Crc32c, crc: 7, ..Read::new(k as u64 * 20_000, buf) })
        .collect();
    reads[5].offset = MIB as u64;
    let groups = storages
        .iter()
        .zip(reads.chunks_mut(4))
        .map(|((_, storage), reads)| Group { storage: &**storage, reads });
    let mut landed = vec![0; 4 * storages.len()];
    let mut failed = Vec::new();
    read_all(groups.collect(), &mut |k, read, outcome| {
        landed[k] += 1;
        assert!(outcome.is_err() || read.crc == read.sum.append(7, read.buf), "read {k}");
        failed.extend(outcome.err().map(|_| k));
    });
    assert!(landed.iter().all(|&times| times == 1), "{landed:?}");
    assert_eq!(failed, [5]);
    for (k, bytes) in buffers.iter().enumerate().filter(|&(k, _)| k != 5) {
        assert!(bytes[..] == fixture.bytes[k * 20_000..][..300], "{}", storages[k / 4].0);
    }
}

#[test]
fn a_landed_read_may_read_on() {
    let fixture = Fixture::new(MIB);
    for (name, storage) in fixture.storages() {
        let (mut first, mut second) = ([0; 100], [0; 100]);
        let mut reads = [Read::new(0, &mut first), Read::new(500_000, &mut second)];
        storage.read_many(&mut reads, &mut |_, _, outcome| {
            outcome.unwrap();
            fixture.check_one(name, &*storage, &[(1_000, 10), (700_000, 10)]);
        });
        assert!(first[..] == fixture.bytes[..100], "{name}");
        assert!(second[..] == fixture.bytes[500_000..500_100], "{name}");
    }
}

#[test]
fn a_panic_while_reads_are_under_way_leaves_the_storage_usable() {
    let fixture = Fixture::new(MIB);
    let ranges: Vec<_> = (0..100).map(|k| (k * 10_000, 100)).collect();
    for (name, storage) in fixture.storages() {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut buffers = vec![[0; 100]; ranges.len()];
            let mut reads: Vec<Read<'_>> = buffers
                .iter_mut()
                .zip(&ranges)
                .map(|(buf, range)| Read::new(range.0 as u64, buf))
                .collect();
            storage.read_many(&mut reads, &mut |index, _, _| assert_ne!(index, 50));
        }));
        assert!(panicked.is_err(), "{name}");
        fixture.check_one(name, &*storage, &ranges);
    }
}

#[test]
fn parent_and_child_of_a_fork_both_read_on() {
    let fixture = Fixture::new(2 * MIB);
    let storages = fixture.storages();
    let read_all = |seed| {
        for (name, storage) in &storages {
            let mut random = Random(seed);
            for _ in 0..20 {
                fixture.check_one(name, &**storage, &random.ranges(fixture.bytes.len()));
            }
        }
    };
    read_all(0);
    for cycle in 0..20 {
        let child = fork(|| {
            read_all(cycle);
            0
        });
        read_all(cycle);
        assert_eq!(child.wait(), Ended::Exited(0));
    }
}
