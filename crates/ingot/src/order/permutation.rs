//! Keyed permutations: a random order of n rows, one row at a time, without a table of n.

use std::sync::Arc;

use crate::hash::{Numbers, fold, key};

/// Up to this many rows are permuted by a table.
///
/// A Feistel network over a few bits reaches a small part of all permutations, and which part is
/// visible in counts. From 2048 values on, its halves have five bits or more and eight rounds
/// suffice; the tests count. A table of 1024 numbers takes 2 KB, and making it a few microseconds.
pub const TABLE_MAX: u64 = 1024;

const ROUNDS: usize = 8;

/// A random order of the numbers from 0 to n - 1; which one depends on n, a seed, an epoch and
/// the number of a branch.
#[derive(Clone)]
pub enum Permutation {
    /// Few numbers: a table, shuffled by Fisher and Yates' method.
    Table(Arc<[u16]>),
    /// Many numbers: a Feistel network.
    Network(Network),
}

/// A Feistel network over the smallest power of two that is not below n. A result that is not
/// below n is put in again; fewer than half of the values are such, so that fewer than two passes
/// are expected. It ends, because the network permutes: a walk from below n comes back there.
#[derive(Clone)]
pub struct Network {
    n: u64,
    low_bits: u32,
    low: u64,
    high: u64,
    keys: [(u64, u64); ROUNDS],
}

impl Permutation {
    /// Returns the permutation of `n` numbers for a seed and an epoch, on a branch of an order.
    ///
    /// Branch 0 is also that of an order without parts, whose key has no number of a branch.
    pub fn new(n: u64, seed: u64, epoch: u64, branch: u32) -> Self {
        let values = [seed, epoch, n, u64::from(branch)];
        let mut numbers = Numbers::new(key(&values[..if branch == 0 { 3 } else { 4 }]));
        if n <= TABLE_MAX {
            return Permutation::Table(table(n, &mut numbers));
        }
        let bits = 64 - (n - 1).leading_zeros();
        let low_bits = bits.div_ceil(2);
        let keys = std::array::from_fn(|_| (numbers.next(), numbers.next() | 1));
        Permutation::Network(Network {
            n,
            low_bits,
            low: (1 << low_bits) - 1,
            high: (1 << (bits - low_bits)) - 1,
            keys,
        })
    }

    /// Returns the number at `place`, which must be below n.
    #[inline]
    pub fn at(&self, place: u64) -> u64 {
        match self {
            Permutation::Table(table) => u64::from(table[place as usize]),
            Permutation::Network(network) => network.at(place),
        }
    }
}

impl Network {
    #[inline]
    fn at(&self, place: u64) -> u64 {
        let mut value = place;
        loop {
            value = self.pass(value);
            if value < self.n {
                return value;
            }
        }
    }

    #[inline]
    fn pass(&self, value: u64) -> u64 {
        let (mut high, mut low) = (value >> self.low_bits, value & self.low);
        for pair in self.keys.chunks_exact(2) {
            high ^= fold(low ^ pair[0].0, pair[0].1) & self.high;
            low ^= fold(high ^ pair[1].0, pair[1].1) & self.low;
        }
        high << self.low_bits | low
    }
}

fn table(n: u64, numbers: &mut Numbers) -> Arc<[u16]> {
    let mut table: Vec<u16> = (0..n as u16).collect();
    for last in (1..table.len()).rev() {
        let other = numbers.below(last as u64 + 1) as usize;
        table.swap(last, other);
    }
    table.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns chi-square of counts that are all expected to be equal, in standard deviations
    /// from its mean.
    fn deviation(counts: &[u32]) -> f64 {
        let total: u32 = counts.iter().sum();
        let expected = f64::from(total) / counts.len() as f64;
        let chi: f64 =
            counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        let freedom = (counts.len() - 1) as f64;
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    fn is_permutation(n: u64, seed: u64, epoch: u64) -> bool {
        let permutation = Permutation::new(n, seed, epoch, 0);
        let mut seen = vec![false; n as usize];
        (0..n).all(|place| !std::mem::replace(&mut seen[permutation.at(place) as usize], true))
    }

    #[test]
    fn every_small_number_of_rows_is_permuted() {
        for n in 0..=300 {
            for seed in [0, 1, 7, u64::MAX] {
                for epoch in [0, 1, 1000] {
                    assert!(is_permutation(n, seed, epoch), "{n} {seed} {epoch}");
                }
            }
        }
    }

    #[test]
    fn the_network_permutes_around_powers_of_two() {
        for n in [1025, 1026, 1500, 2047, 2048, 2049, 4095, 4096, 4097, 65_535, 65_537, 100_000] {
            for seed in 0..3 {
                assert!(is_permutation(n, seed, 5), "{n} {seed}");
            }
        }
    }

    #[test]
    fn large_orders_cost_no_table_and_repeat_nothing() {
        for n in [1 << 40, (1 << 40) + 1, (1 << 62) + 12_345, i64::MAX as u64] {
            let permutation = Permutation::new(n, 3, 0, 0);
            let mut values: Vec<u64> = (0..5000).map(|place| permutation.at(place)).collect();
            values.extend((0..5000).map(|place| permutation.at(n - 1 - place)));
            assert!(values.iter().all(|&value| value < n));
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), 10_000);
        }
    }

    #[test]
    fn all_permutations_of_a_few_rows_are_equally_likely() {
        let mut counts = [0; 24];
        for seed in 0..24_000 {
            let permutation = Permutation::new(4, seed, 0, 0);
            let places: Vec<u64> = (0..4).map(|place| permutation.at(place)).collect();
            let mut rank = 0;
            for k in 0..4 {
                let smaller = places[k + 1..].iter().filter(|&&other| other < places[k]).count();
                rank = rank * (4 - k) + smaller;
            }
            counts[rank] += 1;
        }
        assert!(deviation(&counts).abs() < 4.0, "{}", deviation(&counts));
    }

    const SIZES: [u64; 5] = [1024, 1088, 1536, 2048, 1 << 40];

    #[test]
    fn each_row_is_at_each_position_equally_often() {
        for n in SIZES {
            for place in [0, 1, n / 2, n - 1] {
                let mut counts = vec![0; 64];
                for seed in 0..20_000 {
                    let value = Permutation::new(n, seed, 0, 0).at(place);
                    counts[(u128::from(value) * 64 / u128::from(n)) as usize] += 1;
                }
                assert!(deviation(&counts).abs() < 4.5, "{n} {place} {}", deviation(&counts));
            }
        }
    }

    /// Counts the differences of two values, modulo n, in 61 buckets.
    fn differences(n: u64, pairs: impl Iterator<Item = (u64, u64)>) -> f64 {
        let mut counts = vec![0; 61];
        for (one, other) in pairs {
            let difference = (one + n - other) % n;
            counts[(u128::from(difference) * 61 / u128::from(n)) as usize] += 1;
        }
        deviation(&counts)
    }

    #[test]
    fn neighbours_are_independent() {
        for n in [1 << 13, 61 * 100, 61 * 1000, 1 << 40] {
            let permutation = Permutation::new(n, 11, 2, 0);
            let count = n.min(200_000) - 1;
            let pairs = (0..count).map(|at| (permutation.at(at), permutation.at(at + 1)));
            let found = differences(n, pairs);
            assert!(found.abs() < 4.5, "{n} {found}");
        }
    }

    #[test]
    fn neighbouring_epochs_and_seeds_are_independent() {
        for n in [61 * 10, 61 * 100, 61 * 1000, 1 << 40] {
            let base = Permutation::new(n, 11, 2, 0);
            let others = [(11, 3, 0), (12, 2, 0), (11, 2, 1), (11, 2, 2)];
            for (seed, epoch, branch) in others {
                let other = Permutation::new(n, seed, epoch, branch);
                let pairs = (0..n.min(200_000)).map(|at| (base.at(at), other.at(at)));
                let found = differences(n, pairs);
                assert!(found.abs() < 4.5, "{n} {found}");
            }
        }
    }

    #[test]
    fn pairs_of_rows_meet_equally_often_in_the_smallest_network() {
        let n = 1025;
        let mut counts = vec![0; 41 * 41];
        for seed in 0..200_000 {
            let permutation = Permutation::new(n, seed, 0, 0);
            let (one, other) = (permutation.at(0) / 25, permutation.at(1) / 25);
            counts[(one * 41 + other) as usize] += 1;
        }
        assert!(deviation(&counts).abs() < 4.5, "{}", deviation(&counts));
    }
}
