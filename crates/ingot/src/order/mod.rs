//! Which row is at which position: shuffled, repeated, mixed, cut and packed.
//!
//! An [`Order`] is a function from positions to rows. It is composed of steps, evaluated in
//! constant time and memory for each position (windows and packs need a table, and a search in
//! it), and it has no state: the same composition gives the same rows, always. What it computes
//! is part of its contract, because people resume from a position.

mod interleave;
mod lengths;
mod mixture;
mod node;
#[cfg(test)]
mod oracle;
mod pack;
mod permutation;
mod picks;
mod walk;
mod window;

pub use lengths::Lengths;
pub use mixture::WEIGHTS_MAX;
pub use node::Order;
pub use pack::Long;
pub use picks::{Level, Picks};

use crate::Error;

/// Maximum number of positions of an order, and of rows of a source.
const LEN_MAX: u64 = i64::MAX as u64;

/// Returns the error for numbers past [`LEN_MAX`].
fn exceeded() -> Error {
    Error::Invalid("an order has at most 2^63 - 1 positions, and rows have smaller numbers".into())
}
