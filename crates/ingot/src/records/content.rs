//! What tells the content of a file from that of others, without reading all of it.

use std::path::Path;

use super::open::reading;
use super::source::Source;
use crate::crc::Sum;
use crate::error::Result;
use crate::storage::Read;

/// Samples of the content.
const SAMPLES: u64 = 16;

/// Bytes of each.
const SAMPLE: u64 = 4 << 10;

/// Returns what [`content`] does, of the file at `path`.
pub fn content_of(path: &Path) -> Result<Vec<u8>> {
    let location = path.into();
    let storage = reading(&location)?;
    content(Source { storage: &*storage, name: &location.name() })
}

/// Returns the size of a file and the checksum of its samples, which a copy of it has too.
pub fn content(source: Source<'_>) -> Result<Vec<u8>> {
    let bytes = source.size()?;
    Ok(told(bytes, &samples(source, bytes)?))
}

/// Returns the bytes of [`content`].
pub fn told(bytes: u64, samples: &[u32]) -> Vec<u8> {
    let len = bytes.min(SAMPLE) as usize;
    let sample = samples.iter().fold(0, |all, &one| crc32c::crc32c_combine(all, one, len));
    [&bytes.to_le_bytes()[..], &sample.to_le_bytes()].concat()
}

/// Returns where the samples of a file of `bytes` bytes are: up to sixteen of 4 KiB, from the
/// front to the end.
pub fn offsets(bytes: u64) -> Vec<u64> {
    let len = bytes.min(SAMPLE);
    let mut offsets: Vec<u64> = (0..SAMPLES).map(|k| (bytes - len) / (SAMPLES - 1) * k).collect();
    offsets[SAMPLES as usize - 1] = bytes - len;
    offsets.dedup();
    offsets
}

/// Returns the CRC-32C of each sample of a file of `bytes` bytes.
pub fn samples(source: Source<'_>, bytes: u64) -> Result<Vec<u32>> {
    let len = bytes.min(SAMPLE) as usize;
    let offsets = offsets(bytes);
    let mut buffer = vec![0; len * offsets.len()];
    let mut failed = None;
    let mut reads: Vec<Read<'_>> = buffer
        .chunks_mut(len.max(1))
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
        None => Ok(buffer.chunks(len.max(1)).map(|one| Sum::Crc32c.append(0, one)).collect()),
    }
}
