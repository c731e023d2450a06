//! The postscript: where the footer is.

use crate::format::protobuf::{Fields, Wire, put_number};
use crate::format::riegeli::{Chunk, Group, Kind, block, simple};
use crate::format::{Violation, bail};

/// What marks a Riegeli file as an ArrayRecord file.
const MAGIC: u64 = 0x7193_0e70_4fda_e05e;

/// How often the message is repeated.
const COPIES: usize = 3;

/// Returns the offset of the footer from the chunk that begins the last block.
pub fn decode(chunk: &Chunk<'_>) -> Result<u64, Violation> {
    if chunk.header.kind != Kind::SIMPLE || chunk.header.decoded_len > block::LEN {
        bail!("the last block does not begin with a postscript");
    }
    let group = simple::decode(chunk)?;
    if group.is_empty() {
        bail!("the postscript is empty");
    }
    let (mut footer, mut magic) = (None, None);
    for field in Fields::of(group.record(0)) {
        match field? {
            (1, Wire::Varint(number)) => footer = Some(number),
            (2, Wire::Varint(number)) => magic = Some(number),
            _ => {}
        }
    }
    if magic != Some(MAGIC) {
        bail!("the postscript is not that of an ArrayRecord file");
    }
    footer.ok_or_else(|| Violation::new("the postscript does not say where the footer is"))
}

/// Returns the records of the postscript.
pub fn encode(footer: u64) -> Group {
    let mut message = Vec::new();
    put_number(&mut message, 1, footer);
    put_number(&mut message, 2, MAGIC);
    let mut group = Group::default();
    for _ in 0..COPIES {
        group.push(&message);
    }
    group
}
