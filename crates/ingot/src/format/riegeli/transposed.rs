//! Transposed chunks: records that are protocol buffers, split by their fields.

use super::Group;
use super::chunk::{Chunk, Header};
use super::coding::Encoder;
use crate::format::Violation;

/// Decodes all records of a chunk.
pub fn decode(_chunk: &Chunk<'_>) -> Result<Group, Violation> {
    todo!()
}

/// Encodes records; returns the chunk's header and appends its data to `out`. Buffers are
/// compressed together in buckets of about `bucket_len` bytes.
pub fn encode(
    _group: &Group,
    _encoder: &mut Encoder,
    _bucket_len: u64,
    _out: &mut Vec<u8>,
) -> Result<Header, Violation> {
    todo!()
}
