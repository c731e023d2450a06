//! The directory: where the pages and dictionaries of a whole file are.

use crate::format::checksum::Seed;
use crate::format::fields::Fields;
use crate::format::{Violation, bail};

const MAGIC: [u8; 4] = *b"IDIR";
const HEAD: usize = 32;
const ENTRY: usize = 24;

/// Where an index page is and what it describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageEntry {
    /// Where the page begins.
    pub offset: u64,
    /// How long it is, checksum included.
    pub len: u32,
    /// Its checksum.
    pub crc: u32,
    /// Rows it describes.
    pub rows: u32,
    /// Cells it describes.
    pub cells: u32,
}

/// Where a dictionary is. The k-th entry is dictionary k + 1; 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryEntry {
    /// Where the block begins.
    pub offset: u64,
    /// How long it is, checksum included.
    pub len: u32,
    /// Its checksum.
    pub crc: u32,
    /// The field it belongs to.
    pub field: u32,
}

/// The table of contents of a whole file, with a copy of its header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    /// The pages in row order.
    pub pages: Vec<PageEntry>,
    /// The dictionaries in file order.
    pub dictionaries: Vec<DictionaryEntry>,
    /// The header's bytes, in case those at the front are damaged.
    pub header: Vec<u8>,
}

impl Directory {
    /// Returns the block that stands at `offset`, and its checksum.
    pub fn encode(&self, offset: u64, seed: Seed) -> (Vec<u8>, u32) {
        let entries = ENTRY * (self.pages.len() + self.dictionaries.len());
        let mut bytes = Vec::with_capacity(HEAD + entries + self.header.len() + 4);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(self.dictionaries.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&(self.pages.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&(self.header.len() as u64).to_le_bytes());
        for page in &self.pages {
            bytes.extend_from_slice(&page.offset.to_le_bytes());
            for value in [page.len, page.crc, page.rows, page.cells] {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        for dictionary in &self.dictionaries {
            bytes.extend_from_slice(&dictionary.offset.to_le_bytes());
            for value in [dictionary.len, dictionary.crc, dictionary.field, 0] {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&self.header);
        let crc = seed.seal(&mut bytes);
        (bytes, crc)
    }

    /// Reads the block that stands at `offset`; returns it with its checksum.
    pub fn decode(bytes: &[u8], offset: u64, seed: Seed) -> Result<(Self, u32), Violation> {
        let (bytes, crc) = seed.open(bytes)?;
        let mut fields = Fields(bytes);
        if fields.bytes(4)? != MAGIC {
            bail!("not a directory");
        }
        let num_dictionaries = u64::from(fields.u32()?);
        if fields.u64()? != offset {
            bail!("directory belongs elsewhere");
        }
        let (num_pages, header_len) = (fields.u64()?, fields.u64()?);
        let expected = num_pages
            .checked_add(num_dictionaries)
            .and_then(|entries| entries.checked_mul(ENTRY as u64))
            .and_then(|entries| entries.checked_add(header_len));
        if expected != Some(fields.0.len() as u64) {
            bail!(
                "directory of {num_pages} pages and {num_dictionaries} dictionaries has {} bytes",
                bytes.len()
            );
        }
        let mut pages = Vec::with_capacity(num_pages as usize);
        for _ in 0..num_pages {
            pages.push(PageEntry {
                offset: fields.u64()?,
                len: fields.u32()?,
                crc: fields.u32()?,
                rows: fields.u32()?,
                cells: fields.u32()?,
            });
        }
        let mut dictionaries = Vec::with_capacity(num_dictionaries as usize);
        for _ in 0..num_dictionaries {
            dictionaries.push(DictionaryEntry {
                offset: fields.u64()?,
                len: fields.u32()?,
                crc: fields.u32()?,
                field: fields.u32()?,
            });
            fields.zeros(4)?;
        }
        Ok((Directory { pages, dictionaries, header: fields.0.to_vec() }, crc))
    }
}
