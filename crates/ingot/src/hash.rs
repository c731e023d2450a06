//! Integer mixing. What these functions return decides every order and every random crop, so they
//! never change.

/// The golden ratio in 64 bits: the step of a Weyl sequence.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns `value` with every bit dependent on every other: the finaliser of SplitMix64.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Returns the 128-bit product of two numbers, its halves combined.
pub fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Returns one number that depends on all of `values` and on their order.
pub fn key(values: &[u64]) -> u64 {
    values.iter().fold(STEP, |key, &value| mix(mix(key).wrapping_add(STEP) ^ mix(value ^ STEP)))
}

/// Numbers that look random and depend on a key alone.
pub struct Numbers {
    state: u64,
}

impl Numbers {
    /// Returns the numbers of a key.
    pub fn new(key: u64) -> Self {
        Numbers { state: key }
    }

    /// Returns the next number.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Returns the next number below `bound`, all of which are equally likely.
    pub fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }
}
