//! Bags: records one after the other, and a table of where each of them ends.
//!
//! | bytes | what |
//! | --- | --- |
//! | any | the records |
//! | 8 N | the limits: where each record ends, little-endian |
//!
//! The table stands behind the records, and its last entry, which is also where it begins,
//! is the way to find it; or it is a file of its own. Bagz writes both, with records as
//! they are or each as a Zstandard frame. Granular's bags are of the first kind up to
//! version 0.21, of the second since. Up to its version 0.19 there is a zero in front of
//! the limits.

use super::fields::u64_at;
use super::{Violation, bail};

/// Bytes of a limit.
pub const LIMIT_LEN: u64 = 8;

/// Where the table is in a file, and how many limits it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Where it begins.
    pub offset: u64,
    /// Number of limits.
    pub limits: u64,
}

impl Table {
    /// Finds the table at the end of a file of `size` bytes whose last limit is `last`.
    pub fn at_end(size: u64, last: u64) -> Result<Table, Violation> {
        if size == 0 {
            return Ok(Table { offset: 0, limits: 0 });
        }
        if size < LIMIT_LEN || last > size - LIMIT_LEN || !(size - last).is_multiple_of(LIMIT_LEN) {
            bail!(
                "the last limit says that the table begins at {last}, impossible in a file of {size} \
                 bytes: it is truncated, its writer was not closed, or it is not a bag"
            );
        }
        Ok(Table { offset: last, limits: (size - last) / LIMIT_LEN })
    }

    /// Returns the table of a file that has nothing else. Bytes of a limit that was not
    /// written to its end do not count.
    pub fn alone(size: u64) -> Table {
        Table { offset: 0, limits: size / LIMIT_LEN }
    }

    /// Returns the table without the zero in front that old bags have.
    #[must_use]
    pub fn without_zero(self) -> Table {
        Table { offset: self.offset + LIMIT_LEN, limits: self.limits.saturating_sub(1) }
    }
}

/// Returns limit `k` of a part of a table that has it.
pub fn limit(table: &[u8], k: u64) -> u64 {
    u64_at(table, (k * LIMIT_LEN) as usize)
}

/// Checks the limits of a record against what there is.
pub fn check(start: u64, end: u64, records_len: u64) -> Result<(), Violation> {
    if start <= end && end <= records_len {
        return Ok(());
    }
    Err(Violation::new(format!(
        "its limits are {start} and {end}, outside the {records_len} bytes of records"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_at_the_end() {
        assert_eq!(Table::at_end(0, 0), Ok(Table { offset: 0, limits: 0 }));
        assert_eq!(Table::at_end(39, 15), Ok(Table { offset: 15, limits: 3 }));
        assert_eq!(Table::at_end(32, 0), Ok(Table { offset: 0, limits: 4 }));
        for (size, last) in [(3, 0), (7, 0), (15, 0), (16, 9), (16, 16), (16, u64::MAX), (20, 5)] {
            assert!(Table::at_end(size, last).is_err(), "{size} {last}");
        }
    }

    #[test]
    fn limits_stay_within_the_records() {
        assert!(check(0, 0, 0).is_ok() && check(3, 9, 9).is_ok());
        assert!(check(9, 3, 9).is_err() && check(3, 10, 9).is_err());
    }
}
