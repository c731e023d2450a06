//! The footer of a Parquet file: how many rows its groups have, how large their columns are, and
//! whether there may be nulls in them.
//!
//! The footer is a struct of Thrift's compact protocol. Only what is named here is looked at.

use super::{Violation, bail};

const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

const DEPTH_MAX: u32 = 64;

/// This many values per byte of the file are a crowd.
const CROWD: i64 = 256;

/// What the footer of a file tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Footer {
    /// The row groups, in order.
    pub groups: Vec<Group>,
    /// The columns that have values, in order.
    pub columns: Vec<Column>,
}

/// A row group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// The number of its rows.
    pub rows: i64,
    /// The size of its largest column, decompressed.
    pub largest: i64,
}

/// A column of values, in all row groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The names that lead to the values.
    pub path: Vec<String>,
    /// Whether values may be missing: nothing proves that all are there.
    pub has_nulls: bool,
    /// Whether each row group tells how many bytes of text it has, however often it has them.
    pub is_told: bool,
    /// The largest number of values, of lists too, that a row group has.
    pub values: i64,
    /// The largest number of values of a row group that has 256 or more of them in a byte of the
    /// file; 0 if there is no such group.
    pub crowd: i64,
}

impl Footer {
    /// Reads a footer: the bytes between the data and the length at the end of the file.
    ///
    /// # Errors
    ///
    /// The bytes are truncated, or not a footer.
    pub fn decode(bytes: &[u8]) -> Result<Footer, Violation> {
        let mut footer = Footer::default();
        let mut input = Input(bytes);
        input.fields(|input, id, kind| match (id, kind) {
            (4, LIST) => input.list(|input, kind| footer.add_group(input, kind)),
            _ => input.skip(kind, DEPTH_MAX),
        })?;
        Ok(footer)
    }

    fn add_group(&mut self, input: &mut Input<'_>, kind: u8) -> Result<(), Violation> {
        let mut group = Group::default();
        let mut chunks: Vec<Chunk> = Vec::new();
        input.of_struct(kind, |input, id, kind| match (id, kind) {
            (1, LIST) => input.list(|input, kind| {
                chunks.push(Chunk::decode(input, kind)?);
                Ok(())
            }),
            (3, I64) => input.number(&mut group.rows),
            _ => input.skip(kind, DEPTH_MAX),
        })?;
        if group.rows < 0 {
            bail!("a row group of the footer has negative sizes");
        }
        group.largest = chunks.iter().map(|chunk| chunk.size).max().unwrap_or(0);
        if self.groups.is_empty() {
            self.columns = chunks.into_iter().map(Chunk::into_column).collect();
        } else {
            if self.columns.len() != chunks.len() {
                bail!("the row groups of the footer differ in their columns");
            }
            for (column, chunk) in self.columns.iter_mut().zip(chunks) {
                column.has_nulls |= chunk.has_nulls();
                column.is_told &= chunk.is_told;
                column.values = column.values.max(chunk.values);
                column.crowd = column.crowd.max(chunk.crowd());
            }
        }
        self.groups.push(group);
        Ok(())
    }
}

#[derive(Default)]
struct Chunk {
    path: Vec<String>,
    /// Bytes of its pages, or of its values if these are told and more: many rows may share one
    /// value of a dictionary.
    size: i64,
    nulls: Option<i64>,
    is_told: bool,
    values: i64,
    stored: i64,
}

impl Chunk {
    fn decode(input: &mut Input<'_>, kind: u8) -> Result<Chunk, Violation> {
        let mut chunk = Chunk::default();
        input.of_struct(kind, |input, id, kind| match (id, kind) {
            (3, STRUCT) => input.fields(|input, id, kind| chunk.field(input, id, kind)),
            _ => input.skip(kind, DEPTH_MAX),
        })?;
        if chunk.path.is_empty() {
            bail!("a column of the footer has no name");
        }
        Ok(chunk)
    }

    fn field(&mut self, input: &mut Input<'_>, id: i64, kind: u8) -> Result<(), Violation> {
        match (id, kind) {
            (3, LIST) => input.list(|input, kind| {
                self.path.push(input.text(kind)?);
                Ok(())
            }),
            (5, I64) => input.size(&mut self.values),
            (6, I64) => self.grow(input),
            (7, I64) => input.size(&mut self.stored),
            (16, STRUCT) => input.fields(|input, id, kind| match (id, kind) {
                (1, I64) => {
                    self.is_told = true;
                    self.grow(input)
                }
                _ => input.skip(kind, DEPTH_MAX),
            }),
            (12, STRUCT) => input.fields(|input, id, kind| match (id, kind) {
                (3, I64) => input.number(self.nulls.insert(0)),
                _ => input.skip(kind, DEPTH_MAX),
            }),
            _ => input.skip(kind, DEPTH_MAX),
        }
    }

    /// Reads a size, and keeps the larger one.
    fn grow(&mut self, input: &mut Input<'_>) -> Result<(), Violation> {
        let mut size = 0;
        input.size(&mut size)?;
        self.size = self.size.max(size);
        Ok(())
    }

    fn crowd(&self) -> i64 {
        if self.values / CROWD >= self.stored { self.values } else { 0 }
    }

    fn has_nulls(&self) -> bool {
        self.nulls != Some(0)
    }

    fn into_column(self) -> Column {
        Column {
            has_nulls: self.has_nulls(),
            is_told: self.is_told,
            values: self.values,
            crowd: self.crowd(),
            path: self.path,
        }
    }
}

/// Bytes that are consumed from the front.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Violation> {
        let taken = self.0.split_off(..count);
        taken.ok_or_else(|| Violation::new("the footer is truncated"))
    }

    fn byte(&mut self) -> Result<u8, Violation> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, Violation> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Violation::new("a number of the footer is too long"))
    }

    fn zigzag(&mut self) -> Result<i64, Violation> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn number(&mut self, place: &mut i64) -> Result<(), Violation> {
        *place = self.zigzag()?;
        Ok(())
    }

    fn size(&mut self, place: &mut i64) -> Result<(), Violation> {
        self.number(place)?;
        if *place < 0 {
            bail!("a row group of the footer has negative sizes");
        }
        Ok(())
    }

    /// A length in units of at least a byte.
    fn length(&mut self) -> Result<usize, Violation> {
        let length = self.varint()?;
        match usize::try_from(length) {
            Ok(length) if length <= self.0.len() => Ok(length),
            _ => Err(Violation::new("the footer is truncated")),
        }
    }

    fn text(&mut self, kind: u8) -> Result<String, Violation> {
        if kind != BINARY {
            bail!("a name in the footer is not text");
        }
        let length = self.length()?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec())
            .map_err(|_| Violation::new("a name in the footer is not UTF-8"))
    }

    fn of_struct(
        &mut self,
        kind: u8,
        field: impl FnMut(&mut Self, i64, u8) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        if kind != STRUCT {
            bail!("the footer has a plain value where a struct belongs");
        }
        self.fields(field)
    }

    /// Calls `field` with the number and the type of each field of a struct.
    fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, i64, u8) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            if head == STOP {
                return Ok(());
            }
            let step = i64::from(head >> 4);
            id = if step == 0 { self.zigzag()? } else { id.saturating_add(step) };
            field(self, id, head & 0x0f)?;
        }
    }

    /// Calls `element` with the type of each element of a list.
    fn list(
        &mut self,
        mut element: impl FnMut(&mut Self, u8) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.length()? } else { usize::from(head >> 4) };
        for _ in 0..count {
            element(self, head & 0x0f)?;
        }
        Ok(())
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), Violation> {
        let Some(depth) = depth.checked_sub(1) else {
            bail!("the footer is nested too deeply");
        };
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.take(1).map(drop),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.take(8).map(drop),
            BINARY => {
                let length = self.length()?;
                self.take(length).map(drop)
            }
            LIST | SET => self.list(|input, kind| match kind {
                TRUE | FALSE => input.take(1).map(drop),
                _ => input.skip(kind, depth),
            }),
            MAP => {
                let count = self.length()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                for _ in 0..count {
                    self.skip(kinds >> 4, depth)?;
                    self.skip(kinds & 0x0f, depth)?;
                }
                Ok(())
            }
            STRUCT => self.fields(|input, _, kind| input.skip(kind, depth)),
            _ => Err(Violation::new("the footer has a value of an unknown type")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One group of 3 rows with the column `a.b` of 5 bytes and one null; a version before it.
    const SMALL: &[u8] = &[
        0x15, 0x02, // version 1
        0x39, 0x1c, // field 4, one struct
        0x19, 0x1c, // columns, one struct
        0x3c, // metadata
        0x39, 0x28, 1, b'a', 1, b'b', // path
        0x36, 0x0a, // size 5
        0x6c, 0x36, 0x02, 0, // statistics, 1 null
        0, 0, // end of metadata and chunk
        0x26, 0x06, // 3 rows
        0, 0, // end of group and footer
    ];

    #[test]
    fn a_footer_tells_rows_sizes_and_nulls() {
        let footer = Footer::decode(SMALL).unwrap();
        assert_eq!(footer.groups, [Group { rows: 3, largest: 5 }]);
        let path = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(
            footer.columns,
            [Column { path, has_nulls: true, is_told: false, values: 0, crowd: 0 }]
        );
    }

    #[test]
    fn a_truncated_footer_is_rejected() {
        for end in 0..SMALL.len() {
            assert!(Footer::decode(&SMALL[..end]).is_err());
        }
    }

    #[test]
    fn any_flipped_bit_gives_a_footer_or_an_error() {
        for bit in 0..8 * SMALL.len() {
            let mut bytes = SMALL.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let _ = Footer::decode(&bytes);
        }
    }

    #[test]
    fn deep_nesting_is_rejected() {
        let bytes = vec![0x1c; 1 << 20];
        assert!(Footer::decode(&bytes).is_err());
    }
}
