//! Reading what was found in several data sets in one go.

use super::container::{Cell, Stored};
use super::fetch::{Files, check_growth};
use super::rows::{Found, Rows};
use super::sequence::Sequence;
use crate::error::{Error, Result};

/// Fetches what was found in several data sets in one go: the values of each field into one
/// buffer, one after the other. `room` returns a buffer of at least this many bytes, if there is
/// memory for it.
pub fn fetch_found(
    parts: &[(&Rows, Vec<Found>)],
    mut room: impl FnMut(usize) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut together = Together { parts: Vec::with_capacity(parts.len()), ends: Vec::new() };
    let mut bases = Vec::with_capacity(parts.len());
    let mut buffers = Vec::with_capacity(parts.len());
    for (rows, found) in parts {
        check_growth(rows.files(), found.iter().flat_map(Found::cells))?;
        bases.push(together.base_of(rows.files()));
        let lens = found.iter().map(|one| one.cells().iter().map(|cell| cell.raw).sum());
        let of_part = lens.map(|bytes: u64| {
            room(bytes as usize).ok_or_else(|| Error::memory(rows.files().name(), bytes))
        });
        buffers.push(of_part.collect::<Result<Vec<Vec<u8>>>>()?);
    }
    let mut values: Vec<(Cell, &mut [u8])> = Vec::new();
    for (((_, found), buffers), base) in parts.iter().zip(&mut buffers).zip(bases) {
        for (one, buffer) in found.iter().zip(buffers) {
            let mut rest = &mut buffer[..];
            values.extend(one.cells().iter().map(|cell| {
                let value = rest.split_off_mut(..cell.raw as usize).expect("sized for all");
                (Cell { file: base + cell.file, ..*cell }, value)
            }));
        }
    }
    // Cells of a row are neighbours in the file.
    if !values.is_sorted_by_key(|(cell, _)| cell.row) {
        values.sort_by_key(|(cell, _)| cell.row);
    }
    let (cells, mut bufs): (Vec<Cell>, Vec<&mut [u8]>) = values.into_iter().unzip();
    together.fetch(&cells, &mut bufs)?;
    Ok(buffers)
}

/// The files of several data sets, numbered consecutively.
struct Together<'r> {
    parts: Vec<&'r Sequence>,
    ends: Vec<u32>,
}

impl<'r> Together<'r> {
    /// Returns the number of the first file of a data set, and adds it if it is new.
    fn base_of(&mut self, files: &'r Sequence) -> u32 {
        let known = self.parts.iter().position(|part| std::ptr::eq(*part, files));
        let place = known.unwrap_or(self.parts.len());
        let base = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        if known.is_none() {
            self.parts.push(files);
            self.ends.push(base + files.shards().numbers().num_files());
        }
        base
    }
}

impl Files for Together<'_> {
    fn file(&self, number: u32) -> &dyn Stored {
        if let [files] = self.parts[..] {
            return files.file(number);
        }
        let part = self.ends.partition_point(|&end| end <= number);
        let base = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.parts[part].file(number - base)
    }
}
