//! Simple chunks: the sizes of the records, then the records.
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | compression: 0 none, `b` brotli, `z` zstd, `s` snappy |
//! | varint | stored length of the sizes |
//! | any | the sizes as varints, compressed |
//! | rest | the records one after the other, compressed |
//!
//! What is compressed has its decoded length in front, as a varint.

use super::Group;
use super::chunk::{Chunk, Header, Kind};
use super::coding::{Coding, Encoder, zeros};
use crate::format::varint;
use crate::format::{View, Violation, bail};

/// Splits the data of a simple chunk into its coding, its sizes and its records.
fn open<'a>(chunk: &'a Chunk<'_>) -> Result<(Coding, &'a [u8], &'a [u8]), Violation> {
    let (&letter, mut rest) =
        chunk.data.split_first().ok_or_else(|| Violation::new("a chunk without data"))?;
    let coding = Coding::of(letter)?;
    let len = varint::take_len(&mut rest)?;
    let (sizes, records) = rest
        .split_at_checked(len)
        .ok_or_else(|| Violation::new("the sizes of the records are truncated"))?;
    Ok((coding, sizes, records))
}

/// Decodes the one record of a chunk, which must be as long as `value`.
pub fn decode_one(chunk: &Chunk<'_>, value: &mut [u8]) -> Result<(), Violation> {
    let (coding, sizes, records) = open(chunk)?;
    let mut size = [0; varint::LEN_MAX];
    let len = coding.decoded_len(sizes)?;
    let size = size.get_mut(..len).ok_or_else(|| Violation::new("more sizes than records"))?;
    coding.decode_into(sizes, size)?;
    let mut rest = &*size;
    if varint::take(&mut rest)? != value.len() as u64 || !rest.is_empty() {
        bail!("the sizes of the records do not add up");
    }
    coding.decode_into(records, value)
}

/// Decodes all records of a chunk.
pub fn decode(chunk: &Chunk<'_>) -> Result<Group, Violation> {
    let (coding, sizes, records) = open(chunk)?;
    let count = usize::try_from(chunk.header.records).unwrap_or(usize::MAX);
    let sizes = coding.decode(sizes, count.saturating_mul(varint::LEN_MAX))?;
    if sizes.len() < count {
        bail!("fewer sizes than records");
    }
    let mut ends = Vec::with_capacity(count);
    let (mut end, mut rest) = (0_usize, &sizes[..]);
    for _ in 0..count {
        end = end
            .checked_add(varint::take_len(&mut rest)?)
            .ok_or_else(|| Violation::new("the sizes of the records do not add up"))?;
        ends.push(end);
    }
    let said = chunk.header.decoded_len;
    if !rest.is_empty() || end as u64 != said || coding.decoded_len(records)? != end {
        bail!("the sizes of the records do not add up");
    }
    let mut bytes = zeros(end)?;
    coding.decode_into(records, &mut bytes)?;
    Ok(Group { bytes, ends })
}

/// Encodes records; returns the chunk's header and appends its data to `out`.
pub fn encode<'a>(
    records: impl Into<View<'a>>,
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
) -> Result<Header, Violation> {
    let records = records.into();
    let start = out.len();
    let (mut sizes, mut stored) = (Vec::with_capacity(2 * records.len()), Vec::new());
    for size in records.sizes() {
        varint::put(&mut sizes, size as u64);
    }
    encoder.encode(&sizes, &mut stored)?;
    out.push(encoder.compression().letter());
    varint::put(out, stored.len() as u64);
    out.extend_from_slice(&stored);
    encoder.encode(records.bytes, out)?;
    let (count, decoded) = (records.len() as u64, records.bytes.len() as u64);
    Ok(Header::new(Kind::SIMPLE, count, decoded, &out[start..]))
}
