//! Where the rows of a column are.

use std::ops::Range;

use crate::format::hdf5::REFERENCE_LEN;
use crate::format::{Violation, bail};

/// Where the elements of a column are in a file: in blocks of one shape, each contiguous and in
/// C order. A contiguous column is one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnLayout {
    /// Number of rows.
    pub rows: u64,
    /// Bytes of an element, or of an element of the values if they vary in length.
    pub item: u64,
    /// Whether the values vary in length: a row is a reference then, and `shape` is empty.
    pub varies: bool,
    /// The shape of a row.
    pub shape: Vec<u64>,
    /// The shape of a block, its rows first.
    pub block: Vec<u64>,
    /// Where each block begins, in C order.
    pub offsets: Vec<u64>,
}

/// A layout that fits its file.
#[derive(Debug)]
pub struct Column {
    layout: ColumnLayout,
    /// Bytes of a row of a block.
    slab: u64,
    /// Number of blocks that a row is spread over, along each of its axes.
    grid: Vec<u64>,
    /// Bytes of a row.
    row: u64,
}

impl Column {
    /// Checks a layout against a file of `size` bytes.
    pub fn new(layout: ColumnLayout, size: u64) -> Result<Column, Violation> {
        let ColumnLayout { rows, item, varies, shape, block, offsets } = &layout;
        let wrong = |what: &str| Violation(format!("invalid layout of a column: {what}"));
        if block.len() != shape.len() + 1 || block.contains(&0) || *item == 0 {
            return Err(wrong("blocks and rows differ in their dimensions"));
        }
        if *varies && !shape.is_empty() {
            return Err(wrong("a row has one value of varying length"));
        }
        let element = if *varies { REFERENCE_LEN } else { *item };
        let bytes =
            |shape: &[u64]| shape.iter().try_fold(element, |sum, &len| sum.checked_mul(len));
        let grid: Vec<u64> = shape.iter().zip(&block[1..]).map(|(a, b)| a.div_ceil(*b)).collect();
        let across = grid.iter().try_fold(1_u64, |sum, &len| sum.checked_mul(len));
        let blocks = across.and_then(|across| across.checked_mul(rows.div_ceil(block[0])));
        if blocks != Some(offsets.len() as u64) {
            return Err(wrong("the number of blocks does not match the rows"));
        }
        let sizes = (bytes(shape), bytes(&block[1..]), bytes(block));
        let (Some(row), Some(slab), Some(whole)) = sizes else {
            return Err(wrong("its blocks are larger than any file"));
        };
        if let Some(offset) = offsets.iter().find(|&&at| at > size || whole > size - at) {
            bail!(
                "a block of {whole} bytes at {offset} ends past the {size} bytes of the file: it \
                 was cut short"
            );
        }
        Ok(Column { slab, grid, row, layout })
    }

    /// Number of rows.
    pub fn num_rows(&self) -> u64 {
        self.layout.rows
    }

    /// Bytes of an element of values that vary in length.
    pub fn varying_item(&self) -> Option<u64> {
        self.layout.varies.then_some(self.layout.item)
    }

    /// Bytes of a row.
    pub fn row_len(&self) -> u64 {
        self.row
    }

    /// Whether a row is contiguous.
    pub fn is_whole(&self) -> bool {
        self.layout.block[1..] == self.layout.shape
    }

    /// Returns where the pieces of a row, which must exist, lie; all are of the same size.
    pub fn pieces(&self, row: u64) -> impl ExactSizeIterator<Item = Range<u64>> {
        let [down, ..] = self.layout.block[..] else { unreachable!("blocks have rows") };
        let across = self.grid.iter().product::<u64>();
        let inside = row % down * self.slab;
        let first = (row / down * across) as usize;
        self.layout.offsets[first..first + across as usize].iter().map(move |offset| {
            let start = offset + inside;
            start..start + self.slab
        })
    }

    /// Puts a row together from its pieces, which follow each other.
    pub fn assemble(&self, pieces: &[u8], row: &mut [u8]) {
        let across = self.grid.iter().product::<u64>() as usize;
        for (number, piece) in pieces.chunks_exact(self.slab as usize).take(across).enumerate() {
            self.place(0, number as u64, piece, row);
        }
    }

    /// Copies the part of a piece along `axis` and those behind it to its place; `number`
    /// counts the pieces that share what is before `axis`.
    fn place(&self, axis: usize, number: u64, piece: &[u8], part: &mut [u8]) {
        let (shape, block) = (&self.layout.shape[axis..], &self.layout.block[axis + 1..]);
        let (&[len, ref inner @ ..], &[step, ref inner_block @ ..]) = (shape, block) else {
            return part.copy_from_slice(piece);
        };
        let behind: u64 = self.grid[axis + 1..].iter().product();
        let start = number / behind * step;
        let count = step.min(len - start) as usize;
        let stride = (inner.iter().product::<u64>() * self.layout.item) as usize;
        let piece_stride = (inner_block.iter().product::<u64>() * self.layout.item) as usize;
        let part = &mut part[start as usize * stride..][..count * stride];
        if inner.is_empty() {
            return part.copy_from_slice(&piece[..count * piece_stride]);
        }
        let each = part.chunks_exact_mut(stride).zip(piece.chunks_exact(piece_stride));
        for (part, piece) in each {
            self.place(axis + 1, number % behind, piece, part);
        }
    }
}
