//! A storage that takes its time, for tests and benchmarks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::coalesce::coalesce;
use super::{Cost, Identity, Landed, Read, ReadAt};

/// A storage that answers each batch after a delay, as one far away does. Reads of one batch
/// wait together, as many as its depth allows; so do batches of several threads.
///
/// Clones of a clock count the waits of all storages that share it: those that had to come
/// one after the other, not those at the same time.
pub struct Delayed<S> {
    inner: S,
    cost: Cost,
    clock: Arc<AtomicU64>,
}

impl<S> Delayed<S> {
    /// Returns `inner`, whose reads take `delay`.
    pub fn new(inner: S, delay: Duration) -> Delayed<S> {
        Delayed { inner, cost: Cost::remote(delay), clock: Arc::default() }
    }

    /// Counts waits on a clock that others may share.
    #[must_use]
    pub fn with_clock(mut self, clock: &Arc<AtomicU64>) -> Self {
        self.clock = Arc::clone(clock);
        self
    }

    /// Returns how many waits have come one after the other so far.
    pub fn waits(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }
}

impl<S: ReadAt> ReadAt for Delayed<S> {
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn identity(&self) -> io::Result<Identity> {
        self.inner.identity()
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        let requests = coalesce(reads, 0, self.cost).len().div_ceil(self.cost.depth) as u64;
        let began = self.clock.load(Ordering::SeqCst);
        thread::sleep(self.cost.latency * requests as u32);
        self.clock.fetch_max(began + requests, Ordering::SeqCst);
        self.inner.read_many(reads, landed);
    }

    fn cost(&self) -> Cost {
        self.cost
    }
}
