//! Which part of a picture is taken, and whether it is mirrored: a pure function of the size of
//! the picture and a key. What it returns never changes, because people resume from a position.

use super::Refusal;
use crate::hash::Numbers;

const ATTEMPTS: u32 = 10;
/// The longest side of a result.
pub const SIDE_MAX: u32 = 65_535;

const ASPECT_BITS: u32 = 32;

/// Which part of a picture is taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Crop {
    /// All of it.
    Whole,
    /// As much as the result has, from the middle.
    Center,
    /// As much as the result has, from a random place.
    Random,
    /// A random part of the area, in a random aspect ratio.
    Resized(Spread),
}

/// How random parts are spread: uniformly over shares of the area, and uniformly over the
/// logarithms of aspect ratios.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    scale: (f64, f64),
    ratio: (f64, f64),
    /// The square root of how far the ratios are apart, the root of that, and so on.
    roots: Vec<f64>,
}

impl Spread {
    /// Takes the least and the largest share of the area, and ratio of width to height.
    pub fn new(scale: (f64, f64), ratio: (f64, f64)) -> Spread {
        let roots =
            std::iter::successors(Some((ratio.1 / ratio.0).sqrt()), |root| Some(root.sqrt()));
        Spread { scale, ratio, roots: roots.take(ASPECT_BITS as usize).collect() }
    }

    /// Returns the ratio that is the fraction `bits / 2^32` of the way from the least to the
    /// largest. Only operations that IEEE 754 rounds correctly: all machines agree.
    fn aspect(&self, bits: u32) -> f64 {
        let chosen = self.roots.iter().enumerate().filter(|(k, _)| bits >> (31 - k) & 1 == 1);
        chosen.fold(self.ratio.0, |aspect, (_, root)| aspect * root)
    }

    fn choose(&self, height: u32, width: u32, numbers: &mut Numbers) -> Window {
        let area = f64::from(height) * f64::from(width);
        for _ in 0..ATTEMPTS {
            let (least, most) = self.scale;
            let target = area * (least + (most - least) * unit(numbers));
            let aspect = self.aspect((numbers.next() >> 32) as u32);
            let wide = (target * aspect).sqrt().round_ties_even();
            let high = (target / aspect).sqrt().round_ties_even();
            if wide >= 1.0 && wide <= width.into() && high >= 1.0 && high <= height.into() {
                let (high, wide) = (high as u32, wide as u32);
                let top = numbers.below(u64::from(height - high) + 1) as u32;
                let left = numbers.below(u64::from(width - wide) + 1) as u32;
                return Window { top, left, height: high, width: wide };
            }
        }
        self.middle(height, width)
    }

    /// Returns the largest part in the middle that has one of the ratios.
    fn middle(&self, height: u32, width: u32) -> Window {
        let aspect = f64::from(width) / f64::from(height);
        let (least, most) = self.ratio;
        let fit = |length: f64, limit: u32| (length.round_ties_even() as u32).clamp(1, limit);
        let (high, wide) = if aspect < least {
            (fit(f64::from(width) / least, height), width)
        } else if aspect > most {
            (height, fit(f64::from(height) * most, width))
        } else {
            (height, width)
        };
        Window { top: (height - high) / 2, left: (width - wide) / 2, height: high, width: wide }
    }
}

/// A rectangle of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first row.
    pub top: u32,
    /// The first column.
    pub left: u32,
    /// Number of rows.
    pub height: u32,
    /// Number of columns.
    pub width: u32,
}

/// What becomes of a picture: a window of it is scaled, and the result is taken from `place` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The part of the picture that is scaled.
    pub window: Window,
    /// Height and width that it is scaled to.
    pub scaled: (u64, u64),
    /// The first row and column of the result in what was scaled.
    pub place: (u64, u64),
    /// Whether left and right are exchanged.
    pub is_mirrored: bool,
}

/// What decides the choices, besides the key.
#[derive(Debug, Clone, PartialEq)]
pub struct Choices {
    /// Height and width of the result.
    pub(super) size: (u32, u32),
    /// Which part is taken.
    crop: Crop,
    /// The length of the shorter side before a part in the middle or at random is taken.
    resize: Option<u32>,
    /// How likely a picture is mirrored.
    flip: f64,
}

impl Choices {
    /// Fails if the result would be empty or too large.
    pub fn new(
        size: (u32, u32),
        crop: Crop,
        resize: Option<u32>,
        flip: f64,
    ) -> Result<Choices, Refusal> {
        if size.0.min(size.1) == 0 || size.0.max(size.1) > SIDE_MAX {
            return Err(format!("a side has 1 to {SIDE_MAX} pixels, got {size:?}"));
        }
        if resize.is_some_and(|side| side == 0 || side > SIDE_MAX) {
            return Err(format!("a side has 1 to {SIDE_MAX} pixels, got {resize:?}"));
        }
        Ok(Choices { size, crop, resize, flip })
    }

    /// Chooses for a picture of this size. The first number of the key decides whether it is
    /// mirrored, those after it where the part is.
    pub fn choose(&self, height: u32, width: u32, key: u64) -> Result<Choice, Refusal> {
        let mut numbers = Numbers::new(key);
        let is_mirrored = unit(&mut numbers) < self.flip;
        let scaled = (self.size.0.into(), self.size.1.into());
        let whole = Window { top: 0, left: 0, height, width };
        let all = Choice { window: whole, scaled, place: (0, 0), is_mirrored };
        match &self.crop {
            Crop::Whole => Ok(all),
            Crop::Resized(spread) => {
                Ok(Choice { window: spread.choose(height, width, &mut numbers), ..all })
            }
            Crop::Center => self.part(all, |spare| spare / 2 + (spare & (spare / 2) & 1)),
            Crop::Random => self.part(all, |spare| numbers.below(spare + 1)),
        }
    }

    /// Takes a part of the result's size, whose place `pick` finds among those there are.
    fn part(&self, all: Choice, mut pick: impl FnMut(u64) -> u64) -> Result<Choice, Refusal> {
        let Window { height, width, .. } = all.window;
        let (high, wide) = (u64::from(height), u64::from(width));
        let scaled = self.resize.map_or((high, wide), |side| {
            let side = u64::from(side);
            let longer = |long: u64, short: u64| side * long / short;
            if wide <= high { (longer(high, wide), side) } else { (side, longer(wide, high)) }
        });
        let size = all.scaled;
        if scaled.0 < size.0 || scaled.1 < size.1 {
            return Err(format!(
                "a picture of {} x {} has no part of {} x {}: resize= makes its shorter side long \
                 enough before a part is taken",
                scaled.1, scaled.0, size.1, size.0
            ));
        }
        let place = (pick(scaled.0 - size.0), pick(scaled.1 - size.1));
        if self.resize.is_some() {
            return Ok(Choice { scaled, place, ..all });
        }
        let (top, left) = (place.0 as u32, place.1 as u32);
        let window = Window { top, left, height: self.size.0, width: self.size.1 };
        Ok(Choice { window, ..all })
    }
}

/// Returns the next number as a fraction: 53 bits, at least 0 and below 1.
fn unit(numbers: &mut Numbers) -> f64 {
    (numbers.next() >> 11) as f64 / (1_u64 << 53) as f64
}
