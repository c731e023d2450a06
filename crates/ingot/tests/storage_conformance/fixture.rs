//! A file whose bytes are known, and the storages over it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ingot::crc::Sum;
use ingot::storage::{
    Access, Delayed, Faulty, Group, Landed, LocalFile, Mapping, Memory, Pread, Read, ReadAt, Uring,
    read_all,
};
use tempfile::TempDir;

pub const KIB: usize = 1 << 10;

pub const MIB: usize = 1 << 20;

/// A directory with a file in it, whose bytes are known.
pub struct Fixture {
    _directory: TempDir,
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

impl Fixture {
    pub fn new(size: usize) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bytes");
        let mut random = Random(size as u64);
        let bytes: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
        fs::write(&path, &bytes).unwrap();
        Fixture { _directory: directory, path, bytes }
    }

    pub fn file(&self) -> Arc<File> {
        Arc::new(File::open(&self.path).unwrap())
    }

    /// Every implementation there is, over the same bytes.
    pub fn storages(&self) -> Vec<(&'static str, Box<dyn ReadAt>)> {
        let local = |access| -> Box<dyn ReadAt> {
            Box::new(LocalFile::open_with(&self.path, access).unwrap())
        };
        let mut storages: Vec<(&'static str, Box<dyn ReadAt>)> = vec![
            ("memory", Box::new(Memory::from(self.bytes.clone()))),
            ("faulty", Box::new(Faulty::new(Memory::from(self.bytes.clone())))),
            (
                "delayed",
                Box::new(Delayed::new(Memory::from(self.bytes.clone()), Duration::from_micros(20))),
            ),
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
    pub fn check(&self, ranges: &[(usize, usize)]) {
        for (name, storage) in self.storages() {
            self.check_one(name, &*storage, ranges);
        }
    }

    pub fn check_one(&self, name: &str, storage: &dyn ReadAt, ranges: &[(usize, usize)]) {
        for buffers in [read(storage, ranges), read_in_two_steps(storage, ranges)] {
            let buffers = buffers.unwrap_or_else(|error| panic!("{name}: {error:?}"));
            for (buffer, &(offset, len)) in buffers.iter().zip(ranges) {
                assert!(buffer[..] == self.bytes[offset..offset + len], "{name}: {offset}+{len}");
            }
        }
    }
}

const SUMS: [Sum; 3] = [Sum::Crc32c, Sum::None, Sum::Crc32];

/// A read of a batch that failed.
#[derive(Debug)]
pub struct ReadError {
    pub index: usize,
    pub source: io::Error,
}

/// Reads a batch, and checks that each read lands once, filled and summed or failed, on this
/// thread. Returns the first failure.
pub fn read(storage: &dyn ReadAt, ranges: &[(usize, usize)]) -> Result<Vec<Vec<u8>>, ReadError> {
    read_by(ranges, |reads, landed| storage.read_many(reads, landed))
}

/// As [`read`], first what is ready, then the rest as a batch over storages.
pub fn read_in_two_steps(
    storage: &dyn ReadAt,
    ranges: &[(usize, usize)],
) -> Result<Vec<Vec<u8>>, ReadError> {
    read_by(ranges, |reads, landed| {
        let mut left = storage.read_ready(reads, landed).into_iter().peekable();
        let (mut numbers, mut rest) = (Vec::new(), Vec::new());
        for (k, read) in reads.iter_mut().enumerate() {
            if left.next_if_eq(&k).is_some() {
                numbers.push(k);
                rest.push(Read { buf: &mut *read.buf, ..*read });
            }
        }
        let groups = vec![Group { storage, reads: &mut rest }];
        read_all(groups, &mut |k, read, outcome| landed(numbers[k], read, outcome));
    })
}

fn read_by(
    ranges: &[(usize, usize)],
    read_many: impl FnOnce(&mut [Read<'_>], &mut Landed<'_>),
) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut buffers: Vec<Vec<u8>> = ranges.iter().map(|&(_, len)| vec![0xaa; len]).collect();
    let mut reads: Vec<Read<'_>> = buffers
        .iter_mut()
        .zip(ranges)
        .zip(SUMS.into_iter().cycle())
        .map(|((buf, &(offset, _)), sum)| Read { sum, crc: 5, ..Read::new(offset as u64, buf) })
        .collect();
    let thread = thread::current().id();
    let mut landed: Vec<Option<io::Result<Vec<u8>>>> = ranges.iter().map(|_| None).collect();
    read_many(&mut reads, &mut |index, bytes, outcome| {
        assert_eq!(thread::current().id(), thread);
        if outcome.is_ok() {
            let sum = bytes.sum.append(5, bytes.buf);
            assert_eq!(bytes.crc, sum, "read {index} is summed wrong");
        }
        let outcome = outcome.map(|()| bytes.buf.to_vec());
        assert!(landed[index].replace(outcome).is_none(), "read {index} landed twice");
    });
    let mut failed = None;
    for (index, (landed, buffer)) in landed.into_iter().zip(&buffers).enumerate() {
        match landed.expect("every read lands") {
            Ok(bytes) => assert!(bytes == *buffer, "read {index} landed half"),
            Err(source) => failed = failed.or(Some(ReadError { index, source })),
        }
    }
    failed.map_or(Ok(buffers), Err)
}

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 24
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn ranges(&mut self, size: usize) -> Vec<(usize, usize)> {
        let longest = [1, 100, 5 * KIB, 50 * KIB][self.below(4)].min(size);
        (0..self.below(40))
            .map(|_| {
                let len = self.below(longest + 1);
                (self.below(size - len + 1), len)
            })
            .collect()
    }
}

pub fn cut(path: &Path, len: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

pub fn evict(path: &Path) {
    use std::os::fd::AsRawFd;
    let file = File::open(path).unwrap();
    // SAFETY: the descriptor is open; the advice changes no bytes.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}
