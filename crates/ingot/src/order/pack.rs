//! Packs: rows that together fill a given length.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;

use super::lengths::Lengths;
use super::node::Order;
use super::window::reserve;
use super::{LEN_MAX, exceeded};
use crate::{Error, Result};

/// Number of inner positions among which packs are planned, so that a plan has a bounded size.
const BLOCK: u64 = 4096;

/// Bytes of plans that are kept; others are made again when they are needed.
const KEPT_MAX: u64 = 256 << 20;

/// Maximum number of pieces of the rows of a block.
const PIECES_MAX: u64 = 1 << 20;

/// What becomes of a row that is longer than a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// It is an error.
    Refuse,
    /// It is cut into pieces as long as a pack, and what remains.
    Cut,
    /// It is left out.
    Drop,
}

/// A row of a pack, or a piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The inner position, from the start of the block.
    place: u16,
    /// The number of the piece in its row; all before it are as long as a pack.
    part: u32,
    len: u32,
}

/// The packs of one block.
pub struct Plan {
    block: u64,
    /// Where the pieces of each pack begin, and the last ones end.
    offsets: Vec<u32>,
    pieces: Vec<Piece>,
}

impl Plan {
    fn num_bytes(&self) -> u64 {
        (size_of_val(&self.offsets[..]) + size_of_val(&self.pieces[..])) as u64
    }
}

/// The packs of an order, block after block.
pub struct Packs {
    lengths: Lengths,
    max_length: u32,
    long: Long,
    num_positions: u64,
    /// How many packs there are up to and including each block.
    ends: Vec<u64>,
    /// The plans of blocks, as far as they are kept, and their bytes.
    kept: Vec<ArcSwapOption<Plan>>,
    kept_bytes: AtomicU64,
    /// The plan that was made last.
    last: ArcSwapOption<Plan>,
}

impl Packs {
    /// Counts the packs of a finite order, block by block.
    ///
    /// # Errors
    ///
    /// A length is missing, or a row is longer than a pack and `long` refuses it.
    pub fn new(
        of: &Order,
        num_positions: u64,
        lengths: Lengths,
        max_length: u32,
        long: Long,
    ) -> Result<Self> {
        let num_blocks = num_positions.div_ceil(BLOCK);
        let mut ends = Vec::new();
        reserve(&mut ends, num_blocks)?;
        let (kept, kept_bytes, last) = (Vec::new(), AtomicU64::new(0), ArcSwapOption::empty());
        let mut packs =
            Packs { lengths, max_length, long, num_positions, ends, kept, kept_bytes, last };
        let mut total = 0u64;
        for block in 0..num_blocks {
            packs.kept.push(ArcSwapOption::empty());
            let count = packs.plan(of, block)?.offsets.len() as u64 - 1;
            total = total.checked_add(count).filter(|&sum| sum <= LEN_MAX).ok_or_else(exceeded)?;
            packs.ends.push(total);
        }
        Ok(packs)
    }

    /// Returns the number of packs.
    pub fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the block of a pack, and its number in the block.
    pub fn find(&self, position: u64) -> (u64, usize) {
        let block = self.ends.partition_point(|&end| end <= position);
        let before = if block == 0 { 0 } else { self.ends[block - 1] };
        (block as u64, (position - before) as usize)
    }

    /// Returns the plan of a block.
    ///
    /// # Errors
    ///
    /// As [`Packs::new`].
    pub fn plan(&self, of: &Order, block: u64) -> Result<Arc<Plan>> {
        let kept = &self.kept[block as usize];
        if let Some(plan) = kept.load_full() {
            return Ok(plan);
        }
        if let Some(plan) = self.last.load_full().filter(|plan| plan.block == block) {
            return Ok(plan);
        }
        let plan = Arc::new(self.make(of, block)?);
        let bytes = plan.num_bytes();
        if self.kept_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= KEPT_MAX {
            kept.store(Some(Arc::clone(&plan)));
        } else {
            self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.last.store(Some(Arc::clone(&plan)));
        }
        Ok(plan)
    }

    /// Returns inner position, first element and end of each piece of a pack.
    pub fn pieces<'a>(
        &self,
        plan: &'a Plan,
        pack: usize,
    ) -> impl Iterator<Item = (u64, u64, u64)> + use<'a> {
        let (first, most) = (plan.block * BLOCK, u64::from(self.max_length));
        let pieces = &plan.pieces[plan.offsets[pack] as usize..plan.offsets[pack + 1] as usize];
        pieces.iter().map(move |piece| {
            let start = u64::from(piece.part) * most;
            (first + u64::from(piece.place), start, start + u64::from(piece.len))
        })
    }

    fn make(&self, of: &Order, block: u64) -> Result<Plan> {
        let start = block * BLOCK;
        let rows = of.rows(start, (start + BLOCK).min(self.num_positions))?;
        let mut pieces = Vec::with_capacity(BLOCK as usize);
        for (place, (&source, &row)) in (0..).zip(rows.sources.iter().zip(&rows.rows)) {
            let len = self.lengths.of(source, row)?;
            self.cut(place, len, &mut pieces).map_err(|reason| {
                let max = self.max_length;
                Error::Invalid(format!(
                    "row {row} of source {source} is {len} long, a pack at most {max}: {reason}"
                ))
            })?;
        }
        let (offsets, pieces) = fit(pieces, self.max_length);
        Ok(Plan { block, offsets, pieces })
    }

    fn cut(&self, place: u16, len: u64, pieces: &mut Vec<Piece>) -> Result<(), &'static str> {
        let most = u64::from(self.max_length);
        if len <= most {
            pieces.push(Piece { place, part: 0, len: len as u32 });
            return Ok(());
        }
        match self.long {
            Long::Drop => return Ok(()),
            Long::Refuse => return Err("long=\"cut\" cuts such rows, long=\"drop\" drops them"),
            Long::Cut => {}
        }
        let parts = len.div_ceil(most);
        if parts > PIECES_MAX - (pieces.len() as u64).min(PIECES_MAX) {
            return Err("too many pieces");
        }
        for part in 0..parts {
            let len = most.min(len - part * most) as u32;
            pieces.push(Piece { place, part: part as u32, len });
        }
        Ok(())
    }
}

/// Sorts pieces into packs: the longest piece first, each into the fullest pack that has room.
///
/// Packs are in the order of their first pieces, and pieces in the order of their places.
fn fit(mut pieces: Vec<Piece>, max_length: u32) -> (Vec<u32>, Vec<Piece>) {
    let mut longest: Vec<u32> = (0..pieces.len() as u32).collect();
    let len = |k: u32| pieces[k as usize].len;
    longest.sort_by_key(|&k| std::cmp::Reverse(len(k)));
    let mut room: BTreeSet<(u32, u32)> = BTreeSet::new();
    let mut pack_of = vec![0u32; pieces.len()];
    let mut num_packs = 0;
    for k in longest {
        let len = len(k);
        let fullest = room.range((len, 0)..).next().copied();
        let (left, pack) = fullest.unwrap_or_else(|| {
            num_packs += 1;
            (max_length, num_packs - 1)
        });
        room.remove(&(left, pack));
        room.insert((left - len, pack));
        pack_of[k as usize] = pack;
    }
    let mut first = vec![u32::MAX; num_packs as usize];
    for (k, &pack) in pack_of.iter().enumerate() {
        let first = &mut first[pack as usize];
        *first = (*first).min(k as u32);
    }
    let mut sorted: Vec<u32> = (0..pieces.len() as u32).collect();
    sorted.sort_by_key(|&k| (first[pack_of[k as usize] as usize], k));
    let mut offsets = Vec::with_capacity(num_packs as usize + 1);
    for (at, &k) in sorted.iter().enumerate() {
        if first[pack_of[k as usize] as usize] == k {
            offsets.push(at as u32);
        }
    }
    offsets.push(pieces.len() as u32);
    pieces = sorted.into_iter().map(|k| pieces[k as usize]).collect();
    (offsets, pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Numbers;

    #[test]
    fn packs_hold_each_piece_once_and_no_pack_is_too_long() {
        let mut numbers = Numbers::new(3);
        for _ in 0..200 {
            let max_length = 1 + numbers.below(60) as u32;
            let pieces: Vec<Piece> = (0..numbers.below(300) as u16)
                .map(|place| {
                    let len = numbers.below(u64::from(max_length) + 1) as u32;
                    Piece { place, part: 0, len }
                })
                .collect();
            let (offsets, packed) = fit(pieces.clone(), max_length);
            let mut firsts = Vec::new();
            for ends in offsets.windows(2) {
                let pack = &packed[ends[0] as usize..ends[1] as usize];
                assert!(pack.iter().map(|piece| piece.len).sum::<u32>() <= max_length);
                assert!(pack.is_sorted_by_key(|piece| piece.place));
                firsts.push(pack[0].place);
            }
            assert!(firsts.is_sorted());
            let total: u32 = pieces.iter().map(|piece| piece.len).sum();
            assert!(firsts.len() as u32 <= 1 + 2 * total / max_length);
            let mut sorted = packed;
            sorted.sort_by_key(|piece| piece.place);
            assert_eq!(sorted, pieces);
        }
    }
}
