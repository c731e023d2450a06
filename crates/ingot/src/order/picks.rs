//! The rows at some positions of an order.

use crate::{Error, Result};

/// Most rows that are returned at once.
const ROWS_MAX: usize = 1 << 27;

/// The rows of some positions, one after the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Picks {
    /// The source of each row.
    pub sources: Vec<i32>,
    /// Its number there.
    pub rows: Vec<i64>,
    /// How often `repeat` has started over.
    pub epochs: Vec<i64>,
    /// The first wanted element; only if the order has windows or packs.
    pub starts: Vec<i64>,
    /// After the last wanted element, -1 for all of them; only if the order has windows or packs.
    pub stops: Vec<i64>,
    /// What positions consist of: groups of groups of ... of rows, so that the last level is that
    /// of the rows.
    pub levels: Vec<Level>,
}

/// Groups, or rows, and the maps that they go through.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Where each group begins on the next level, and the last one ends; empty for rows.
    pub offsets: Vec<i64>,
    /// How many maps an item goes through at most.
    pub width: usize,
    /// The numbers of these maps, the first to be applied first, then -1: `width` for each item.
    pub maps: Vec<i32>,
    /// The seed of the random numbers of each of these maps.
    pub keys: Vec<u64>,
}

impl Picks {
    /// Returns room for `count` positions of an order with levels of these widths.
    pub(super) fn new(count: u64, widths: &[usize], has_cuts: bool) -> Result<Self> {
        let levels = widths.iter().map(|&width| Level { width, ..Level::default() }).collect();
        let mut picks = Picks { levels, ..Picks::default() };
        let groups = widths.len() - 1;
        for level in &mut picks.levels[..groups] {
            level.offsets.push(0);
        }
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        picks.reserve(count, has_cuts)?;
        Ok(picks)
    }

    /// Makes room for `more` rows, and for as many items of each level.
    fn reserve(&mut self, more: usize, has_cuts: bool) -> Result<()> {
        let total = self.rows.len().saturating_add(more);
        if total > ROWS_MAX {
            let reason = format!("these positions are more than {ROWS_MAX} rows; ask for fewer");
            return Err(Error::Invalid(reason));
        }
        let refused = |_| {
            let bytes = total as u64 * 20;
            Error::memory("order", bytes)
        };
        self.sources.try_reserve(more).map_err(refused)?;
        self.rows.try_reserve(more).map_err(refused)?;
        self.epochs.try_reserve(more).map_err(refused)?;
        if has_cuts {
            self.starts.try_reserve(more).map_err(refused)?;
            self.stops.try_reserve(more).map_err(refused)?;
        }
        let last = self.levels.len() - 1;
        for (k, level) in self.levels.iter_mut().enumerate() {
            let places = (more + 1).saturating_mul(level.width);
            level.maps.try_reserve(places).map_err(refused)?;
            level.keys.try_reserve(places).map_err(refused)?;
            if k < last {
                level.offsets.try_reserve(more + 1).map_err(refused)?;
            }
        }
        Ok(())
    }

    /// Adds a row, which ends an item of the last level.
    #[inline]
    pub(super) fn push(
        &mut self,
        source: u32,
        row: u64,
        epoch: u64,
        cut: Option<(u64, u64)>,
        has_cuts: bool,
    ) -> Result<()> {
        if self.rows.len() == self.rows.capacity() {
            self.reserve(self.rows.len().max(64), has_cuts)?;
        }
        self.sources.push(source as i32);
        self.rows.push(row as i64);
        self.epochs.push(epoch as i64);
        if has_cuts {
            let (start, stop) = cut.map_or((0, -1), |(start, stop)| (start as i64, stop as i64));
            self.starts.push(start);
            self.stops.push(stop);
        }
        Ok(())
    }
}

impl Level {
    /// Completes the maps of the item that began at `from`: they were added from the last to be
    /// applied to the first.
    pub(super) fn finish(&mut self, from: usize) {
        self.maps[from..].reverse();
        self.keys[from..].reverse();
        self.maps.resize(from + self.width, -1);
        self.keys.resize(from + self.width, 0);
    }
}
