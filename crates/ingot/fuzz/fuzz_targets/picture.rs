//! Pictures: any bytes, as the format that they begin as.

#![no_main]

use ingot::picture::{Kind, decode, measure};
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Pictures that take longer than a fuzzer has time for.
const PIXELS: u64 = 1 << 22;

/// Memory that decoding may take for each byte of the pixels: coefficients of progressive
/// pictures are numbers of 16 bits, in blocks that reach past the edges.
const EXPANSION: usize = 64;

fuzz_target!(|data: &[u8]| {
    let kind = if data.first() == Some(&0x89) { Kind::Png } else { Kind::Jpeg };
    let Ok(shape) = measure(kind, data) else { return };
    if shape.num_bytes() > PIXELS {
        return;
    }
    let mut pixels = vec![0; shape.num_bytes() as usize];
    let mut others = vec![0x55; pixels.len()];
    bounded((8 << 20) + EXPANSION * (pixels.len() + data.len()), || {
        let decoded = decode(kind, data, shape, &mut pixels);
        assert_eq!(decode(kind, data, shape, &mut others), decoded);
        assert!(decoded.is_err() || pixels == others, "pixels that nothing was written to");
    });
});
