//! What an index says of a row and of each of its values: docs/index_file.md.

use crate::crc::Sum;
use crate::format::foreign::Coding;
use crate::format::ingot::{Field, FieldKind, Schema};
use crate::format::{Violation, bail};
use crate::records::container::{Cell, Form};

/// Bytes that an index has for a row: offset, length, checksum.
pub const ROW_LEN: usize = 20;

/// The name of that column; no field of a data set is called so.
pub const ROW: &str = "";

/// Where something is, and how to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where its stored bytes begin.
    pub offset: u64,
    /// How many bytes are stored.
    pub stored: u64,
    /// How many bytes the value has.
    pub raw: u64,
    /// The CRC-32C of the stored bytes.
    pub crc: u32,
    /// How the value comes out of them.
    pub coding: Coding,
}

impl Place {
    /// The place of a value that is missing.
    pub const NOWHERE: Place = Place { offset: 0, stored: 0, raw: 0, crc: 0, coding: Coding::RAW };

    /// Returns where a cell is, in a file of `size` bytes; none if it is not in there.
    pub fn cell(&self, row: u64, size: u64) -> Option<Cell> {
        let end = self.offset.checked_add(self.stored)?;
        let is_raw = self.coding == Coding::RAW;
        if end > size || (is_raw && self.raw != self.stored) {
            return None;
        }
        let form = if is_raw { Form::Alone } else { Form::Foreign(self.coding) };
        let cell = Cell::unsummed(row, self.offset..end, self.raw, form);
        Some(Cell { sum: Sum::Crc32c, crc: self.crc, ..cell })
    }
}

/// How wide the offsets and lengths of values are. A row of 4 GiB or more takes wide ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 32 bits.
    Narrow,
    /// 64 bits.
    Wide,
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Width::Narrow => 4,
            Width::Wide => 8,
        }
    }

    /// Bytes that an index has for a value.
    pub fn entry_len(self) -> usize {
        3 * self.bytes() + 6
    }

    /// Appends the entry of a value in a row that begins at `row`; fails if it is too wide.
    pub fn put(self, place: &Place, row: u64, out: &mut Vec<u8>) -> Option<()> {
        let offset = if place.stored == 0 { 0 } else { place.offset.checked_sub(row)? };
        for number in [offset, place.stored, place.raw] {
            let bytes = number.to_le_bytes();
            if bytes[self.bytes()..].iter().any(|&byte| byte != 0) {
                return None;
            }
            out.extend_from_slice(&bytes[..self.bytes()]);
        }
        out.extend_from_slice(&place.crc.to_le_bytes());
        out.extend_from_slice(&place.coding.code());
        Some(())
    }

    /// Reads an entry.
    pub fn take(self, entry: &[u8], row: u64) -> Option<Place> {
        let (numbers, rest) = entry.split_at_checked(3 * self.bytes())?;
        let mut each = numbers.chunks_exact(self.bytes()).map(|bytes| {
            let mut number = [0; 8];
            number[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(number)
        });
        let (offset, stored, raw) = (each.next()?, each.next()?, each.next()?);
        let (&crc, code) = rest.split_first_chunk()?;
        let coding = Coding::of_code(*code.first_chunk()?)?;
        let offset = row.checked_add(offset)?;
        Some(Place { offset, stored, raw, crc: u32::from_le_bytes(crc), coding })
    }
}

/// Returns the entry of a row.
pub fn row_entry(offset: u64, len: u64, crc: u32) -> [u8; ROW_LEN] {
    let mut entry = [0; ROW_LEN];
    entry[..8].copy_from_slice(&offset.to_le_bytes());
    entry[8..16].copy_from_slice(&len.to_le_bytes());
    entry[16..].copy_from_slice(&crc.to_le_bytes());
    entry
}

/// Reads the entry of a row: where the row is.
pub fn row_place(entry: &[u8]) -> Option<Place> {
    let (&offset, rest) = entry.split_first_chunk()?;
    let (&len, rest) = rest.split_first_chunk()?;
    let len = u64::from_le_bytes(len);
    let crc = u32::from_le_bytes(*rest.first_chunk()?);
    let offset = u64::from_le_bytes(offset);
    Some(Place { offset, stored: len, raw: len, crc, coding: Coding::RAW })
}

/// Returns the fields of an index: the row, then what it says of each field. A number is
/// itself, a value has an entry, and a sequence a cell of entries.
pub fn schema(fields: &[Field], width: Width) -> Result<Schema, Violation> {
    if fields.len() >= Schema::FIELDS_MAX {
        let (count, most) = (fields.len(), Schema::FIELDS_MAX - 1);
        let why = format!(
            "the rows have {count} fields, counting twice those that may be missing, and an index \
             holds at most {most}"
        );
        return Err(Violation(why));
    }
    if fields.iter().any(|field| field.name == ROW) {
        bail!("one of the fields has no name");
    }
    let column = |name: &str, width: usize| Field {
        name: name.to_owned(),
        kind: FieldKind::Column,
        width: Some(width as u32),
        type_name: None,
    };
    let mut of_index = vec![column(ROW, ROW_LEN)];
    of_index.extend(fields.iter().map(|field| match field.kind {
        FieldKind::Column => column(&field.name, field.width.unwrap_or(0) as usize),
        FieldKind::Cell => column(&field.name, width.entry_len()),
        FieldKind::Sequence => {
            Field { kind: FieldKind::Cell, width: None, ..column(&field.name, 0) }
        }
    }));
    Schema::new(of_index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::foreign::Recipe;

    #[test]
    fn places_round_trip() {
        let coding = Coding::plain(Recipe::JsonText);
        let place = Place { offset: 1 << 40, stored: 7, raw: 9, crc: 0xdead_beef, coding };
        for width in [Width::Narrow, Width::Wide] {
            let mut entry = Vec::new();
            width.put(&place, (1 << 40) - 5, &mut entry).unwrap();
            assert_eq!(entry.len(), width.entry_len());
            assert_eq!(width.take(&entry, (1 << 40) - 5), Some(place));
            for cut in 0..entry.len() {
                assert_eq!(width.take(&entry[..cut], 0), None);
            }
        }
        assert_eq!(Width::Narrow.put(&place, 0, &mut Vec::new()), None);
        let entry = row_entry(3, 4, 5);
        assert_eq!(row_place(&entry).unwrap().cell(0, 7).unwrap().offset, 3);
        assert_eq!(row_place(&entry).unwrap().cell(0, 6), None);
    }
}
