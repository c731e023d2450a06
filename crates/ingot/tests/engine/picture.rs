//! Pictures: what is decoded, what is refused, and what damaged ones cost.

use std::fs;
use std::path::{Path, PathBuf};

use ingot::picture::{self, Kind, Shape};

fn sample(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/picture");
    fs::read(folder.join(format!("seed-{name}"))).unwrap()
}

fn kind_of(name: &str) -> Kind {
    match PathBuf::from(name).extension().unwrap().to_str() {
        Some("png") => Kind::Png,
        _ => Kind::Jpeg,
    }
}

fn decode(kind: Kind, file: &[u8]) -> Result<(Shape, Vec<u8>), String> {
    let shape = picture::measure(kind, file)?;
    let mut pixels = vec![0; shape.num_bytes() as usize];
    picture::decode(kind, file, shape, &mut pixels).map(|()| (shape, pixels))
}

const USUAL: [(&str, u8); 10] = [
    ("420.jpg", 3),
    ("422.jpg", 3),
    ("444.jpg", 3),
    ("gray.jpg", 1),
    ("progressive.jpg", 3),
    ("restarts.jpg", 3),
    ("gray.png", 1),
    ("gray_alpha.png", 2),
    ("rgb.png", 3),
    ("rgba.png", 4),
];

#[test]
fn the_usual_pictures_are_decoded() {
    let (_, exact) = decode(Kind::Png, &sample("rgb.png")).unwrap();
    for (name, colours) in USUAL {
        let (shape, pixels) = decode(kind_of(name), &sample(name)).unwrap();
        assert_eq!(shape, Shape { height: 21, width: 34, colours }, "{name}");
        if colours == 3 {
            let off: u64 = pixels.iter().zip(&exact).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
            assert!(off / (exact.len() as u64) < 12, "{name}: {off}");
        }
    }
}

#[test]
fn odd_pictures_are_rejected_by_their_headers() {
    let cmyk = picture::measure(Kind::Jpeg, &sample("cmyk.jpg")).unwrap_err();
    assert!(cmyk.contains("neither grayscale nor ordinary YCbCr"), "{cmyk}");
    let palette = picture::measure(Kind::Png, &sample("palette.png")).unwrap_err();
    assert!(palette.contains("palette"), "{palette}");
    assert!(picture::measure(Kind::Png, &sample("420.jpg")).is_err());
    assert!(picture::measure(Kind::Jpeg, b"").is_err());
    let mut lossless = sample("444.jpg");
    let at = lossless.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    lossless[at + 1] = 0xc3;
    assert!(picture::measure(Kind::Jpeg, &lossless).unwrap_err().contains("neither baseline"));
}

#[test]
fn a_picture_that_claims_to_be_huge_costs_nothing() {
    let mut png = sample("gray.png");
    png[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    assert!(picture::measure(Kind::Png, &png).unwrap_err().contains("do not fit"));
    let mut jpeg = sample("420.jpg");
    let at = jpeg.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
    jpeg[at + 5..at + 9].copy_from_slice(&[0xff; 4]);
    assert!(picture::measure(Kind::Jpeg, &jpeg).unwrap_err().contains("do not fit"));
    jpeg[at + 5..at + 9].copy_from_slice(&[0; 4]);
    assert!(picture::measure(Kind::Jpeg, &jpeg).unwrap_err().contains("too small"));
}

#[test]
fn a_truncated_picture_is_rejected() {
    for (name, _) in USUAL {
        let (kind, file) = (kind_of(name), sample(name));
        let behind_pixels = if kind == Kind::Png { 14 } else { 0 };
        for len in 0..file.len() - behind_pixels {
            assert!(decode(kind, &file[..len]).is_err(), "{name}: {len} of {}", file.len());
        }
    }
}

#[test]
fn a_picture_in_pieces_is_left_to_others() {
    let file = sample("420.jpg");
    let at = file.len() - 200;
    for mark in [0xd9, 0xda, 0xc4, 0x01] {
        let mut broken = file.clone();
        broken[at..at + 2].copy_from_slice(&[0xff, mark]);
        assert!(decode(Kind::Jpeg, &broken).unwrap_err().contains("in one piece"));
    }
}

#[test]
fn damage_makes_no_decoder_panic_or_leave_pixels_as_they_were() {
    let mut state = 1_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for (name, _) in USUAL {
        let (kind, file) = (kind_of(name), sample(name));
        for _ in 0..4000 {
            let mut damaged = file.clone();
            for _ in 0..1 + next() % 4 {
                let at = next() % damaged.len();
                damaged[at] = next() as u8;
            }
            match decode(kind, &damaged) {
                Err(why) => assert_ne!(why, "the decoder failed", "{name}"),
                Ok((shape, pixels)) => {
                    let mut others = vec![0x55; pixels.len()];
                    picture::decode(kind, &damaged, shape, &mut others).unwrap();
                    assert!(pixels == others, "{name}");
                }
            }
        }
    }
}

#[test]
fn many_pictures_are_decoded_at_once_and_the_bad_ones_are_reported() {
    let good = sample("420.jpg");
    let cut = &good[..good.len() / 2];
    let shape = picture::measure(Kind::Jpeg, &good).unwrap();
    let (_, alone) = decode(Kind::Jpeg, &good).unwrap();
    let mut pixels = vec![0; 5 * alone.len()];
    let tasks = pixels.chunks_exact_mut(alone.len()).enumerate().map(|(k, place)| {
        let file = if k == 3 { cut } else { &good[..] };
        (file, shape, place)
    });
    let refused = picture::decode_many(Kind::Jpeg, tasks.collect());
    assert_eq!(refused.iter().map(|(k, _)| *k).collect::<Vec<_>>(), [3]);
    for k in [0, 1, 2, 4] {
        assert_eq!(pixels[k * alone.len()..(k + 1) * alone.len()], alone, "{k}");
    }
}
