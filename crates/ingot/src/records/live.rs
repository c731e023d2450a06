//! The rows of a file that are not deleted.

use std::ops::Range;

use super::bits::{below, select_in, upto};

/// Rows of a word, of a block of words, which has a counter, and of a group of blocks, which has
/// a long one.
const WORD: u64 = 64;
const BLOCK: u64 = 512;
const GROUP: u64 = 1 << 16;

/// Words of a block.
const WORDS: usize = (BLOCK / WORD) as usize;

/// Live rows between two hints that [`Live::select`] begins at.
const SAMPLE: u64 = 1 << 13;

/// Which rows of a file are live, and the numbers that they have without the others.
///
/// Takes 1.04 bits for each row. A number is found in a few steps, however many rows there are.
#[derive(Debug, PartialEq, Eq)]
pub struct Live {
    /// Bit k of word j is 1 if row 64 j + k is live. Blocks are whole; bits behind the last row
    /// are 0.
    words: Vec<u64>,
    /// Live rows before each group.
    groups: Vec<u64>,
    /// Live rows before each block, in its group.
    blocks: Vec<u16>,
    /// The block of each live row whose number is a multiple of [`SAMPLE`].
    hints: Vec<u32>,
    rows: u64,
    len: u64,
}

impl Live {
    /// Takes a bitmap in which live rows are 1. None if there is no memory for the counters.
    pub(super) fn of_words(LiveWords { words, rows }: LiveWords) -> Option<Live> {
        let (mut groups, mut blocks, mut hints) = (Vec::new(), Vec::new(), Vec::new());
        groups.try_reserve_exact(usize::try_from(rows.div_ceil(GROUP)).ok()?).ok()?;
        blocks.try_reserve_exact(usize::try_from(rows.div_ceil(BLOCK)).ok()?).ok()?;
        hints.try_reserve_exact(usize::try_from(rows.div_ceil(SAMPLE)).ok()?).ok()?;
        let mut len = 0;
        for (k, block) in words.chunks(WORDS).enumerate() {
            if (k as u64).is_multiple_of(GROUP / BLOCK) {
                groups.push(len);
            }
            blocks.push((len - groups.last().expect("one was pushed")) as u16);
            len += block.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            while (hints.len() as u64) * SAMPLE < len {
                hints.push(u32::try_from(k).ok()?);
            }
        }
        Some(Live { words, groups, blocks, hints, rows, len })
    }

    /// Takes a bitmap in which bit k of byte j is 1 if row 8 j + k is deleted; bits behind the last
    /// row do not matter. None if there is no memory.
    ///
    /// # Panics
    ///
    /// If the bitmap has another length than the rows take.
    pub fn of_deleted(bitmap: &[u8], rows: u64) -> Option<Live> {
        assert_eq!(bitmap.len() as u64, rows.div_ceil(8), "one bit for each row");
        let mut words = LiveWords::new(rows)?;
        words.push_deleted(bitmap);
        words.finish();
        Live::of_words(words)
    }

    /// Returns the bitmap of deleted rows, as [`Live::of_deleted`] takes it. None if there is no
    /// memory.
    pub fn to_deleted(&self) -> Option<Vec<u8>> {
        let mut bitmap = Vec::new();
        bitmap.try_reserve_exact(self.words.len() * 8).ok()?;
        self.words.iter().for_each(|word| bitmap.extend_from_slice(&(!word).to_le_bytes()));
        bitmap.truncate(self.rows.div_ceil(8) as usize);
        if let Some(last) = bitmap.last_mut()
            && !self.rows.is_multiple_of(8)
        {
            *last &= (1 << (self.rows % 8)) - 1;
        }
        Some(bitmap)
    }

    /// Number of rows, those that are deleted included.
    pub fn num_rows(&self) -> u64 {
        self.rows
    }

    /// Number of live rows.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether all rows are deleted.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `row`, which must exist, is live.
    pub fn contains(&self, row: u64) -> bool {
        self.words[(row / WORD) as usize] >> (row % WORD) & 1 == 1
    }

    /// Number of live rows before `row`, which may be the one behind the last.
    pub fn rank(&self, row: u64) -> u64 {
        if row >= self.rows {
            return self.len;
        }
        let block = row / BLOCK;
        let (first, last) = ((block * BLOCK / WORD) as usize, (row / WORD) as usize);
        let whole: u32 = self.words[first..last].iter().map(|word| word.count_ones()).sum();
        let part = (self.words[last] & below(row % WORD)).count_ones();
        self.before(block as usize) + u64::from(whole + part)
    }

    /// Returns live row number `position`, which must exist.
    #[inline]
    pub fn select(&self, position: u64) -> u64 {
        let block = self.block_of(position);
        let (blocks, _) = self.words.as_chunks::<WORDS>();
        let left = (position - self.before(block)) as u32;
        // Without a branch on what the bits are, which nobody could predict.
        let (mut word, mut seen, mut sum) = (0, 0, 0);
        for one in &blocks[block] {
            sum += one.count_ones();
            let is_behind = sum <= left;
            word += usize::from(is_behind);
            seen = if is_behind { sum } else { seen };
        }
        let place = select_in(blocks[block][word], left - seen);
        block as u64 * BLOCK + word as u64 * WORD + u64::from(place)
    }

    /// Returns the block of live row number `position`, which must exist.
    #[inline]
    fn block_of(&self, position: u64) -> usize {
        let hint = (position / SAMPLE) as usize;
        let mut low = self.hints[hint] as usize;
        let mut high = self.hints.get(hint + 1).map_or(self.blocks.len(), |&end| end as usize + 1);
        // Mostly, the rows between two hints are spread evenly.
        let guess = low + ((position % SAMPLE) as usize * (high - low)) / SAMPLE as usize;
        let first = guess.max(low + 1) - 1;
        if first + 3 < high && self.before(first) <= position && self.before(first + 3) > position {
            let is_behind = |block: usize| usize::from(self.before(block) <= position);
            return first + is_behind(first + 1) + is_behind(first + 2);
        }
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            if self.before(middle) <= position { low = middle } else { high = middle }
        }
        low
    }

    /// Number of live rows before a block.
    #[inline]
    fn before(&self, block: usize) -> u64 {
        self.groups[block / (GROUP / BLOCK) as usize] + u64::from(self.blocks[block])
    }

    /// Whether a row of a range is live.
    pub fn has_any(&self, rows: Range<u64>) -> bool {
        self.next(rows.start, rows.end, true) < rows.end
    }

    /// Returns the longest runs of consecutive live rows in a range, in order.
    pub fn runs(&self, rows: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut next = rows.start;
        std::iter::from_fn(move || {
            let start = self.next(next, rows.end, true);
            next = self.next(start, rows.end, false);
            (start < rows.end).then_some(start..next)
        })
    }

    /// Returns the first row from `row` on that is live or not, or `end`, if that comes first.
    fn next(&self, row: u64, end: u64, live: bool) -> u64 {
        let mut at = row;
        while at < end {
            let word = self.words[(at / WORD) as usize];
            let wanted = if live { word } else { !word } >> (at % WORD);
            if wanted != 0 {
                return end.min(at + u64::from(wanted.trailing_zeros()));
            }
            at = (at / WORD + 1) * WORD;
        }
        end
    }

    /// Appends the live ones of `given`, which are the values of `rows`, each of `width` bytes.
    pub fn append_values(
        &self,
        rows: Range<u64>,
        width: usize,
        given: &[u8],
        values: &mut Vec<u8>,
    ) {
        match width {
            1 => self.append_each::<1>(rows, given, values),
            2 => self.append_each::<2>(rows, given, values),
            4 => self.append_each::<4>(rows, given, values),
            8 => self.append_each::<8>(rows, given, values),
            _ => {
                let byte = |row: u64| (row - rows.start) as usize * width;
                for run in self.runs(rows.clone()) {
                    values.extend_from_slice(&given[byte(run.start)..byte(run.end)]);
                }
            }
        }
    }

    /// As [`Live::append_values`]: values of a known width are moved one by one in no time.
    fn append_each<const W: usize>(&self, rows: Range<u64>, given: &[u8], values: &mut Vec<u8>) {
        let (given, _) = given.as_chunks::<W>();
        let start = values.len();
        let count = (self.rank(rows.end) - self.rank(rows.start)) as usize;
        values.resize(start + count * W, 0);
        let (mut room, _) = values[start..].as_chunks_mut::<W>();
        let mut at = rows.start;
        while at < rows.end {
            let (from, bits) = ((at - rows.start) as usize, (WORD - at % WORD).min(rows.end - at));
            let mut word = self.words[(at / WORD) as usize] >> (at % WORD) & upto(bits);
            let given = &given[from..from + bits as usize];
            let own = room.split_off_mut(..word.count_ones() as usize).expect("sized for all");
            if own.len() == given.len() {
                own.copy_from_slice(given);
            } else {
                for value in own {
                    *value = given[word.trailing_zeros() as usize];
                    word &= word - 1;
                }
            }
            at += bits;
        }
    }
}

/// A bitmap in which live rows are 1, in the making.
pub(super) struct LiveWords {
    words: Vec<u64>,
    rows: u64,
}

impl LiveWords {
    /// Begins a bitmap. None if there is no memory for it.
    pub fn new(rows: u64) -> Option<LiveWords> {
        let mut words = Vec::new();
        let count = rows.div_ceil(BLOCK).checked_mul(BLOCK / WORD)?;
        words.try_reserve_exact(usize::try_from(count).ok()?).ok()?;
        Some(LiveWords { words, rows })
    }

    /// Appends a part of a bitmap in which deleted rows are 1. All parts but the last consist of
    /// whole words.
    pub fn push_deleted(&mut self, bitmap: &[u8]) {
        let (whole, rest) = bitmap.as_chunks();
        self.words.extend(whole.iter().map(|&bytes| !u64::from_le_bytes(bytes)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.words.push(!u64::from_le_bytes(last));
        }
    }

    /// Makes the bits behind the last row 0 once all parts are there, and returns whether they were
    /// 0 in the bitmap of deleted rows.
    pub fn finish(&mut self) -> bool {
        debug_assert_eq!(self.words.len() as u64, self.rows.div_ceil(WORD));
        let mut was_clean = true;
        if let Some(last) = self.words.last_mut()
            && !self.rows.is_multiple_of(WORD)
        {
            let behind = !below(self.rows % WORD);
            was_clean = *last & behind == behind;
            *last &= !behind;
        }
        self.words.resize(self.words.len().next_multiple_of(WORDS), 0);
        was_clean
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bitmap_of(live: &[bool]) -> Vec<u8> {
        let mut bitmap = vec![0; live.len().div_ceil(8)];
        for (row, _) in live.iter().enumerate().filter(|(_, live)| !**live) {
            bitmap[row / 8] |= 1 << (row % 8);
        }
        bitmap
    }

    fn runs_of(live: &[bool], rows: Range<usize>) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for row in rows.filter(|&row| live[row]) {
            let row = row as u64;
            match runs.last_mut() {
                Some(run) if run.end == row => run.end = row + 1,
                _ => runs.push(row..row + 1),
            }
        }
        runs
    }

    /// Compares with a plain list of which rows are live.
    fn check(live: &[bool], range: Range<usize>) {
        let bitmap = bitmap_of(live);
        let found = Live::of_deleted(&bitmap, live.len() as u64).unwrap();
        let rows: Vec<u64> = (0..live.len() as u64).filter(|&row| live[row as usize]).collect();
        assert_eq!((found.len(), found.num_rows()), (rows.len() as u64, live.len() as u64));
        for (position, &row) in rows.iter().enumerate() {
            assert_eq!(found.select(position as u64), row, "select {position}");
        }
        let mut before = 0;
        for (row, &live) in live.iter().enumerate() {
            assert_eq!((found.rank(row as u64), found.contains(row as u64)), (before, live));
            before += u64::from(live);
        }
        assert_eq!(found.rank(live.len() as u64), before);
        let wide = range.start as u64..range.end as u64;
        assert_eq!(found.runs(wide.clone()).collect::<Vec<_>>(), runs_of(live, range.clone()));
        for width in [1, 2, 3, 4, 8, 10] {
            let value = |row: usize| (0..width).map(move |k| (row * 7 + k) as u8);
            let given: Vec<u8> = range.clone().flat_map(value).collect();
            let mut values = vec![99];
            found.append_values(wide.clone(), width, &given, &mut values);
            let expected: Vec<u8> =
                range.clone().filter(|&row| live[row]).flat_map(value).collect();
            assert_eq!(values[1..], expected, "width {width}");
        }
        assert_eq!(found.to_deleted(), Some(bitmap));
    }

    /// Runs of live and deleted rows, of a few rows or of many.
    fn rows() -> impl Strategy<Value = Vec<bool>> {
        let run = prop_oneof![4 => 1..4_usize, 2 => 1..200_usize, 1 => 400..6000_usize];
        prop::collection::vec((any::<bool>(), run), 0..40).prop_map(|runs| {
            runs.into_iter().flat_map(|(live, len)| std::iter::repeat_n(live, len)).collect()
        })
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_a_plain_list(
            live in rows(),
            cuts in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        ) {
            let cuts = [cuts.0.index(live.len() + 1), cuts.1.index(live.len() + 1)];
            check(&live, cuts[0].min(cuts[1])..cuts[0].max(cuts[1]));
        }
    }

    #[test]
    fn numbers_are_right_beyond_a_group_of_blocks() {
        for keep in [1_u64, 2, 3, 7, 1000, 100_000] {
            let rows = 3 * GROUP + 77;
            let live: Vec<bool> = (0..rows).map(|row| row % keep == keep / 2).collect();
            check(&live, 100..live.len());
        }
    }

    #[test]
    fn a_row_takes_little_more_than_a_bit() {
        let rows = 1_u64 << 24;
        let live = Live::of_deleted(&vec![0; (rows / 8) as usize], rows).unwrap();
        let bytes = 8 * (live.words.capacity() + live.groups.capacity())
            + 2 * live.blocks.capacity()
            + 4 * live.hints.capacity();
        assert!((bytes as f64) < 1.04 * rows as f64 / 8.0, "{bytes} bytes for {rows} rows");
    }
}
