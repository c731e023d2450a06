//! Bilinear interpolation, with antialiasing where a picture shrinks. Each value is a weighted
//! mean of the values around it, under a triangle that is two values wide in the result, and at
//! least two in the picture. Weights are multiples of 2^-22, sums are exact, and each of the two
//! passes, along rows and then along columns, rounds to bytes: what Pillow computes, to the bit.
//! (Pillow 13 turns the passes around for some sizes; these results never change.)
#![allow(unsafe_code)]

const BITS: u32 = 22;
const HALF: i32 = 1 << (BITS - 1);

/// Sums that stay in registers while the weights go by.
const LANES: usize = 32;

/// Rows that are turned together, with four bytes for each pixel.
const GROUP: usize = LANES / 4;

/// Bytes that there must be behind the pixels: the last ones are read four at a time.
pub const SPARE: usize = 3;

/// Pixels whose rows may be longer than wanted: row `k` begins at `k * stride`.
#[derive(Clone, Copy)]
pub struct Pixels<'a> {
    /// The rows, and at least [`SPARE`] bytes behind them.
    pub bytes: &'a [u8],
    /// Bytes from one row to the next.
    pub stride: usize,
    /// Number of bytes for each pixel.
    pub colours: usize,
}

/// Weights of the values around some results, in one direction. All results have as many: those
/// that need fewer have zeros among them, so that loops over weights are of one length.
pub struct Weights {
    /// The first value of each result.
    starts: Vec<usize>,
    /// The weights of each result, one after the other.
    weights: Vec<i32>,
    /// Number of weights of each.
    taps: usize,
}

impl Weights {
    /// Returns the weights of the results `first` to `first + count`, where `input` values
    /// become `output`.
    pub fn new(input: u32, output: u64, first: u64, count: u32) -> Weights {
        let scale = f64::from(input) / output as f64;
        let support = scale.max(1.0);
        let narrow = 1.0 / support;
        let span = |k: u64| {
            let center = (k as f64 + 0.5) * scale;
            let start = ((center - support + 0.5).max(0.0) as u32).min(input - 1);
            (center, start, ((center + support + 0.5) as u32).min(input))
        };
        let results = first..first + u64::from(count);
        let taps = results.clone().map(span).map(|(_, start, stop)| stop - start).max();
        let taps = taps.unwrap_or(1) as usize;
        let mut starts = Vec::with_capacity(count as usize);
        let mut weights = vec![0; taps * count as usize];
        for ((center, start, stop), to) in results.map(span).zip(weights.chunks_exact_mut(taps)) {
            let weight = |value: u32| {
                let distance = (f64::from(value) - center + 0.5) * narrow;
                (1.0 - distance.abs()).max(0.0)
            };
            let total: f64 = (start..stop).map(weight).sum();
            let shifted = (start as usize).min(input as usize - taps);
            for (value, to) in (start..stop).zip(&mut to[start as usize - shifted..]) {
                *to = (0.5 + weight(value) / total * f64::from(1 << BITS)) as i32;
            }
            starts.push(shifted);
        }
        Weights { starts, weights, taps }
    }

    /// Returns the first value that has a weight, and the one behind the last.
    pub fn reach(&self) -> (usize, usize) {
        let first = self.starts.iter().min().copied().unwrap_or(0);
        let last = self.starts.iter().max().map_or(0, |start| start + self.taps);
        (first, last)
    }

    fn each(&self) -> impl Iterator<Item = (usize, &[i32])> {
        self.starts.iter().copied().zip(self.weights.chunks_exact(self.taps))
    }
}

/// Scales the rows `first..last` of pixels to the width of the weights; `to` gets one row after
/// the other. `turned` is memory for [`turned_bytes`].
pub fn scale_rows(
    pixels: Pixels<'_>,
    rows: (usize, usize),
    weights: &Weights,
    turned: &mut [u8],
    to: &mut [u8],
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        return unsafe { scale_rows_avx2(pixels, rows, weights, turned, to) };
    }
    scale_rows_by::<false>(pixels, rows, weights, turned, to);
}

/// Scales rows to the height of the weights; calls `each` with every row of the result.
///
/// `rows` are `width` bytes each, and the first of them is number `first`.
pub fn scale_columns(
    rows: &[u8],
    first: usize,
    width: usize,
    weights: &Weights,
    each: impl FnMut(usize, &[u8]),
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has these instructions.
        return unsafe { scale_columns_avx2(rows, first, width, weights, each) };
    }
    scale_columns_by::<false>(rows, first, width, weights, each);
}

/// Returns how much memory [`scale_rows`] needs besides, for pixels in rows of this width.
pub fn turned_bytes(width: u32) -> usize {
    width as usize * LANES
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn scale_rows_avx2(
    pixels: Pixels<'_>,
    rows: (usize, usize),
    weights: &Weights,
    turned: &mut [u8],
    to: &mut [u8],
) {
    scale_rows_by::<true>(pixels, rows, weights, turned, to);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn scale_columns_avx2(
    rows: &[u8],
    first: usize,
    width: usize,
    weights: &Weights,
    each: impl FnMut(usize, &[u8]),
) {
    scale_columns_by::<true>(rows, first, width, weights, each);
}

#[inline(always)]
fn scale_rows_by<const AVX2: bool>(
    pixels: Pixels<'_>,
    rows: (usize, usize),
    weights: &Weights,
    turned: &mut [u8],
    to: &mut [u8],
) {
    let (columns, _) = turned.as_chunks_mut::<LANES>();
    let width = weights.starts.len() * pixels.colours;
    for (group, to) in to.chunks_mut(GROUP * width).enumerate() {
        let first = rows.0 + group * GROUP;
        let last = first + to.len() / width - 1;
        // Where there are fewer rows than a group has, the last one counts for the others.
        let each = std::array::from_fn(|k| &pixels.bytes[last.min(first + k) * pixels.stride..]);
        match pixels.colours {
            1 => scale_group::<AVX2, 1>(each, columns, weights, to),
            _ => scale_group::<AVX2, 3>(each, columns, weights, to),
        }
    }
}

/// Turns rows on their side: what is a sum along a row is then one of whole columns, which is
/// what processors are good at.
#[inline(always)]
fn scale_group<const AVX2: bool, const COLOURS: usize>(
    rows: [&[u8]; GROUP],
    columns: &mut [[u8; LANES]],
    weights: &Weights,
    to: &mut [u8],
) {
    let len = columns.len() * COLOURS + SPARE;
    let rows = rows.map(|row| &row[..row.len().min(len)]);
    for (k, column) in columns.iter_mut().enumerate() {
        let (places, _) = column.as_chunks_mut::<4>();
        for (place, row) in places.iter_mut().zip(&rows) {
            *place = *row[k * COLOURS..].first_chunk().expect("SPARE bytes more");
        }
    }
    let width = weights.starts.len() * COLOURS;
    let mut sums = [0; LANES];
    for (k, (start, weights)) in weights.each().enumerate() {
        let columns = columns[start..start + weights.len()].as_flattened();
        blend_lanes::<AVX2>(columns, LANES, weights, &mut sums);
        let (pixels, _) = sums.as_chunks::<4>();
        for (pixel, row) in pixels.iter().zip(to.chunks_exact_mut(width)) {
            let place = row[k * COLOURS..].first_chunk_mut::<COLOURS>().expect("a row is as long");
            place.copy_from_slice(&pixel[..COLOURS]);
        }
    }
}

#[inline(always)]
fn scale_columns_by<const AVX2: bool>(
    rows: &[u8],
    first: usize,
    width: usize,
    weights: &Weights,
    mut each: impl FnMut(usize, &[u8]),
) {
    let mut row = vec![0; width];
    for (k, (start, weights)) in weights.each().enumerate() {
        blend::<AVX2>(&rows[(start - first) * width..], weights, &mut row);
        each(k, &row);
    }
}

/// Fills a row with the weighted mean of rows that are as long.
#[inline(always)]
fn blend<const AVX2: bool>(rows: &[u8], weights: &[i32], to: &mut [u8]) {
    let width = to.len();
    let (lanes, rest) = to.as_chunks_mut::<LANES>();
    let done = lanes.len() * LANES;
    for (block, to) in lanes.iter_mut().enumerate() {
        blend_lanes::<AVX2>(&rows[block * LANES..], width, weights, to);
    }
    for (at, to) in rest.iter_mut().enumerate() {
        let each = weights.iter().zip(rows.chunks_exact(width));
        let sum = each.fold(HALF, |sum, (w, row)| sum + i32::from(row[done + at]) * w);
        *to = (sum >> BITS).clamp(0, 255) as u8;
    }
}

/// Fills lanes with the weighted mean of those that are `stride` apart.
#[inline(always)]
fn blend_lanes<const AVX2: bool>(
    values: &[u8],
    stride: usize,
    weights: &[i32],
    to: &mut [u8; LANES],
) {
    #[cfg(target_arch = "x86_64")]
    if AVX2 {
        // SAFETY: who says so has asked the processor.
        return unsafe { blend_lanes_avx2(values, stride, weights, to) };
    }
    let mut sums = [HALF; LANES];
    for (k, &weight) in weights.iter().enumerate() {
        let values = values[k * stride..].first_chunk::<LANES>().expect("lanes for each weight");
        for (sum, &value) in sums.iter_mut().zip(values) {
            *sum += i32::from(value) * weight;
        }
    }
    for (to, sum) in to.iter_mut().zip(sums) {
        *to = (sum >> BITS).clamp(0, 255) as u8;
    }
}

/// The same in four registers: compilers do not find this reliably.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn blend_lanes_avx2(values: &[u8], stride: usize, weights: &[i32], to: &mut [u8; LANES]) {
    use std::arch::x86_64::*;
    let mut sums = [_mm256_set1_epi32(HALF); 4];
    for (k, &weight) in weights.iter().enumerate() {
        let values = values[k * stride..].first_chunk::<LANES>().expect("lanes for each weight");
        let weight = _mm256_set1_epi32(weight);
        for (sum, eight) in sums.iter_mut().zip(values.as_chunks::<8>().0) {
            let eight = _mm_cvtsi64_si128(i64::from_le_bytes(*eight));
            let product = _mm256_mullo_epi32(_mm256_cvtepu8_epi32(eight), weight);
            *sum = _mm256_add_epi32(*sum, product);
        }
    }
    let [a, b, c, d] = sums.map(|sum| _mm256_srai_epi32::<{ BITS as i32 }>(sum));
    let words = (_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    let bytes = _mm256_packus_epi16(words.0, words.1);
    let in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let bytes = _mm256_permutevar8x32_epi32(bytes, in_order);
    // SAFETY: `to` has as many bytes as the register.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), bytes) };
}
