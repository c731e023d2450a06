//! Blocks of indexes in memory: the most recently used of all files of the process.

use std::any::Any;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use arc_swap::{ArcSwapOption, Guard};

use crate::limit;
use crate::process::{self, PerProcess};
use crate::storage::available_memory;

/// Most bytes that stay in memory, whatever memory there is, and the part of it that they take.
const BUDGET_MAX: u64 = 1 << 30;
const BUDGET_PART: u64 = 32;

/// Blocks that are known before the list of them is looked through for files that are closed.
const SWEEP_MIN: usize = 1024;

/// Keeps a block in memory for as long as it is held.
pub type Pin = Arc<dyn Any + Send + Sync>;

/// The blocks of one file by their numbers, each loaded or not. Asking for one takes no lock.
///
/// What they take is shared with all files of the process: when it is too much, blocks that
/// were not used lately are evicted, unless a pin holds them.
pub struct Blocks<T: Send + Sync + 'static>(Arc<Slots<T>>);

/// A block in memory.
pub struct Block<T> {
    value: T,
    bytes: usize,
    used: AtomicBool,
}

/// A loaded block, for a moment.
pub struct Loaded<T>(Guard<Option<Arc<Block<T>>>>);

impl<T> Deref for Loaded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.as_ref().expect("made with a block").value
    }
}

impl<T> Deref for Block<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

struct Slots<T> {
    slots: Box<[ArcSwapOption<Block<T>>]>,
    generation: u64,
}

impl<T: Send + Sync + 'static> Blocks<T> {
    /// Returns `len` blocks, none of them loaded.
    pub fn new(len: usize) -> Blocks<T> {
        let slots = (0..len).map(|_| ArcSwapOption::empty()).collect();
        Blocks(Arc::new(Slots { slots, generation: process::generation() }))
    }

    /// Returns a block if it is loaded.
    #[inline]
    pub fn get(&self, number: usize) -> Option<Loaded<T>> {
        let slot = self.0.slots[number].load();
        let used = &slot.as_ref()?.used;
        if !used.load(Ordering::Relaxed) {
            used.store(true, Ordering::Relaxed);
        }
        Some(Loaded(slot))
    }

    /// Returns whether a block is loaded.
    pub fn has(&self, number: usize) -> bool {
        self.0.slots[number].load().is_some()
    }

    /// Keeps a block that takes `bytes` bytes, and returns it as a pin.
    pub fn put(&self, number: usize, value: T, bytes: usize) -> Arc<Block<T>> {
        let block = Arc::new(Block { value, bytes, used: AtomicBool::new(true) });
        let before = self.0.slots[number].swap(Some(Arc::clone(&block)));
        let slots: Weak<dyn Evict> = Arc::downgrade(&(Arc::clone(&self.0) as Arc<dyn Evict>));
        let gone = Clock::with(|clock| {
            clock.bytes = clock.bytes.saturating_sub(before.as_ref().map_or(0, |old| old.bytes));
            clock.add(slots, number, bytes)
        });
        drop(gone);
        block
    }
}

impl<T: Send + Sync + 'static> Clone for Blocks<T> {
    /// Returns as many blocks, none of them loaded: in the child of a fork, a thread of the parent
    /// may have been loading one.
    fn clone(&self) -> Blocks<T> {
        Blocks::new(self.0.slots.len())
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        if self.generation != process::generation() {
            return;
        }
        let blocks = self.slots.iter().filter_map(|slot| slot.swap(None));
        let bytes: usize = blocks.map(|block| block.bytes).sum();
        if bytes > 0 {
            Clock::with(|clock| clock.bytes = clock.bytes.saturating_sub(bytes));
        }
    }
}

/// Blocks that can be given up.
trait Evict: Send + Sync {
    /// Takes a block out, if it is there, was not used since the last time, and is not pinned.
    /// `Err` says that it stays.
    fn evict(&self, number: usize) -> Result<Option<(usize, Pin)>, ()>;
}

impl<T: Send + Sync + 'static> Evict for Slots<T> {
    fn evict(&self, number: usize) -> Result<Option<(usize, Pin)>, ()> {
        let slot = &self.slots[number];
        let Some(block) = slot.load_full() else { return Ok(None) };
        // One is that of the slot, one is this.
        if block.used.swap(false, Ordering::Relaxed) || Arc::strong_count(&block) > 2 {
            return Err(());
        }
        slot.store(None);
        Ok(Some((block.bytes, block)))
    }
}

/// All loaded blocks of the process, as the hand of a clock goes round.
struct Clock {
    blocks: Vec<(Weak<dyn Evict>, usize)>,
    hand: usize,
    bytes: usize,
    budget: usize,
    sweep: usize,
}

impl Clock {
    fn with<R>(call: impl FnOnce(&mut Clock) -> R) -> R {
        static CLOCK: PerProcess<Mutex<Clock>> = PerProcess::new();
        let clock = CLOCK.get(|| Mutex::new(Clock::new(budget())));
        let mut clock = clock.lock().expect("no panics under this lock");
        call(&mut clock)
    }

    fn new(budget: usize) -> Clock {
        Clock { blocks: Vec::new(), hand: 0, bytes: 0, budget, sweep: SWEEP_MIN }
    }

    /// Adds a block, and returns those that go for it.
    fn add(&mut self, slots: Weak<dyn Evict>, number: usize, bytes: usize) -> Vec<Pin> {
        if self.blocks.len() >= self.sweep {
            self.blocks.retain(|(slots, _)| slots.strong_count() > 0);
            self.sweep = SWEEP_MIN.max(2 * self.blocks.len());
        }
        self.blocks.push((slots, number));
        self.bytes += bytes;
        let mut gone = Vec::new();
        let mut steps = 2 * self.blocks.len();
        while self.bytes > self.budget && steps > 0 {
            steps -= 1;
            self.hand %= self.blocks.len();
            let (slots, number) = &self.blocks[self.hand];
            match slots.upgrade().map_or(Ok(None), |slots| slots.evict(*number)) {
                Err(()) => self.hand += 1,
                Ok(evicted) => {
                    self.blocks.swap_remove(self.hand);
                    if let Some((bytes, block)) = evicted {
                        self.bytes -= bytes;
                        gone.push(block);
                    }
                    if self.blocks.is_empty() {
                        break;
                    }
                }
            }
        }
        gone
    }
}

fn budget() -> usize {
    let asked = limit::index_bytes();
    let bytes = asked.unwrap_or_else(|| BUDGET_MAX.min(available_memory() / BUDGET_PART));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots_of(blocks: &Blocks<u8>) -> Weak<dyn Evict> {
        Arc::downgrade(&(Arc::clone(&blocks.0) as Arc<dyn Evict>))
    }

    fn fill(clock: &mut Clock, blocks: &Blocks<u8>, number: usize) -> Arc<Block<u8>> {
        let block = Arc::new(Block { value: 0, bytes: 10, used: AtomicBool::new(false) });
        blocks.0.slots[number].store(Some(Arc::clone(&block)));
        clock.add(slots_of(blocks), number, 10);
        block
    }

    #[test]
    fn blocks_that_were_not_used_go_first() {
        let (mut clock, blocks) = (Clock::new(30), Blocks::new(8));
        for number in 0..3 {
            fill(&mut clock, &blocks, number);
        }
        assert!(blocks.get(0).is_some());
        fill(&mut clock, &blocks, 3);
        let left: Vec<usize> = (0..4).filter(|&number| blocks.has(number)).collect();
        assert_eq!((left, clock.bytes), (vec![0, 2, 3], 30));
    }

    #[test]
    fn pinned_blocks_stay_and_go_later() {
        let (mut clock, blocks) = (Clock::new(20), Blocks::new(8));
        let pins: Vec<_> = (0..4).map(|number| fill(&mut clock, &blocks, number)).collect();
        assert_eq!(clock.bytes, 40, "more than the budget, for as long as they are pinned");
        drop(pins);
        fill(&mut clock, &blocks, 4);
        assert_eq!(clock.bytes, 20);
    }

    #[test]
    fn blocks_of_closed_files_are_not_counted() {
        let blocks = Blocks::new(4);
        let before = Clock::with(|clock| clock.bytes);
        blocks.put(0, 7_u8, 1000);
        blocks.put(0, 8_u8, 1000);
        assert_eq!(Clock::with(|clock| clock.bytes), before + 1000);
        drop(blocks);
        assert_eq!(Clock::with(|clock| clock.bytes), before);
    }
}
