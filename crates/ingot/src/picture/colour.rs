//! Pictures with other colours than wanted.

use super::choice::Window;
use super::resample::{Pixels, SPARE};

/// Appends a window of a picture to `to`, in gray or RGB, with [`SPARE`] bytes behind it.
///
/// Gray is repeated for RGB, opacity is left out, and gray is made of RGB as ITU-R 601-2 has it:
/// `(19595 R + 38470 G + 7471 B + 32768) / 65536`, rounded down.
pub fn convert(pixels: Pixels<'_>, window: Window, colours: usize, to: &mut Vec<u8>) {
    for row in 0..window.height as usize {
        let start = (window.top as usize + row) * pixels.stride;
        let start = start + window.left as usize * pixels.colours;
        let row = &pixels.bytes[start..start + window.width as usize * pixels.colours];
        for pixel in row.chunks_exact(pixels.colours) {
            match (pixel, colours) {
                (&[gray] | &[gray, _], _) => to.extend(std::iter::repeat_n(gray, colours)),
                (&[red, green, blue, ..], 1) => to.push(luma(red, green, blue)),
                _ => to.extend_from_slice(&pixel[..3]),
            }
        }
    }
    to.extend([0; SPARE]);
}

fn luma(red: u8, green: u8, blue: u8) -> u8 {
    let sum = 19595 * u32::from(red) + 38470 * u32::from(green) + 7471 * u32::from(blue);
    ((sum + 0x8000) >> 16) as u8
}
