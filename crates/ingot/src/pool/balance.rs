//! Whether sharing batches pays at present.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

/// Batches that the caller works on alone once sharing does not pay.
const ALONE: u32 = 1024;

/// Nanoseconds that sharing may lose before it is given up.
const CREDIT: i64 = 4_000_000;

/// What sharing has gained lately.
///
/// Sharing a batch gains the time in which the caller would have done what helpers did. It loses
/// what it takes to call them, and what the caller then waits for one that was kept from its core.
/// When the losses outweigh the gains, other programs want the cores or batches are too small.
pub struct Balance {
    /// Batches that the caller is to work on alone.
    alone: AtomicU32,
    gained: AtomicI64,
}

impl Balance {
    pub const fn new() -> Balance {
        Balance { alone: AtomicU32::new(0), gained: AtomicI64::new(CREDIT) }
    }

    /// Returns whether the next batch is to be shared.
    pub fn shares(&self) -> bool {
        let left = self.alone.load(Ordering::Relaxed);
        if left > 0 {
            self.alone.store(left - 1, Ordering::Relaxed);
        }
        left == 0
    }

    /// Takes note of a batch: `helpers` were called, which took `calling`, and did `helped` tasks;
    /// the caller did `done` tasks in `worked` and then `waited`.
    pub fn note(
        &self,
        (helpers, calling): (usize, Duration),
        helped: usize,
        (done, worked): (usize, Duration),
        waited: Duration,
    ) {
        let share = helped as f64 / done.max(1) as f64;
        let saved = worked.mul_f64(share.min(helpers as f64));
        self.add(saved.as_nanos() as i64 - (waited + calling).as_nanos() as i64);
    }

    fn add(&self, gain: i64) {
        let gained = self.gained.load(Ordering::Relaxed).saturating_add(gain).min(CREDIT);
        if gained < 0 {
            self.alone.store(ALONE, Ordering::Relaxed);
        }
        self.gained.store(if gained < 0 { CREDIT / 4 } else { gained }, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn losses_end_sharing_for_a_while() {
        let balance = Balance::new();
        for _ in 0..4 {
            assert!(balance.shares());
            balance.note((1, Duration::ZERO), 0, (1, MS), MS);
        }
        balance.note((1, Duration::ZERO), 0, (1, MS), MS);
        assert!((0..ALONE).all(|_| !balance.shares()));
        assert!(balance.shares());
    }

    #[test]
    fn gains_make_up_for_losses() {
        let balance = Balance::new();
        for _ in 0..100 {
            balance.note((1, Duration::ZERO), 0, (1, MS), MS);
            balance.note((1, Duration::ZERO), 1, (1, 2 * MS), Duration::ZERO);
            assert!(balance.shares());
        }
    }
}
