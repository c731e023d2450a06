//! Chunks: a header of 40 bytes, data, and zeros up to where the next chunk may begin.
//!
//! | bytes | what |
//! | --- | --- |
//! | 8 | hash of the rest of the header |
//! | 8 | bytes of data |
//! | 8 | hash of the data |
//! | 1 | kind |
//! | 7 | number of records |
//! | 8 | bytes of the records when they are decoded |

use std::borrow::Cow;
use std::ops::Range;

use super::block;
use super::hash::hash;
use crate::format::fields::u64_at;
use crate::format::{Violation, bail};

/// Bytes of a chunk's header.
pub const HEADER_LEN: u64 = 40;

/// Most records that a chunk's header can tell of.
pub const RECORDS_MAX: u64 = (1 << 56) - 1;

/// What is in a chunk, by the letter in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(pub u8);

impl Kind {
    /// Nothing: the first chunk of a file.
    pub const SIGNATURE: Kind = Kind(b's');
    /// Records, compressed together; see [`super::simple`].
    pub const SIMPLE: Kind = Kind(b'r');
    /// Records that are protocol buffers, by their fields; see [`super::transposed`].
    pub const TRANSPOSED: Kind = Kind(b't');
    /// Zeros.
    pub const PADDING: Kind = Kind(b'p');
}

/// What the header of a chunk says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of data.
    pub data_len: u64,
    /// Hash of the data.
    pub data_hash: u64,
    /// What the data is.
    pub kind: Kind,
    /// Number of records.
    pub records: u64,
    /// Bytes of the records when they are decoded.
    pub decoded_len: u64,
}

impl Header {
    /// Returns the header of a chunk with this data.
    pub fn new(kind: Kind, records: u64, decoded_len: u64, data: &[u8]) -> Header {
        assert!(records <= RECORDS_MAX, "more records than a chunk can have");
        Header { data_len: data.len() as u64, data_hash: hash(data), kind, records, decoded_len }
    }

    /// Reads a header.
    pub fn decode(bytes: &[u8; HEADER_LEN as usize], begin: u64) -> Result<Header, Violation> {
        let (stored, found) = (u64_at(bytes, 0), hash(&bytes[8..]));
        if stored != found {
            bail!(
                "chunk header hash mismatch (computed 0x{found:016x}, stored 0x{stored:016x}), \
                 chunk at {begin}"
            );
        }
        let kind_and_records = u64_at(bytes, 24);
        Ok(Header {
            data_len: u64_at(bytes, 8),
            data_hash: u64_at(bytes, 16),
            kind: Kind(kind_and_records as u8),
            records: kind_and_records >> 8,
            decoded_len: u64_at(bytes, 32),
        })
    }

    /// Returns the bytes of the header.
    pub fn encode(&self) -> [u8; HEADER_LEN as usize] {
        let mut bytes = [0; HEADER_LEN as usize];
        let kind_and_records = u64::from(self.kind.0) | self.records << 8;
        let fields = [self.data_len, self.data_hash, kind_and_records, self.decoded_len];
        for (place, field) in bytes[8..].chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let hash = hash(&bytes[8..]);
        bytes[..8].copy_from_slice(&hash.to_le_bytes());
        bytes
    }

    /// Returns where a chunk with this header, which begins at `begin`, ends.
    pub fn end(&self, begin: u64) -> Option<u64> {
        let data = block::end_of(begin, HEADER_LEN.checked_add(self.data_len)?)?;
        Some(data.max(block::round_up(begin.checked_add(self.records)?)?))
    }
}

/// A chunk whose hashes hold.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// Its header.
    pub header: Header,
    /// Its data, without block headers.
    pub data: Cow<'a, [u8]>,
    /// Where it ends in the file.
    pub end: u64,
}

impl<'a> Chunk<'a> {
    /// Reads the chunk at `begin` in a file; `stored` is what the file has from there on,
    /// at least to the end of the chunk. Checks every hash on the way.
    pub fn decode(stored: &'a [u8], begin: u64) -> Result<Chunk<'a>, Violation> {
        let (header, end) = Chunk::measure(stored, begin)?;
        let whole = begin..end;
        if stored.len() as u64 >= end - begin {
            check_blocks(stored, &whole)?;
            let data_begin =
                block::end_of(begin, HEADER_LEN).expect("the chunk, which is longer, has an end");
            let data =
                gather(&stored[(data_begin - begin) as usize..], data_begin, header.data_len)?;
            let found = hash(&data);
            if found != header.data_hash {
                bail!(
                    "chunk data hash mismatch (computed 0x{found:016x}, stored 0x{:016x}), chunk \
                     at {begin} with length {}",
                    header.data_hash,
                    header.data_len
                );
            }
            return Ok(Chunk { header, data, end });
        }
        Err(Violation::new(format!(
            "the chunk at {begin} has {} bytes, but only {} are there",
            end - begin,
            stored.len()
        )))
    }

    /// Reads the header of the chunk at `begin`; also returns where the chunk ends.
    pub fn measure(stored: &[u8], begin: u64) -> Result<(Header, u64), Violation> {
        if !block::is_boundary(begin) {
            bail!("no chunk can begin at {begin}");
        }
        let bytes = gather(stored, begin, HEADER_LEN)?;
        let bytes = bytes.as_ref().try_into().expect("as many as were asked for");
        let header = Header::decode(bytes, begin)?;
        let end = header
            .end(begin)
            .ok_or_else(|| Violation::new(format!("the chunk at {begin} ends past any file")))?;
        Ok((header, end))
    }
}

fn check_blocks(stored: &[u8], chunk: &Range<u64>) -> Result<(), Violation> {
    for block in block::headers(chunk) {
        let at = (block - chunk.start) as usize;
        let header = stored.get(at..at + block::HEADER_LEN as usize).ok_or_else(cut_short)?;
        block::check(header, block, chunk)?;
    }
    Ok(())
}

fn cut_short() -> Violation {
    Violation::new("a chunk is truncated")
}

/// Returns `len` bytes of a chunk that begin at `begin` in the file, without the block
/// headers among them; `stored` is what the file has from there on.
fn gather(stored: &[u8], begin: u64, len: u64) -> Result<Cow<'_, [u8]>, Violation> {
    let end = block::end_of(begin, len).ok_or_else(cut_short)?;
    let physical = usize::try_from(end - begin).map_err(|_| cut_short())?;
    let stored = stored.get(..physical).ok_or_else(cut_short)?;
    let mut headers = block::headers(&(begin..end)).peekable();
    let mut from = 0;
    if headers.peek() == Some(&begin) {
        headers.next();
        from = block::HEADER_LEN as usize;
    }
    if headers.peek().is_none() {
        return Ok(Cow::Borrowed(&stored[from..]));
    }
    let mut bytes = Vec::with_capacity(len as usize);
    for header in headers {
        let at = (header - begin) as usize;
        bytes.extend_from_slice(&stored[from..at]);
        from = at + block::HEADER_LEN as usize;
    }
    bytes.extend_from_slice(&stored[from..]);
    Ok(Cow::Owned(bytes))
}

/// Appends to `out`, which is the file up to `position` or the last part of it, a chunk
/// with the block headers that fall into it; returns where it ends.
pub fn append(out: &mut Vec<u8>, position: u64, header: &Header, data: &[u8]) -> u64 {
    let chunk = position..header.end(position).expect("a file has fewer than 2^64 bytes");
    let mut place = position;
    for bytes in [&header.encode()[..], data] {
        scatter(out, &mut place, &chunk, bytes);
    }
    const ZEROS: [u8; 1024] = [0; 1024];
    while place < chunk.end {
        let headers = if place.is_multiple_of(block::LEN) { block::HEADER_LEN } else { 0 };
        let len = (chunk.end - place - headers).min(ZEROS.len() as u64);
        let len = len.min(block::LEN - place % block::LEN - headers);
        scatter(out, &mut place, &chunk, &ZEROS[..len as usize]);
    }
    chunk.end
}

/// Appends bytes of a chunk that begin at `place`, with block headers before those that
/// begin a block.
fn scatter(out: &mut Vec<u8>, place: &mut u64, chunk: &Range<u64>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        if place.is_multiple_of(block::LEN) {
            out.extend_from_slice(&block::encode(*place, chunk));
            *place += block::HEADER_LEN;
        }
        let room = (block::LEN - *place % block::LEN) as usize;
        let (now, later) = bytes.split_at(room.min(bytes.len()));
        out.extend_from_slice(now);
        *place += now.len() as u64;
        bytes = later;
    }
}

/// Returns where a chunk of zeros from `position` up to the next block ends; there is none
/// if a block begins there.
pub fn padded(position: u64) -> u64 {
    let end = position.next_multiple_of(block::LEN);
    if end == position || end - position >= HEADER_LEN { end } else { end + block::LEN }
}

/// Appends a chunk of zeros up to the next block, if there is anything to fill; returns
/// where it ends.
pub fn pad(out: &mut Vec<u8>, position: u64) -> u64 {
    let end = padded(position);
    if end == position {
        return end;
    }
    let headers = block::headers(&(position..end)).count() as u64;
    let data = vec![0; (end - position - HEADER_LEN - headers * block::HEADER_LEN) as usize];
    append(out, position, &Header::new(Kind::PADDING, 0, 0, &data), &data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_round_trip_wherever_they_begin() {
        let data: Vec<u8> = (0..200_000_u32).map(|k| ((k * 7) >> 3) as u8).collect();
        for begin in [0, 25, 64, block::LEN - 41, block::LEN - 40, block::LEN - 39, block::LEN - 1]
        {
            for len in [0, 1, 100, 65_471, 65_472, 65_473, 131_000, 200_000] {
                for records in [0, 1, 40, 70_000] {
                    let header = Header::new(Kind::SIMPLE, records, 5, &data[..len]);
                    let mut file = Vec::new();
                    let end = append(&mut file, begin, &header, &data[..len]);
                    assert_eq!(end - begin, file.len() as u64, "{begin} {len} {records}");
                    assert!(block::is_boundary(end));
                    file.extend_from_slice(b"more");
                    let chunk = Chunk::decode(&file, begin).unwrap();
                    assert_eq!((chunk.header, chunk.end), (header, end));
                    assert_eq!(chunk.data, &data[..len]);
                }
            }
        }
    }

    #[test]
    fn padding_fills_a_block() {
        for position in
            [64, 1000, block::LEN - 41, block::LEN - 40, block::LEN - 39, block::LEN - 1]
        {
            let mut out = Vec::new();
            let end = pad(&mut out, position);
            assert!(end.is_multiple_of(block::LEN));
            assert_eq!(out.len() as u64, end - position);
            assert!(end - position <= block::LEN + HEADER_LEN);
            assert_eq!(Chunk::decode(&out, position).unwrap().end, end);
        }
        assert_eq!(pad(&mut Vec::new(), block::LEN), block::LEN);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let data = vec![7; 70_000];
        let mut file = Vec::new();
        append(&mut file, 64, &Header::new(Kind::SIMPLE, 3, 5, &data), &data);
        for at in (0..file.len()).step_by(97).chain(0..200).chain(65_400..65_700) {
            for bit in [0, 7] {
                file[at] ^= 1 << bit;
                assert!(Chunk::decode(&file, 64).is_err(), "byte {at}");
                file[at] ^= 1 << bit;
            }
        }
        assert!(Chunk::decode(&file, 64).is_ok());
        for len in [0, 10, 39, 40, 65_500, file.len() - 1] {
            assert!(Chunk::decode(&file[..len], 64).is_err());
        }
    }
}
