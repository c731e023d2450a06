//! The formats of others whose values are read in place: what their bytes mean.

pub mod csv;
pub mod example;
pub mod json;
pub mod kind;
pub mod litdata;
pub mod mds;
pub mod npy;
pub mod number;
pub mod tar;
pub mod tfrecord;

mod coding;

pub use coding::{Coding, Recipe};
