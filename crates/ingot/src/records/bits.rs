//! The bits of a word.

/// Returns a word with `count` bits, less than a word has.
#[inline]
pub(super) fn below(count: u64) -> u64 {
    (1 << count) - 1
}

/// Returns a word with `count` bits, at most all and at least one.
#[inline]
pub(super) fn upto(count: u64) -> u64 {
    u64::MAX >> (64 - count)
}

/// For each byte, and each of its bits that are 1, the place of that bit.
static PLACES: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut ones) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][ones] = bit as u8;
                ones += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// Returns the place of the bit of a word that has `before` others before it, which must exist.
///
/// Counts in all bytes at once: S. Vigna, Broadword implementation of rank/select queries, 2008.
#[inline]
pub(super) fn select_in(word: u64, before: u32) -> u32 {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    let pairs = word - (word >> 1 & (u64::MAX / 3));
    let fours = (pairs & (u64::MAX / 5)) + (pairs >> 2 & (u64::MAX / 5));
    let bytes = (fours + (fours >> 4)) & (u64::MAX / 17);
    // Each byte has the number of ones up to it.
    let sums = bytes.wrapping_mul(ONES);
    let is_behind = (((u64::from(before) * ONES) | HIGH) - sums) & HIGH;
    let place = is_behind.count_ones() * 8;
    let left = before - (sums << 8 >> place & 0xff) as u32;
    place + u32::from(PLACES[(word >> place & 0xff) as usize][left as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_is_found_by_the_number_of_those_before_it() {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        for step in 0..2000 {
            word = word.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            let sparse = word & word.rotate_left(step % 64) & word.rotate_left(step % 7);
            for word in [word, sparse, !sparse, 1 << (step % 64), u64::MAX] {
                let places = (0..64).filter(|place| word >> place & 1 == 1);
                for (before, place) in (0..).zip(places) {
                    assert_eq!(select_in(word, before), place, "{word:064b}");
                }
            }
        }
    }
}
