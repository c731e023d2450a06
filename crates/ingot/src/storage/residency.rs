//! Whether a mapped file is in memory, learned while it is read.
//!
//! Copying from pages that are in memory needs no system call at all. Faults on
//! pages that are not are served one at a time, so before those are touched they
//! must be asked for all at once. Asking costs too, so once enough batches were
//! found resident the checks end, and the first fault restarts them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::Read;
use super::mapping::{Mapping, major_faults};

/// Batches in a row that must be resident before the checks end.
const PATIENCE: u32 = 4;
/// The same, at most, where residency has to be guessed.
const PATIENCE_MAX: u32 = 4096;

/// Watching costs four system calls, as much as copying a record or two. So a batch of
/// this many bytes is always watched, smaller ones when as many have gone by.
const WATCHED_BYTES: usize = 512 << 10;
/// What a read counts for at least: a page.
const READ_BYTES: usize = 4 << 10;

/// What is known of one mapping. All of it is a guess that affects speed alone,
/// so the atomics are not ordered among each other.
pub(super) struct Residency {
    resident_batches: AtomicU32,
    patience: AtomicU32,
    /// The system does not tell: for files of others it calls every page resident.
    blind: AtomicBool,
}

impl Default for Residency {
    fn default() -> Residency {
        Residency {
            resident_batches: AtomicU32::new(0),
            patience: AtomicU32::new(PATIENCE),
            blind: AtomicBool::new(false),
        }
    }
}

/// What was seen of one batch before it was copied.
pub(super) struct Visit {
    checked: bool,
    cold: Vec<usize>,
    faults: Option<u64>,
}

impl Visit {
    /// The reads whose bytes may not be in memory, in ascending order.
    pub fn cold(&self) -> &[usize] {
        &self.cold
    }

    /// Whether the batch is large enough, or the time has come, to look closely.
    pub fn is_thorough(&self) -> bool {
        self.faults.is_some()
    }
}

impl Residency {
    /// Returns whether the checks have ended.
    pub fn is_warm(&self) -> bool {
        self.resident_batches.load(Ordering::Relaxed) >= self.patience.load(Ordering::Relaxed)
    }

    /// Returns whether the system's word on residency is worth nothing.
    pub fn is_blind(&self) -> bool {
        self.blind.load(Ordering::Relaxed)
    }

    pub fn visit(&self, mapping: &Mapping, reads: &[Read<'_>]) -> Visit {
        let checked = !self.is_warm();
        if !checked && !is_due(reads) {
            return Visit { checked, cold: Vec::new(), faults: None };
        }
        let blind = self.is_blind();
        let is_cold =
            |k: &usize| blind || !mapping.is_resident(reads[*k].offset, reads[*k].buf.len());
        let cold = if checked { (0..reads.len()).filter(is_cold).collect() } else { Vec::new() };
        Visit { checked, cold, faults: Some(major_faults()) }
    }

    /// Updates the guess after a batch was copied by the thread that visited it.
    pub fn conclude(&self, visit: &Visit) {
        let Some(faults) = visit.faults else { return };
        let faulted = major_faults() > faults;
        let blind = self.is_blind();
        if faulted {
            if visit.checked && visit.cold.is_empty() {
                self.blind.store(true, Ordering::Relaxed);
            }
            if blind && !visit.checked {
                let patience = self.patience.load(Ordering::Relaxed);
                self.patience.store((patience * 2).min(PATIENCE_MAX), Ordering::Relaxed);
            }
            self.resident_batches.store(0, Ordering::Relaxed);
        } else if visit.checked && (blind || visit.cold.is_empty()) {
            self.resident_batches.fetch_add(1, Ordering::Relaxed);
        } else if visit.checked {
            self.resident_batches.store(0, Ordering::Relaxed);
        }
    }
}

/// Counts what the calling thread reads; true whenever it is time for a close look.
fn is_due(reads: &[Read<'_>]) -> bool {
    thread_local!(static BYTES: Cell<usize> = const { Cell::new(0) });
    let bytes: usize = reads.iter().map(|read| read.buf.len().max(READ_BYTES)).sum();
    BYTES.with(|counted| {
        let total = counted.get().saturating_add(bytes);
        let due = total >= WATCHED_BYTES;
        counted.set(if due { 0 } else { total });
        due
    })
}
