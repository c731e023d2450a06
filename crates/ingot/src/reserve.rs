//! Bookkeeping of a memory reserve.

use std::sync::atomic::{AtomicU64, Ordering};

const ONE: u64 = 1 << 32;

/// Hands out pieces of a reserve one after the other; they are returned in any order. A piece that
/// is returned while it is the last one can be taken again at once, any other one when all are
/// returned. Takes no lock and allocates nothing.
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

    /// Gives back the piece of `size` bytes that begins at `at`.
    pub fn put_back(&self, at: usize, size: u32) {
        let (at, end) = (at as u64, at as u64 + u64::from(size));
        let less = |state: u64| match (state / ONE, state % ONE) {
            (1, _) => Some(0),
            (count, used) => Some((count - 1) * ONE + if used == end { at } else { used }),
        };
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
        pieces.put_back(0, 60);
        assert_eq!(pieces.take(1), None);
        pieces.put_back(60, 40);
        assert_eq!(pieces.take(100), Some(0));
    }

    #[test]
    fn the_last_piece_can_be_taken_again_at_once() {
        let pieces = Pieces::of(100);
        assert_eq!((pieces.take(60), pieces.take(30)), (Some(0), Some(60)));
        pieces.put_back(60, 30);
        assert_eq!((pieces.take(40), pieces.take(1)), (Some(60), None));
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
                pieces.put_back(at, size);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    }
}
