//! Blocks of 64 KiB, each with a header that says which chunk it interrupts.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | hash of the rest of the header |
//! | 8 | how far before this block the chunk begins |
//! | 8 | how far behind the beginning of this block the chunk ends |
//!
//! A chunk that begins with a block begins in front of its header.

use std::ops::Range;

use super::hash::hash;
use crate::format::fields::u64_at;
use crate::format::{Violation, bail};

/// Bytes of a block.
pub const LEN: u64 = 1 << 16;

/// Bytes of its header.
pub const HEADER_LEN: u64 = 24;

/// Bytes of a block that belong to chunks.
pub const USABLE: u64 = LEN - HEADER_LEN;

/// Returns where `len` bytes that begin at `begin` end, with the block headers among them.
pub fn end_of(begin: u64, len: u64) -> Option<u64> {
    let headers = len.checked_add(begin.wrapping_add(USABLE - 1) % LEN)? / USABLE;
    begin.checked_add(len)?.checked_add(headers.checked_mul(HEADER_LEN)?)
}

/// Returns the first place from `position` on where a chunk may begin.
pub fn round_up(position: u64) -> Option<u64> {
    let left = position.wrapping_neg() % LEN;
    position.checked_add(left.saturating_sub(USABLE - 1))
}

/// Returns whether a chunk may begin at `position`.
pub fn is_boundary(position: u64) -> bool {
    position.wrapping_neg() % LEN < USABLE
}

/// Returns where the block headers are within `range` of a file.
pub fn headers(range: &Range<u64>) -> impl Iterator<Item = u64> + use<> {
    (range.start.next_multiple_of(LEN)..range.end).step_by(LEN as usize)
}

/// Returns the header of the block at `block` within a chunk.
pub fn encode(block: u64, chunk: &Range<u64>) -> [u8; HEADER_LEN as usize] {
    let mut header = [0; HEADER_LEN as usize];
    header[8..16].copy_from_slice(&(block - chunk.start).to_le_bytes());
    header[16..].copy_from_slice(&(chunk.end - block).to_le_bytes());
    let hash = hash(&header[8..]);
    header[..8].copy_from_slice(&hash.to_le_bytes());
    header
}

/// Checks the header of the block at `block` within a chunk.
pub fn check(header: &[u8], block: u64, chunk: &Range<u64>) -> Result<(), Violation> {
    let (stored, found) = (u64_at(header, 0), hash(&header[8..HEADER_LEN as usize]));
    if stored != found {
        bail!(
            "block header hash mismatch (computed 0x{found:016x}, stored 0x{stored:016x}), \
             block at {block}"
        );
    }
    if (u64_at(header, 8), u64_at(header, 16)) != (block - chunk.start, chunk.end - block) {
        bail!("the block at {block} belongs to another chunk");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the arithmetic abbreviates: a header before each byte that begins a block.
    fn end_by_steps(begin: u64, len: u64) -> u64 {
        let mut end = begin;
        for _ in 0..len {
            if end.is_multiple_of(LEN) {
                end += HEADER_LEN;
            }
            end += 1;
        }
        end
    }

    #[test]
    fn arithmetic_agrees_with_counting() {
        for begin in [0, 25, 64, 1000, LEN - 1, LEN, LEN + 25, 3 * LEN - 40] {
            for len in [0, 1, 24, 40, USABLE - 1, USABLE, USABLE + 1, 3 * LEN] {
                assert_eq!(end_of(begin, len), Some(end_by_steps(begin, len)), "{begin} {len}");
            }
        }
        assert_eq!(end_of(u64::MAX - 10, 11), None);
        assert_eq!(end_of(64, u64::MAX), None);
    }

    #[test]
    fn chunks_begin_outside_of_headers() {
        for position in [0, 1, 24, 25, 26, LEN - 1, LEN, LEN + 1, LEN + 24, LEN + 25] {
            let next = (position..).find(|&place| is_boundary(place)).unwrap();
            assert_eq!(round_up(position), Some(next));
        }
        assert!(is_boundary(0) && !is_boundary(1) && !is_boundary(24) && is_boundary(25));
    }
}
