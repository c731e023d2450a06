//! Orders, and how they are composed.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::interleave::Turns;
use super::lengths::Lengths;
use super::mixture::Mixture;
use super::pack::{Long, Packs};
use super::permutation::Permutation;
use super::window::Windows;
use super::{LEN_MAX, exceeded};
use crate::{Error, Result};

/// Maximum number of steps between a position and its row.
const DEPTH_MAX: u32 = 200;

/// Maximum depth of groups of groups.
const GROUPS_MAX: usize = 8;

/// Maximum number of rows in a batch.
const BATCH_MAX: u64 = 1 << 24;

/// Maximum number of parts of an order; fewer if they take turns, because of their table.
const PARTS_MAX: usize = 1 << 16;
const TURNS_MAX: usize = 1 << 12;

/// A function from positions to rows. Copies of it share everything.
#[derive(Clone)]
pub struct Order(pub(super) Arc<Node>);

/// A step of a composition, and figures about all that is below it.
pub(super) struct Node {
    pub step: Step,
    pub figures: Figures,
}

/// Figures about an order.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// The number of positions; `None` if there is no end.
    pub len: Option<u64>,
    pub depth: u32,
    pub sources: u32,
    pub maps: u32,
    /// How many steps remember something during an evaluation.
    pub memos: u32,
    /// How many maps an item goes through at most, on each level from groups to rows.
    pub widths: Vec<usize>,
    /// Whether rows may have a start and a stop.
    pub has_cuts: bool,
}

/// What a step does with a position.
pub(super) enum Step {
    Rows,
    Table(Arc<[u64]>),
    Shuffle { of: Order, len: u64, seed: u64, last: ArcSwapOption<((u64, u32), Permutation)> },
    Repeat { of: Order, len: u64, times: Option<u64> },
    Slice { of: Order, start: u64, step: i64 },
    Parts { parts: Vec<Part>, choice: Choice },
    Map { of: Order, seed: u64 },
    Batch { of: Order, size: u64, len: Option<u64> },
    Window { of: Order, windows: Windows },
    Pack { of: Order, packs: Packs },
}

/// One of several parts, with the first numbers of its sources, maps and memos.
pub(super) struct Part {
    pub order: Order,
    pub sources: u32,
    pub maps: u32,
    pub memos: u32,
}

/// How a part is chosen.
pub(super) enum Choice {
    /// The first positions of the parts.
    Concat(Vec<u64>),
    Interleave(Turns),
    Mix(Mixture),
}

fn invalid<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::Invalid(reason.into()))
}

impl Order {
    /// Returns the rows of a source in their own order.
    ///
    /// # Errors
    ///
    /// There are more than 2^63 - 1 rows.
    pub fn of(num_rows: u64) -> Result<Self> {
        Self::leaf(Step::Rows, num_rows)
    }

    /// Returns rows of a source by a table of their numbers.
    ///
    /// # Errors
    ///
    /// A number is not below 2^63.
    pub fn table(rows: Vec<u64>) -> Result<Self> {
        if rows.iter().any(|&row| row > LEN_MAX) {
            return Err(exceeded());
        }
        let len = rows.len() as u64;
        Self::leaf(Step::Table(rows.into()), len)
    }

    fn leaf(step: Step, len: u64) -> Result<Self> {
        if len > LEN_MAX {
            return Err(exceeded());
        }
        let widths = vec![0];
        let (depth, sources, maps, memos, has_cuts) = (1, 1, 0, 0, false);
        let figures = Figures { len: Some(len), depth, sources, maps, memos, widths, has_cuts };
        Ok(Order(Arc::new(Node { step, figures })))
    }

    fn with(step: Step, mut figures: Figures) -> Result<Self> {
        if figures.len.is_some_and(|len| len > LEN_MAX) {
            return Err(exceeded());
        }
        figures.depth += 1;
        if figures.depth > DEPTH_MAX {
            return invalid(format!("an order has at most {DEPTH_MAX} steps one after another"));
        }
        Ok(Order(Arc::new(Node { step, figures })))
    }

    /// Returns the number of positions; `None` if there is no end.
    pub fn len(&self) -> Option<u64> {
        self.0.figures.len
    }

    /// Returns whether there are no positions.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Returns the number of sources.
    pub fn num_sources(&self) -> usize {
        self.0.figures.sources as usize
    }

    /// Returns how often groups are made: 0 if each position is one row.
    pub fn num_groups(&self) -> usize {
        self.0.figures.widths.len() - 1
    }

    fn finite(&self, what: &str) -> Result<u64> {
        self.len().ok_or_else(|| {
            let advice = "the order is infinite; take(n) before it, or move repeat behind it";
            Error::Invalid(format!("{what} needs an order with an end: {advice}"))
        })
    }

    /// Returns the same rows in a random order, another one in each epoch.
    ///
    /// # Errors
    ///
    /// The order has no end.
    pub fn shuffle(&self, seed: u64) -> Result<Self> {
        let len = self.finite("shuffle")?;
        let mut figures = self.0.figures.clone();
        figures.memos += 1;
        let last = ArcSwapOption::empty();
        Self::with(Step::Shuffle { of: self.clone(), len, seed, last }, figures)
    }

    /// Returns the order again and again, `times` times or without end.
    ///
    /// # Errors
    ///
    /// The order has no end, or the result has more than 2^63 - 1 positions.
    pub fn repeat(&self, times: Option<u64>) -> Result<Self> {
        let Some(len) = self.len() else {
            return invalid("repeat needs an order with an end: this one is infinite already");
        };
        let mut figures = self.0.figures.clone();
        figures.len = match times {
            Some(times) => Some(len.checked_mul(times).ok_or_else(exceeded)?),
            None => (len == 0).then_some(0),
        };
        Self::with(Step::Repeat { of: self.clone(), len, times }, figures)
    }

    /// Returns positions `start`, `start + step` and so on, `len` of them or without end.
    ///
    /// # Errors
    ///
    /// These positions are not all in the order.
    pub fn slice(&self, start: u64, step: i64, len: Option<u64>) -> Result<Self> {
        let last = match len {
            Some(0) => Some(0),
            Some(len) => Some(i128::from(start) + (i128::from(len) - 1) * i128::from(step)),
            None => None,
        };
        let bound = self.len().unwrap_or(LEN_MAX);
        let is_inside = match last {
            Some(_) if len == Some(0) => true,
            Some(last) => start < bound && last >= 0 && last < i128::from(bound),
            None => self.len().is_none() && step > 0 && start < bound,
        };
        if !is_inside || step == 0 {
            return invalid(format!("no slice from {start} in steps of {step} is in the order"));
        }
        let figures = Figures { len, ..self.0.figures.clone() };
        Self::with(Step::Slice { of: self.clone(), start, step }, figures)
    }

    /// Returns orders one after the other.
    ///
    /// # Errors
    ///
    /// The list is empty, an order but the last is infinite, or their positions differ in kind.
    pub fn concat(orders: Vec<Order>) -> Result<Self> {
        let (parts, mut figures) = parts_of(orders, PARTS_MAX)?;
        let mut starts = Vec::with_capacity(parts.len());
        let mut total = Some(0u64);
        for part in &parts {
            let Some(start) = total else {
                return invalid("only the last part of a concatenation may be infinite");
            };
            starts.push(start);
            total = match part.order.len() {
                Some(len) => {
                    let sum = start.checked_add(len).filter(|&sum| sum <= LEN_MAX);
                    Some(sum.ok_or_else(exceeded)?)
                }
                None => None,
            };
        }
        figures.len = total;
        Self::with(Step::Parts { parts, choice: Choice::Concat(starts) }, figures)
    }

    /// Returns orders in turns; when one ends, the others continue.
    ///
    /// # Errors
    ///
    /// The list is empty or too long, or their positions differ in kind.
    pub fn interleave(orders: Vec<Order>) -> Result<Self> {
        let (parts, mut figures) = parts_of(orders, TURNS_MAX)?;
        let lens: Vec<Option<u64>> = parts.iter().map(|part| part.order.len()).collect();
        figures.len = match lens.iter().copied().collect::<Option<Vec<u64>>>() {
            Some(lens) => {
                let sum = lens.into_iter().try_fold(0, u64::checked_add);
                Some(sum.ok_or_else(exceeded)?)
            }
            None => None,
        };
        let choice = Choice::Interleave(Turns::new(&lens));
        Self::with(Step::Parts { parts, choice }, figures)
    }

    /// Returns a mix of orders by integer weights, from the positions in `schedule` on.
    ///
    /// # Errors
    ///
    /// As [`Mixture::new`], or the positions of the orders differ in kind.
    pub fn mix(orders: Vec<Order>, schedule: &[(u64, Vec<u64>)]) -> Result<Self> {
        let (parts, mut figures) = parts_of(orders, PARTS_MAX)?;
        let lens: Vec<Option<u64>> = parts.iter().map(|part| part.order.len()).collect();
        let mixture = Mixture::new(&lens, schedule)?;
        figures.len = mixture.len();
        Self::with(Step::Parts { parts, choice: Choice::Mix(mixture) }, figures)
    }

    /// Returns the order with one more map, whose random numbers depend on `seed`.
    ///
    /// # Errors
    ///
    /// The order has too many steps.
    pub fn map(&self, seed: u64) -> Result<Self> {
        let mut figures = self.0.figures.clone();
        figures.maps += 1;
        figures.widths[0] += 1;
        Self::with(Step::Map { of: self.clone(), seed }, figures)
    }

    /// Returns an order whose positions are `size` consecutive positions of this one.
    ///
    /// The last batch has fewer, or is left out with `drop_last`.
    ///
    /// # Errors
    ///
    /// The size is 0 or more than 2^24.
    pub fn batch(&self, size: u64, drop_last: bool) -> Result<Self> {
        if size == 0 || size > BATCH_MAX {
            return invalid(format!("a batch has 1 to {BATCH_MAX} samples, not {size}"));
        }
        let mut figures = self.group("batch")?;
        let count = |len: u64| if drop_last { len / size } else { len.div_ceil(size) };
        figures.len = self.len().map(count);
        Self::with(Step::Batch { of: self.clone(), size, len: self.len() }, figures)
    }

    /// Returns an order whose positions are windows of this one's rows.
    ///
    /// # Errors
    ///
    /// As [`Windows::new`], or the positions are not whole rows.
    pub fn window(
        &self,
        lengths: Lengths,
        length: u64,
        stride: u64,
        partial: bool,
    ) -> Result<Self> {
        if length == 0 || stride == 0 {
            return invalid("the length and the stride of a window are at least 1");
        }
        let len = self.whole("window", &lengths)?;
        let windows = Windows::new(self, len, &lengths, (length, stride), partial)?;
        let figures =
            Figures { len: Some(windows.len()), has_cuts: true, ..self.0.figures.clone() };
        Self::with(Step::Window { of: self.clone(), windows }, figures)
    }

    /// Returns an order whose positions are rows of this one that fit into `max_length`.
    ///
    /// # Errors
    ///
    /// As [`Packs::new`], or the positions are not whole rows.
    pub fn pack(&self, lengths: Lengths, max_length: u64, long: Long) -> Result<Self> {
        let max_length = match u32::try_from(max_length) {
            Ok(max_length) if max_length > 0 => max_length,
            _ => {
                return invalid(format!("the length of a pack is 1 to 2^32 - 1, not {max_length}"));
            }
        };
        let len = self.whole("pack", &lengths)?;
        let packs = Packs::new(self, len, lengths, max_length, long)?;
        let mut figures = self.group("pack")?;
        figures.len = Some(packs.len());
        figures.has_cuts = true;
        figures.memos += 1;
        Self::with(Step::Pack { of: self.clone(), packs }, figures)
    }

    /// Returns the figures of groups of this order.
    fn group(&self, what: &str) -> Result<Figures> {
        if self.num_groups() == GROUPS_MAX {
            return invalid(format!(
                "{what}: groups are made of groups at most {GROUPS_MAX} times"
            ));
        }
        let mut figures = self.0.figures.clone();
        figures.widths.insert(0, 0);
        Ok(figures)
    }

    /// Returns the length if positions are whole rows with lengths.
    fn whole(&self, what: &str, lengths: &Lengths) -> Result<u64> {
        if self.num_groups() > 0 || self.0.figures.has_cuts {
            return invalid(format!(
                "{what} needs whole rows; it goes before batch, window and pack"
            ));
        }
        let (expected, found) = (self.num_sources(), lengths.num_sources());
        if expected != found {
            return invalid(format!("expected lengths for {expected} sources, got {found}"));
        }
        self.finite(what)
    }
}

/// Numbers the sources, maps and memos of parts.
fn parts_of(orders: Vec<Order>, most: usize) -> Result<(Vec<Part>, Figures)> {
    let Some(mut figures) = orders.first().map(|order| order.0.figures.clone()) else {
        return invalid("expected at least one order");
    };
    if orders.len() > most {
        return invalid(format!("expected at most {most} orders, got {}", orders.len()));
    }
    (figures.sources, figures.maps, figures.memos) = (0, 0, 0);
    let mut parts = Vec::with_capacity(orders.len());
    for order in orders {
        let one = order.0.figures.clone();
        if one.widths.len() != figures.widths.len() {
            return invalid("expected parts that all have single samples, or all have batches");
        }
        let Figures { sources, maps, memos, .. } = figures;
        parts.push(Part { order, sources, maps, memos });
        let add = |sum: u32, more: u32| {
            sum.checked_add(more).filter(|&sum| sum <= i32::MAX as u32).ok_or_else(exceeded)
        };
        figures.sources = add(sources, one.sources)?;
        figures.maps = add(maps, one.maps)?;
        figures.memos = add(memos, one.memos)?;
        figures.depth = figures.depth.max(one.depth);
        figures.has_cuts |= one.has_cuts;
        for (width, other) in figures.widths.iter_mut().zip(one.widths) {
            *width = (*width).max(other);
        }
    }
    Ok((parts, figures))
}
