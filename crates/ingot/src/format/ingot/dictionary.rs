//! The block that holds a compression dictionary.

use crate::format::checksum::Seed;
use crate::format::fields::Fields;
use crate::format::{Violation, bail};

const MAGIC: [u8; 4] = *b"IDIC";
const HEAD: usize = 16;

/// A compression dictionary of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dictionary {
    /// The field whose cells it was trained on.
    pub field: u32,
    /// The dictionary as the codec takes it.
    pub bytes: Vec<u8>,
}

impl Dictionary {
    /// Most bytes a dictionary may have.
    pub const BYTES_MAX: u64 = 16 << 20;

    /// Returns the block that stands at `offset`, and its checksum.
    pub fn encode(&self, offset: u64, seed: Seed) -> (Vec<u8>, u32) {
        let mut bytes = Vec::with_capacity(HEAD + self.bytes.len() + 4);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.field.to_le_bytes());
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&self.bytes);
        let crc = seed.seal(&mut bytes);
        (bytes, crc)
    }

    /// Reads the block that stands at `offset`; returns it with its checksum.
    pub fn decode(bytes: &[u8], offset: u64, seed: Seed) -> Result<(Self, u32), Violation> {
        let (bytes, crc) = seed.open(bytes)?;
        let mut fields = Fields(bytes);
        if fields.bytes(4)? != MAGIC {
            bail!("not a dictionary");
        }
        let field = fields.u32()?;
        if fields.u64()? != offset {
            bail!("dictionary belongs elsewhere");
        }
        Ok((Dictionary { field, bytes: fields.0.to_vec() }, crc))
    }
}
