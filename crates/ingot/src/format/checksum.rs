//! CRC32C, seeded with the id of the file so that bytes of another file, or of
//! another place in this one, do not pass (format.md, "Checksums").

use super::{Violation, bail};
use crate::crc::Sum;

/// The random id of a file.
pub type FileId = [u8; 16];

/// The checksum state that a file's id leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(u32);

impl Seed {
    /// Returns the seed of the file with this id.
    pub fn new(id: &FileId) -> Self {
        Seed(Sum::Crc32c.append(0, id))
    }

    /// Returns the checksum of the stored bytes of cell `number`.
    #[inline]
    pub fn cell(self, number: u64, stored: &[u8]) -> u32 {
        Sum::Crc32c.append(self.before_cell(number), stored)
    }

    /// Returns what the checksum of cell `number` is before its first byte.
    #[inline]
    pub fn before_cell(self, number: u64) -> u32 {
        Sum::Crc32c.append(self.0, &number.to_le_bytes())
    }

    /// Returns the checksum of a block or trailer without its last four bytes.
    pub fn block(self, bytes: &[u8]) -> u32 {
        Sum::Crc32c.append(self.0, bytes)
    }

    /// Appends the checksum of `bytes` to them.
    pub fn seal(self, bytes: &mut Vec<u8>) -> u32 {
        let crc = self.block(bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        crc
    }

    /// Checks the last four bytes against the rest, which is returned with the checksum.
    pub fn open(self, sealed: &[u8]) -> Result<(&[u8], u32), Violation> {
        let Some((bytes, stored)) = sealed.split_last_chunk::<4>() else {
            bail!("too short for a checksum");
        };
        let (stored, found) = (u32::from_le_bytes(*stored), self.block(bytes));
        if stored == found { Ok((bytes, stored)) } else { Err(mismatch(stored, found)) }
    }
}

/// Returns what to say of a checksum that does not fit.
pub fn mismatch(expected: u32, found: u32) -> Violation {
    Violation::new(format!("checksum mismatch: expected {expected:08x}, found {found:08x}"))
}

/// Returns the CRC32C of bytes that are not seeded: the header, which holds the id itself.
pub fn unseeded(bytes: &[u8]) -> u32 {
    Sum::Crc32c.append(0, bytes)
}
