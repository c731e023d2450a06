//! Memory, and disks that fail and crash.

use std::io::ErrorKind;

use ingot::storage::{Append, Crashing, Failure, Faulty, Memory, ReadAt};

use super::fixture::read;

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
