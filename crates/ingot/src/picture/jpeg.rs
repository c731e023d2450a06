//! JPEG: the frame header, and the pixels by zune-jpeg.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::{Refusal, Shape};

const START: [u8; 2] = [0xff, 0xd8];
const END: [u8; 2] = [0xff, 0xd9];
const PROGRESSIVE: u8 = 0xc2;
const SCAN: u8 = 0xda;
const APP0: u8 = 0xe0;
const APP14: u8 = 0xee;

/// What the segments before the frame header say of the colours.
#[derive(Default)]
struct Colours {
    is_jfif: bool,
    transform: Option<u8>,
}

/// Returns the size that the frame header tells.
pub fn measure(file: &[u8]) -> Result<Shape, Refusal> {
    let mut rest = file.strip_prefix(&START).ok_or("it does not begin like a JPEG")?;
    let mut colours = Colours::default();
    loop {
        let (marker, segment, behind) = next_segment(rest)?;
        match marker {
            APP0 => colours.is_jfif |= segment.starts_with(b"JFIF\0"),
            APP14 if segment.starts_with(b"Adobe") => colours.transform = segment.get(11).copied(),
            0xc0..=0xc2 => return frame(segment, &colours),
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Err("a JPEG that is neither baseline nor progressive".to_owned());
            }
            SCAN => return Err("its pixels begin before its size is given".to_owned()),
            _ => {}
        }
        rest = behind;
    }
}

/// Returns the marker of the next segment, its content, and what is behind it.
fn next_segment(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), Refusal> {
    let cut = || "it ends inside its header".to_owned();
    let (&first, mut rest) = bytes.split_first().ok_or_else(cut)?;
    if first != 0xff {
        return Err("a marker is missing".to_owned());
    }
    let mut marker = 0xff;
    while marker == 0xff {
        (marker, rest) = rest.split_first().map(|(byte, rest)| (*byte, rest)).ok_or_else(cut)?;
    }
    let (len, rest) = rest.split_first_chunk().ok_or_else(cut)?;
    let len = usize::from(u16::from_be_bytes(*len)).checked_sub(2).ok_or_else(cut)?;
    let (segment, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
    Ok((marker, segment, rest))
}

fn frame(segment: &[u8], colours: &Colours) -> Result<Shape, Refusal> {
    let &[precision, h0, h1, w0, w1, count, ref components @ ..] = segment else {
        return Err("its frame header is truncated".to_owned());
    };
    if precision != 8 {
        return Err(format!("{precision} bits a sample"));
    }
    let components: Vec<(u8, u8)> = components.chunks_exact(3).map(|c| (c[0], c[1])).collect();
    let is_usual = match components[..] {
        [(_, 0x11)] => true,
        [(a, 0x11 | 0x12 | 0x21 | 0x22), (b, 0x11), (c, 0x11)] => {
            colours.transform.unwrap_or(1) == 1 && (colours.is_jfif || [a, b, c] != *b"RGB")
        }
        _ => false,
    };
    if !is_usual || components.len() != usize::from(count) {
        return Err("its colours are neither grayscale nor ordinary YCbCr".to_owned());
    }
    let (height, width) = (u16::from_be_bytes([h0, h1]), u16::from_be_bytes([w0, w1]));
    if count == 3 && height.min(width) < 8 {
        return Err("it is too small for its colours to be interpolated".to_owned());
    }
    Ok(Shape { height: height.into(), width: width.into(), colours: count })
}

/// Checks that the pixels go on to the end of the file without a break, which the decoder
/// would not tell of.
fn check_scan(file: &[u8]) -> Result<(), Refusal> {
    let padding = file.iter().rev().take_while(|&&byte| byte == 0).count();
    let content = file[..file.len() - padding].strip_prefix(&START);
    let content = content.and_then(|content| content.strip_suffix(&END));
    let mut rest = content.ok_or("it does not end like a JPEG")?;
    let mut is_progressive = false;
    loop {
        let (marker, _, behind) = next_segment(rest)?;
        is_progressive |= marker == PROGRESSIVE;
        rest = behind;
        if marker == SCAN {
            break;
        }
    }
    let mut marks = memchr::memchr_iter(0xff, rest).map(|at| rest.get(at + 1));
    if !is_progressive && !marks.all(|mark| matches!(mark, Some(0 | 0xd0..=0xd7))) {
        return Err("its pixels are not in one piece".to_owned());
    }
    Ok(())
}

/// Fills `pixels` with gray or RGB.
pub fn decode(file: &[u8], shape: Shape, pixels: &mut [u8]) -> Result<(), Refusal> {
    check_scan(file)?;
    let colours = if shape.colours == 1 { ColorSpace::Luma } else { ColorSpace::RGB };
    let options = DecoderOptions::new_fast()
        .set_strict_mode(true)
        .set_max_width(shape.width as usize)
        .set_max_height(shape.height as usize)
        .jpeg_set_out_colorspace(colours);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(|why| why.to_string())?;
    if decoder.output_buffer_size() != Some(pixels.len()) {
        return Err("its size is given twice".to_owned());
    }
    pixels.fill(0);
    decoder.decode_into(pixels).map_err(|why| why.to_string())
}
