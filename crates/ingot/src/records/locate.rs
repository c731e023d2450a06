//! Finding rows of containers, and loading the parts of their indexes that this takes.

use std::io;

use super::cache::Pin;
use super::container::{Cell, Container};
use super::source::Source;
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::storage::{self, Group, Read, ReadAt};

/// Most bytes that one call of [`prepare`] loads; [`find`] loads the rest.
const LOAD_BYTES: u64 = 64 << 20;

/// How often loading one part may show that another is needed: the limits of a bag, then the
/// compressed record itself, which alone tells its length.
const ROUNDS: usize = 2;

/// A part of an index that must be loaded before some rows can be found.
pub struct Missing<'a> {
    /// The container's own number for it.
    pub number: u64,
    /// Where it is stored.
    pub source: Source<'a>,
    /// Where it begins.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

/// Returns where record `row` is. Loads what is missing for that.
pub fn find(file: &dyn Container, row: u64) -> Result<Cell> {
    find_pinned(file, row, &mut Vec::new())
}

/// As [`find`]. What was loaded stays in memory for as long as the pins are held.
pub(super) fn find_pinned(file: &dyn Container, row: u64, pins: &mut Vec<Pin>) -> Result<Cell> {
    if row >= file.num_rows() {
        let (path, rows) = (file.source().name.to_owned(), file.num_rows());
        return Err(Error::Index { path, index: row as i64, rows });
    }
    for _ in 0..=ROUNDS {
        if let Some(found) = file.find(row) {
            return found;
        }
        for one in file.missing(&[row]) {
            let bytes = one.source.read(one.offset, one.len);
            let loaded = bytes.and_then(|bytes| file.load(one.number, bytes));
            pins.push(loaded.map_err(|error| error.at_record(row))?);
        }
    }
    Err(Error::Invalid(format!("{}: record {row} cannot be located", file.source().name)))
}

/// Loads the parts of indexes that it takes to find rows: all that must be waited for is read
/// together, and decoded on all cores. They stay in memory for as long as the pins are held.
///
/// Parts that cannot be loaded are left out; [`find`] then returns the error.
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
        pins.extend(load(&missing));
    }
    pins
}

type Part<'a> = (&'a dyn Container, Missing<'a>);

fn load(missing: &[Part<'_>]) -> Vec<Pin> {
    let (pins, waiting) = load_ready(missing);
    if waiting.is_empty() { pins } else { pins.into_iter().chain(load_rest(waiting)).collect() }
}

/// Loads the parts whose bytes are in memory. Returns the others with buffers for their bytes.
fn load_ready<'m>(missing: &'m [Part<'m>]) -> (Vec<Pin>, Vec<(&'m Part<'m>, Vec<u8>)>) {
    let loaded = Pool::compute().map(missing.len(), &|k| {
        let (file, one) = &missing[k];
        let mut bytes = Vec::new();
        one.source.make_room(&mut bytes, one.len).ok()?;
        let mut outcome = Ok(());
        let reads = &mut [Read::new(one.offset, &mut bytes)];
        let waits = one.source.storage.read_ready(reads, &mut |_, _, read| outcome = read);
        if !waits.is_empty() {
            return Some(Err((&missing[k], bytes)));
        }
        outcome.ok().and_then(|()| file.load(one.number, bytes).ok()).map(Ok)
    });
    let (mut pins, mut waiting) = (Vec::with_capacity(missing.len()), Vec::new());
    for one in loaded.into_iter().flatten() {
        match one {
            Ok(pin) => pins.push(pin),
            Err(waits) => waiting.push(waits),
        }
    }
    (pins, waiting)
}

/// Reads parts together, then loads them.
fn load_rest(mut parts: Vec<(&Part<'_>, Vec<u8>)>) -> Vec<Pin> {
    parts.sort_by_key(|(part, _)| address(part.1.source.storage));
    let mut outcomes: Vec<io::Result<()>> = parts.iter().map(|_| Ok(())).collect();
    let mut groups: Vec<(&dyn ReadAt, Vec<Read<'_>>)> = Vec::new();
    for (part, bytes) in &mut parts {
        let read = Read::new(part.1.offset, bytes);
        match groups.last_mut() {
            Some((storage, reads)) if address(*storage) == address(part.1.source.storage) => {
                reads.push(read);
            }
            _ => groups.push((part.1.source.storage, vec![read])),
        }
    }
    let groups = groups.iter_mut().map(|(storage, reads)| Group { storage: *storage, reads });
    storage::read_all(groups.collect(), &mut |k, _, outcome| outcomes[k] = outcome);
    let read = parts.into_iter().zip(outcomes).filter(|(_, outcome)| outcome.is_ok());
    let read: Vec<_> = read.map(|(part, _)| part).collect();
    let loaded =
        Pool::compute().map_each(read, &|((file, one), bytes)| file.load(one.number, bytes).ok());
    loaded.into_iter().flatten().collect()
}

fn address(storage: &dyn ReadAt) -> *const () {
    std::ptr::from_ref(storage).cast()
}
