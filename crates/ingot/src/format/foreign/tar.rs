//! The headers of tar archives: ustar, GNU and pax.

use crate::format::Violation;

/// Headers, and everything else, begin at multiples of this.
pub const BLOCK: usize = 512;

/// Names and pax headers of more bytes are refused.
pub const NAME_MAX: u64 = 1 << 20;

/// What a header announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// A file.
    File,
    /// The name of the next member: GNU.
    LongName,
    /// Records about the next member: pax.
    Pax,
    /// A file with holes, whose bytes are not those of the file.
    Sparse,
    /// A directory, a link, a device: something without bytes that a sample could have.
    Other,
}

/// A header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// What it announces.
    pub member: Member,
    /// Bytes that follow.
    pub size: u64,
    /// The name, as the header alone gives it.
    pub name: Vec<u8>,
}

impl Header {
    /// Reads a header; none for a block of zeros, which ends an archive.
    pub fn decode(block: &[u8; BLOCK]) -> Result<Option<Header>, Violation> {
        if block.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        check(block)?;
        let member = match block[156] {
            b'0' | 0 | b'7' => Member::File,
            b'L' => Member::LongName,
            b'x' => Member::Pax,
            b'S' => Member::Sparse,
            _ => Member::Other,
        };
        // A name that ends in a slash is a directory of the oldest archives.
        let name = name_of(block);
        let is_folder = block[156] == 0 && name.ends_with(b"/");
        let member = if is_folder { Member::Other } else { member };
        // Links and devices have a size in some archives, but no bytes.
        let has_bytes = !matches!(block[156], b'1'..=b'6');
        let size = if has_bytes { number(&block[124..136])? } else { 0 };
        Ok(Some(Header { member, size, name }))
    }
}

/// Whether a file that begins with these bytes is an archive.
pub fn begins(front: &[u8]) -> bool {
    front.first_chunk().is_some_and(|block| {
        block[257..262] == *b"ustar" && matches!(Header::decode(block), Ok(Some(_)))
    })
}

fn check(block: &[u8; BLOCK]) -> Result<(), Violation> {
    let stored = number(&block[148..156])?;
    let rest = block[..148].iter().chain(&block[156..]);
    let sum: u64 = rest.clone().map(|&byte| u64::from(byte)).sum::<u64>() + 8 * 32;
    let signed: i64 = rest.map(|&byte| i64::from(byte as i8)).sum::<i64>() + 8 * 32;
    if stored == sum || i64::try_from(stored) == Ok(signed) {
        return Ok(());
    }
    Err(Violation::new(format!("the checksum of a tar header is {sum}, expected {stored}")))
}

/// Returns a number: octal digits, or with the highest bit set the bytes themselves.
fn number(field: &[u8]) -> Result<u64, Violation> {
    let invalid = || {
        Violation::new(format!(
            "a tar header has the number {:?}",
            field.escape_ascii().to_string()
        ))
    };
    if field[0] & 0x80 != 0 {
        let mut value = u64::from(field[0] & 0x7f);
        for &byte in &field[1..] {
            if value >> 55 != 0 {
                return Err(invalid());
            }
            value = value << 8 | u64::from(byte);
        }
        return Ok(value);
    }
    let digits: &[u8] = field.trim_ascii();
    let end = digits.iter().position(|&byte| byte == 0).unwrap_or(digits.len());
    let digits = digits[..end].trim_ascii();
    digits
        .iter()
        .try_fold(0_u64, |value, &digit| match digit {
            b'0'..=b'7' => value.checked_mul(8).map(|value| value + u64::from(digit - b'0')),
            _ => None,
        })
        .ok_or_else(invalid)
}

fn until_zero(field: &[u8]) -> &[u8] {
    &field[..field.iter().position(|&byte| byte == 0).unwrap_or(field.len())]
}

/// Whether the name of a header is in two parts.
pub fn has_prefix(block: &[u8; BLOCK]) -> bool {
    block[257..263] == *b"ustar\0" && block[345] != 0
}

fn name_of(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_zero(&block[..100]);
    if !has_prefix(block) {
        return name.to_vec();
    }
    [until_zero(&block[345..500]), b"/", name].concat()
}

/// The name of a pax record, and where its value is in the header.
pub type PaxRecord<'a> = (&'a [u8], std::ops::Range<usize>);

/// Returns the records of a pax header: names and values, and where each value is.
pub fn pax(records: &[u8]) -> Result<Vec<PaxRecord<'_>>, Violation> {
    let invalid = || Violation::new("a pax header holds something other than records");
    let mut found = Vec::new();
    let mut at = 0;
    while at < records.len() {
        let rest = &records[at..];
        let space = rest.iter().take(20).position(|&byte| byte == b' ').ok_or_else(invalid)?;
        let digits = std::str::from_utf8(&rest[..space]).map_err(|_| invalid())?;
        let len: usize = digits.parse().map_err(|_| invalid())?;
        let record = rest.get(..len).filter(|record| record.last() == Some(&b'\n'));
        let record = record.filter(|record| record.len() > space + 1).ok_or_else(invalid)?;
        let inside = &record[space + 1..len - 1];
        let sign = inside.iter().position(|&byte| byte == b'=').ok_or_else(invalid)?;
        let start = at + space + 1 + sign + 1;
        found.push((&inside[..sign], start..at + len - 1));
        at += len;
    }
    Ok(found)
}

/// Splits the name of a member into the key of its sample and the name of the field: at the
/// first dot behind the last slash, as WebDataset does. None without such a dot. A name that
/// begins with a dot has the folder for a key, unless the folder has a dot too.
pub fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let base = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dot = base + name[base..].iter().position(|&byte| byte == b'.')?;
    if dot == base {
        let above = name[..base.checked_sub(1)?].iter().rposition(|&byte| byte == b'/');
        if name[above.map_or(0, |slash| slash + 1)..base].contains(&b'.') {
            return None;
        }
    }
    Some((&name[..dot], &name[dot + 1..]))
}

/// Whether WebDataset takes no sample from a member of this name: its first part is enclosed
/// in double underscores.
pub fn is_meta(name: &[u8]) -> bool {
    let first = name.split(|&byte| byte == b'/').next().unwrap_or_default();
    first.len() >= 4 && first.starts_with(b"__") && first.ends_with(b"__")
}

/// Returns the key in a header whose name is in two parts.
pub fn key_in(block: &[u8]) -> Result<Vec<u8>, Violation> {
    let block = block.first_chunk().ok_or_else(|| Violation::new("a tar header is truncated"))?;
    let name = name_of(block);
    let key = split(&name).ok_or_else(|| Violation::new("the name of a member has no dot"))?.0;
    Ok(key.to_vec())
}

/// Appends a file: its header, its content, and zeros up to the next block. A name or a size
/// that a header of ustar cannot hold stands in a pax header before it.
pub fn put_file(out: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut records = Vec::new();
    if !name.is_ascii() || name.len() > NAME_BYTES {
        put_record(&mut records, "path", name);
    }
    if content.len() as u64 > SIZE_MAX {
        put_record(&mut records, "size", &content.len().to_string());
    }
    if !records.is_empty() {
        put_member(out, b'x', "././@PaxHeader", &records);
    }
    put_member(out, b'0', name, content);
}

/// Bytes of a name in a header, and the largest size: eleven octal digits.
const NAME_BYTES: usize = 100;
const SIZE_MAX: u64 = (1 << 33) - 1;

/// Appends a pax record, which begins with its own length.
fn put_record(out: &mut Vec<u8>, name: &str, value: &str) {
    let rest = format!(" {name}={value}\n");
    let mut len = rest.len() + 1;
    while len != rest.len() + len.to_string().len() {
        len = rest.len() + len.to_string().len();
    }
    out.extend_from_slice(format!("{len}{rest}").as_bytes());
}

fn put_member(out: &mut Vec<u8>, kind: u8, name: &str, content: &[u8]) {
    let mut block = [0; BLOCK];
    for (byte, place) in name.bytes().zip(&mut block[..NAME_BYTES]) {
        *place = if byte.is_ascii() { byte } else { b'?' };
    }
    let size = (content.len() as u64).min(SIZE_MAX);
    block[100..108].copy_from_slice(b"0000644\0");
    block[108..116].copy_from_slice(b"0000000\0");
    block[116..124].copy_from_slice(b"0000000\0");
    block[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    block[136..148].copy_from_slice(b"00000000000\0");
    block[148..156].copy_from_slice(b"        ");
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out.extend_from_slice(&block);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(BLOCK), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_at_the_first_dot_of_the_last_part() {
        for (name, expected) in [
            ("a/b.c/x.seg.png", Some(("a/b.c/x", "seg.png"))),
            ("x.jpg", Some(("x", "jpg"))),
            ("x.", Some(("x", ""))),
            ("a/.hidden", Some(("a/", "hidden"))),
            ("a.b/.hidden", None),
            (".hidden", None),
            ("/.x", Some(("/", "x"))),
            ("a.b/x", None),
        ] {
            let found = split(name.as_bytes());
            let expected = expected.map(|(key, field)| (key.as_bytes(), field.as_bytes()));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn numbers_are_octal_or_binary() {
        assert_eq!(number(b"0000644\0").unwrap(), 0o644);
        assert_eq!(number(b" 17 \0\0\0\0").unwrap(), 0o17);
        assert_eq!(number(b"\x80\0\0\0\0\0\0\0\0\0\x01\0").unwrap(), 256);
        for bad in [&b"8\0"[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"-1"] {
            assert!(number(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_file_that_was_put_is_read_again() {
        for name in ["000007.jpg", &"n".repeat(100), &"n".repeat(101), "日本/é.txt"] {
            let mut out = Vec::new();
            put_file(&mut out, name, b"content");
            assert_eq!(out.len() % BLOCK, 0);
            let first = Header::decode(out.first_chunk().unwrap()).unwrap().unwrap();
            if first.member == Member::File {
                assert_eq!((first.size, &first.name[..]), (7, name.as_bytes()));
                assert_eq!(&out[BLOCK..BLOCK + 7], b"content");
                continue;
            }
            let records = &out[BLOCK..BLOCK + first.size as usize];
            let (key, place) = pax(records).unwrap().remove(0);
            assert_eq!((first.member, key), (Member::Pax, &b"path"[..]));
            assert_eq!(&records[place], name.as_bytes());
        }
    }

    #[test]
    fn pax_records_tell_their_own_length() {
        let found = pax(b"11 path=ab\n9 size=1\n").unwrap();
        assert_eq!(found, [(&b"path"[..], 8..10), (&b"size"[..], 18..19)]);
        for bad in [&b"0 a=b\n"[..], b"99 a=b\n", b"6 a=b", b"6 a:b\n", b"x"] {
            assert!(pax(bad).is_err(), "{bad:?}");
        }
    }
}
