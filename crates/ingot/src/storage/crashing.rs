//! A storage that knows what a power failure could leave of it, for tests.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::within;
use super::{Append, past_end};

/// A storage in memory that remembers every operation, so that the states in
/// which a power failure could leave it can be listed. Clones share the log: give
/// one to the writer, keep another for [`Crashing::states`].
///
/// What a completed sync covers is safe. Of each operation after that, all, a
/// part or nothing may be on the device, whatever became of the others: bytes of
/// a lost append that lie before surviving ones read as zeros, and a lost
/// truncation leaves the old bytes where nothing was written over them.
#[derive(Clone, Debug, Default)]
pub struct Crashing {
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    before: Vec<u8>,
    len: u64,
    operations: Vec<Operation>,
}

#[derive(Clone, Debug)]
enum Operation {
    Write { offset: u64, bytes: Vec<u8> },
    Truncate { len: u64 },
    Sync,
}

/// What a power failure left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashState {
    /// The bytes of the storage.
    pub bytes: Vec<u8>,
    /// How many operations, syncs among them, had returned to their caller.
    pub operations: usize,
    /// How many syncs had returned to their caller.
    pub syncs: usize,
}

/// What became of an operation that no sync covers.
#[derive(Clone, Copy)]
enum Fate {
    Kept,
    Lost,
    /// The length grew, the bytes never came.
    Zeros,
    /// Only the bytes before this place are there.
    Head(usize),
    /// Only the bytes from this place on are there.
    Tail(usize),
}

impl Crashing {
    /// Returns an empty storage.
    pub fn new() -> Crashing {
        Crashing::default()
    }

    /// Returns a storage that held `bytes`, safely, before the log begins.
    pub fn over(bytes: Vec<u8>) -> Crashing {
        let len = bytes.len() as u64;
        let log = Log { before: bytes, len, operations: Vec::new() };
        Crashing { log: Arc::new(Mutex::new(log)) }
    }

    /// Returns the bytes as they are with no power failure.
    pub fn bytes(&self) -> Vec<u8> {
        let log = self.log();
        log.replay(log.operations.len(), |_| Fate::Kept)
    }

    /// Returns the number of operations so far, syncs among them.
    pub fn operations(&self) -> usize {
        self.log().operations.len()
    }

    /// Returns `count` states that power failures during the operations so far
    /// could leave, the same ones for the same seed.
    ///
    /// The states go round all points of time, in each round with other fates for
    /// what was not synced: all kept, all lost, the last operation torn, then any
    /// mixture. So three states for each operation and three more see the plain
    /// cases of all points of time.
    pub fn states(&self, seed: u64, count: usize) -> impl Iterator<Item = CrashState> + use<> {
        let log = self.log();
        let log =
            Log { before: log.before.clone(), len: log.len, operations: log.operations.clone() };
        (0..count).map(move |number| log.crash(seed, number))
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Append for Crashing {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut log = self.log();
        let offset = log.len;
        log.len += bytes.len() as u64;
        log.operations.push(Operation::Write { offset, bytes: bytes.to_vec() });
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.log().operations.push(Operation::Sync);
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut log = self.log();
        if len > log.len {
            return Err(past_end());
        }
        log.len = len;
        log.operations.push(Operation::Truncate { len });
        Ok(())
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut log = self.log();
        within(log.len as usize, offset, bytes.len())?;
        log.operations.push(Operation::Write { offset, bytes: bytes.to_vec() });
        Ok(())
    }
}

impl Log {
    /// Returns the state left by a failure after `completed` operations, with the
    /// next one under way.
    fn crash(&self, seed: u64, number: usize) -> CrashState {
        let points = self.operations.len() + 1;
        let (round, completed) = (number / points, number % points);
        let mut random = Random(seed ^ (number as u64).wrapping_mul(0xa076_1d64_78bd_642f));
        let begun = (completed + 1).min(self.operations.len());
        let bytes = self.replay_unsynced(completed, begun, |k, len| match round {
            0 if k < completed => Fate::Kept,
            0 | 1 => Fate::Lost,
            2 if k + 1 < begun => Fate::Kept,
            2 => Fate::Head(random.below(len + 1)),
            _ => random.fate(len),
        });
        let is_sync = |operation: &&Operation| matches!(operation, Operation::Sync);
        let syncs = self.operations[..completed].iter().filter(is_sync).count();
        CrashState { bytes, operations: completed, syncs }
    }

    /// Applies the operations before `begun`: those that a sync among the first
    /// `completed` covers as they are, the others as `fate` says for their number
    /// and length.
    fn replay_unsynced(
        &self,
        completed: usize,
        begun: usize,
        mut fate: impl FnMut(usize, usize) -> Fate,
    ) -> Vec<u8> {
        let is_sync = |operation: &Operation| matches!(operation, Operation::Sync);
        let safe = self.operations[..completed].iter().rposition(is_sync).map_or(0, |k| k + 1);
        self.replay(begun, |k| match &self.operations[k] {
            _ if k < safe => Fate::Kept,
            Operation::Write { bytes, .. } => fate(k, bytes.len()),
            _ => fate(k, 0),
        })
    }

    fn replay(&self, begun: usize, mut fate: impl FnMut(usize) -> Fate) -> Vec<u8> {
        let mut held = self.before.clone();
        for (k, operation) in self.operations[..begun].iter().enumerate() {
            match (operation, fate(k)) {
                (Operation::Sync, _) | (_, Fate::Lost) => {}
                (Operation::Truncate { len }, Fate::Kept) => held.truncate(*len as usize),
                (Operation::Truncate { .. }, _) => {}
                (Operation::Write { offset, bytes }, fate) => {
                    write(&mut held, *offset as usize, bytes, fate);
                }
            }
        }
        held
    }
}

fn write(held: &mut Vec<u8>, offset: usize, bytes: &[u8], fate: Fate) {
    let (survived, end) = match fate {
        Fate::Kept => (0..bytes.len(), bytes.len()),
        Fate::Lost => return,
        Fate::Zeros => (0..0, bytes.len()),
        Fate::Head(place) => (0..place, place),
        Fate::Tail(place) => (place..bytes.len(), bytes.len()),
    };
    if held.len() < offset + end {
        held.resize(offset + end, 0);
    }
    held[offset..][survived.clone()].copy_from_slice(&bytes[survived]);
}

/// A small generator (splitmix64): the states must not depend on anything but the seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn fate(&mut self, len: usize) -> Fate {
        match self.below(8) {
            0..3 => Fate::Kept,
            3 | 4 => Fate::Lost,
            5 => Fate::Zeros,
            6 => Fate::Head(self.below(len + 1)),
            _ => Fate::Tail(self.below(len + 1)),
        }
    }
}
