//! What it costs to wait for a storage.

use std::time::Duration;

/// What a read costs. Readers split and join ranges by it, and decide how far ahead to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// How long one read takes, however short it is; nothing for bytes in memory.
    pub latency: Duration,
    /// Bytes between two ranges that are cheaper to read along than to ask for apart.
    pub gap: u64,
    /// Longer ranges are requested in parts of this many bytes.
    pub part: usize,
    /// How many reads the storage serves at the same time.
    pub depth: usize,
}

impl Cost {
    /// Bytes in memory: nothing to wait for.
    pub const MEMORY: Cost = Cost { latency: Duration::ZERO, ..Cost::DEVICE };

    /// A local device. Joining ranges pays up to a block: the device takes as long for one more.
    pub const DEVICE: Cost =
        Cost { latency: Duration::from_micros(100), gap: 4 << 10, part: 1 << 20, depth: 64 };

    /// Returns the cost of a storage that takes `latency` to answer: joining ranges pays as
    /// long as the bytes between them take less time than asking again.
    pub const fn remote(latency: Duration) -> Cost {
        let bytes = latency.as_micros() as u64 * REMOTE_BYTES_PER_MICROSECOND;
        let gap = if bytes < GAP_MAX { bytes } else { GAP_MAX };
        Cost { latency, gap, part: 8 << 20, depth: 64 }
    }

    /// Returns whether there is nothing to wait for.
    pub fn is_free(&self) -> bool {
        self.latency.is_zero()
    }
}

/// What one request to a remote storage brings, once it has begun to answer.
const REMOTE_BYTES_PER_MICROSECOND: u64 = 50;

/// Bytes that are never worth reading along.
const GAP_MAX: u64 = 1 << 20;
