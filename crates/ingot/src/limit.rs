//! How much values may grow when they are decoded: a small file must not take all memory.

use std::env;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limit unless the user asks for another: 1 GiB.
const DEFAULT: u64 = 1 << 30;

/// Environment variables for the bytes that decoded values and cached indexes may take.
const MAX_DECODED_BYTES: &str = "INGOT_MAX_DECODED_BYTES";
const INDEX_BYTES: &str = "INGOT_INDEX_BYTES";

/// Environment variable for the bytes that the index of a file may have.
pub const MAX_INDEX_BYTES: &str = "INGOT_MAX_INDEX_BYTES";

/// The index of a file may have `INDEX_FLOOR` bytes, or `INDEX_FACTOR` times the bytes of the
/// file, whichever is more.
const INDEX_FLOOR: u64 = 256 << 20;
const INDEX_FACTOR: u64 = 64;

static MAX: LazyLock<AtomicU64> =
    LazyLock::new(|| AtomicU64::new(asked(MAX_DECODED_BYTES).ok().flatten().unwrap_or(DEFAULT)));

/// Fails, and says why, if a byte-count variable of the environment does not parse.
pub fn check_environment() -> Result<(), String> {
    [MAX_DECODED_BYTES, INDEX_BYTES, MAX_INDEX_BYTES]
        .into_iter()
        .try_for_each(|name| asked(name).map(drop))
}

/// Returns how many bytes of indexes to keep in memory, if the user set it.
pub fn index_bytes() -> Option<u64> {
    asked(INDEX_BYTES).ok().flatten()
}

/// Returns how many bytes the index of a file of `bytes` may have.
pub fn max_index_bytes(bytes: u64) -> u64 {
    let usual = INDEX_FLOOR.max(bytes.saturating_mul(INDEX_FACTOR));
    asked(MAX_INDEX_BYTES).ok().flatten().unwrap_or(usual)
}

/// Whether there is memory for another thread. glibc ends the process if a thread gets none for
/// its thread-locals, which it allocates when they are first used, and takes none for them that
/// other threads have freed. So this asks the system, not the allocator.
pub fn has_room_for_thread() -> bool {
    const ROOM: usize = 32 << 20;
    memmap2::MmapMut::map_anon(ROOM).is_ok()
}

/// Returns the byte count in an environment variable; `None` if it is unset or empty.
pub(crate) fn asked(name: &str) -> Result<Option<u64>, String> {
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

/// The limit applies to values that are more than this many times as long as their stored form;
/// ordinary data grows less.
const FACTOR: u64 = 256;

/// Adds up how much values grow that are decoded together.
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
    fn an_index_may_be_large_if_its_file_is() {
        assert_eq!(max_index_bytes(700_000), 256 << 20);
        assert_eq!(max_index_bytes(1 << 30), 64 << 30);
        assert_eq!(max_index_bytes(u64::MAX), u64::MAX);
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
