//! Bus errors, ours and those of others.

use std::fs::{self, File};
use std::path::Path;

use ingot::storage::{Access, LocalFile, Mapping};

use super::fixture::{Fixture, MIB, cut, read};
use super::process::{Ended, fork};

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
