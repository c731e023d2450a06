//! Files whose blocks say whatever one likes, under checksums that are right.

use ingot::format::checksum::Seed;
use ingot::format::ingot::{
    Block, BlockKind, Dictionary, DictionaryEntry, Directory, Encoding, Header, PageBuilder,
    PageEntry, Schema, Trailer,
};

use super::support::ID;

/// A file in the making whose blocks are whatever one likes.
pub struct Forge {
    pub header: Header,
    pub bytes: Vec<u8>,
    pub previous: (u64, u32),
    rows: u64,
    cells: u64,
    pub directory: Directory,
}

impl Forge {
    pub fn new(schema: Schema) -> Forge {
        let header = Header::new(ID, schema, "{}").unwrap();
        Forge {
            bytes: header.bytes.clone(),
            directory: Directory { header: header.bytes.clone(), ..Directory::default() },
            header,
            previous: (0, 0),
            rows: 0,
            cells: 0,
        }
    }

    pub fn records() -> Forge {
        Forge::new(Schema::records())
    }

    pub fn seed(&self) -> Seed {
        self.header.seed()
    }

    pub fn position(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Appends a trailer for the block that ends here, changed by `patch`.
    pub fn trailer(
        &mut self,
        kind: BlockKind,
        len: u64,
        crc: u32,
        patch: impl FnOnce(&mut Trailer),
    ) {
        let offset = self.position();
        let mut trailer = Trailer {
            offset,
            block: Block { kind, offset: offset - len, len, crc },
            previous: self.previous,
            rows: self.rows,
            cells: self.cells,
            durable: 0,
        };
        patch(&mut trailer);
        let (bytes, crc) = trailer.encode(&ID);
        self.previous = (offset, crc);
        self.bytes.extend_from_slice(&bytes);
    }

    /// Appends cells as they are and their page, changed by `patch` before it is sealed.
    pub fn page(
        &mut self,
        cells: &[(&[u8], u64)],
        encoding: Encoding,
        patch: impl FnOnce(&mut Vec<u8>),
    ) -> &mut Forge {
        let schema = self.header.schema.clone();
        let mut builder = PageBuilder::new(&schema, self.position(), self.rows, self.cells);
        builder.set_encodings(&vec![encoding; schema.fields().len()]);
        for (stored, raw) in cells {
            let crc = self.seed().cell(builder.next_cell(), stored);
            builder.push_cell(stored.len() as u64, *raw, crc);
            self.bytes.extend_from_slice(stored);
        }
        builder.push_rows(cells.len() as u32, &[], &[]);
        self.built(&builder, patch)
    }

    pub fn built(&mut self, builder: &PageBuilder, patch: impl FnOnce(&mut Vec<u8>)) -> &mut Forge {
        let offset = self.position();
        let (mut block, _) = builder.encode(offset, self.seed());
        block.truncate(block.len() - 4);
        patch(&mut block);
        let crc = self.seed().seal(&mut block);
        let (rows, cells) = (builder.rows(), builder.num_cells() as u32);
        let len = block.len() as u32;
        self.directory.pages.push(PageEntry { offset, len, crc, rows, cells });
        self.rows += u64::from(rows);
        self.cells += u64::from(cells);
        self.bytes.extend_from_slice(&block);
        self.trailer(BlockKind::Page, len.into(), crc, |_| {});
        self
    }

    pub fn plain(&mut self) -> &mut Forge {
        self.page(&[(b"first", 5), (b"", 0), (b"third", 5)], Encoding::default(), |_| {})
    }

    pub fn dictionary(&mut self, bytes: &[u8]) -> &mut Forge {
        let offset = self.position();
        let dictionary = Dictionary { field: 0, bytes: bytes.to_vec() };
        let (block, crc) = dictionary.encode(offset, self.seed());
        let len = block.len() as u32;
        self.directory.dictionaries.push(DictionaryEntry { offset, len, crc, field: 0 });
        self.bytes.extend_from_slice(&block);
        self.trailer(BlockKind::Dictionary, len.into(), crc, |_| {});
        self
    }

    /// Closes the file with a directory that `list` and `patch` changed before it was sealed.
    pub fn close(
        &mut self,
        list: impl FnOnce(&mut Directory),
        patch: impl FnOnce(&mut Vec<u8>),
    ) -> Vec<u8> {
        list(&mut self.directory);
        let total = |of: fn(&PageEntry) -> u32| -> u64 {
            self.directory.pages.iter().map(|page| u64::from(of(page))).sum()
        };
        (self.rows, self.cells) = (total(|page| page.rows), total(|page| page.cells));
        let (mut block, _) = self.directory.encode(self.position(), self.seed());
        block.truncate(block.len() - 4);
        patch(&mut block);
        let crc = self.seed().seal(&mut block);
        self.bytes.extend_from_slice(&block);
        self.trailer(BlockKind::Directory, block.len() as u64, crc, |_| {});
        self.bytes.clone()
    }

    pub fn closed(&mut self) -> Vec<u8> {
        self.close(|_| {}, |_| {})
    }
}

/// Overwrites bytes at `at`.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
