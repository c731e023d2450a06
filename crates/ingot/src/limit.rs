//! How much values may grow when they are decoded: a small file must not take all memory.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limit unless the user asks for another: 1 GiB.
const DEFAULT: u64 = 1 << 30;

static MAX: LazyLock<AtomicU64> = LazyLock::new(|| {
    let given = std::env::var("INGOT_MAX_DECODED_BYTES").ok();
    AtomicU64::new(given.and_then(|bytes| bytes.parse().ok()).unwrap_or(DEFAULT))
});

/// Returns by how many bytes the values of a batch may grow when they are decoded.
pub fn max_decoded_bytes() -> u64 {
    MAX.load(Ordering::Relaxed)
}

/// Sets by how many bytes the values of a batch may grow when they are decoded.
pub fn set_max_decoded_bytes(bytes: u64) {
    MAX.store(bytes, Ordering::Relaxed);
}

/// What is left for others when it is asked whether there is memory.
const HEADROOM: usize = 8 << 20;

/// Returns whether the system has so many bytes more. Where it has not, a Rust program ends;
/// so large work asks before it begins.
pub fn has_memory(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes.saturating_add(HEADROOM)).is_ok()
}

/// Values that are many times as long as what is stored may take no more than the limit; what
/// grows less than this is what people have.
const FACTOR: u64 = 256;

/// Adds up by how much values grow that are decoded together.
#[derive(Debug, Default)]
pub struct Growth {
    stored: u64,
    decoded: u64,
}

impl Growth {
    /// Adds a value, before it is decoded. Fails, and says why, if that is too much.
    #[inline]
    pub fn add(&mut self, stored: u64, decoded: u64) -> Result<(), String> {
        self.stored = self.stored.saturating_add(stored);
        self.decoded = self.decoded.saturating_add(decoded);
        if self.decoded <= max_decoded_bytes() || self.decoded <= self.stored.saturating_mul(FACTOR)
        {
            return Ok(());
        }
        Err(self.refusal(stored, decoded))
    }

    #[cold]
    fn refusal(&self, stored: u64, decoded: u64) -> String {
        format!(
            "{stored} bytes decode to {decoded}, and all that is read together decodes from {} \
             to {}: the limit is {}, ingot.set_max_decoded_bytes(...) changes it",
            self.stored,
            self.decoded,
            max_decoded_bytes()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_grow_up_to_the_limit_together() {
        let mut growth = Growth::default();
        growth.add(100, DEFAULT - 1).unwrap();
        growth.add(100, 1).unwrap();
        assert!(growth.add(10, 1).unwrap_err().contains("set_max_decoded_bytes"));
        assert!(Growth::default().add(0, u64::MAX).is_err());
    }

    #[test]
    fn values_that_grow_little_are_not_limited() {
        let mut growth = Growth::default();
        for _ in 0..64 {
            growth.add(4 << 20, 36 << 20).unwrap();
        }
        growth.add(DEFAULT * 8, DEFAULT * 8).unwrap();
        assert!(Growth::default().add(6 << 20, DEFAULT * 3 / 2).is_ok());
        assert!(Growth::default().add(3 << 20, DEFAULT * 3 / 2).is_err());
    }
}
