//! Transposed chunks: records that are protocol buffers, split by their fields.
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | compression: 0 none, `b` brotli, `z` zstd, `s` snappy |
//! | varint | stored length of the layout |
//! | any | the layout, compressed |
//! | as the layout says | buckets of buffers, each compressed |
//! | rest | transitions, compressed |
//!
//! The values of each field stand in a buffer of their own, and a machine puts the
//! records together again from the end of the last to the beginning of the first. A state
//! of the machine puts a field in front of what is there. Its successor is one of up to 64
//! states in a row: always the first, or the one that the next transition names.
//!
//! What is compressed has its decoded length in front, as a varint.

mod backward;
mod bytecode;
mod columns;
mod decode;
mod encode;
mod graph;
mod layout;
mod machine;
mod state;
mod wire;

pub use decode::decode;
pub use encode::encode;
