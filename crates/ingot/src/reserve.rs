//! Bookkeeping of a memory reserve.

use std::sync::atomic::{AtomicU64, Ordering};

const ONE: u64 = 1 << 32;

/// Hands out pieces of a reserve one after the other; they are returned in any order. Once all are
/// returned, the reserve is whole again. Takes no lock and allocates nothing.
///
/// The number of pieces and the end of the last one are the two halves of one atomic number, so
/// they change together.
#[derive(Debug)]
pub struct Pieces {
    state: AtomicU64,
    len: u32,
}

impl Pieces {
    /// Returns a whole reserve of `len` bytes.
    pub const fn of(len: u32) -> Pieces {
        Pieces { state: AtomicU64::new(0), len }
    }

    /// Takes a piece, and returns where it begins; `None` if there is not so much left.
    pub fn take(&self, size: u32) -> Option<usize> {
        let taken = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |state| {
            let size = u64::from(size);
            (state % ONE + size <= u64::from(self.len)).then_some(state + ONE + size)
        });
        taken.ok().map(|before| (before % ONE) as usize)
    }

    /// Gives a piece back.
    pub fn put_back(&self) {
        let less = |state| Some(if state < 2 * ONE { 0 } else { state - ONE });
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn the_reserve_is_whole_once_all_pieces_are_back() {
        let pieces = Pieces::of(100);
        assert_eq!((pieces.take(60), pieces.take(40), pieces.take(1)), (Some(0), Some(60), None));
        pieces.put_back();
        assert_eq!(pieces.take(1), None);
        pieces.put_back();
        assert_eq!(pieces.take(100), Some(0));
    }

    #[test]
    fn no_piece_is_handed_out_twice() {
        let (pieces, is_out) = (Pieces::of(4), [const { AtomicBool::new(false) }; 4]);
        let work = || {
            for k in 0..50_000 {
                let size = 1 + k % 2;
                let Some(at) = pieces.take(size) else { continue };
                let piece = &is_out[at..at + size as usize];
                assert!(piece.iter().all(|byte| !byte.swap(true, Ordering::SeqCst)));
                piece.iter().for_each(|byte| byte.store(false, Ordering::SeqCst));
                pieces.put_back();
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    }
}
