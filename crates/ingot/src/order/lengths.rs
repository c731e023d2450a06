//! How long rows are, by source and row number.

use std::sync::Arc;

use crate::{Error, Result};

/// For each source the lengths of its rows.
#[derive(Clone)]
pub struct Lengths(Arc<[Vec<u64>]>);

impl Lengths {
    /// Takes the lengths of the rows of each source.
    pub fn new(sources: Vec<Vec<u64>>) -> Self {
        Lengths(sources.into())
    }

    /// Returns for how many sources there are lengths.
    pub fn num_sources(&self) -> usize {
        self.0.len()
    }

    /// Returns the length of a row.
    ///
    /// # Errors
    ///
    /// The row has no length.
    pub fn of(&self, source: i32, row: i64) -> Result<u64> {
        let lens = &self.0[source as usize];
        lens.get(row as usize).copied().ok_or_else(|| {
            let found = lens.len();
            Error::Invalid(format!(
                "expected a length for each row, got {found}, but row {row} of source {source} is \
                 in the order"
            ))
        })
    }
}
