//! PNG: the first chunk, and the pixels by the `png` crate.

use std::io::Cursor;

use png::{ColorType, Decoder, Limits};

use super::{Refusal, Shape, bytes_max};

const START: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// Returns the size that the first chunk tells.
pub fn measure(file: &[u8]) -> Result<Shape, Refusal> {
    let rest = file.strip_prefix(START).ok_or("it does not begin like a PNG")?;
    let &[w0, w1, w2, w3, h0, h1, h2, h3, depth, colour, ..] = rest else {
        return Err("it ends inside its header".to_owned());
    };
    let colours = match colour {
        0 => 1,
        2 => 3,
        4 => 2,
        6 => 4,
        _ => return Err("its colours are a palette".to_owned()),
    };
    if depth != 8 {
        return Err(format!("{depth} bits a sample"));
    }
    let height = u32::from_be_bytes([h0, h1, h2, h3]);
    Ok(Shape { height, width: u32::from_be_bytes([w0, w1, w2, w3]), colours })
}

/// Fills `pixels` with gray, gray and opacity, RGB or RGBA.
pub fn decode(file: &[u8], shape: Shape, pixels: &mut [u8]) -> Result<(), Refusal> {
    let limits = Limits { bytes: bytes_max() as usize };
    let mut decoder = Decoder::new_with_limits(Cursor::new(file), limits);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(|why| why.to_string())?;
    let colours = match reader.output_color_type().0 {
        ColorType::Grayscale => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
        ColorType::Indexed => 0,
    };
    if (reader.output_buffer_size(), colours) != (Some(pixels.len()), shape.colours) {
        return Err("its size is given twice".to_owned());
    }
    reader.next_frame(pixels).map_err(|why| why.to_string())?;
    Ok(())
}
