//! Little-endian integers in a byte slice, with every access checked.

use super::{Violation, bail};

/// Reads integers from the front of a slice.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Violation> {
        let (head, rest) = self
            .0
            .split_at_checked(len)
            .ok_or_else(|| Violation::new(format!("{} bytes, expected {len}", self.0.len())))?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Violation> {
        Ok(self.bytes(N)?.try_into().expect("N bytes were taken"))
    }

    pub fn u16(&mut self) -> Result<u16, Violation> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Violation> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Violation> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes bytes that must be zero.
    pub fn zeros(&mut self, len: usize) -> Result<(), Violation> {
        if self.bytes(len)?.iter().any(|&byte| byte != 0) {
            bail!("reserved bytes are not zero");
        }
        Ok(())
    }
}

/// Reads the u32 at `at`; the caller has checked the bounds of the slice once for all.
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Reads the u64 at `at`; the caller has checked the bounds of the slice once for all.
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
