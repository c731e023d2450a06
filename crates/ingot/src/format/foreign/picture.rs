//! Pixels behind the size and the mode of a Pillow image, as MDS and LitData store them.

use super::coding::array_of;
use crate::format::Violation;

/// Returns the pixels as an array of height, width and channels.
pub fn pixels(stored: &[u8]) -> Result<Vec<u8>, Violation> {
    let cut = || Violation::new("an image is truncated");
    let (head, rest) = stored.split_at_checked(12).ok_or_else(cut)?;
    let [width, height, mode_len] = [0, 4, 8]
        .map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
    let (mode, pixels) = rest.split_at_checked(mode_len as usize).ok_or_else(cut)?;
    let (height, width) = (u64::from(height), u64::from(width));
    match mode {
        b"L" | b"P" => array_of("|u1", &[height, width], pixels),
        b"RGB" | b"YCbCr" | b"HSV" | b"LAB" => array_of("|u1", &[height, width, 3], pixels),
        b"RGBA" | b"CMYK" | b"RGBX" => array_of("|u1", &[height, width, 4], pixels),
        b"LA" => array_of("|u1", &[height, width, 2], pixels),
        b"I" => array_of("<i4", &[height, width], pixels),
        b"I;16" => array_of("<u2", &[height, width], pixels),
        b"F" => array_of("<f4", &[height, width], pixels),
        _ => Err(Violation::new(format!(
            "images of mode {:?} are not supported",
            mode.escape_ascii()
        ))),
    }
}
