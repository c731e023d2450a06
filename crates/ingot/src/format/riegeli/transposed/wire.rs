//! The wire format of protocol buffers, as far as it can be told without a schema.

use std::ops::Range;

use super::state::{tag, wire_type};

/// A field of a message; the places count from the beginning of what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub tag: u32,
    /// What stands behind the tag.
    pub value: Range<usize>,
    /// The same without the length in front of it.
    pub content: Range<usize>,
}

impl Field {
    /// Reads the field at `at`, if there is one whose numbers are as short as can be.
    pub fn read(bytes: &[u8], at: usize) -> Option<Field> {
        let (tag, start) = read_u32(bytes, at)?;
        if tag < tag::FIELD_MIN {
            return None;
        }
        let (begin, end) = match tag % 8 {
            wire_type::VARINT => (start, read_varint(bytes, start)?.1),
            wire_type::FIXED64 => (start, start + 8),
            wire_type::FIXED32 => (start, start + 4),
            wire_type::BYTES => {
                let (len, begin) = read_u32(bytes, start)?;
                (begin, begin.checked_add(len as usize)?)
            }
            wire_type::GROUP_START | wire_type::GROUP_END => (start, start),
            _ => return None,
        };
        (end <= bytes.len()).then_some(Field { tag, value: start..end, content: begin..end })
    }
}

/// Reads a number at `at`; also returns where it ends.
fn read_varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for (k, &byte) in bytes.get(at..)?.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            let is_shortest = byte > 0 || k == 0;
            let fits = k < 9 || byte == 1;
            return (is_shortest && fits).then_some((value, at + k + 1));
        }
    }
    None
}

fn read_u32(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let (value, end) = read_varint(bytes, at)?;
    Some((u32::try_from(value).ok()?, end))
}

/// Whether `bytes` can be put together again from the fields of a message.
pub fn is_message(bytes: &[u8]) -> bool {
    let mut groups = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let Some(field) = Field::read(bytes, at) else { return false };
        at = field.value.end;
        match field.tag % 8 {
            wire_type::GROUP_START => groups.push(field.tag / 8),
            wire_type::GROUP_END if groups.pop() != Some(field.tag / 8) => return false,
            _ => {}
        }
    }
    groups.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_distinguished_from_other_bytes() {
        for message in [
            &b""[..],
            b"hi",
            b"\x08\x00",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\xf8\xff\xff\xff\x0f\x05",
            b"\x0a\x00\x12\x03abc",
            b"\x0d1234\x091234abcd",
            b"\x0b\x13\x08\x05\x14\x0c",
        ] {
            assert!(is_message(message), "{message:?}");
        }
        for other in [
            &b"\x00"[..],
            b"\x07",
            b"\x08",
            b"\x08\x80\x00",
            b"\x88\x00\x01",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\xf8\xff\xff\xff\x1f\x05",
            b"\x12\x03ab",
            b"\x12\x83\x00abc",
            b"\x12\xff\xff\xff\xff\x0f",
            b"\x12\xff\xff\xff\xff\x1f",
            b"\x0d123",
            b"\x091234567",
            b"\x0e\x00",
            b"\x0f\x00",
            b"\x0b",
            b"\x0c",
            b"\x0b\x14",
            b"\x0b\x13\x0c\x14",
        ] {
            assert!(!is_message(other), "{other:?}");
        }
    }
}
