//! The ArrayRecord container: a Riegeli file whose last chunks say where the others are.
//!
//! | chunk | what |
//! | --- | --- |
//! | signature | nothing; the first 64 bytes of the file |
//! | data | records; all data chunks but the last have the same number of them |
//! | footer | a message about the file, then one about each data chunk |
//! | padding | up to the last block |
//! | postscript | three times the same message: where the footer is; begins the last block |
//! | padding | up to the end of the block |

pub mod footer;
pub mod postscript;

pub use footer::{Footer, Index};

use super::riegeli::chunk::{self, Header, Kind};

/// Bytes of the signature.
pub const SIGNATURE_LEN: usize = 64;

/// Bytes of the smallest file: a block with the footer and one with the postscript.
pub const FILE_LEN_MIN: u64 = 2 * super::riegeli::block::LEN;

/// Returns the first bytes of every Riegeli file.
pub fn signature() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SIGNATURE_LEN);
    chunk::append(&mut bytes, 0, &Header::new(Kind::SIGNATURE, 0, 0, b""), b"");
    bytes
}
