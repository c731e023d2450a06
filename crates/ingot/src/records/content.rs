//! Identifying the content of a file without reading all of it.

use std::path::Path;

use super::open::reading;
use super::publish::failed;
use super::source::Source;
use crate::crc::Sum;
use crate::error::Result;
use crate::format::checksum::FileId;
use crate::storage::{Identity, Location, Read};

/// Samples of the content.
const SAMPLES: u64 = 16;

/// Bytes of each.
const SAMPLE: u64 = 4 << 10;

/// Returns what distinguishes the file at `path` from others and from its earlier states.
pub fn identity_of(path: &Path) -> Result<Identity> {
    Location::from(path).identity().map_err(|source| failed(path, "open", source))
}

/// As [`content`], of the file at `path`.
pub fn content_of(path: &Path) -> Result<Vec<u8>> {
    let location = path.into();
    let storage = reading(&location)?;
    content(Source { storage: &*storage, name: &location.name() })
}

/// Returns the size of a file and the checksum of its samples. A copy of it has the same.
pub fn content(source: Source<'_>) -> Result<Vec<u8>> {
    let bytes = source.size()?;
    Ok(told(bytes, &samples(source, bytes)?))
}

/// Returns the bytes of [`content`].
pub fn told(bytes: u64, samples: &[u32]) -> Vec<u8> {
    // Files of more than one sample have whole ones.
    let sample = samples.iter().fold(0, |all, &one| apply(&BEHIND, all) ^ one);
    [&bytes.to_le_bytes()[..], &sample.to_le_bytes()].concat()
}

/// What becomes of each bit of a CRC-32C if as many zeros as a sample has bits come behind it: the
/// matrix for one bit, squared.
const BEHIND: [u32; 32] = {
    let mut matrix = [0x82f6_3b78; 32];
    let mut bit = 1;
    while bit < 32 {
        matrix[bit] = 1 << (bit - 1);
        bit += 1;
    }
    let mut bits = 1;
    while bits < SAMPLE * 8 {
        let mut square = [0; 32];
        let mut bit = 0;
        while bit < 32 {
            square[bit] = apply(&matrix, matrix[bit]);
            bit += 1;
        }
        matrix = square;
        bits *= 2;
    }
    matrix
};

const fn apply(matrix: &[u32; 32], crc: u32) -> u32 {
    let (mut sum, mut bit) = (0, 0);
    while bit < 32 {
        sum ^= if (crc >> bit) & 1 == 1 { matrix[bit] } else { 0 };
        bit += 1;
    }
    sum
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

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the id that 32 hexadecimal digits stand for.
pub fn id_of(digits: &str) -> Option<FileId> {
    let is_id = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_id.then(|| u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_samples_is_that_of_all_their_bytes() {
        let bytes: Vec<u8> = (0..5 * SAMPLE).map(|k| ((k * k) >> 7) as u8).collect();
        let each = bytes.chunks(SAMPLE as usize).map(|one| Sum::Crc32c.append(0, one));
        let whole = Sum::Crc32c.append(0, &bytes).to_le_bytes();
        assert_eq!(told(7, &each.collect::<Vec<_>>())[8..], whole);
    }
}
