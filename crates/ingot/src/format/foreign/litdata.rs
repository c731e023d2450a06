//! Arrays in the items of LitData.

use super::coding::array_of;
use super::number::Number;
use crate::compression::frame;
use crate::format::{Violation, bail};

/// Returns an array of the serializer `numpy`: type, number of dimensions and lengths as
/// little-endian numbers of 32 bits.
pub fn numpy(stored: &[u8]) -> Result<Vec<u8>, Violation> {
    headed(stored, u32::from_le_bytes, numpy_type)
}

/// Returns an array of the serializer `tensor`: the same as big-endian numbers.
pub fn tensor(stored: &[u8]) -> Result<Vec<u8>, Violation> {
    headed(stored, u32::from_be_bytes, tensor_type)
}

fn headed(
    stored: &[u8],
    number: fn([u8; 4]) -> u32,
    kind: fn(u32) -> Option<Number>,
) -> Result<Vec<u8>, Violation> {
    let cut = || Violation::new("an array is truncated");
    let (&code, rest) = stored.split_first_chunk().ok_or_else(cut)?;
    let (&dimensions, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let (code, dimensions) = (number(code), number(dimensions) as usize);
    let len = dimensions.checked_mul(4).ok_or_else(cut)?;
    let (shape, elements) = rest.split_at_checked(len).ok_or_else(cut)?;
    let shape: Vec<u64> = shape.as_chunks().0.iter().map(|&one| number(one).into()).collect();
    let kind = kind(code)
        .ok_or_else(|| Violation::new(format!("an array has the unknown type {code}")))?;
    array_of(&kind.array_name(), &shape, elements)
}

/// Returns the type of numbers with a number among those of PyTorch.
pub fn tensor_type(code: u32) -> Option<Number> {
    Some(match code {
        0 | 1 => Number::Float(4),
        2 | 3 => Number::Float(8),
        8 | 9 => Number::Float(2),
        11 => Number::Uint(1),
        12 => Number::Int(1),
        13 | 14 => Number::Int(2),
        15 | 16 => Number::Int(4),
        17 | 18 => Number::Int(8),
        19 => Number::Bool,
        20 => Number::Uint(2),
        _ => return None,
    })
}

/// Returns the type of numbers with a number among those of numpy.
pub fn numpy_type(code: u32) -> Option<Number> {
    Some(match code {
        0 => Number::Int(1),
        1 => Number::Int(2),
        2 => Number::Int(4),
        3 => Number::Int(8),
        4 => Number::Uint(1),
        5 => Number::Uint(2),
        6 => Number::Uint(4),
        7 => Number::Uint(8),
        8 => Number::Float(2),
        9 => Number::Float(4),
        10 => Number::Float(8),
        13 => Number::Bool,
        _ => return None,
    })
}

/// How a chunk begins whose items are compressed in frames.
const MAGIC: &[u8; 8] = b"LDFZ01\0\0";

/// Bytes of the head of such a chunk, and of what it says of each frame.
const ENTRY: usize = 24;

/// A chunk whose items are compressed in frames.
pub struct Framed<'a> {
    /// Where each item begins, and where the last one ends, when all are decompressed.
    offsets: Vec<u32>,
    frames: Vec<(&'a [u8], usize)>,
}

impl<'a> Framed<'a> {
    /// Whether a chunk is one.
    pub fn begins(chunk: &[u8]) -> bool {
        chunk.starts_with(MAGIC)
    }

    /// Reads a chunk.
    pub fn decode(chunk: &'a [u8]) -> Result<Framed<'a>, Violation> {
        let cut = || Violation::new("the chunk is truncated");
        let head = chunk.get(..ENTRY).filter(|head| Framed::begins(head)).ok_or_else(cut)?;
        let number = |bytes: &[u8], at: usize| -> usize {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
        };
        let (items, frames) = (number(head, 12), number(head, 20));
        let end = ENTRY + 4 * (items + 1);
        let offsets = chunk.get(ENTRY..end).ok_or_else(cut)?;
        let offsets: Vec<u32> =
            offsets.as_chunks().0.iter().map(|&one| u32::from_le_bytes(one)).collect();
        let entries = chunk.get(end..end + ENTRY * frames).ok_or_else(cut)?;
        let mut found = Vec::with_capacity(frames);
        let mut total = 0_u64;
        for entry in entries.chunks_exact(ENTRY) {
            let high = number(entry, 12);
            let (start, len, raw) = (number(entry, 8), number(entry, 16), number(entry, 20));
            let bytes = chunk.get(start..).and_then(|rest| rest.get(..len));
            found.push((bytes.filter(|_| high == 0).ok_or_else(cut)?, raw));
            total += raw as u64;
        }
        if !offsets.is_sorted() || offsets.first() != Some(&0) {
            bail!("the offsets of the items do not increase");
        }
        if offsets.last().map(|&last| u64::from(last)) != Some(total) {
            bail!("the frames and the items differ in their number of bytes");
        }
        Ok(Framed { offsets, frames: found })
    }

    /// Returns the same items as a chunk that is not compressed.
    pub fn unpacked(&self) -> Result<Vec<u8>, Violation> {
        let head = 4 * (self.offsets.len() + 1);
        let last = self.offsets.last().map_or(0, |&last| last as usize);
        let too_long = || Violation::new("the items have more than 4 GiB");
        let whole = u32::try_from(head + last).map_err(|_| too_long())? as usize;
        let stored: usize = self.frames.iter().map(|(bytes, _)| bytes.len()).sum();
        if last > FACTOR * stored.max(1 << 20) {
            bail!("the items are too long for the frames they are in");
        }
        let mut out = Vec::with_capacity(whole);
        out.extend_from_slice(&(self.offsets.len() as u32 - 1).to_le_bytes());
        for &offset in &self.offsets {
            out.extend_from_slice(&(offset + head as u32).to_le_bytes());
        }
        for &(bytes, raw) in &self.frames {
            let start = out.len();
            out.resize(start + raw, 0);
            frame::decompress_into(None, bytes, &mut out[start..])
                .map_err(|_| Violation::new("a frame of items cannot be decompressed"))?;
        }
        Ok(out)
    }
}

/// Returns a chunk whose items are compressed one by one as one that is not compressed.
pub fn unpacked_items(chunk: &[u8]) -> Result<Vec<u8>, Violation> {
    let cut = || Violation::new("the chunk is truncated");
    let (&count, rest) = chunk.split_first_chunk().ok_or_else(cut)?;
    let count = u32::from_le_bytes(count) as usize;
    let offsets = rest.get(..4 * (count + 1)).ok_or_else(cut)?;
    let offsets: Vec<usize> =
        offsets.as_chunks().0.iter().map(|&one| u32::from_le_bytes(one) as usize).collect();
    let head = 4 * (count + 2);
    let (mut items, mut ends) = (Vec::new(), vec![head as u32]);
    for pair in offsets.windows(2) {
        let stored = chunk.get(pair[0]..pair[1]).ok_or_else(cut)?;
        let item = frame::decompress(None, stored)
            .map_err(|_| Violation::new("an item cannot be decompressed"))?;
        items.extend_from_slice(&item);
        if items.len() > FACTOR * chunk.len().max(1 << 20) {
            bail!("the items are too long for the chunk they are in");
        }
        let end = u32::try_from(head + items.len());
        ends.push(end.map_err(|_| Violation::new("the items have more than 4 GiB"))?);
    }
    let mut out = (count as u32).to_le_bytes().to_vec();
    ends.iter().for_each(|end| out.extend_from_slice(&end.to_le_bytes()));
    out.extend_from_slice(&items);
    Ok(out)
}

/// Items may be this many times as long as the frames that they are in.
const FACTOR: usize = 256;
