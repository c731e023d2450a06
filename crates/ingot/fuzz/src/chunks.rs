//! Chunks and records from any bytes.

use ingot::compression::block::Settings;
use ingot::format::riegeli::chunk::Header;
use ingot::format::riegeli::{Chunk, Compression, Group, Kind};

/// Memory that a chunk may cost beyond what it stores and says.
pub const CHUNK_MEMORY: usize = 16 << 20;

/// Most records, and most bytes of them, that a chunk says it has.
const SAID: u32 = 1 << 20;

/// Returns a chunk of data whose first eight bytes are what its header says.
pub fn chunk_of(bytes: &[u8]) -> Option<Chunk<'_>> {
    let (records, rest) = bytes.split_first_chunk()?;
    let (decoded_len, data) = rest.split_first_chunk()?;
    let said = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes) % SAID);
    let header = Header::new(Kind::TRANSPOSED, said(records), said(decoded_len), data);
    Some(Chunk { header, data: data.into(), end: 0 })
}

/// Returns records that each have their length in front, up to 255.
pub fn records_of(mut bytes: &[u8]) -> Group {
    let mut group = Group::default();
    while let Some((&len, rest)) = bytes.split_first() {
        let (record, rest) = rest.split_at(rest.len().min(len.into()));
        group.push(record);
        bytes = rest;
    }
    group
}

/// Returns one of the ways to compress that are quick.
pub fn compression(choice: u8) -> Compression {
    match choice % 3 {
        0 => Compression::None,
        1 => Compression::Blocks(Settings::Zstd { level: 1, window_log: 20 }),
        _ => Compression::Blocks(Settings::Snappy),
    }
}
