//! From compressed pictures to a batch of values: decode, crop, resize, mirror and look up.

use std::cell::RefCell;

use super::choice::{Choice, Choices, Window};
use super::resample::{Pixels, SPARE, Weights, scale_columns, scale_rows, turned_bytes};
use super::values::{Place, Table};
use super::{Kind, Refusal, Shape, bytes_max, decode, measure};
use crate::pool::Pool;

/// Memory that a thread keeps for its next picture.
const KEPT: usize = 32 << 20;

/// What becomes of every picture: all are alike in the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// Which part is taken, how large it becomes, and whether it is mirrored.
    pub choices: Choices,
    /// Number of colours of the result: 1 or 3.
    pub colours: u8,
    /// Whether all values of a colour are together, rather than those of a pixel.
    pub is_planar: bool,
    /// The value of each byte of each colour.
    pub table: Table,
}

/// Memory for pixels, one picture at a time.
#[derive(Default)]
struct Scratch {
    decoded: Vec<u8>,
    work: Work,
}

/// Memory for what is made of the pixels.
#[derive(Default)]
struct Work {
    converted: Vec<u8>,
    scaled: Vec<u8>,
    turned: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Recipe {
    /// Number of bytes of the values of a picture.
    pub fn num_bytes(&self) -> usize {
        let (height, width) = self.choices.size;
        height as usize * width as usize * usize::from(self.colours) * self.table.width()
    }

    /// Fills `values`, which has [`Recipe::num_bytes`], from the file of a picture.
    pub fn make(
        &self,
        kind: Kind,
        file: &[u8],
        key: u64,
        values: &mut [u8],
    ) -> Result<(), Refusal> {
        let shape = measure(kind, file)?;
        self.fill(shape, key, values, |pixels| decode(kind, file, shape, pixels))
    }

    /// Fills `values` from the pixels of a picture.
    pub fn make_of_pixels(
        &self,
        pixels: &[u8],
        shape: Shape,
        key: u64,
        values: &mut [u8],
    ) -> Result<(), Refusal> {
        self.fill(shape, key, values, |to| {
            to.copy_from_slice(pixels);
            Ok(())
        })
    }

    /// Fills `values` from what `decode` writes.
    fn fill(
        &self,
        shape: Shape,
        key: u64,
        values: &mut [u8],
        decode: impl FnOnce(&mut [u8]) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let choice = self.choices.choose(shape.height, shape.width, key)?;
        SCRATCH.with_borrow_mut(|scratch| {
            let len = shape.num_bytes() as usize;
            let pixels = sized(&mut scratch.decoded, len + SPARE)?;
            decode(&mut pixels[..len])?;
            let made = self.shape(pixels, shape, choice, &mut scratch.work, values);
            scratch.forget();
            made
        })
    }

    fn shape(
        &self,
        decoded: &[u8],
        shape: Shape,
        choice: Choice,
        work: &mut Work,
        values: &mut [u8],
    ) -> Result<(), Refusal> {
        let colours = usize::from(shape.colours);
        let stride = shape.width as usize * colours;
        let mut pixels = Pixels { bytes: decoded, stride, colours };
        let mut window = choice.window;
        let wanted = usize::from(self.colours);
        if colours != wanted {
            work.converted.clear();
            reserve(&mut work.converted, area(window) * wanted + SPARE)?;
            convert(pixels, window, wanted, &mut work.converted);
            let stride = window.width as usize * wanted;
            pixels = Pixels { bytes: &work.converted, stride, colours: wanted };
            window = Window { top: 0, left: 0, ..window };
        }
        let mut place = Place {
            table: &self.table,
            colours: wanted,
            is_planar: self.is_planar,
            is_mirrored: choice.is_mirrored,
            values,
        };
        let start = window.top as usize * pixels.stride + window.left as usize * wanted;
        pixels.bytes = &pixels.bytes[start..];
        let (height, width) = self.choices.size;
        if choice.scaled == (window.height.into(), window.width.into()) {
            let (top, left) = (choice.place.0 as usize, choice.place.1 as usize);
            for row in 0..height as usize {
                let start = (top + row) * pixels.stride + left * wanted;
                place.write(row, &pixels.bytes[start..start + width as usize * wanted]);
            }
            return Ok(());
        }
        let columns = Weights::new(window.width, choice.scaled.1, choice.place.1, width);
        let rows = Weights::new(window.height, choice.scaled.0, choice.place.0, height);
        let (first, last) = rows.reach();
        let width = width as usize * wanted;
        let scaled = sized(&mut work.scaled, (last - first) * width)?;
        let turned = sized(&mut work.turned, turned_bytes(window.width))?;
        scale_rows(pixels, (first, last), &columns, turned, scaled);
        scale_columns(scaled, first, width, &rows, |row, bytes| place.write(row, bytes));
        Ok(())
    }
}

impl Scratch {
    /// Gives back what a large picture took.
    fn forget(&mut self) {
        let Work { converted, scaled, turned } = &mut self.work;
        for buffer in [&mut self.decoded, converted, scaled, turned] {
            if buffer.capacity() > KEPT {
                *buffer = Vec::new();
            }
        }
    }
}

fn area(window: Window) -> usize {
    window.height as usize * window.width as usize
}

/// Returns the first `len` bytes of a buffer, with unknown content.
fn sized(buffer: &mut Vec<u8>, len: usize) -> Result<&mut [u8], Refusal> {
    if buffer.len() < len {
        reserve(buffer, len - buffer.len())?;
        buffer.resize(len, 0);
    }
    Ok(&mut buffer[..len])
}

fn reserve(buffer: &mut Vec<u8>, more: usize) -> Result<(), Refusal> {
    let most = usize::try_from(bytes_max()).unwrap_or(usize::MAX).saturating_add(SPARE);
    if more > most || buffer.try_reserve(more).is_err() {
        return Err(format!("{more} bytes while it is resized are too many"));
    }
    Ok(())
}

/// Makes the values of many pictures on all cores, one after the other in `values`. Returns the
/// number and the reason of each that is refused, whose values are then of no use.
pub fn make_many(
    recipe: &Recipe,
    kind: Kind,
    files: &[&[u8]],
    keys: &[u64],
    values: &mut [u8],
) -> Vec<(usize, Refusal)> {
    let places = values.chunks_exact_mut(recipe.num_bytes());
    let tasks = files.iter().zip(keys).zip(places).collect();
    let made = Pool::compute()
        .map_each(tasks, &|((file, &key), values)| recipe.make(kind, file, key, values).err());
    made.into_iter().enumerate().filter_map(|(k, why)| Some((k, why?))).collect()
}

/// Appends a window of a picture to `to`, in gray or RGB, with [`SPARE`] bytes behind it.
///
/// Gray is repeated for RGB, opacity is left out, and gray is made of RGB as ITU-R 601-2 has it:
/// `(19595 R + 38470 G + 7471 B + 32768) / 65536`, rounded down.
fn convert(pixels: Pixels<'_>, window: Window, colours: usize, to: &mut Vec<u8>) {
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
