//! The members of a tar archive, one after the other.

use super::super::indexed::Stream;
use crate::crc::Sum;
use crate::error::Result;
use crate::format::foreign::tar::{BLOCK, Header, Member, NAME_MAX, has_prefix, pax};
use crate::format::{Violation, bail};

/// Bytes of a member with the zeros behind it.
pub fn padded(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64)
}

/// A file in the archive, whose bytes are next in the stream.
pub struct Found {
    pub name: Vec<u8>,
    pub size: u64,
    /// Where the first of its headers begins.
    pub start: u64,
    /// Where its name is, and how to get the key out of it.
    pub named: Named,
}

pub enum Named {
    /// One after the other, from there on.
    At(u64),
    /// In two parts of a header, which is there and has these bytes.
    Split(u64, Box<[u8; BLOCK]>),
}

/// The files of an archive, one after the other, and checksums of what was read of it.
#[derive(Default)]
pub struct Members {
    /// Of everything since the row began.
    pub since_row: u32,
    /// Of everything since the first header of this member.
    pub since_start: u32,
    is_done: bool,
    /// Where the first thing begins that is not whole, once that is found.
    pub cut: Option<u64>,
}

impl Members {
    /// Takes bytes from the stream.
    pub fn skip(&mut self, stream: &mut Stream<'_>, mut len: u64) -> Result<()> {
        while len > 0 {
            let bytes = stream.some(len)?;
            self.since_row = Sum::Crc32c.append(self.since_row, bytes);
            self.since_start = Sum::Crc32c.append(self.since_start, bytes);
            len -= bytes.len() as u64;
        }
        Ok(())
    }

    /// Returns the next file; what is before its bytes was taken from the stream.
    pub fn next(&mut self, stream: &mut Stream<'_>) -> Result<Option<Found>> {
        let mut start = stream.offset();
        self.since_start = 0;
        let (mut long, mut size): (Option<(Vec<u8>, u64)>, Option<u64>) = (None, None);
        while !self.is_done && self.cut.is_none() {
            let at = stream.offset();
            if stream.left() < BLOCK as u64 {
                self.cut = Some(at);
                break;
            }
            let block: [u8; BLOCK] = match stream.peek(BLOCK as u64)?.first_chunk() {
                Some(block) => *block,
                None => unreachable!("this many bytes were requested"),
            };
            let header = Header::decode(&block).map_err(|why| stream.corrupt(at, why))?;
            let Some(header) = header else {
                self.is_done = true;
                break;
            };
            self.skip(stream, BLOCK as u64)?;
            let own = if header.member == Member::File { size.take() } else { None };
            let len = own.unwrap_or(header.size);
            if len.checked_next_multiple_of(BLOCK as u64).is_none_or(|all| all > stream.left()) {
                self.cut = Some(at);
                break;
            }
            match header.member {
                Member::File => {
                    let (name, named) = match long {
                        Some((name, offset)) => (name, Named::At(offset)),
                        None if has_prefix(&block) => {
                            (header.name, Named::Split(at, Box::new(block)))
                        }
                        None => (header.name, Named::At(at)),
                    };
                    return Ok(Some(Found { name, size: len, start, named }));
                }
                Member::LongName | Member::Pax => {
                    if len > NAME_MAX {
                        let why = format!("a name or pax header has {len} bytes");
                        return Err(stream.corrupt(at, why));
                    }
                    let offset = stream.offset();
                    let bytes = stream.peek(len)?;
                    if header.member == Member::LongName {
                        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                        long = Some((bytes[..end].to_vec(), offset));
                    } else {
                        let found = pax_of(bytes, offset);
                        let found = found.map_err(|why| stream.corrupt(offset, why))?;
                        (long, size) = (found.0.or(long), found.1);
                    }
                    self.skip(stream, padded(len))?;
                }
                Member::Sparse => {
                    return Err(stream.corrupt(at, "sparse files in archives are not supported"));
                }
                Member::Other => {
                    self.skip(stream, padded(len))?;
                    // The link name of GNU belongs to the next member, as a long name does.
                    if block[156] != b'K' && block[156] != b'g' {
                        (long, size, start) = (None, None, stream.offset());
                        self.since_start = 0;
                    }
                }
            }
        }
        Ok(None)
    }
}

/// A name with where it is, and a size, as pax records give them to the next member.
type Pax = (Option<(Vec<u8>, u64)>, Option<u64>);

fn pax_of(bytes: &[u8], offset: u64) -> Result<Pax, Violation> {
    let (mut name, mut size) = (None, None);
    for (key, range) in pax(bytes)? {
        let value = &bytes[range.clone()];
        match key {
            b"path" => name = Some((value.to_vec(), offset + range.start as u64)),
            b"size" => {
                let digits = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                size =
                    Some(digits.ok_or_else(|| Violation("a pax size is not a number".to_owned()))?);
            }
            _ if key.starts_with(b"GNU.sparse.") => {
                bail!("sparse files in archives are not supported");
            }
            _ => {}
        }
    }
    Ok((name, size))
}
