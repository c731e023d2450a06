//! Memory that shows a file.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};

use super::sigbus::{self, Registration};

/// Read-only memory that shows a whole file, as long as the file was when it was mapped.
///
/// A page that cannot be read shows zeros and raises no signal: the region is then damaged.
/// A file that is cut in the middle of a page shows zeros up to the end of that page and
/// damages nothing, so readers must check the size of the file, or checksums.
pub struct Region {
    // Dropped before the mapping it guards.
    guard: Registration,
    bytes: MmapRaw,
}

impl Region {
    /// Maps `file`, which must not be empty.
    pub fn map(file: &File) -> io::Result<Region> {
        let len = file.metadata()?.len();
        let len = usize::try_from(len).map_err(io::Error::other)?;
        if len == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an empty file has no mapping",
            ));
        }
        let bytes = MmapOptions::new().len(len).map_raw_read_only(file)?;
        let guard = Registration::new(bytes.as_ptr() as usize, len)?;
        Ok(Region { guard, bytes })
    }

    /// Returns where the memory begins. It lives as long as the region, and its bytes may
    /// change with the file.
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// Returns the number of bytes, which is never 0.
    #[expect(clippy::len_without_is_empty, reason = "an empty file has no mapping")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the file could not be read at some place of the region.
    pub fn is_damaged(&self) -> bool {
        self.guard.is_damaged()
    }

    /// Makes sure that faults are still survived; if they are not, or if `is_cut`, the region
    /// is damaged.
    pub(super) fn keep_guarded(&self, is_cut: bool) {
        if is_cut || sigbus::ensure_installed().is_err() {
            self.guard.mark_damaged();
        }
    }
}
