//! Rows as `tf.train.Example` messages, and the frames that TFRecord files put around records.

use crate::crc::Sum;
use crate::format::protobuf::put_bytes;
use crate::format::varint;

const FEATURES: u64 = 1; // the field of Example, and of Features, and the key of a map entry
const VALUE: u64 = 2; // the value of a map entry
const MASK_DELTA: u32 = 0xa282_ead8;
/// Bytes that a frame adds to a record.
pub const FRAME_LEN: usize = 16;

/// What a feature is a list of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of any length.
    Bytes,
    /// Floating-point numbers of 32 bits.
    Float,
    /// Integers of 64 bits.
    Int,
}

impl Kind {
    /// The field of the list in a `Feature`.
    fn field(self) -> u64 {
        match self {
            Kind::Bytes => 1,
            Kind::Float => 2,
            Kind::Int => 3,
        }
    }
}

/// A feature in many rows.
#[derive(Debug, Clone, Copy)]
pub struct Feature<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it is a list of.
    pub kind: Kind,
    /// The values of all rows, concatenated; numbers are little-endian.
    pub data: &'a [u8],
    /// Where the value of each row begins in `data`, for bytes the number of a cell.
    pub firsts: &'a [usize],
    /// For bytes, where each cell ends in `data`.
    pub ends: &'a [usize],
    /// For each row whether it has the feature; empty if all have it.
    pub present: &'a [u8],
}

impl Feature<'_> {
    fn put_list(&self, row: usize, list: &mut Vec<u8>) {
        let range = self.firsts[row]..self.firsts[row + 1];
        match self.kind {
            Kind::Bytes => {
                for cell in range {
                    let start = if cell == 0 { 0 } else { self.ends[cell - 1] };
                    put_bytes(list, FEATURES, &self.data[start..self.ends[cell]]);
                }
            }
            // An empty list has no field at all, as protocol buffers write it.
            _ if range.is_empty() => {}
            Kind::Float => put_bytes(list, FEATURES, &self.data[range]),
            Kind::Int => {
                let (numbers, _) = self.data[range].as_chunks();
                let mut packed = Vec::with_capacity(numbers.len() * 2);
                for &number in numbers {
                    varint::put(&mut packed, u64::from_le_bytes(number));
                }
                put_bytes(list, FEATURES, &packed);
            }
        }
    }
}

/// Appends a row as an `Example`. Missing features are left out.
pub fn put_example(out: &mut Vec<u8>, features: &[Feature<'_>], row: usize) {
    let mut all = Vec::new();
    let (mut list, mut feature, mut entry) = (Vec::new(), Vec::new(), Vec::new());
    for one in features {
        if one.present.get(row) == Some(&0) {
            continue;
        }
        list.clear();
        feature.clear();
        entry.clear();
        one.put_list(row, &mut list);
        put_bytes(&mut feature, one.kind.field(), &list);
        put_bytes(&mut entry, FEATURES, one.name.as_bytes());
        put_bytes(&mut entry, VALUE, &feature);
        put_bytes(&mut all, FEATURES, &entry);
    }
    put_bytes(out, FEATURES, &all);
}

/// Appends a record in its frame: length, checksum of the length, record, checksum of it.
pub fn put_frame(out: &mut Vec<u8>, record: &[u8]) {
    let len = (record.len() as u64).to_le_bytes();
    out.extend_from_slice(&len);
    out.extend_from_slice(&masked(&len).to_le_bytes());
    out.extend_from_slice(record);
    out.extend_from_slice(&masked(record).to_le_bytes());
}

fn masked(bytes: &[u8]) -> u32 {
    Sum::Crc32c.append(0, bytes).rotate_right(15).wrapping_add(MASK_DELTA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_the_message_that_protocol_buffers_write() {
        let ints: Vec<u8> = [300i64, -1].iter().flat_map(|n| n.to_le_bytes()).collect();
        let number = Feature {
            name: "n",
            kind: Kind::Int,
            data: &ints,
            firsts: &[0, 16],
            ends: &[],
            present: &[],
        };
        let text = Feature {
            name: "t",
            kind: Kind::Bytes,
            data: b"ab",
            firsts: &[0, 2],
            ends: &[1, 2],
            present: &[1],
        };
        let missing = Feature { name: "m", present: &[0], ..text };
        let mut out = Vec::new();
        put_example(&mut out, &[number, text, missing], 0);
        let packed = [0xac, 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1];
        let mut expected = vec![0x0a, 36];
        expected.extend([0x0a, 21, 0x0a, 1, b'n', 0x12, 16, 0x1a, 14, 0x0a, 12]);
        expected.extend(packed);
        expected.extend([0x0a, 13, 0x0a, 1, b't', 0x12, 8, 0x0a, 6, 0x0a, 1, b'a', 0x0a, 1, b'b']);
        expected[1] = (expected.len() - 2) as u8;
        assert_eq!(out, expected);
    }

    #[test]
    fn a_frame_has_the_checksums_of_tfrecord() {
        let mut out = Vec::new();
        put_frame(&mut out, b"hello");
        assert_eq!(out.len(), 5 + FRAME_LEN);
        assert_eq!(out[..8], 5u64.to_le_bytes());
        assert_eq!(out[12..17], *b"hello");
        // Computed by another implementation of the format.
        assert_eq!(out[8..12], [0xea, 0xb2, 0x04, 0x3e]);
        assert_eq!(out[17..], [0xbb, 0x1f, 0x1c, 0x19]);
    }
}
