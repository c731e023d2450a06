//! TFRecord files: each record behind its length, and both behind checksums.

use crate::crc::Sum;
use crate::format::Violation;

/// Bytes before a record: its length, and the checksum of that.
pub const HEAD_LEN: usize = 12;

/// Bytes behind a record: its checksum.
pub const TAIL_LEN: usize = 4;

const MASK: u32 = 0xa282_ead8;

/// Returns a checksum as TFRecord stores it.
pub fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK)
}

/// Returns the checksum that is stored as `masked`.
pub fn unmasked(masked: u32) -> u32 {
    masked.wrapping_sub(MASK).rotate_left(15)
}

/// Returns the length of the record behind a head.
pub fn length(head: &[u8; HEAD_LEN]) -> Result<u64, Violation> {
    let (length, crc) = (&head[..8], u32::from_le_bytes([head[8], head[9], head[10], head[11]]));
    let found = masked(Sum::Crc32c.append(0, length));
    if found != crc {
        let why = format!("the checksum of a length is {found:08x}, expected {crc:08x}");
        return Err(Violation::new(why));
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(length);
    Ok(u64::from_le_bytes(bytes))
}

/// Whether a file that begins with these bytes is one; an empty file is not.
pub fn begins(front: &[u8]) -> bool {
    front.first_chunk().is_some_and(|head| length(head).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_come_off() {
        for crc in [0, 1, 0xdead_beef, u32::MAX] {
            assert_eq!(unmasked(masked(crc)), crc);
        }
    }
}
