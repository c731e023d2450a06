//! From positions to rows.

use std::sync::Arc;

use super::node::{Choice, Order, Step};
use super::pack::Plan;
use super::permutation::{Permutation, TABLE_MAX};
use super::picks::Picks;
use super::{LEN_MAX, exceeded};
use crate::hash::key;
use crate::{Error, Result};

/// Where a walk from a position to its rows is.
#[derive(Clone, Copy)]
struct At {
    position: u64,
    /// How often the repeats above have restarted, as one number.
    epoch: u64,
    /// The same for what decides the order: windows and packs are planned for epoch 0.
    order_epoch: u64,
    /// The number of the first source below, counted from the windows or packs above on: parts
    /// with equal lengths and seeds have permutations of their own. Windows and packs are planned
    /// for branch 0, wherever they are.
    branch: u32,
    cut: Option<(u64, u64)>,
    /// The first numbers of the sources, maps and memos below.
    sources: u32,
    maps: u32,
    memos: u32,
}

/// What a step has used last.
enum Memo {
    Nothing,
    Permutation(u64, Permutation),
    Plan(u64, Arc<Plan>),
}

struct Walk {
    out: Picks,
    has_cuts: bool,
    memos: Vec<Memo>,
}

impl Order {
    /// Returns which rows the positions from `start` to `stop` are.
    ///
    /// # Errors
    ///
    /// A position is not in the order, or there are too many of them for one call.
    pub fn rows(&self, start: u64, stop: u64) -> Result<Picks> {
        if start < stop {
            self.check(stop - 1)?;
        }
        self.walk_all(stop.saturating_sub(start), start..stop)
    }

    /// Returns which rows some positions are.
    ///
    /// # Errors
    ///
    /// A position is not in the order, or there are too many of them for one call.
    pub fn rows_at(&self, positions: &[u64]) -> Result<Picks> {
        positions.iter().try_for_each(|&position| self.check(position))?;
        self.walk_all(positions.len() as u64, positions.iter().copied())
    }

    fn check(&self, position: u64) -> Result<()> {
        let rows = self.len().unwrap_or(LEN_MAX);
        if position < rows {
            return Ok(());
        }
        let index = i64::try_from(position).unwrap_or(i64::MAX);
        Err(Error::Index { path: "order".to_owned(), index, rows })
    }

    fn walk_all(&self, count: u64, positions: impl Iterator<Item = u64>) -> Result<Picks> {
        let has_cuts = self.0.figures.has_cuts;
        let out = Picks::new(count, &self.0.figures.widths, has_cuts)?;
        let memos = (0..self.0.figures.memos).map(|_| Memo::Nothing).collect();
        let mut walk = Walk { out, has_cuts, memos };
        let (epoch, order_epoch, branch, cut) = (0, 0, 0, None);
        let (sources, maps, memos) = (0, 0, 0);
        for position in positions {
            let at = At { position, epoch, order_epoch, branch, cut, sources, maps, memos };
            walk.down(self, at, 0)?;
        }
        Ok(walk.out)
    }
}

impl Walk {
    /// Adds the rows of one item of a level.
    fn down(&mut self, order: &Order, mut at: At, level: usize) -> Result<()> {
        let from = self.out.levels[level].maps.len();
        let mut order = order;
        loop {
            let own_memo = || (at.memos + order.0.figures.memos - 1) as usize;
            match &order.0.step {
                Step::Rows => break self.end(at, at.position, level, from)?,
                Step::Table(rows) => {
                    break self.end(at, rows[at.position as usize], level, from)?;
                }
                Step::Shuffle { of, .. } => {
                    at.position = self.permuted(order, own_memo(), at);
                    order = of;
                }
                Step::Repeat { of, len, times } => {
                    let count = at.position / len;
                    at.position %= len;
                    at.epoch = combine(at.epoch, *times, count);
                    at.order_epoch = combine(at.order_epoch, *times, count);
                    order = of;
                }
                Step::Slice { of, start, step } => {
                    let place = i128::from(at.position) * i128::from(*step) + i128::from(*start);
                    if place >= i128::from(LEN_MAX) {
                        return Err(exceeded());
                    }
                    at.position = place as u64;
                    order = of;
                }
                Step::Parts { parts, choice } => {
                    let (part, position) = choice.at(at.position);
                    let part = &parts[part];
                    at.position = position;
                    at.branch += part.sources;
                    at.sources += part.sources;
                    at.maps += part.maps;
                    at.memos += part.memos;
                    order = &part.order;
                }
                Step::Map { of, seed } => {
                    let number = at.maps + of.0.figures.maps;
                    let values = [*seed, u64::from(number), at.epoch, at.position];
                    let level = &mut self.out.levels[level];
                    level.maps.push(number as i32);
                    level.keys.push(key(&values));
                    order = of;
                }
                Step::Window { of, windows } => {
                    let (place, start, stop) = windows.at(at.position);
                    let cut = Some((start, stop));
                    at = At { position: place, order_epoch: 0, branch: 0, cut, ..at };
                    order = of;
                }
                Step::Batch { of, size, len } => {
                    let start = at.position.checked_mul(*size).ok_or_else(exceeded)?;
                    let stop = start.saturating_add(*size).min(len.unwrap_or(LEN_MAX));
                    self.out.levels[level].finish(from);
                    for position in start..stop {
                        self.down(of, At { position, ..at }, level + 1)?;
                    }
                    break self.close(level);
                }
                Step::Pack { of, packs } => {
                    let (block, pack) = packs.find(at.position);
                    let memo = own_memo();
                    if !matches!(self.memos[memo], Memo::Plan(last, _) if last == block) {
                        self.memos[memo] = Memo::Plan(block, packs.plan(of, block)?);
                    }
                    let Memo::Plan(_, plan) = &self.memos[memo] else { unreachable!("set above") };
                    let plan = Arc::clone(plan);
                    self.out.levels[level].finish(from);
                    for (position, start, stop) in packs.pieces(&plan, pack) {
                        let cut = Some((start, stop));
                        let at = At { position, order_epoch: 0, branch: 0, cut, ..at };
                        self.down(of, at, level + 1)?;
                    }
                    break self.close(level);
                }
            }
        }
        Ok(())
    }

    /// Adds a row.
    #[inline]
    fn end(&mut self, at: At, row: u64, level: usize, from: usize) -> Result<()> {
        if self.out.levels[level].width > 0 {
            self.out.levels[level].finish(from);
        }
        self.out.push(at.sources, row, at.epoch, at.cut, self.has_cuts)
    }

    /// Ends a group.
    fn close(&mut self, level: usize) {
        let last = level + 1 == self.out.levels.len() - 1;
        let count =
            if last { self.out.rows.len() } else { self.out.levels[level + 1].offsets.len() - 1 };
        self.out.levels[level].offsets.push(count as i64);
    }

    #[inline]
    fn permuted(&mut self, order: &Order, memo: usize, at: At) -> u64 {
        if let Memo::Permutation(epoch, permutation) = &self.memos[memo]
            && *epoch == at.order_epoch
        {
            return permutation.at(at.position);
        }
        let permutation = permutation_of(order, at.order_epoch, at.branch);
        let place = permutation.at(at.position);
        self.memos[memo] = Memo::Permutation(at.order_epoch, permutation);
        place
    }
}

/// Returns the permutation of a shuffle for an epoch, on a branch. Tables are kept, one for each
/// shuffle.
fn permutation_of(order: &Order, epoch: u64, branch: u32) -> Permutation {
    let Step::Shuffle { len, seed, last, .. } = &order.0.step else {
        unreachable!("only shuffles permute");
    };
    if *len > TABLE_MAX {
        return Permutation::new(*len, *seed, epoch, branch);
    }
    if let Some(kept) = last.load().as_ref().filter(|kept| kept.0 == (epoch, branch)) {
        return kept.1.clone();
    }
    let permutation = Permutation::new(*len, *seed, epoch, branch);
    last.store(Some(Arc::new(((epoch, branch), permutation.clone()))));
    permutation
}

impl Choice {
    #[inline]
    fn at(&self, position: u64) -> (usize, u64) {
        match self {
            Choice::Concat(starts) => {
                let part = starts.partition_point(|&start| start <= position) - 1;
                (part, position - starts[part])
            }
            Choice::Interleave(turns) => turns.at(position),
            Choice::Mix(mixture) => mixture.at(position),
        }
    }
}

/// Returns the epoch below a repeat: `repeat(3)` below `repeat(2)` counts from 0 to 5.
///
/// A repeat without end has no number of epochs to count on from; each epoch above it then begins
/// at a number of its own.
pub(super) fn combine(above: u64, times: Option<u64>, count: u64) -> u64 {
    let base = match times {
        _ if above == 0 => 0,
        Some(times) => above.wrapping_mul(times),
        None => key(&[above]),
    };
    base.wrapping_add(count) & LEN_MAX
}
