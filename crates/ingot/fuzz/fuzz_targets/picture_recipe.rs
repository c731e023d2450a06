//! Pictures made to values: any bytes as a file, behind bytes that choose what becomes of it.

#![no_main]

use ingot::picture::{Choices, Crop, Kind, Recipe, Spread, Table, measure};
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Pictures that take longer than a fuzzer has time for.
const PIXELS: u64 = 1 << 20;

/// Memory for each byte of the pixels: what decoding takes, and what is made of them.
const EXPANSION: usize = 128;

fuzz_target!(|data: &[u8]| {
    let Some((&[crop, height, width, resize, flags, ref key @ ..], file)) =
        data.split_first_chunk::<13>()
    else {
        return;
    };
    let key = u64::from_le_bytes(*key);
    let crop = match crop % 4 {
        0 => Crop::Whole,
        1 => Crop::Center,
        2 => Crop::Random,
        _ => Crop::Resized(Spread::new((0.08, 1.0), (0.75, 1.25))),
    };
    let (height, width) = (u32::from(height), u32::from(width));
    let resize = (flags & 1 == 1).then_some(u32::from(resize));
    let Ok(choices) = Choices::new((height, width), crop, resize, 0.5) else { return };
    let colours = if flags & 2 == 2 { 1 } else { 3 };
    let recipe =
        Recipe { choices, colours, is_planar: flags & 4 == 4, table: Table::identity(colours) };
    let kind = if file.first() == Some(&0x89) { Kind::Png } else { Kind::Jpeg };
    let Ok(shape) = measure(kind, file) else { return };
    if shape.num_bytes() > PIXELS {
        return;
    }
    let mut values = vec![0; recipe.num_bytes()];
    let mut others = vec![0x55; values.len()];
    let pixels = shape.num_bytes() as usize + file.len() + values.len();
    bounded((16 << 20) + EXPANSION * pixels, || {
        let made = recipe.make(kind, file, key, &mut values);
        assert_eq!(recipe.make(kind, file, key, &mut others), made);
        assert!(made.is_err() || values == others, "values that nothing was written to");
    });
});
