use super::choice::{Choice, Choices, Crop, Spread, Window};
use super::resample::{Pixels, SPARE, Weights, scale_columns, scale_rows, turned_bytes};
use super::{Recipe, Shape, Table};

fn choices(size: (u32, u32), crop: Crop, resize: Option<u32>, flip: f64) -> Choices {
    Choices::new(size, crop, resize, flip).unwrap()
}

fn usual() -> Crop {
    Crop::Resized(Spread::new((0.08, 1.0), (3.0 / 4.0, 4.0 / 3.0)))
}

fn scaled(pixels: &[u8], shape: (u32, u32, usize), size: (u32, u32)) -> Vec<u8> {
    let (height, width, colours) = shape;
    let columns = Weights::new(width, size.1.into(), 0, size.1);
    let rows = Weights::new(height, size.0.into(), 0, size.0);
    let mut bytes = pixels.to_vec();
    bytes.extend([0xaa; SPARE]);
    let pixels = Pixels { bytes: &bytes, stride: width as usize * colours, colours };
    let row = size.1 as usize * colours;
    let mut between = vec![0; height as usize * row];
    let mut turned = vec![0; turned_bytes(width)];
    scale_rows(pixels, (0, height as usize), &columns, &mut turned, &mut between);
    let mut found = Vec::new();
    scale_columns(&between, 0, row, &rows, |_, bytes| found.extend_from_slice(bytes));
    found
}

#[test]
fn choices_of_a_key_never_change() {
    let window = |top, left, height, width| Window { top, left, height, width };
    let resized = choices((224, 224), usual(), None, 0.5);
    let golden = [
        (0, window(32, 25, 343, 261), false),
        (3, window(1, 25, 357, 381), true),
        (u64::MAX, window(79, 174, 280, 316), false),
    ];
    for (key, window, is_mirrored) in golden {
        let whole = Choice { window, scaled: (224, 224), place: (0, 0), is_mirrored };
        assert_eq!(resized.choose(375, 500, key), Ok(whole), "key {key}");
    }
}

#[test]
fn a_part_is_never_outside_of_its_picture() {
    for crop in [usual(), Crop::Random, Crop::Center] {
        let choices = choices((7, 5), crop, None, 0.0);
        for key in 0..2000 {
            let (height, width) = (7 + (key % 40) as u32, 5 + (key % 23) as u32);
            let Choice { window, .. } = choices.choose(height, width, key).unwrap();
            assert!(window.height >= 1 && window.top + window.height <= height);
            assert!(window.width >= 1 && window.left + window.width <= width);
        }
    }
}

#[test]
fn thin_pictures_fall_back_to_the_middle() {
    let choices = choices((8, 8), usual(), None, 0.0);
    let Choice { window, .. } = choices.choose(1000, 4, 9).unwrap();
    assert_eq!(window, Window { top: 497, left: 0, height: 5, width: 4 });
    let Choice { window, .. } = choices.choose(4, 1000, 9).unwrap();
    assert_eq!(window, Window { top: 0, left: 497, height: 4, width: 5 });
}

#[test]
fn parts_larger_than_the_picture_are_rejected() {
    let refused = choices((8, 8), Crop::Center, None, 0.0).choose(7, 20, 0).unwrap_err();
    assert!(refused.contains("20 x 7") && refused.contains("resize="), "{refused}");
    assert!(choices((8, 8), Crop::Random, Some(8), 0.0).choose(7, 20, 0).is_ok());
    assert!(Choices::new((0, 8), Crop::Whole, None, 0.0).is_err());
    assert!(Choices::new((8, 65_536), Crop::Whole, None, 0.0).is_err());
}

#[test]
fn a_flip_does_not_change_where_a_part_is() {
    let never = choices((20, 20), Crop::Random, None, 0.0);
    let always = choices((20, 20), Crop::Random, None, 1.0);
    for key in 0..100 {
        let one = never.choose(50, 60, key).unwrap();
        let other = always.choose(50, 60, key).unwrap();
        assert_eq!((one.window, one.is_mirrored, other.is_mirrored), (other.window, false, true));
    }
}

#[test]
fn a_picture_of_one_colour_keeps_it() {
    for (height, width, size) in [(1, 1, (9, 7)), (37, 41, (5, 3)), (3, 200, (50, 10))] {
        for colours in [1, 3] {
            let pixels = vec![253; height as usize * width as usize * colours];
            let found = scaled(&pixels, (height, width, colours), size);
            assert!(found.iter().all(|&value| value == 253));
        }
    }
}

#[test]
fn vectors_and_plain_sums_agree() {
    let mut state = 1_u32;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for (height, width, size) in [(33, 47, (16, 40)), (20, 9, (41, 64)), (64, 64, (7, 7))] {
        let pixels: Vec<u8> = (0..height * width * 3).map(|_| random()).collect();
        let found = scaled(&pixels, (height, width, 3), size);
        for colour in 0..3 {
            let plane: Vec<u8> = pixels.iter().skip(colour).step_by(3).copied().collect();
            let own: Vec<u8> = found.iter().skip(colour).step_by(3).copied().collect();
            assert_eq!(own, plain(&plane, (height, width), size));
        }
    }
}

/// The definition, one value at a time.
fn plain(plane: &[u8], (height, width): (u32, u32), size: (u32, u32)) -> Vec<u8> {
    let pass = |lines: &[Vec<u8>], count: u32| -> Vec<Vec<u8>> {
        let line = |values: &Vec<u8>| (0..count).map(|k| mean(values, count, k)).collect();
        lines.iter().map(line).collect()
    };
    let turned = |lines: &[Vec<u8>]| -> Vec<Vec<u8>> {
        (0..lines[0].len()).map(|k| lines.iter().map(|line| line[k]).collect()).collect()
    };
    let lines: Vec<Vec<u8>> = plane.chunks_exact(width as usize).map(<[u8]>::to_vec).collect();
    assert_eq!(lines.len(), height as usize);
    turned(&pass(&turned(&pass(&lines, size.1)), size.0)).concat()
}

fn mean(values: &[u8], count: u32, k: u32) -> u8 {
    let scale = values.len() as f64 / f64::from(count);
    let (center, support) = ((f64::from(k) + 0.5) * scale, scale.max(1.0));
    let start = (center - support + 0.5).max(0.0) as usize;
    let stop = ((center + support + 0.5) as usize).min(values.len());
    let narrow = 1.0 / support;
    let weight = |at: usize| (1.0 - ((at as f64 - center + 0.5) * narrow).abs()).max(0.0);
    let total: f64 = (start..stop).map(weight).sum();
    let fixed = |at: usize| (0.5 + weight(at) / total * f64::from(1 << 22)) as i64;
    let sum: i64 = (start..stop).map(|at| i64::from(values[at]) * fixed(at)).sum();
    ((sum + (1 << 21)) >> 22).clamp(0, 255) as u8
}

#[test]
fn layouts_and_mirrors_put_values_where_they_belong() {
    let pixels: Vec<u8> = (0..12).collect();
    let shape = Shape { height: 2, width: 2, colours: 3 };
    let made = |is_planar: bool, flip: f64| {
        let choices = choices((2, 2), Crop::Whole, None, flip);
        let recipe = Recipe { choices, colours: 3, is_planar, table: Table::identity(3) };
        let mut values = vec![0; recipe.num_bytes()];
        recipe.make_of_pixels(&pixels, shape, 5, &mut values).unwrap();
        values
    };
    assert_eq!(made(false, 0.0), pixels);
    assert_eq!(made(false, 1.0), [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]);
    assert_eq!(made(true, 0.0), [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]);
    assert_eq!(made(true, 1.0), [3, 0, 9, 6, 4, 1, 10, 7, 5, 2, 11, 8]);
}
