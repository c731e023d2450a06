//! MDS shards: the offsets of samples, and the arrays in them.

use super::coding::array_of;
use super::number::Number;
use crate::format::{Violation, bail};

/// Returns an array without a fixed shape, whose numbers have a fixed type or not.
pub fn array(stored: &[u8], number: Option<Number>) -> Result<Vec<u8>, Violation> {
    let cut = || Violation::new("an ndarray is truncated");
    let (number, rest) = match number {
        Some(number) => (number, stored),
        None => {
            let (&code, rest) = stored.split_first().ok_or_else(cut)?;
            (number_of(code)?, rest)
        }
    };
    let (&head, rest) = rest.split_first().ok_or_else(cut)?;
    let (dimensions, width) = (usize::from(head >> 2), 1 << (head & 3));
    let (shape, elements) = rest.split_at_checked(dimensions * width).ok_or_else(cut)?;
    let shape: Vec<u64> = shape
        .chunks_exact(width)
        .map(|length| length.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
        .collect();
    array_of(&number.array_name(), &shape, elements)
}

/// Returns the type of numbers with this code in MDS.
fn number_of(code: u8) -> Result<Number, Violation> {
    Ok(match code {
        8 => Number::Uint(1),
        9 => Number::Int(1),
        16 => Number::Uint(2),
        17 => Number::Int(2),
        18 => Number::Float(2),
        32 => Number::Uint(4),
        33 => Number::Int(4),
        34 => Number::Float(4),
        64 => Number::Uint(8),
        65 => Number::Int(8),
        66 => Number::Float(8),
        _ => bail!("an ndarray has the unknown type {code}"),
    })
}

/// Returns where the elements of a list of byte strings are: lengths of 32 bits behind their
/// number, which is at `head`, and the strings behind the lengths.
pub fn list(stored: &[u8], head: usize) -> Result<Vec<std::ops::Range<usize>>, Violation> {
    let cut = || Violation::new("a list is truncated");
    let rest = stored.get(head..).ok_or_else(cut)?;
    let (count, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let count = u32::from_le_bytes(*count) as usize;
    let lengths = rest.get(..4 * count).ok_or_else(cut)?;
    let mut at = head + 4 + 4 * count;
    let mut found = Vec::with_capacity(count);
    for length in lengths.as_chunks().0 {
        let end = at + u32::from_le_bytes(*length) as usize;
        if end > stored.len() {
            return Err(cut());
        }
        found.push(at..end);
        at = end;
    }
    Ok(found)
}

/// Returns the pixels of a Pillow image, which follow its size and mode in MDS and LitData, as an
/// array of height, width and channels.
pub fn pixels(stored: &[u8]) -> Result<Vec<u8>, Violation> {
    let cut = || Violation::new("an image is truncated");
    let (head, rest) = stored.split_at_checked(12).ok_or_else(cut)?;
    let [width, height, mode_len] = [0, 4, 8]
        .map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let (mode, pixels) = rest.split_at_checked(mode_len as usize).ok_or_else(cut)?;
    let (height, width) = (u64::from(height), u64::from(width));
    match mode {
        b"L" | b"P" => array_of("|u1", &[height, width], pixels),
        b"RGB" | b"YCbCr" | b"HSV" | b"LAB" => array_of("|u1", &[height, width, 3], pixels),
        b"RGBA" | b"CMYK" | b"RGBX" => array_of("|u1", &[height, width, 4], pixels),
        b"LA" => array_of("|u1", &[height, width, 2], pixels),
        b"I" => array_of("<i4", &[height, width], pixels),
        b"I;16" => array_of("<u2", &[height, width], pixels),
        b"F" => array_of("<f4", &[height, width], pixels),
        _ => Err(Violation::new(format!(
            "images of mode {:?} are not supported",
            mode.escape_ascii()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::array::Array;

    #[test]
    fn an_array_tells_type_and_shape() {
        let stored = [&[17, 2 << 2, 1, 2][..], &[1, 0, 2, 0]].concat();
        let cell = array(&stored, None).unwrap();
        let found = Array::decode(&cell).unwrap();
        assert_eq!((found.kind, &found.shape[..]), ("<i2", &[1, 2][..]));
        assert_eq!(array(&stored[1..], Some(Number::Int(2))).unwrap(), cell);
        for cut in 0..stored.len() {
            assert!(array(&stored[..cut], None).is_err(), "{cut}");
        }
    }

    #[test]
    fn a_list_that_ends_too_early_is_rejected() {
        let stored = [&2_u32.to_le_bytes()[..], &1_u32.to_le_bytes(), &2_u32.to_le_bytes(), b"abc"];
        let stored = stored.concat();
        assert_eq!(list(&stored, 0).unwrap(), [12..13, 13..15]);
        for cut in 0..stored.len() {
            assert!(list(&stored[..cut], 0).is_err(), "{cut}");
        }
    }
}
