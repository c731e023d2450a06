//! What tells a file from what it was when its index was built.

use std::fs;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::crc::Sum;
use crate::error::Result;
use crate::records::source::Source;
use crate::storage::{Location, Read};

/// Samples of the content.
const SAMPLES: u64 = 16;

/// Bytes of each.
const SAMPLE: u64 = 4 << 10;

/// Size and time of a file, and a checksum of samples of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Bytes of the file.
    pub bytes: u64,
    /// When it was changed, in nanoseconds since 1970; nothing where that is not known.
    pub mtime_ns: Option<i64>,
    /// The CRC-32C of sixteen samples of 4 KiB, from the front to the end.
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

    /// Returns the bytes that tell this file from others.
    pub fn fingerprint(&self) -> Vec<u8> {
        let time = self.mtime_ns.unwrap_or(0).to_le_bytes();
        [&self.bytes.to_le_bytes()[..], &time, &self.sample.to_le_bytes()].concat()
    }
}

fn sample(source: Source<'_>, bytes: u64) -> Result<u32> {
    let len = bytes.min(SAMPLE);
    let mut offsets: Vec<u64> = (0..SAMPLES).map(|k| (bytes - len) / (SAMPLES - 1) * k).collect();
    offsets[SAMPLES as usize - 1] = bytes - len;
    offsets.dedup();
    let mut buffer = vec![0; len as usize * offsets.len()];
    let mut failed = None;
    let mut reads: Vec<Read<'_>> = buffer
        .chunks_mut(len.max(1) as usize)
        .zip(&offsets)
        .map(|(part, &offset)| Read::new(offset, part))
        .collect();
    source.storage.read_many(&mut reads, &mut |_, read, outcome| {
        if let Err(error) = outcome {
            failed = Some((read.offset, error));
        }
    });
    drop(reads);
    match failed {
        Some((offset, error)) => Err(source.failed(offset, error)),
        None => Ok(Sum::Crc32c.append(0, &buffer)),
    }
}
