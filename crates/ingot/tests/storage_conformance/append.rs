//! Files that grow.

use std::fs;
use std::io::ErrorKind;

use ingot::storage::{Append, AppendFile};

use super::fixture::cut;
use super::process::{Ended, fork};

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
fn a_second_writer_is_rejected_until_the_first_has_gone() {
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
