//! Numbers in groups of seven bits, the low ones first.

use crate::format::Violation;

/// Bytes of the longest number.
pub const LEN_MAX: usize = 10;

/// Takes a number of up to 64 bits from the front of `bytes`.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Result<u64, Violation> {
    let mut value = 0;
    for (k, &byte) in bytes.iter().take(LEN_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            if k == LEN_MAX - 1 && byte > 1 {
                break;
            }
            *bytes = &bytes[k + 1..];
            return Ok(value);
        }
    }
    Err(Violation::new("a number is truncated or too large"))
}

/// Takes a length from the front of `bytes`.
#[inline]
pub fn take_len(bytes: &mut &[u8]) -> Result<usize, Violation> {
    let value = take(bytes)?;
    usize::try_from(value).map_err(|_| Violation::new(format!("a length of {value} bytes")))
}

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut rest = &bytes[..];
            assert_eq!(take(&mut rest).unwrap(), value);
            assert!(rest.is_empty());
            assert!(take(&mut &bytes[..bytes.len() - 1]).is_err());
        }
        assert!(take(&mut &[0xff; 10][..]).is_err());
        assert!(take(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]).is_err());
    }
}
