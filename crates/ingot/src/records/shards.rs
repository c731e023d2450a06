//! The shards of a sequence: which row is in which, and opening them when they are needed.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::listing::Listed;
use super::numbering::Numbering;
use super::origins::Fields;
use super::stack::Stack;
use crate::error::Result;
use crate::format::ingot::Schema;

/// Shards that are opened at the same time. A list of no more files than these is opened at once,
/// so that its readers keep their files if these are replaced later.
pub(super) const OPENING: usize = 64;

/// Shards one after the other. Those that a list describes are opened when they are needed, and
/// stay open.
pub(super) struct Shards {
    slots: Vec<Slot>,
    /// Number of the row after the last of each shard.
    ends: Vec<u64>,
    numbers: Numbering,
    /// The fields of all shards of a list, if they have fields.
    fields: Option<Fields>,
}

/// A shard, open or not yet.
struct Slot {
    listed: Option<Listed>,
    stack: OnceLock<Stack>,
}

/// A row: its number in the sequence and in its files, these files, and the number of the first.
#[derive(Clone, Copy)]
pub(super) struct Spot<'s> {
    pub row: u64,
    pub local: u64,
    pub stack: &'s Stack,
    pub first: u32,
}

impl Shards {
    /// Returns the shards of a list, which have the fields of `schema`, or else those of the first
    /// file. Of a long list only the first shard is opened yet.
    pub fn listed(shards: Vec<Listed>, schema: Option<Schema>) -> Result<Shards> {
        shards.iter().try_for_each(Listed::check)?;
        let counts: Vec<usize> = shards.iter().map(Listed::num_stored).collect();
        let num_files: usize = shards.iter().map(Listed::num_files).sum();
        let mut listed = Shards {
            ends: ends_of(shards.iter().map(Listed::num_live)),
            numbers: Numbering::new(&counts),
            fields: schema.map(|schema| Fields { schema: schema.into(), is_exact: false }),
            slots: shards
                .into_iter()
                .map(|listed| Slot { listed: Some(listed), stack: OnceLock::new() })
                .collect(),
        };
        if listed.fields.is_none() && listed.len() > 0 {
            let first = listed.stack(0)?.rows().table().map(|table| table.schema().clone());
            listed.fields = first.map(|schema| Fields { schema: schema.into(), is_exact: true });
        }
        if num_files <= OPENING {
            listed.open_all()?;
        } else {
            listed.stack(0)?;
        }
        Ok(listed)
    }

    /// Returns the same shards for the child of a fork.
    pub fn after_fork(&self) -> Shards {
        let slots = self.slots.iter().map(|slot| {
            let stack = slot.stack.get().map(Stack::after_fork);
            Slot {
                listed: slot.listed.clone(),
                stack: stack.map_or_else(OnceLock::new, OnceLock::from),
            }
        });
        Shards {
            slots: slots.collect(),
            ends: self.ends.clone(),
            numbers: self.numbers.clone(),
            fields: self.fields.clone(),
        }
    }

    /// Number of shards.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the fields of all shards of a list, if they have fields.
    pub fn schema(&self) -> Option<&Arc<Schema>> {
        self.fields.as_ref().map(|fields| &fields.schema)
    }

    /// Returns the numbers of the files.
    #[inline]
    pub fn numbers(&self) -> &Numbering {
        &self.numbers
    }

    /// Number of rows, without those that are deleted.
    pub fn num_rows(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the shard that holds `row`, and the row's position in it.
    #[inline]
    pub fn place(&self, row: u64) -> (usize, u64) {
        if let [_] = self.slots[..] {
            return (0, row);
        }
        let shard = self.ends.partition_point(|&end| end <= row);
        (shard, row - self.first_row(shard))
    }

    /// Number of the first row of a shard.
    pub fn first_row(&self, shard: usize) -> u64 {
        shard.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Number of the row after the last of each shard.
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// Returns the files of a shard if they are open.
    #[inline]
    pub fn get(&self, shard: usize) -> Option<&Stack> {
        self.slots[shard].stack.get()
    }

    /// Returns what the list says about a shard.
    pub fn entry(&self, shard: usize) -> Option<&Listed> {
        self.slots[shard].listed.as_ref()
    }

    /// Returns the files of a shard, and opens them if need be.
    #[inline]
    pub fn stack(&self, shard: usize) -> Result<&Stack> {
        match self.get(shard) {
            Some(stack) => Ok(stack),
            None => self.open_one(shard),
        }
    }

    #[cold]
    fn open_one(&self, shard: usize) -> Result<&Stack> {
        self.open(&[shard])?;
        Ok(self.get(shard).expect("just opened"))
    }

    /// Returns the shards that hold consecutive rows.
    pub fn holding(&self, rows: &Range<u64>) -> Range<usize> {
        if rows.is_empty() {
            return 0..0;
        }
        self.place(rows.start).0..self.place(rows.end - 1).0 + 1
    }

    /// Opens all shards that are not open, many at a time.
    pub fn open_all(&self) -> Result<()> {
        self.open_some(0..self.len())
    }

    /// Opens consecutive shards that are not open, many at a time.
    pub fn open_some(&self, shards: Range<usize>) -> Result<()> {
        let closed: Vec<usize> = shards.filter(|&k| self.get(k).is_none()).collect();
        closed.chunks(OPENING).try_for_each(|some| self.open(some))
    }

    /// Opens shards, all their files at a time. Returns the first error.
    fn open(&self, numbers: &[usize]) -> Result<()> {
        let listed = |&number: &usize| self.entry(number).expect("others are open from the start");
        let shards: Vec<&Listed> = numbers.iter().map(listed).collect();
        let mut outcome = Ok(());
        for (&number, opened) in numbers.iter().zip(Stack::open_all(&shards, self.fields.as_ref()))
        {
            match opened {
                Ok(stack) => _ = self.slots[number].stack.get_or_init(|| stack),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }

    /// Opens the files of rows, which must exist, and returns where the rows are. Those whose files
    /// cannot be opened are left out; the error is the first one of these.
    pub fn spots(&self, rows: &[u64]) -> (Vec<Spot<'_>>, Result<()>) {
        let mut spots = Vec::with_capacity(rows.len());
        for &row in rows {
            let (shard, position) = self.place(row);
            let Some(stack) = self.get(shard) else { return self.open_spots(rows) };
            let (local, first) = (stack.row(position), self.numbers.first(shard));
            spots.push(Spot { row, local, stack, first });
        }
        (spots, Ok(()))
    }

    #[cold]
    fn open_spots(&self, rows: &[u64]) -> (Vec<Spot<'_>>, Result<()>) {
        let shards = rows.iter().map(|&row| self.place(row).0);
        let mut closed: Vec<usize> = shards.filter(|&shard| self.get(shard).is_none()).collect();
        closed.sort_unstable();
        closed.dedup();
        let outcome = self.open(&closed);
        let is_open = |row: &u64| self.get(self.place(*row).0).is_some();
        let rows: Vec<u64> = rows.iter().copied().filter(is_open).collect();
        (self.spots(&rows).0, outcome)
    }
}

impl FromIterator<Stack> for Shards {
    fn from_iter<I: IntoIterator<Item = Stack>>(stacks: I) -> Self {
        let stacks: Vec<Stack> = stacks.into_iter().collect();
        let counts: Vec<usize> = stacks.iter().map(|stack| stack.files().count()).collect();
        Shards {
            ends: ends_of(stacks.iter().map(Stack::num_live)),
            numbers: Numbering::new(&counts),
            fields: None,
            slots: stacks
                .into_iter()
                .map(|stack| Slot { listed: None, stack: OnceLock::from(stack) })
                .collect(),
        }
    }
}

fn ends_of(rows: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut end = 0_u64;
    let ends = rows.map(|rows| {
        end = end.saturating_add(rows);
        end
    });
    ends.collect()
}
