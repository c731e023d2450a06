//! What an Ingot file holds: its header and where its pages and dictionaries are.

use super::super::source::Source;
use crate::error::{Error, Result};
use crate::format::checksum::Seed;
use crate::format::ingot::{
    BlockKind, Dictionary, Directory, HEADER_LEN, Header, TRAILER_LEN, Trailer,
};
use crate::format::{Violation, arrayrecord, bail, ffrecord};

impl Source<'_> {
    pub(super) fn trailer(&self, offset: u64, header: &Header) -> Result<(Trailer, u32)> {
        let bytes = self.read(offset, TRAILER_LEN as u64)?;
        Trailer::decode(&bytes, offset, &header.id).map_err(|why| self.corrupt(offset, why))
    }

    /// Reads the directory that a closing trailer commits.
    pub(super) fn directory(&self, trailer: &Trailer, seed: Seed) -> Result<Directory> {
        let block = trailer.block;
        let bytes = self.read(block.offset, block.len)?;
        let (directory, crc) = Directory::decode(&bytes, block.offset, seed)
            .map_err(|why| self.corrupt(block.offset, why))?;
        let check = || -> Result<(), Violation> {
            if crc != block.crc {
                bail!("directory is not the one that was committed");
            }
            check_directory(&directory, trailer)
        };
        check().map_err(|why| self.corrupt(block.offset, why))?;
        Ok(directory)
    }

    pub(super) fn dictionary(
        &self,
        offset: u64,
        len: u64,
        seed: Seed,
    ) -> Result<(Dictionary, u32)> {
        if len > Dictionary::BYTES_MAX {
            return Err(self.corrupt(offset, format!("dictionary declares {len} bytes")));
        }
        let bytes = self.read(offset, len)?;
        Dictionary::decode(&bytes, offset, seed).map_err(|why| self.corrupt(offset, why))
    }
}

/// What the front of a file is.
pub enum Front {
    Header(Header),
    /// The file ends inside its header: a writer died before the first commit.
    Torn,
}

/// Reads the header. Another file is a format error, a damaged header corrupt.
pub fn read_header(source: Source<'_>, size: u64) -> Result<Front> {
    use crate::format::ingot::HeaderError;
    let front = source.read(0, size.min(4096))?;
    let fail = |error: HeaderError| match error {
        HeaderError::Foreign => {
            let looks = looks(source, &front, size);
            Error::format(source.name, format!("not an Ingot file: it {looks}"))
        }
        HeaderError::Version(found) => Error::Version {
            path: source.name.to_owned(),
            found,
            supported: crate::format::ingot::VERSION.0,
        },
        HeaderError::Damaged(why) => source.corrupt(0, format!("header: {why}")),
    };
    if front.len() < HEADER_LEN {
        let torn = Header::is_prefix(&front);
        return if torn { Ok(Front::Torn) } else { Err(fail(HeaderError::Foreign)) };
    }
    let len = Header::measure(&front[..HEADER_LEN]).map_err(fail)?;
    if len as u64 > size {
        return Ok(Front::Torn);
    }
    let bytes =
        if len <= front.len() { front[..len].to_vec() } else { source.read(0, len as u64)? };
    Header::decode(&bytes).map(Front::Header).map_err(fail)
}

/// Describes a file of another kind that begins with `front`.
fn looks(source: Source<'_>, front: &[u8], size: u64) -> &'static str {
    if front.starts_with(&arrayrecord::signature()) {
        return "looks like an ArrayRecord file, which can be read, but neither appended to nor \
                recovered";
    }
    if is_ffrecord(source, front, size) == Some(true) {
        return "looks like an FFRecord file, which can be read if it is named .ffr, but neither \
                appended to nor recovered";
    }
    "does not begin with the Ingot signature, and its suffix is not that of another format"
}

/// Whether a file is one of FFRecord, which have no signature: the first record begins where
/// the index ends.
fn is_ffrecord(source: Source<'_>, front: &[u8], size: u64) -> Option<bool> {
    let len = ffrecord::measure(front, size).ok()?;
    let records = (len - ffrecord::HEAD_LEN as u64) / ffrecord::ENTRY_LEN as u64;
    let first = source.read(ffrecord::HEAD_LEN as u64 + 4 * records, 8).ok()?;
    Some(first == len.to_le_bytes())
}

/// Pages and dictionaries lie before the directory, in order, and add up to the totals.
fn check_directory(directory: &Directory, trailer: &Trailer) -> Result<(), Violation> {
    if trailer.block.kind != BlockKind::Directory {
        bail!("trailer does not close the file");
    }
    let (mut rows, mut cells, mut end) = (0_u64, 0_u64, 0_u64);
    for page in &directory.pages {
        rows = rows.saturating_add(page.rows.into());
        cells = cells.saturating_add(page.cells.into());
        if page.offset < end || page.rows == 0 {
            bail!("directory lists overlapping or empty pages");
        }
        end = page.offset.saturating_add(page.len.into());
    }
    if (rows, cells) != (trailer.rows, trailer.cells) {
        bail!(
            "directory lists {rows} rows and {cells} cells, the trailer {} and {}",
            trailer.rows,
            trailer.cells
        );
    }
    let mut end = 0;
    for dictionary in &directory.dictionaries {
        if dictionary.offset < end {
            bail!("directory lists overlapping dictionaries");
        }
        end = dictionary.offset.saturating_add(dictionary.len.into());
    }
    let inside = |offset: u64, len: u32| {
        offset.checked_add(len.into()).is_some_and(|end| end <= trailer.block.offset)
    };
    let pages = directory.pages.iter().all(|page| inside(page.offset, page.len));
    let dictionaries = directory.dictionaries.iter().all(|entry| inside(entry.offset, entry.len));
    if pages && dictionaries {
        Ok(())
    } else {
        Err(Violation("directory points outside".to_owned()))
    }
}
