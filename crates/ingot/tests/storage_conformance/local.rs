//! Local files: cut, grown, not to be mapped, and read in another way than they ask for.

use std::fs;
use std::io::ErrorKind;

use ingot::storage::{Access, LocalFile, Mapping, ReadAt};

use super::fixture::{Fixture, MIB, Random, cut, read};
use super::process::{Ended, fork};

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
