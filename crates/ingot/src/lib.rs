//! The Ingot engine: record files for training data.
//!
//! A record file is written in one pass, survives a crash at any byte, opens in
//! a millisecond whatever its size, gives any record in any order, and notices
//! every flipped bit. The layers, each of which knows only those before it:
//!
//! - [`error`], [`process`], [`limit`], [`reserve`], [`pool`], [`background`], [`crc`], `hash`:
//!   errors, which process this is, how much memory decoded values may take, threads, checksums;
//! - [`storage`]: bytes at offsets; knows no format;
//! - [`format`], [`compression`]: bytes to structs and back; do no I/O;
//! - [`picture`]: pixels of compressed pictures;
//! - [`arrow`]: stored values as arrays of Arrow and back; does no I/O;
//! - [`order`]: which row is at which position; does no I/O;
//! - [`records`]: a file of rows as a sequence: read, write, recover, verify.

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("Ingot supports Linux and macOS");

pub mod arrow;
pub mod background;
pub mod compression;
pub mod crc;
pub mod error;
pub mod format;
mod hash;
pub mod limit;
pub mod order;
pub mod picture;
pub mod pool;
pub mod process;
pub mod records;
pub mod reserve;
pub mod storage;

pub use error::{Error, Result};
