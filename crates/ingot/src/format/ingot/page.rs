//! The index page: where the cells of a run of rows are, and their columns.

use super::schema::{FieldKind, Schema};
use crate::format::checksum::Seed;
use crate::format::fields::{Fields, u32_at, u64_at};
use crate::format::{Violation, bail};

/// First bytes of a page.
pub const PAGE_MAGIC: [u8; 4] = *b"IPAG";
const HEAD: usize = 48;
const WIDE: u16 = 1;
const RAW_LENGTHS: u16 = 2;

/// How the cells of one field are compressed in one page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The codec; see [`crate::compression::Codec`] for the numbers.
    pub codec: u8,
    /// The dictionary, counted from 1; 0 for none.
    pub dictionary: u16,
}

/// What a page says about one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellEntry {
    /// Where the stored bytes begin.
    pub offset: u64,
    /// How many bytes are stored.
    pub stored: u64,
    /// How many bytes the value has; more than `stored` if and only if it is compressed.
    pub raw: u64,
    /// Checksum of the stored bytes.
    pub crc: u32,
}

/// An index page, checked and ready to be asked.
#[derive(Debug)]
pub struct Page {
    bytes: Vec<u8>,
    /// Number of the first row described here.
    pub first_row: u64,
    /// Number of the first cell described here.
    pub first_cell: u64,
    /// Rows described here.
    pub rows: u32,
    /// Cells described here.
    pub cells: u32,
    offset: u64,
    base: u64,
    wide: bool,
    raw_lengths: bool,
    stride: usize,
    entries_at: usize,
    sequences_at: usize,
    columns_at: usize,
}

impl Page {
    /// Reads the page that stands at `offset`; returns it with its checksum.
    pub fn decode(
        bytes: Vec<u8>,
        offset: u64,
        schema: &Schema,
        seed: Seed,
    ) -> Result<(Self, u32), Violation> {
        let (body, crc) = seed.open(&bytes)?;
        let mut fields = Fields(body);
        if fields.bytes(4)? != PAGE_MAGIC {
            bail!("not an index page");
        }
        let (flags, num_fields) = (fields.u16()?, fields.u16()?);
        if fields.u64()? != offset {
            bail!("index page belongs elsewhere");
        }
        let (base, first_row, first_cell) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (rows, cells) = (fields.u32()?, fields.u32()?);
        if flags & !(WIDE | RAW_LENGTHS) != 0 || usize::from(num_fields) != schema.fields().len() {
            bail!("index page does not fit the schema");
        }
        for _ in 0..num_fields {
            fields.bytes(1)?;
            fields.zeros(1)?;
            fields.u16()?;
        }
        let (wide, raw_lengths) = (flags & WIDE != 0, flags & RAW_LENGTHS != 0);
        let word = if wide { 8 } else { 4 };
        let stride = if raw_lengths { 2 * word + 4 } else { word + 4 };
        let entries_at = HEAD + 4 * usize::from(num_fields);
        let sequences_at = (cells as usize)
            .checked_mul(stride)
            .and_then(|len| len.checked_add(entries_at))
            .ok_or_else(|| Violation::new("index page overflows"))?;
        let columns_at = 4 * rows as usize * schema.num_sequences() + sequences_at;
        let end = columns_at.checked_add(rows as usize * schema.column_width());
        if end != Some(body.len()) || rows == 0 || base > offset {
            bail!("index page of {rows} rows and {cells} cells has {} bytes", bytes.len());
        }
        let page = Page {
            bytes,
            first_row,
            first_cell,
            rows,
            cells,
            offset,
            base,
            wide,
            raw_lengths,
            stride,
            entries_at,
            sequences_at,
            columns_at,
        };
        if page.first_cell_of(schema, rows)? != cells {
            bail!("index page counts its cells wrong");
        }
        Ok((page, crc))
    }

    /// Bytes of memory the page takes.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns where the page stands in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns how long the page is that begins with `bytes`, if it can be one.
    pub fn measure(bytes: &[u8], schema: &Schema) -> Option<usize> {
        let mut fields = Fields(bytes);
        if fields.bytes(4).ok()? != PAGE_MAGIC {
            return None;
        }
        let flags = fields.u16().ok()?;
        fields.bytes(HEAD - 14).ok()?;
        let (rows, cells) = (fields.u32().ok()? as usize, fields.u32().ok()? as usize);
        let word = if flags & WIDE != 0 { 8 } else { 4 };
        let stride = if flags & RAW_LENGTHS != 0 { 2 * word + 4 } else { word + 4 };
        let per_row = 4 * schema.num_sequences() + schema.column_width();
        let body = HEAD + 4 * schema.fields().len();
        body.checked_add(cells.checked_mul(stride)?)?
            .checked_add(rows.checked_mul(per_row)?)?
            .checked_add(4)
    }

    /// Returns where the cells of this page begin in the file.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Reads a byte of the entry of a cell, so that it is in the cache of the processor.
    #[inline]
    pub fn touch(&self, cell: u64) -> u8 {
        let at = self.entries_at + cell as usize * self.stride;
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Returns how the cells of `field` are compressed.
    #[inline]
    pub fn encoding(&self, field: usize) -> Encoding {
        let at = HEAD + 4 * field;
        Encoding {
            codec: self.bytes[at],
            dictionary: u16::from_le_bytes([self.bytes[at + 2], self.bytes[at + 3]]),
        }
    }

    /// Returns what is known of cell `cell`, counted from the first of this page.
    #[inline]
    pub fn cell(&self, cell: u32) -> Result<CellEntry, Violation> {
        if cell >= self.cells {
            bail!("page has {} cells, not {cell}", self.cells);
        }
        let at = self.entries_at + cell as usize * self.stride;
        let word = |at| {
            if self.wide { u64_at(&self.bytes, at) } else { u64::from(u32_at(&self.bytes, at)) }
        };
        let size = if self.wide { 8 } else { 4 };
        let start = if cell == 0 { 0 } else { word(at - self.stride) };
        let end = word(at);
        let crc = u32_at(&self.bytes, at + size);
        if start > end || self.base.checked_add(end).is_none_or(|end| end > self.offset) {
            bail!("cell {cell} of the page ends before it begins");
        }
        let stored = end - start;
        let raw = if self.raw_lengths { word(at + size + 4) } else { stored };
        if raw < stored || (raw > stored && raw > super::raw_limit(stored)) {
            bail!("cell of {stored} stored bytes declares {raw} bytes");
        }
        Ok(CellEntry { offset: self.base + start, stored, raw, crc })
    }

    /// Returns the cells of `field` in `row`, both counted from the first of this page.
    pub fn cells_of(
        &self,
        schema: &Schema,
        row: u32,
        field: usize,
    ) -> Result<std::ops::Range<u32>, Violation> {
        let mut first = u64::from(self.first_cell_of(schema, row)?);
        first += schema.scalars_before[field] as u64;
        for sequence in 0..schema.sequences_before[field] {
            first += self.count(sequence, row)?;
        }
        let count = match schema.fields()[field].kind {
            FieldKind::Cell => 1,
            FieldKind::Sequence => self.count(schema.sequences_before[field], row)?,
            FieldKind::Column => 0,
        };
        if first + count > u64::from(self.cells) {
            bail!("row {row} of the page has cells outside it");
        }
        Ok(first as u32..(first + count) as u32)
    }

    /// Returns the values of column `field`, row after row.
    pub fn column(&self, schema: &Schema, field: usize) -> &[u8] {
        let rows = self.rows as usize;
        let width = |field: usize| schema.fields()[field].width.unwrap_or(0) as usize;
        let before: usize = (0..field).map(width).sum();
        let at = self.columns_at + before * rows;
        &self.bytes[at..at + width(field) * rows]
    }

    /// Number of cells in the rows before `row`.
    fn first_cell_of(&self, schema: &Schema, row: u32) -> Result<u32, Violation> {
        let sequences: u64 =
            (0..schema.num_sequences()).map(|k| u64::from(self.sequence_end(k, row))).sum();
        let scalars = schema.num_scalars as u64 * u64::from(row);
        u32::try_from(scalars + sequences)
            .map_err(|_| Violation::new("index page counts more cells than it can hold"))
    }

    /// Elements of sequence number `sequence` in the rows before `row`.
    fn sequence_end(&self, sequence: usize, row: u32) -> u32 {
        if row == 0 {
            return 0;
        }
        let at = 4 * (sequence * self.rows as usize + row as usize - 1);
        u32_at(&self.bytes, self.sequences_at + at)
    }

    fn count(&self, sequence: usize, row: u32) -> Result<u64, Violation> {
        let (start, end) = (self.sequence_end(sequence, row), self.sequence_end(sequence, row + 1));
        end.checked_sub(start)
            .map(u64::from)
            .ok_or_else(|| Violation::new(format!("row {row} of the page ends before it begins")))
    }
}

/// A page in the making.
#[derive(Debug)]
pub struct PageBuilder {
    base: u64,
    first_row: u64,
    first_cell: u64,
    rows: u32,
    /// End relative to the base, checksum, and length of the value of each cell.
    cells: Vec<(u64, u32, u64)>,
    compressed: bool,
    /// For each sequence the number of elements so far, after each row.
    sequences: Vec<Vec<u32>>,
    columns: Vec<Vec<u8>>,
    encodings: Vec<Encoding>,
}

impl PageBuilder {
    /// Returns an empty page whose first cell will stand at `base`.
    pub fn new(schema: &Schema, base: u64, first_row: u64, first_cell: u64) -> Self {
        PageBuilder {
            base,
            first_row,
            first_cell,
            rows: 0,
            cells: Vec::new(),
            compressed: false,
            sequences: vec![Vec::new(); schema.num_sequences()],
            columns: vec![Vec::new(); schema.of_kind(FieldKind::Column).count()],
            encodings: vec![Encoding::default(); schema.fields().len()],
        }
    }

    /// Sets how the cells of each field are compressed; the same for the whole page.
    pub fn set_encodings(&mut self, encodings: &[Encoding]) {
        self.encodings.copy_from_slice(encodings);
    }

    /// Adds the next cell, which takes `stored` bytes behind the last one.
    #[inline]
    pub fn push_cell(&mut self, stored: u64, raw: u64, crc: u32) {
        let end = self.data_len() + stored;
        self.compressed |= raw != stored;
        self.cells.push((end, crc, raw));
    }

    /// Adds `rows` rows whose cells were pushed: the element counts of each
    /// sequence, one number a row, and the values of each column.
    pub fn push_rows(&mut self, rows: u32, counts: &[Vec<u32>], columns: &[Vec<u8>]) {
        self.rows += rows;
        for (ends, counts) in self.sequences.iter_mut().zip(counts) {
            let mut end = ends.last().copied().unwrap_or(0);
            for &count in counts {
                end += count;
                ends.push(end);
            }
        }
        for (column, values) in self.columns.iter_mut().zip(columns) {
            column.extend_from_slice(values);
        }
    }

    /// Number of the next row.
    pub fn next_row(&self) -> u64 {
        self.first_row + u64::from(self.rows)
    }

    /// Number of the next cell.
    pub fn next_cell(&self) -> u64 {
        self.first_cell + self.cells.len() as u64
    }

    /// Rows so far.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Cells so far.
    pub fn num_cells(&self) -> usize {
        self.cells.len()
    }

    /// Bytes that the cells so far take.
    pub fn data_len(&self) -> u64 {
        self.cells.last().map_or(0, |&(end, ..)| end)
    }

    /// Returns the block that stands at `offset`, and its checksum.
    pub fn encode(&self, offset: u64, seed: Seed) -> (Vec<u8>, u32) {
        let longest = self.cells.iter().map(|&(_, _, raw)| raw).max().unwrap_or(0);
        let wide = self.data_len().max(longest) > u64::from(u32::MAX);
        let mut bytes = Vec::with_capacity(HEAD + self.cells.len() * 12 + 64);
        let flags = if wide { WIDE } else { 0 } | if self.compressed { RAW_LENGTHS } else { 0 };
        bytes.extend_from_slice(&PAGE_MAGIC);
        bytes.extend_from_slice(&flags.to_le_bytes());
        bytes.extend_from_slice(&(self.encodings.len() as u16).to_le_bytes());
        for value in [offset, self.base, self.first_row, self.first_cell] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes.extend_from_slice(&self.rows.to_le_bytes());
        bytes.extend_from_slice(&(self.cells.len() as u32).to_le_bytes());
        for encoding in &self.encodings {
            bytes.extend_from_slice(&[encoding.codec, 0]);
            bytes.extend_from_slice(&encoding.dictionary.to_le_bytes());
        }
        let word = |bytes: &mut Vec<u8>, value: u64| {
            bytes.extend_from_slice(&value.to_le_bytes()[..if wide { 8 } else { 4 }]);
        };
        for &(end, crc, raw) in &self.cells {
            word(&mut bytes, end);
            bytes.extend_from_slice(&crc.to_le_bytes());
            if self.compressed {
                word(&mut bytes, raw);
            }
        }
        for ends in &self.sequences {
            ends.iter().for_each(|end| bytes.extend_from_slice(&end.to_le_bytes()));
        }
        self.columns.iter().for_each(|column| bytes.extend_from_slice(column));
        let crc = seed.seal(&mut bytes);
        (bytes, crc)
    }
}
