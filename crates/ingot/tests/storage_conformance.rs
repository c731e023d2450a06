//! What every storage promises, tried on each of them, and what each promises besides.

#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use ingot::crc::Sum;
use ingot::storage::{
    Access, Append, AppendFile, Crashing, Failure, Faulty, LocalFile, Mapping, Memory, Pread, Read,
    ReadAt, ReadError, Uring,
};
use tempfile::TempDir;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A directory with a file in it, whose bytes are known.
struct Fixture {
    _directory: TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Fixture {
    fn new(size: usize) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bytes");
        let mut random = Random(size as u64);
        let bytes: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
        fs::write(&path, &bytes).unwrap();
        Fixture { _directory: directory, path, bytes }
    }

    fn file(&self) -> Arc<File> {
        Arc::new(File::open(&self.path).unwrap())
    }

    /// Every implementation there is, over the same bytes.
    fn storages(&self) -> Vec<(&'static str, Box<dyn ReadAt>)> {
        let local = |access| -> Box<dyn ReadAt> {
            Box::new(LocalFile::open_with(&self.path, access).unwrap())
        };
        let mut storages: Vec<(&'static str, Box<dyn ReadAt>)> = vec![
            ("memory", Box::new(Memory::from(self.bytes.clone()))),
            ("faulty", Box::new(Faulty::new(Memory::from(self.bytes.clone())))),
            ("pread", Box::new(Pread::new(self.file()))),
            ("uring", Box::new(Uring::new(self.file()))),
            ("local", local(Access::Automatic)),
            ("local mapping", local(Access::Mapping)),
            ("local uring", local(Access::Uring)),
            ("local pread", local(Access::Pread)),
        ];
        if !self.bytes.is_empty() {
            storages.push(("mapping", Box::new(Mapping::new(self.file()).unwrap())));
        }
        storages
    }

    /// Reads `ranges` (offset, length) as one batch from every storage.
    fn check(&self, ranges: &[(usize, usize)]) {
        for (name, storage) in self.storages() {
            self.check_one(name, &*storage, ranges);
        }
    }

    fn check_one(&self, name: &str, storage: &dyn ReadAt, ranges: &[(usize, usize)]) {
        let buffers = read(storage, ranges).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        for (buffer, &(offset, len)) in buffers.iter().zip(ranges) {
            assert!(buffer[..] == self.bytes[offset..offset + len], "{name}: {offset}+{len}");
        }
    }
}

const SUMS: [Sum; 3] = [Sum::Crc32c, Sum::None, Sum::Crc32];

/// Reads a batch, and checks that each read lands once, filled and summed, on this thread.
fn read(storage: &dyn ReadAt, ranges: &[(usize, usize)]) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut buffers: Vec<Vec<u8>> = ranges.iter().map(|&(_, len)| vec![0xaa; len]).collect();
    let mut reads: Vec<Read<'_>> = buffers
        .iter_mut()
        .zip(ranges)
        .zip(SUMS.into_iter().cycle())
        .map(|((buf, &(offset, _)), sum)| Read { sum, crc: 5, ..Read::new(offset as u64, buf) })
        .collect();
    let thread = thread::current().id();
    let mut landed: Vec<Option<Vec<u8>>> = vec![None; ranges.len()];
    storage.read_many(&mut reads, &mut |index, bytes| {
        assert_eq!(thread::current().id(), thread);
        assert!(landed[index].replace(bytes.buf.to_vec()).is_none(), "read {index} landed twice");
        assert_eq!(bytes.crc, bytes.sum.append(5, bytes.buf), "read {index} is summed wrong");
    })?;
    for (landed, buffer) in landed.iter().zip(&buffers) {
        assert!(landed.as_ref() == Some(buffer), "a read did not land, or landed half");
    }
    Ok(buffers)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 24
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn ranges(&mut self, size: usize) -> Vec<(usize, usize)> {
        let longest = [1, 100, 5 * KIB, 50 * KIB][self.below(4)].min(size);
        (0..self.below(40))
            .map(|_| {
                let len = self.below(longest + 1);
                (self.below(size - len + 1), len)
            })
            .collect()
    }
}

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
fn announced_ranges_read_as_before() {
    let fixture = Fixture::new(MIB);
    File::open(&fixture.path).unwrap().sync_all().unwrap();
    for (name, storage) in fixture.storages() {
        evict(&fixture.path);
        storage.announce(&[5..5_000, 3..3, 900_000..u64::MAX, 100_000..200_000]);
        fixture.check_one(name, &*storage, &[(5, 4_995), (100_000, 100_000)]);
    }
}

#[test]
fn a_landed_read_may_read_on() {
    let fixture = Fixture::new(MIB);
    for (name, storage) in fixture.storages() {
        let (mut first, mut second) = ([0; 100], [0; 100]);
        let mut reads = [Read::new(0, &mut first), Read::new(500_000, &mut second)];
        storage
            .read_many(&mut reads, &mut |_, _| {
                fixture.check_one(name, &*storage, &[(1_000, 10), (700_000, 10)]);
            })
            .unwrap();
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
            let _ = storage.read_many(&mut reads, &mut |index, _| assert_ne!(index, 50));
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

#[test]
fn a_file_cut_short_under_a_reader_is_an_error_and_not_a_signal() {
    for access in [Access::Automatic, Access::Mapping, Access::Uring, Access::Pread] {
        let fixture = Fixture::new(MIB);
        let file = LocalFile::open_with(&fixture.path, access).unwrap();
        for _ in 0..10 {
            fixture.check_one("whole", &file, &[(0, 100), (900_000, 100)]);
        }
        cut(&fixture.path, 100_000);
        let error = read(&file, &[(10, 10), (500_000, 10), (20, 10)]).unwrap_err();
        assert_eq!(error.index, 1, "{access:?}");
        assert_eq!(error.source.kind(), ErrorKind::UnexpectedEof, "{access:?}");
        fixture.check_one("rest", &file, &[(0, 100), (99_000, 1_000)]);
        assert_eq!(file.size().unwrap(), 100_000);
        let error = read(&file, &[(0, MIB)]).unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::UnexpectedEof, "{access:?}");
    }
}

#[test]
fn a_file_cut_in_the_middle_of_a_page_shows_no_zeros_to_larger_batches() {
    let fixture = Fixture::new(MIB);
    let file = LocalFile::open_with(&fixture.path, Access::Mapping).unwrap();
    let ranges: Vec<_> = (0..8).map(|k| (k * 100_000, 100_000)).collect();
    for _ in 0..10 {
        fixture.check_one("whole", &file, &ranges);
    }
    cut(&fixture.path, 799_500);
    let error = read(&file, &ranges).unwrap_err();
    assert_eq!((error.index, error.source.kind()), (7, ErrorKind::UnexpectedEof));
}

#[test]
fn a_damaged_mapping_reports_it_and_stays_damaged() {
    let fixture = Fixture::new(MIB);
    let mapping = Mapping::new(fixture.file()).unwrap();
    fixture.check_one("whole", &mapping, &[(0, 100)]);
    assert!(!mapping.is_damaged());
    cut(&fixture.path, 0);
    read(&mapping, &[(500_000, 10)]).unwrap_err();
    assert!(mapping.is_damaged());
    read(&mapping, &[(0, 10)]).unwrap_err();
}

#[test]
fn a_grown_file_is_read_past_its_former_end() {
    let mut fixture = Fixture::new(10_000);
    let storages = fixture.storages();
    fixture.bytes.extend_from_slice(&[7; 10_000]);
    fs::write(&fixture.path, &fixture.bytes).unwrap();
    for (name, storage) in storages.iter().filter(|(name, _)| name.starts_with("local")) {
        fixture.check_one(name, &**storage, &[(0, 100), (9_000, 2_000), (15_000, 5_000)]);
    }
}

#[test]
fn a_bus_error_outside_our_mappings_reaches_the_handler_that_was_there_before() {
    let fixture = Fixture::new(MIB);
    for is_first in [true, false] {
        let _ours = (!is_first).then(|| Mapping::new(fixture.file()).unwrap());
        let child = fork(|| {
            install(exit_with_42 as *const () as usize);
            let _mapping = Mapping::new(fixture.file()).unwrap();
            touch_beyond_end(&fixture.path);
            1
        });
        assert_eq!(child.wait(), Ended::Exited(42));
    }
}

#[test]
fn a_bus_error_outside_our_mappings_kills_where_nothing_handles_it() {
    let fixture = Fixture::new(MIB);
    for setting in [libc::SIG_DFL, libc::SIG_IGN] {
        let child = fork(|| {
            install(setting);
            let _mapping = Mapping::new(fixture.file()).unwrap();
            touch_beyond_end(&fixture.path);
            1
        });
        assert_eq!(child.wait(), Ended::Killed(libc::SIGBUS));
    }
}

#[test]
fn a_bus_signal_that_was_sent_is_not_taken_for_a_fault() {
    let fixture = Fixture::new(MIB);
    for (setting, end) in [
        (libc::SIG_DFL, Ended::Killed(libc::SIGBUS)),
        (libc::SIG_IGN, Ended::Exited(1)),
        (exit_with_42 as *const () as usize, Ended::Exited(42)),
    ] {
        let child = fork(|| {
            install(setting);
            let _mapping = Mapping::new(fixture.file()).unwrap();
            // SAFETY: raising a signal is what is tested.
            unsafe { libc::raise(libc::SIGBUS) };
            1
        });
        assert_eq!(child.wait(), end);
    }
}

#[test]
fn a_handler_that_replaced_ours_does_not_take_our_faults() {
    let fixture = Fixture::new(MIB);
    let child = fork(|| {
        let file = LocalFile::open_with(&fixture.path, Access::Mapping).unwrap();
        install(exit_with_42 as *const () as usize);
        let ranges = [(0, 20_000), (900_000, 100)];
        fixture.check_one("replaced", &file, &ranges);
        cut(&fixture.path, 50_000);
        i32::from(read(&file, &[(900_000, 100)]).is_ok())
    });
    assert_eq!(child.wait(), Ended::Exited(0));
}

#[test]
fn a_handler_that_hands_the_signal_back_does_not_loop() {
    let fixture = Fixture::new(MIB);
    for handler in [restore_and_raise as *const () as usize, restore as *const () as usize] {
        let child = fork(|| {
            install(libc::SIG_DFL);
            let first = Mapping::new(fixture.file()).unwrap();
            // SAFETY: plain sigaction calls of the child's only thread.
            unsafe {
                libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut BEFORE);
            }
            install(handler);
            let second = Mapping::new(fixture.file()).unwrap();
            touch_beyond_end(&fixture.path);
            drop((first, second));
            1
        });
        assert_eq!(child.wait(), Ended::Killed(libc::SIGBUS));
    }
}

#[test]
fn a_refused_ring_gives_the_same_bytes() {
    let fixture = Fixture::new(MIB);
    let child = fork(|| {
        refuse_rings();
        let storages = fixture.storages();
        for (name, storage) in storages.iter().filter(|(name, _)| name.contains("uring")) {
            let mut random = Random(1);
            for _ in 0..100 {
                fixture.check_one(name, &**storage, &random.ranges(MIB));
            }
            let error = read(&**storage, &[(0, 10), (MIB, 1)]).unwrap_err();
            assert_eq!(error.source.kind(), ErrorKind::UnexpectedEof);
        }
        0
    });
    assert_eq!(child.wait(), Ended::Exited(0));
}

#[test]
fn files_that_cannot_be_mapped_are_read_all_the_same() {
    let file = LocalFile::open_with("/proc/self/stat", Access::Automatic).unwrap();
    assert_eq!(file.access(), Access::Pread);
    assert_eq!(read(&file, &[(0, 1)]).unwrap().len(), 1);
    let zeros = LocalFile::open_with("/dev/zero", Access::Automatic).unwrap();
    assert_eq!(read(&zeros, &[(5, 3), (100_000, 2)]).unwrap(), [vec![0; 3], vec![0; 2]]);
    let error = LocalFile::open_with("/proc", Access::Automatic).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::IsADirectory);
}

#[test]
fn the_environment_forces_a_way_of_reading_and_refuses_others() {
    let fixture = Fixture::new(100);
    for (value, access) in
        [("mmap", Access::Mapping), ("uring", Access::Uring), ("pread", Access::Pread)]
    {
        let child = fork(|| {
            // SAFETY: the child has one thread.
            unsafe { std::env::set_var("INGOT_IO", value) };
            i32::from(LocalFile::open(&fixture.path).unwrap().access() != access)
        });
        assert_eq!(child.wait(), Ended::Exited(0), "{value}");
    }
    let child = fork(|| {
        // SAFETY: as above.
        unsafe { std::env::set_var("INGOT_IO", "fast") };
        let error = LocalFile::open(&fixture.path).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "INGOT_IO=fast: expected mmap, uring or pread");
        0
    });
    assert_eq!(child.wait(), Ended::Exited(0));
}

#[test]
fn an_append_file_holds_what_was_appended() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new");
    let mut file = AppendFile::create(&path).unwrap();
    file.append(b"hello").unwrap();
    file.sync().unwrap();
    file.append(b" world").unwrap();
    file.rewrite(1, b"a").unwrap();
    file.truncate(9).unwrap();
    file.append(b"!").unwrap();
    file.sync().unwrap();
    assert_eq!(file.len(), 10);
    assert_eq!(fs::read(&path).unwrap(), b"hallo wor!");
    assert_eq!(file.rewrite(9, b"!!").unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(file.truncate(11).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    drop(file);
    let mut file = AppendFile::open(&path).unwrap();
    file.append(b"?").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"hallo wor!?");
    assert_eq!(AppendFile::create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn an_append_file_notices_what_others_do_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new");
    let mut file = AppendFile::create(&path).unwrap();
    file.append(b"hello").unwrap();
    file.check().unwrap();
    for len in [4, 6] {
        cut(&path, len);
        let message = file.check().unwrap_err().to_string();
        assert!(message.contains(&format!("it has {len} bytes, not the 5")), "{message}");
    }
    cut(&path, 5);
    file.check().unwrap();
    fs::remove_file(&path).unwrap();
    assert!(file.check().unwrap_err().to_string().contains("was removed"));
}

#[test]
fn a_second_writer_is_refused_until_the_first_has_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one");
    let first = AppendFile::create(&path).unwrap();
    assert_eq!(AppendFile::open(&path).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(first);
    AppendFile::open(&path).unwrap();
}

#[test]
fn a_fork_neither_keeps_nor_releases_the_lock_of_a_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one");
    let mut writer = Some(AppendFile::create(&path).unwrap());
    let child = fork(|| {
        let mut inherited = writer.take().unwrap();
        let refused = inherited.append(b"x").is_err() && inherited.sync().is_err();
        drop(inherited);
        i32::from(!refused)
    });
    assert_eq!(child.wait(), Ended::Exited(0));
    assert_eq!(AppendFile::open(&path).unwrap_err().kind(), ErrorKind::WouldBlock);

    let mut gate = [0; 2];
    // SAFETY: the array takes the two descriptors.
    assert_eq!(unsafe { libc::pipe(gate.as_mut_ptr()) }, 0);
    let child = fork(|| {
        // Holds its duplicate of the descriptor until the parent is done.
        // SAFETY: plain calls on descriptors of this test.
        unsafe {
            libc::close(gate[1]);
            libc::read(gate[0], [0_u8; 1].as_mut_ptr().cast(), 1);
        }
        0
    });
    drop(writer);
    AppendFile::open(&path).unwrap();
    // SAFETY: as above.
    unsafe { libc::close(gate[1]) };
    assert_eq!(child.wait(), Ended::Exited(0));
}

#[test]
fn a_full_device_is_an_error_of_the_append() {
    let mut full = AppendFile::open("/dev/full").unwrap();
    assert_eq!(full.append(b"x").unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn memory_is_shared_by_its_clones() {
    let mut writer = Memory::new();
    let reader = writer.clone();
    writer.append(b"hello").unwrap();
    assert_eq!(read(&reader, &[(1, 3)]).unwrap(), [b"ell"]);
    writer.rewrite(0, b"j").unwrap();
    writer.truncate(4).unwrap();
    assert_eq!(reader.bytes(), b"jell");
}

#[test]
fn planned_faults_happen_as_planned() {
    let disk = Faulty::new(Memory::from(b"abcdefgh".to_vec()))
        .fail_read(1, Failure::Errno(libc::EIO))
        .flip(3, 0)
        .cut(6);
    let error = read(&disk, &[(0, 4), (0, 1)]).unwrap_err();
    assert_eq!((error.index, error.source.raw_os_error()), (1, Some(libc::EIO)));
    assert_eq!(read(&disk, &[(2, 3), (0, 1)]).unwrap(), [&b"cee"[..], b"a"]);
    assert_eq!(read(&disk, &[(5, 2)]).unwrap_err().source.kind(), ErrorKind::UnexpectedEof);
    assert_eq!((disk.size().unwrap(), disk.reads()), (6, 5));

    let mut disk = Faulty::new(Memory::new())
        .fail_append(1, 2, Failure::Kind(ErrorKind::StorageFull))
        .fail_sync(0, Failure::Errno(libc::EIO));
    disk.append(b"one").unwrap();
    assert_eq!(disk.append(b"two").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(disk.sync().unwrap_err().raw_os_error(), Some(libc::EIO));
    disk.sync().unwrap();
    assert_eq!(disk.into_inner().bytes(), b"onetw");
}

#[test]
fn a_crash_leaves_all_that_was_synced_and_anything_of_the_rest() {
    let mut disk = Crashing::new();
    disk.append(b"aaaa").unwrap();
    disk.sync().unwrap();
    disk.append(b"bbbb").unwrap();
    disk.append(b"cccc").unwrap();
    disk.sync().unwrap();
    assert_eq!(disk.bytes(), b"aaaabbbbcccc");
    let states: Vec<_> = disk.states(1, 2_000).collect();
    assert_eq!(states, disk.states(1, 2_000).collect::<Vec<_>>());
    for state in &states {
        let safe = [0, 4, 12][state.syncs];
        assert!(state.bytes[..safe] == b"aaaabbbbcccc"[..safe], "{state:?}");
        assert!(state.operations <= disk.operations());
    }
    let has = |bytes: &[u8]| states.iter().any(|state| state.bytes == bytes);
    assert!(has(b"") && has(b"aaaa") && has(b"aaaabbbb") && has(b"aaaabbbbcccc"));
    assert!(has(b"aaaa\0\0\0\0cccc"), "a later append may survive an earlier one");
    assert!(has(b"aaaabbbbc") && has(b"aaaab"), "an append may be torn");
    assert!(has(b"aaaabbbb\0\0\0\0"), "the length may come before the bytes");
}

#[test]
fn a_crash_may_undo_a_truncation_and_tear_a_rewrite() {
    let mut disk = Crashing::over(b"abcdef".to_vec());
    disk.truncate(3).unwrap();
    disk.append(b"X").unwrap();
    disk.rewrite(0, b"YY").unwrap();
    assert_eq!(disk.bytes(), b"YYcX");
    let states: Vec<_> = disk.states(9, 2_000).map(|state| state.bytes).collect();
    for bytes in [&b"abcdef"[..], b"abc", b"abcXef", b"YbcX", b"aYcX"] {
        assert!(states.iter().any(|state| state == bytes), "{bytes:?}");
    }
}

fn cut(path: &Path, len: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

fn evict(path: &Path) {
    use std::os::fd::AsRawFd;
    let file = File::open(path).unwrap();
    // SAFETY: the descriptor is open; the advice changes no bytes.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

#[derive(Debug, PartialEq, Eq)]
enum Ended {
    Exited(i32),
    Killed(i32),
}

struct Child(libc::pid_t);

/// Runs `work` in the child of a fork, which ends with the number it returns.
fn fork(work: impl FnOnce() -> i32) -> Child {
    // SAFETY: the child runs library code that must be usable after a fork, which
    // is what is tested, and ends without returning to the test harness.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::alarm(60);
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            libc::_exit(code.unwrap_or(101));
        }
        Child(child)
    }
}

impl Child {
    fn wait(self) -> Ended {
        let mut status = 0;
        // SAFETY: the child is ours and was not waited for.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0);
        if libc::WIFSIGNALED(status) {
            Ended::Killed(libc::WTERMSIG(status))
        } else {
            Ended::Exited(libc::WEXITSTATUS(status))
        }
    }
}

static mut BEFORE: libc::sigaction = unsafe { std::mem::zeroed() };

extern "C" fn exit_with_42(_signal: i32) {
    // SAFETY: _exit may be called from a signal handler.
    unsafe { libc::_exit(42) };
}

extern "C" fn restore(signal: i32) {
    // SAFETY: sigaction may be called from a signal handler.
    unsafe { libc::sigaction(signal, &raw const BEFORE, std::ptr::null_mut()) };
}

extern "C" fn restore_and_raise(signal: i32) {
    restore(signal);
    // SAFETY: raise may be called from a signal handler.
    unsafe { libc::raise(signal) };
}

fn install(handler: libc::sighandler_t) {
    // SAFETY: a zeroed sigaction is valid, and the handlers are plain functions.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        assert_eq!(libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()), 0);
    }
}

/// Reads a page past the end of a file through a mapping that is not the library's.
fn touch_beyond_end(path: &Path) {
    use std::os::fd::AsRawFd;
    let beyond = path.with_extension("empty");
    fs::write(&beyond, b"").unwrap();
    let file = File::open(&beyond).unwrap();
    // SAFETY: the fault that follows is what is tested.
    unsafe {
        let flags = libc::MAP_SHARED;
        let fd = file.as_raw_fd();
        let page = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, flags, fd, 0);
        assert_ne!(page, libc::MAP_FAILED);
        std::ptr::read_volatile(page.cast::<u8>());
    }
}

/// Makes the system refuse rings to this process, for good.
fn refuse_rings() {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let give = libc::BPF_RET | libc::BPF_K;
    let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        instruction(load, 0, 0, 0),
        instruction(equal, 0, 1, libc::SYS_io_uring_setup as u32),
        instruction(give, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        instruction(give, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid and outlives the calls.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
}
