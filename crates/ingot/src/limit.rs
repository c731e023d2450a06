//! How much values may grow when they are decoded: a small file must not take all memory.

use std::env;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limit unless the user asks for another: 1 GiB.
const DEFAULT: u64 = 1 << 30;

/// The environment variables that say how many bytes decoded values may take, and indexes.
const MAX_DECODED_BYTES: &str = "INGOT_MAX_DECODED_BYTES";
const INDEX_BYTES: &str = "INGOT_INDEX_BYTES";

static MAX: LazyLock<AtomicU64> =
    LazyLock::new(|| AtomicU64::new(asked(MAX_DECODED_BYTES).ok().flatten().unwrap_or(DEFAULT)));

/// Fails, and says why, if a byte-count variable of the environment does not parse.
pub fn check_environment() -> Result<(), String> {
    [MAX_DECODED_BYTES, INDEX_BYTES].into_iter().try_for_each(|name| asked(name).map(drop))
}

/// Returns how many bytes of indexes the user wants to stay in memory, if it was said.
pub fn index_bytes() -> Option<u64> {
    asked(INDEX_BYTES).ok().flatten()
}

/// Returns the number of bytes that an environment variable has; `None` if it is not set or empty.
fn asked(name: &str) -> Result<Option<u64>, String> {
    let value = env::var_os(name).unwrap_or_default();
    match value.to_str() {
        Some("") => Ok(None),
        text => text.and_then(|text| text.parse().ok()).map(Some).ok_or_else(|| {
            format!("{name}={}: expected a number of bytes, such as 1000000000", value.display())
        }),
    }
}

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
