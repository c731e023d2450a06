//! The FFRecord container: checksums and offsets in front, records behind.
//!
//! All numbers are little-endian, nothing is aligned:
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | CRC-32 of the rest of the index; 0 in files of the first release, which have none |
//! | 8 | number of records, N |
//! | 4 N | CRC-32 of each record |
//! | 8 N | offset of each record in the file; the last one ends with the file |

pub mod tree;

use super::checksum::mismatch;
use super::fields::{u32_at, u64_at};
use super::{Violation, bail};
use crate::crc::Sum;

/// Bytes in front of the checksums.
pub const HEAD_LEN: usize = 12;

/// Bytes of the index that each record takes.
pub const ENTRY_LEN: usize = 12;

/// Most records that the original can read; beyond it drops offsets without a word.
pub const RECORDS_MAX: u64 = 268_434_944;

/// What an index says about one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where the record begins.
    pub offset: u64,
    /// How long it is.
    pub len: u64,
    /// CRC-32 of its bytes.
    pub crc: u32,
}

/// The index of a file, as it stands in the file.
#[derive(Debug)]
pub struct Index {
    bytes: Vec<u8>,
    records: usize,
    file_bytes: u64,
}

/// Returns how many bytes the index of a file takes that begins with `head`.
pub fn measure(head: &[u8], file_bytes: u64) -> Result<u64, Violation> {
    if head.len() < HEAD_LEN {
        bail!("the file ends inside its header");
    }
    let records = u64_at(head, 4);
    if records == 0 && file_bytes > HEAD_LEN as u64 {
        bail!(
            "no records are listed, but bytes follow the header: its writer died \
             before it was closed, or it is not an FFRecord file"
        );
    }
    records
        .checked_mul(ENTRY_LEN as u64)
        .and_then(|len| len.checked_add(HEAD_LEN as u64))
        .filter(|&len| len <= file_bytes)
        .ok_or_else(|| {
            Violation::new(format!(
                "the index of {records} records does not fit into a file of {file_bytes} bytes: \
                 it is truncated, or it is not an FFRecord file"
            ))
        })
}

impl Index {
    /// Reads an index, of the length that [`measure`] gave. With `check` its checksum is
    /// verified, unless the file has none.
    pub fn decode(bytes: Vec<u8>, file_bytes: u64, check: bool) -> Result<Index, Violation> {
        let len = measure(&bytes, file_bytes)?;
        if bytes.len() as u64 != len {
            bail!("the index is truncated");
        }
        let (expected, found) = (u32_at(&bytes, 0), Sum::Crc32.append(0, &bytes[4..]));
        if check && expected != 0 && expected != found {
            bail!("index: {}", mismatch(expected, found));
        }
        let records = (bytes.len() - HEAD_LEN) / ENTRY_LEN;
        Ok(Index { bytes, records, file_bytes })
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.records as u64
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Whether the file has no checksum of its index, as those of the first release.
    pub fn is_legacy(&self) -> bool {
        u32_at(&self.bytes, 0) == 0
    }

    /// Returns the index as it stands in the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether the checksum of the index holds.
    pub fn is_intact(&self) -> bool {
        self.is_legacy() || u32_at(&self.bytes, 0) == Sum::Crc32.append(0, &self.bytes[4..])
    }

    /// Returns where the checksum and the offset of record `record` stand in the index.
    pub fn places(&self, record: u64) -> (usize, usize) {
        let record = record as usize;
        (HEAD_LEN + 4 * record, HEAD_LEN + 4 * self.records + 8 * record)
    }

    /// Returns what is known of record `record`, which must exist.
    #[inline]
    pub fn entry(&self, record: u64) -> Result<Entry, Violation> {
        let (crc_at, at) = self.places(record);
        let offset = u64_at(&self.bytes, at);
        let is_last = record + 1 == self.len();
        let end = if is_last { self.file_bytes } else { u64_at(&self.bytes, at + 8) };
        let Some(len) = end.checked_sub(offset).filter(|_| end <= self.file_bytes) else {
            bail!(
                "the index puts the record at offsets {offset} to {end} of a file of {} bytes",
                self.file_bytes
            );
        };
        if offset < self.bytes.len() as u64 {
            bail!("the index says that the record begins at {offset}, inside the index");
        }
        Ok(Entry { offset, len, crc: u32_at(&self.bytes, crc_at) })
    }
}

/// Gathers the index of a file while its records are written.
#[derive(Debug, Default)]
pub struct Entries {
    checksums: Vec<u8>,
    lengths: Vec<u64>,
}

impl Entries {
    /// Adds the next piece of a record to its checksum, which begins with 0.
    pub fn sum(crc: u32, piece: &[u8]) -> u32 {
        Sum::Crc32.append(crc, piece)
    }

    /// Adds a record of `len` bytes.
    pub fn push(&mut self, len: u64, crc: u32) {
        self.checksums.extend_from_slice(&crc.to_le_bytes());
        self.lengths.push(len);
    }

    /// Number of records so far.
    pub fn len(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Whether there are no records yet.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns the index as it stands in a file.
    pub fn encode(&self) -> Vec<u8> {
        let records = self.lengths.len();
        let mut bytes = Vec::with_capacity(HEAD_LEN + ENTRY_LEN * records);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(records as u64).to_le_bytes());
        bytes.extend_from_slice(&self.checksums);
        let mut offset = (HEAD_LEN + ENTRY_LEN * records) as u64;
        for len in &self.lengths {
            bytes.extend_from_slice(&offset.to_le_bytes());
            offset += len;
        }
        let crc = Sum::Crc32.append(0, &bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records `hello`, nothing and `xyz`.
    const EXAMPLE: &str = "3e96504c 0300000000000000 86a61036 00000000 67ba8eeb \
         3000000000000000 3500000000000000 3500000000000000 68656c6c6f78797a";

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    #[test]
    fn the_index_of_an_example_is_read() {
        let file = bytes_of(EXAMPLE);
        let len = measure(&file[..HEAD_LEN], file.len() as u64).unwrap();
        let index = Index::decode(file[..len as usize].to_vec(), file.len() as u64, true).unwrap();
        let places: Vec<_> = (0..3)
            .map(|k| index.entry(k).map(|entry| (entry.offset, entry.len)).unwrap())
            .collect();
        assert_eq!(places, [(48, 5), (53, 0), (53, 3)]);
    }

    #[test]
    fn the_index_of_an_example_is_written() {
        let mut entries = Entries::default();
        for record in [&b"hello"[..], b"", b"xyz"] {
            entries.push(record.len() as u64, Entries::sum(0, record));
        }
        assert_eq!(entries.encode(), bytes_of(EXAMPLE)[..48]);
        assert_eq!(Entries::default().encode(), bytes_of("69df2265 0000000000000000"));
    }

    #[test]
    fn an_invalid_index_is_rejected() {
        let file = bytes_of(EXAMPLE);
        let mut huge = file.clone();
        huge[4..12].copy_from_slice(&u64::MAX.to_le_bytes());
        for (head, size) in [(&file[..11], 11), (&huge[..12], 56), (&file[..12], 47)] {
            assert!(measure(head, size).is_err());
        }
        let mut flipped = file[..48].to_vec();
        flipped[30] ^= 1;
        assert!(Index::decode(flipped.clone(), 56, true).is_err());
        let index = Index::decode(flipped, 56, false).unwrap();
        assert!(!index.is_intact());
    }
}
