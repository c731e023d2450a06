//! Checking every byte of an Ingot file.

use super::super::container::Cell;
use super::super::container::Stored as _;
use super::super::verification::{Damage, Verification, verify_cells};
use super::chain;
use super::reader::Reader;
use crate::error::Result;
use crate::format::ingot::{BlockKind, FieldKind, Page, TRAILER_LEN, Trailer};

impl Reader {
    /// Reads every value and checks every checksum of the file. `progress` is called
    /// with the rows done after each page and may stop the work by returning an error.
    pub fn verify(&self, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<Verification> {
        let mut found = Verification::default();
        for entry in self.dictionaries() {
            let read = self.source().dictionary(entry.offset, entry.len.into(), self.seed());
            if let Err(error) = read {
                found.damaged.push(Damage::elsewhere((entry.offset, error.to_string())));
            }
        }
        for page in 0..self.pages().entries().len() {
            found.damaged.extend(self.verify_page(page));
            found.rows += u64::from(self.pages().entries()[page].rows);
            progress(found.rows)?;
        }
        let chain = self.verify_chain().unwrap_or_else(|error| {
            let end = self.stats().file_bytes;
            vec![(error.offset().unwrap_or(end), error.to_string())]
        });
        found.damaged.extend(chain.into_iter().map(Damage::elsewhere));
        found.damaged.sort_by_key(|damage| damage.offset);
        Ok(found)
    }

    /// Checks one page and every cell it describes.
    pub(super) fn verify_page(&self, page: usize) -> Vec<Damage> {
        let entry = self.pages().entries()[page];
        let first = self.pages().first_row(page);
        let rows = first..first + u64::from(entry.rows);
        match self.pages().read(page, &self.loader()).map(|page| self.cells_of_page(&page)) {
            Err(error) => vec![Damage::of(&error, rows, entry.offset)],
            Ok(Err(why)) => {
                let error = self.source().corrupt(entry.offset, why).at_record(first);
                vec![Damage::of(&error, rows, entry.offset)]
            }
            Ok(Ok(cells)) => verify_cells(self, &cells),
        }
    }

    fn cells_of_page(&self, page: &Page) -> Result<Vec<Cell>, crate::format::Violation> {
        let mut cells = Vec::with_capacity(page.cells as usize);
        let schema = self.schema();
        for row in 0..page.rows {
            for (k, field) in schema.fields().iter().enumerate() {
                if field.kind == FieldKind::Column {
                    continue;
                }
                for cell in page.cells_of(schema, row, k)? {
                    cells.push(self.describe(page, page.first_row + u64::from(row), k, cell)?);
                }
            }
        }
        let end = cells.last().map_or(page.base(), |cell| cell.offset + cell.stored);
        if end != page.offset() {
            return Err(crate::format::Violation("cells do not reach the page".to_owned()));
        }
        Ok(cells)
    }

    /// Checks the trailers against the directory, and that cells and blocks fill the file
    /// without gaps.
    fn verify_chain(&self) -> Result<Vec<(u64, String)>> {
        let end = self.stats().file_bytes;
        let Some(last) = chain::last_trailer(self.source(), self.header(), end, &mut || Ok(()))?
        else {
            return Ok(Vec::new());
        };
        let mut chain = chain::walk(self.source(), self.header(), last, true, &mut || Ok(()))?;
        let mut damage = std::mem::take(&mut chain.damage);
        let listed = self.pages().entries();
        let mut pages = chain.contents.pages.iter().enumerate();
        for segment in &chain.segments {
            let trailer = &segment.trailer;
            let mut base = trailer.block.offset;
            if trailer.block.kind == BlockKind::Page
                && let Some((page, committed)) = pages.next()
            {
                if listed.get(page) != Some(committed) {
                    let why = "the trailer commits another page than the directory lists";
                    damage.push((trailer.offset, why.to_owned()));
                    continue;
                }
                // A page that cannot be read was reported with its records.
                let read = self.pages().read(page, &self.loader());
                base = read.map_or(segment.start, |page| page.base());
            }
            if base != segment.start {
                let gap = format!("bytes up to offset {base} belong to no block");
                damage.push((segment.start, gap));
            }
        }
        if chain.contents.pages.len() != listed.len()
            || !self.dictionaries().eq(&chain.contents.dictionaries)
        {
            let why = "the directory lists other pages or dictionaries than were committed";
            damage.push((last.0.block.offset, why.to_owned()));
        }
        damage.extend(self.verify_end(&last.0, end));
        Ok(damage)
    }

    /// Checks that a whole file still ends as it did, with a true copy of its header.
    fn verify_end(&self, last: &Trailer, end: u64) -> Option<(u64, String)> {
        if !self.is_closed_file() {
            return None;
        }
        if last.offset + TRAILER_LEN as u64 != end {
            return Some((last.offset, "the closing trailer is invalid".to_owned()));
        }
        match self.source().directory(last, self.seed()) {
            Ok(directory) if directory.header == self.header().bytes => None,
            Ok(_) => Some((last.block.offset, "the copy of the header differs".to_owned())),
            Err(_) => None, // The chain has reported it.
        }
    }
}
