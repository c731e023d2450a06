//! Batches in Arrow's shape: stored values as arrays, arrays as stored values, and both in the
//! structs of Arrow's C data interface, which needs no library of Arrow.

mod ffi;
mod kind;
mod layout;
mod make;
mod node;
mod part;
mod take;
#[cfg(test)]
mod tests;
mod text;

pub use ffi::{ArrowArray, ArrowArrayStream, ArrowSchema};
pub use kind::{Kind, Number};
pub use layout::{Cell, Layout, Refusal, Repeat};
pub use make::{Column, Stored, common_array, table};
pub use node::{Data, Node};
pub use part::{Part, Places, Present, integer};
pub use take::{Picks, Taken, heads, take};
pub use text::texts;
