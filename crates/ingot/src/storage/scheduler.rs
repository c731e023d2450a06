//! Reading a batch over many storages, which wait at the same time.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::descriptors::Permits;
use super::uring::{self, Uring};
use super::{Landed, Read, ReadAt};
use crate::pool::Pool;

/// The reads of a batch that go to one storage.
pub struct Group<'g, 'r> {
    /// The storage.
    pub storage: &'g dyn ReadAt,
    /// What is wanted of it.
    pub reads: &'g mut [Read<'r>],
}

/// Reads a batch, and calls `landed` for each read on the calling thread, in any order. Reads
/// are numbered through all groups.
///
/// Local files share one ring and its depth, as many of them as may be open. Each
/// other storage is waited for by a thread of its own.
pub fn read_all(groups: Vec<Group<'_, '_>>, landed: &mut Landed<'_>) {
    let mut number = 0;
    let mut numbered = Vec::with_capacity(groups.len());
    for Group { storage, reads } in groups {
        let first = number;
        number += reads.len();
        numbered.push((storage, first, reads));
    }
    let mut groups = numbered.into_iter();
    while groups.len() > 0 {
        let permits = Permits::take(groups.len());
        read_some(groups.by_ref().take(permits.count()), &permits, landed);
    }
}

fn read_some<'g, 'r: 'g>(
    groups: impl Iterator<Item = (&'g dyn ReadAt, usize, &'g mut [Read<'r>])>,
    permits: &Permits,
    landed: &mut Landed<'_>,
) {
    let (mut rings, mut others) = (Vec::new(), Vec::new());
    for (storage, first, reads) in groups {
        let bytes = reads.iter().map(|read| read.buf.len() as u64).sum();
        match storage.ring(bytes) {
            Some(ring) => rings.push((ring, first, reads)),
            None => {
                let outcomes = reads.iter().map(|read| (read.crc, Ok(()))).collect();
                others.push(Mutex::new(Apart { storage, first, reads, outcomes }));
            }
        }
    }
    if rings.is_empty() && others.len() == 1 {
        let Apart { storage, first, reads, .. } =
            others.pop().expect("seen above").into_inner().unwrap_or_else(PoisonError::into_inner);
        return storage.read_many(reads, &mut |k, read, outcome| landed(first + k, read, outcome));
    }
    Pool::blocking().run_beside(
        others.len(),
        &|k| permits.lend(|| others[k].lock().unwrap_or_else(PoisonError::into_inner).read()),
        || read_rings(rings, landed),
    );
    for apart in others {
        apart.into_inner().unwrap_or_else(PoisonError::into_inner).land(landed);
    }
}

/// A file that is read through the ring, the number of its first read, and its reads.
type Ringed<'g, 'r> = (Arc<Uring>, usize, &'g mut [Read<'r>]);

fn read_rings(rings: Vec<Ringed<'_, '_>>, landed: &mut Landed<'_>) {
    let files: Vec<Arc<Uring>> = rings.iter().map(|(file, ..)| Arc::clone(file)).collect();
    let reads = rings.into_iter().map(|(_, first, reads)| (first, reads));
    let groups = reads.zip(&files).map(|((first, reads), file)| (&**file, first, reads));
    uring::read_files(groups.collect(), landed);
}

/// A storage that is waited for by a thread of its own, and what became of its reads.
struct Apart<'g, 'r> {
    storage: &'g dyn ReadAt,
    first: usize,
    reads: &'g mut [Read<'r>],
    outcomes: Vec<(u32, io::Result<()>)>,
}

impl Apart<'_, '_> {
    fn read(&mut self) {
        let outcomes = &mut self.outcomes;
        self.storage.read_many(self.reads, &mut |k, read, outcome| {
            outcomes[k] = (read.crc, outcome);
        });
    }

    fn land(self, landed: &mut Landed<'_>) {
        for (k, (read, (crc, outcome))) in self.reads.iter_mut().zip(self.outcomes).enumerate() {
            read.crc = crc;
            landed(self.first + k, read, outcome);
        }
    }
}
