//! The trailer: the commit point at the end of every segment.

use crate::format::checksum::{FileId, Seed};
use crate::format::fields::Fields;
use crate::format::{Violation, bail};

/// Bytes of a trailer.
pub const TRAILER_LEN: usize = 96;

/// First bytes of a trailer.
pub const TRAILER_MAGIC: [u8; 8] = *b"\x89IngEnd\n";

/// What a trailer commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// Nothing new: says that all before it has reached the device.
    Mark,
    /// An index page and the cells it describes.
    Page,
    /// A compression dictionary.
    Dictionary,
    /// The directory: the file is whole.
    Directory,
}

impl BlockKind {
    fn code(self) -> u32 {
        match self {
            BlockKind::Mark => 0,
            BlockKind::Page => 1,
            BlockKind::Dictionary => 2,
            BlockKind::Directory => 3,
        }
    }

    fn of(code: u32) -> Result<Self, Violation> {
        [BlockKind::Mark, BlockKind::Page, BlockKind::Dictionary, BlockKind::Directory]
            .into_iter()
            .find(|kind| kind.code() == code)
            .ok_or_else(|| {
                Violation::new(format!("trailer commits a block of unknown kind {code}"))
            })
    }
}

/// The block that a trailer commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// Where it begins; the offset of the trailer for a mark.
    pub offset: u64,
    /// How long it is, checksum included; 0 for a mark.
    pub len: u64,
    /// Its checksum; 0 for a mark.
    pub crc: u32,
}

/// A commit: everything before it is part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// Where the trailer itself stands.
    pub offset: u64,
    /// What it commits.
    pub block: Block,
    /// Offset and checksum of the trailer before it; offset 0 for the first.
    pub previous: (u64, u32),
    /// Rows committed up to here.
    pub rows: u64,
    /// Cells committed up to here.
    pub cells: u64,
    /// All bytes before this offset had reached the device when this was written.
    pub durable: u64,
}

impl Trailer {
    /// Returns the trailer's bytes and its checksum.
    pub fn encode(&self, id: &FileId) -> (Vec<u8>, u32) {
        let mut bytes = Vec::with_capacity(TRAILER_LEN);
        bytes.extend_from_slice(&TRAILER_MAGIC);
        bytes.extend_from_slice(id);
        for value in [
            self.offset,
            self.block.offset,
            self.block.len,
            self.previous.0,
            self.rows,
            self.cells,
            self.durable,
        ] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&self.block.kind.code().to_le_bytes());
        bytes.extend_from_slice(&self.block.crc.to_le_bytes());
        bytes.extend_from_slice(&self.previous.1.to_le_bytes());
        let crc = Seed::new(id).seal(&mut bytes);
        (bytes, crc)
    }

    /// Reads the trailer that stands at `offset`, and checks that it belongs there.
    pub fn decode(bytes: &[u8], offset: u64, id: &FileId) -> Result<(Self, u32), Violation> {
        if bytes.len() != TRAILER_LEN || bytes[..8] != TRAILER_MAGIC {
            bail!("not a trailer");
        }
        let (bytes, crc) = Seed::new(id).open(bytes)?;
        let mut fields = Fields(&bytes[8..]);
        if fields.bytes(16)? != id {
            bail!("trailer of another file");
        }
        let own = fields.u64()?;
        let (block_offset, block_len) = (fields.u64()?, fields.u64()?);
        let previous = fields.u64()?;
        let (rows, cells, durable) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let kind = BlockKind::of(fields.u32()?)?;
        let block = Block { kind, offset: block_offset, len: block_len, crc: fields.u32()? };
        let trailer = Trailer {
            offset: own,
            block,
            previous: (previous, fields.u32()?),
            rows,
            cells,
            durable,
        };
        trailer.check(offset)?;
        Ok((trailer, crc))
    }

    /// A trailer directly follows its block, and points only to what precedes it.
    fn check(&self, offset: u64) -> Result<(), Violation> {
        let behind = self.block.offset.checked_add(self.block.len);
        if self.offset != offset {
            bail!("trailer belongs at offset {}", self.offset);
        }
        if behind != Some(offset) || self.durable > offset {
            bail!("trailer does not follow its block");
        }
        let previous_end = self.previous.0.checked_add(TRAILER_LEN as u64);
        if self.previous.0 != 0 && previous_end.is_none_or(|end| end > self.block.offset) {
            bail!("trailer points forward");
        }
        Ok(())
    }
}
