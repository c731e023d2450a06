//! Windows of rows that are sequences.

use super::lengths::Lengths;
use super::node::Order;
use super::{LEN_MAX, exceeded};
use crate::{Error, Result};

/// Inner positions that are looked at together while a plan is made.
const CHUNK: u64 = 4096;

/// The windows of all positions of an order, one position after the other.
pub struct Windows {
    /// How many windows there are up to and including each inner position.
    ends: Vec<u64>,
    /// The length of each inner position, where a window may be cut short.
    lens: Vec<u64>,
    length: u64,
    stride: u64,
}

impl Windows {
    /// Plans windows of `length` elements, `stride` apart, over a finite order.
    ///
    /// With `partial`, the elements after the last whole window make one shorter window, and so
    /// does a row that is shorter than a window.
    ///
    /// # Errors
    ///
    /// A length is missing, there are too many windows, or too little memory for their table.
    pub fn new(
        of: &Order,
        num_positions: u64,
        lengths: &Lengths,
        (length, stride): (u64, u64),
        partial: bool,
    ) -> Result<Self> {
        let (mut ends, mut lens) = (Vec::new(), Vec::new());
        reserve(&mut ends, num_positions)?;
        if partial {
            reserve(&mut lens, num_positions)?;
        }
        let mut total = 0u64;
        for start in (0..num_positions).step_by(CHUNK as usize) {
            let rows = of.rows(start, (start + CHUNK).min(num_positions))?;
            for (&source, &row) in rows.sources.iter().zip(&rows.rows) {
                let len = lengths.of(source, row)?;
                let count = count_of(len, length, stride, partial);
                total =
                    total.checked_add(count).filter(|&sum| sum <= LEN_MAX).ok_or_else(exceeded)?;
                ends.push(total);
                if partial {
                    lens.push(len);
                }
            }
        }
        Ok(Windows { ends, lens, length, stride })
    }

    /// Returns the number of windows.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the inner position of a window, and where in it the window starts and stops.
    pub fn at(&self, position: u64) -> (u64, u64, u64) {
        let place = self.ends.partition_point(|&end| end <= position);
        let before = if place == 0 { 0 } else { self.ends[place - 1] };
        let start = (position - before) * self.stride;
        let stop = start.saturating_add(self.length);
        let len = self.lens.get(place).copied().unwrap_or(u64::MAX);
        (place as u64, start, stop.min(len))
    }
}

/// Returns how many windows a row of `len` elements has.
fn count_of(len: u64, length: u64, stride: u64, partial: bool) -> u64 {
    if partial {
        // With gaps between windows, the last one may begin behind the end.
        let whole = 1 + len.saturating_sub(length).div_ceil(stride);
        return whole.min(len.div_ceil(stride));
    }
    if len < length { 0 } else { 1 + (len - length) / stride }
}

/// Makes room for `count` more numbers.
pub fn reserve(numbers: &mut Vec<u64>, count: u64) -> Result<()> {
    let wanted = usize::try_from(count).unwrap_or(usize::MAX);
    numbers.try_reserve_exact(wanted).map_err(|_| {
        let bytes = count.saturating_mul(8);
        Error::memory("order", bytes)
    })
}
