//! The fields of an Ingot file.

use std::ops::Range;

use super::super::container::{Cell, Table};
use super::super::live::Live;
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

    fn append_column(
        &self,
        field: usize,
        rows: Range<u64>,
        live: Option<&Live>,
        values: &mut Vec<u8>,
    ) -> Result<()> {
        self.check_field(field, FieldKind::Column)?;
        if rows.is_empty() {
            return Ok(());
        }
        let width = self.schema().fields()[field].width.unwrap_or(0) as usize;
        let rows_of = |page: usize| {
            let first = self.pages().first_row(page);
            let held = first..first + u64::from(self.pages().entries()[page].rows);
            (held.start.max(rows.start)..held.end.min(rows.end), first)
        };
        let ends = (self.pages().find(rows.start), self.pages().find(rows.end - 1));
        let is_wanted = |page: &usize| live.is_none_or(|live| live.has_any(rows_of(*page).0));
        let pages: Vec<usize> = (ends.0..=ends.1).filter(is_wanted).collect();
        for some in pages.chunks(COLUMN_PAGES) {
            let firsts = some.iter().map(|&page| self.pages().first_row(page)).collect();
            let _pins = prepare(&[(self, firsts)]);
            for &page in some {
                let (wanted, first) = rows_of(page);
                let from = (wanted.start - first) as usize * width;
                let to = (wanted.end - first) as usize * width;
                self.pages().with(page, &self.loader(), |loaded| {
                    let column = &loaded.column(self.schema(), field)[from..to];
                    match live {
                        None => values.extend_from_slice(column),
                        Some(live) => live.append_values(wanted.clone(), width, column, values),
                    }
                })?;
            }
        }
        Ok(())
    }
}
