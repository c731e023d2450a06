//! What tells a file from what it was when its index was built.

use std::fs;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::records::content::{sample, told};
use crate::records::source::Source;
use crate::storage::Location;

/// Size and time of a file, and a checksum of samples of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was changed, in nanoseconds since 1970; nothing where that is not known.
    pub mtime_ns: Option<i64>,
    /// The checksum of its [`sample`]s.
    pub sample: u32,
}

impl Stamp {
    /// Returns the stamp of a file.
    pub fn of(location: &Location, source: Source<'_>) -> Result<Stamp> {
        let bytes = source.size()?;
        let mtime_ns = match location {
            Location::Path(path) => fs::metadata(path)
                .and_then(|found| found.modified())
                .ok()
                .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
                .and_then(|since| i64::try_from(since.as_nanos()).ok()),
            Location::Url(_) => None,
        };
        Ok(Stamp { bytes, mtime_ns, sample: sample(source, bytes)? })
    }

    /// Returns the bytes that tell the content from others; a copy of the file has the same.
    pub fn content(&self) -> Vec<u8> {
        told(self.bytes, self.sample)
    }

    /// Returns the bytes that tell this file from others, and from copies of it.
    pub fn fingerprint(&self) -> Vec<u8> {
        let time = self.mtime_ns.unwrap_or(0).to_le_bytes();
        [&self.bytes.to_le_bytes()[..], &time, &self.sample.to_le_bytes()].concat()
    }
}
