//! Pictures: how large they are, their pixels, and batches of values made of them. Knows the
//! usual variants of JPEG and PNG; what is refused here may still be a picture to others.

mod choice;
mod jpeg;
mod png;
mod recipe;
mod resample;
#[cfg(test)]
mod tests;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::limit::max_decoded_bytes;
use crate::pool::Pool;

pub use choice::{Choice, Choices, Crop, Spread, Window};
pub use recipe::{Recipe, make_many};
pub use values::Table;

/// Why a picture is rejected.
pub type Refusal = String;

/// The most pixel bytes that a picture may have for each byte of its file. Neither format can
/// say more in a byte than about a thousand.
const EXPANSION: u64 = 2048;

/// The most pixel bytes of a picture: decoders take a few times as much while they work.
pub fn bytes_max() -> u64 {
    max_decoded_bytes() / 4
}

/// A format of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// JPEG with 8 bits a sample, baseline or progressive, in gray or YCbCr.
    Jpeg,
    /// PNG with 8 bits a sample, without a palette.
    Png,
}

/// The size of a picture, whose pixels are `height * width * colours` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of rows.
    pub height: u32,
    /// Number of columns.
    pub width: u32,
    /// Number of bytes for each pixel, 1 to 4.
    pub colours: u8,
}

impl Shape {
    /// Number of bytes of the pixels.
    pub fn num_bytes(self) -> u64 {
        u64::from(self.height) * u64::from(self.width) * u64::from(self.colours)
    }

    fn checked(self, file_bytes: usize) -> Result<Shape, Refusal> {
        let Shape { height, width, colours } = self;
        let most = bytes_max().min(EXPANSION * file_bytes as u64);
        let pixels = u64::from(height) * u64::from(width);
        if pixels == 0 || pixels > most / u64::from(colours) {
            return Err(format!(
                "{width} x {height} pixels of {colours} colours do not fit {file_bytes} bytes"
            ));
        }
        Ok(self)
    }
}

/// Returns the size of a picture, from its header alone.
pub fn measure(kind: Kind, file: &[u8]) -> Result<Shape, Refusal> {
    let shape = match kind {
        Kind::Jpeg => jpeg::measure(file),
        Kind::Png => png::measure(file),
    };
    shape?.checked(file.len())
}

/// Fills `pixels`, which has the bytes that [`measure`] has found, row by row.
pub fn decode(kind: Kind, file: &[u8], shape: Shape, pixels: &mut [u8]) -> Result<(), Refusal> {
    let decoded = catch_unwind(AssertUnwindSafe(|| match kind {
        Kind::Jpeg => jpeg::decode(file, shape, pixels),
        Kind::Png => png::decode(file, shape, pixels),
    }));
    decoded.unwrap_or_else(|_| Err("the decoder failed".to_owned()))
}

/// A picture of a batch: its file, its size, and where its pixels go.
pub type Task<'a> = (&'a [u8], Shape, &'a mut [u8]);

/// Decodes many pictures on all cores. Returns the number and the reason of each that is
/// refused.
pub fn decode_many(kind: Kind, pictures: Vec<Task<'_>>) -> Vec<(usize, Refusal)> {
    let decoded = Pool::compute()
        .map_each(pictures, &|(file, shape, pixels)| decode(kind, file, shape, pixels).err());
    decoded.into_iter().enumerate().filter_map(|(k, why)| Some((k, why?))).collect()
}
