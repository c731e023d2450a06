//! Loading what it takes to find rows, of many files at once.

use std::io;
use std::sync::{Arc, Mutex};

use super::cache::Pin;
use super::container::Container;
use crate::pool::Pool;
use crate::storage::{self, Group, Read, ReadAt};

/// Bytes that one call loads, at most; what is left is loaded when its turn comes.
const LOAD_BYTES: u64 = 64 << 20;

/// How often there may be more to load once something was loaded: limits of a bag, then records
/// whose lengths only they themselves tell.
const ROUNDS: usize = 2;

/// A part of a file that must be loaded before some of its rows can be found.
pub struct Missing {
    /// The container's own number for it.
    pub number: u64,
    /// Where it is stored.
    pub storage: Arc<dyn ReadAt>,
    /// Where it begins there, and how many bytes it has.
    pub offset: u64,
    /// See above.
    pub len: u64,
}

/// Loads what it takes to find rows of files: all of it is read in one go, then decoded on all
/// cores. It stays in memory for as long as the pins are held.
///
/// What cannot be loaded is left out: who looks for a row that needs it gets the error.
pub fn prepare(wanted: &[(&dyn Container, Vec<u64>)]) -> Vec<Pin> {
    let mut pins = Vec::new();
    let mut room = LOAD_BYTES;
    for _ in 0..ROUNDS {
        let mut missing = Vec::new();
        for (file, rows) in wanted {
            for one in file.missing(rows) {
                if one.len <= room {
                    room -= one.len;
                    missing.push((*file, one));
                }
            }
        }
        if missing.is_empty() {
            break;
        }
        pins.extend(load(missing));
    }
    pins
}

fn load(mut missing: Vec<(&dyn Container, Missing)>) -> Vec<Pin> {
    missing.sort_by_key(|(_, one)| Arc::as_ptr(&one.storage).cast::<()>());
    let mut buffers: Vec<Vec<u8>> = missing.iter().map(|(_, one)| zeros(one.len)).collect();
    let mut outcomes: Vec<io::Result<()>> = Vec::new();
    let mut reads: Vec<Read<'_>> = missing
        .iter()
        .zip(&mut buffers)
        .map(|((_, one), buffer)| {
            let is_short = buffer.len() as u64 != one.len;
            outcomes.push(if is_short { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) });
            Read::new(one.offset, buffer)
        })
        .collect();
    let mut groups = Vec::new();
    let mut rest = &mut reads[..];
    for group in missing.chunk_by(|(_, a), (_, b)| Arc::ptr_eq(&a.storage, &b.storage)) {
        let reads = rest.split_off_mut(..group.len()).expect("one read for each");
        groups.push(Group { storage: &*group[0].1.storage, reads });
    }
    storage::read_all(groups, &mut |k, _, outcome| {
        if outcome.is_err() {
            outcomes[k] = outcome;
        }
    });
    drop(reads);
    let loads: Vec<Mutex<Option<Vec<u8>>>> = buffers
        .into_iter()
        .zip(outcomes)
        .map(|(buffer, outcome)| Mutex::new(outcome.is_ok().then_some(buffer)))
        .collect();
    let pins: Mutex<Vec<Pin>> = Mutex::default();
    Pool::compute().run(loads.len(), &|k| {
        let bytes = loads[k].lock().expect("no panics under this lock").take();
        let (file, one) = &missing[k];
        if let Some(Ok(pin)) = bytes.map(|bytes| file.load(one.number, bytes)) {
            pins.lock().expect("no panics under this lock").push(pin);
        }
    });
    pins.into_inner().expect("no panics under this lock")
}

/// Returns so many zeros, or nothing if there is no memory for them.
fn zeros(len: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if bytes.try_reserve_exact(len).is_ok() {
        bytes.resize(len, 0);
    }
    bytes
}
