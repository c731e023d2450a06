//! The fields of an Ingot file.

use std::ops::Range;

use super::super::container::{Cell, Table};
use super::super::locate::prepare;
use super::reader::Reader;
use crate::error::{Error, Result};
use crate::format::ingot::{FieldKind, Schema};

/// Pages of a column that are read at a time.
const COLUMN_PAGES: usize = 256;

impl Table for Reader {
    fn schema(&self) -> &Schema {
        Reader::schema(self)
    }

    fn locate_field(&self, row: u64, field: usize) -> Result<Cell> {
        self.check_field(field, FieldKind::Cell)?;
        self.locate_one(row, field)
    }

    fn locate_elements(
        &self,
        row: u64,
        field: usize,
        range: Range<u64>,
        _list: &[u8],
    ) -> Result<Vec<Cell>> {
        self.check_field(field, FieldKind::Sequence)?;
        let len = self.num_elements(row, field)?;
        if range.start > range.end || range.end > len {
            return Err(Error::Invalid(format!(
                "{}: record {row} has {len} elements, not {} to {}",
                self.name(),
                range.start,
                range.end
            )));
        }
        self.in_page(row, |page, local| {
            let cells = page.cells_of(self.schema(), local, field)?;
            let start = u64::from(cells.start);
            (start + range.start..start + range.end)
                .map(|cell| self.describe(page, row, field, cell as u32))
                .collect()
        })
    }

    fn num_elements(&self, row: u64, field: usize) -> Result<u64> {
        self.check_field(field, FieldKind::Sequence)?;
        self.in_page(
            row,
            |page, local| Ok(page.cells_of(self.schema(), local, field)?.len() as u64),
        )
    }

    fn column_value(&self, row: u64, field: usize, values: &mut Vec<u8>) -> Result<()> {
        self.check_field(field, FieldKind::Column)?;
        let width = self.schema().fields()[field].width.unwrap_or(0) as usize;
        self.in_page(row, |page, local| {
            let from = local as usize * width;
            values.extend_from_slice(&page.column(self.schema(), field)[from..from + width]);
            Ok(())
        })
    }

    fn append_column(&self, field: usize, values: &mut Vec<u8>) -> Result<()> {
        self.check_field(field, FieldKind::Column)?;
        let pages: Vec<usize> = (0..self.pages().entries().len()).collect();
        for some in pages.chunks(COLUMN_PAGES) {
            let firsts = some.iter().map(|&page| self.pages().first_row(page)).collect();
            let _pins = prepare(&[(self, firsts)]);
            for &page in some {
                self.pages().with(page, &self.loader(), |page| {
                    values.extend_from_slice(page.column(self.schema(), field));
                })?;
            }
        }
        Ok(())
    }
}
