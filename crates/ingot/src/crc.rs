//! Checksums of records: the `crc32c` and `crc32fast` crates, and on processors that
//! multiply polynomials four at a time a kernel that sums while it copies.
//!
//! Measured on records of 4 KB: copied out of the page cache, the kernel needs the time that
//! memory takes and little more; a copy that the crate then sums, half as much again.

/// What bytes are summed to on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// Nothing.
    None,
    /// CRC-32 as zlib has it (IEEE 802.3).
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
}

impl Sum {
    /// Returns the checksum of what `crc` is the checksum of, followed by `bytes`.
    #[inline]
    #[allow(unsafe_code)]
    pub fn append(self, crc: u32, bytes: &[u8]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if bytes.len() >= fold::BLOCK && self != Sum::None && fold::is_available() {
            let (from, to, len) = (bytes.as_ptr(), std::ptr::null_mut(), bytes.len());
            // SAFETY: the processor has the instructions; nothing is written.
            return unsafe {
                match self {
                    Sum::Crc32 => fold::sum::<{ fold::CRC32 }, false>(crc, from, to, len),
                    _ => fold::sum::<{ fold::CRC32C }, false>(crc, from, to, len),
                }
            };
        }
        self.append_plainly(crc, bytes)
    }

    #[inline]
    #[allow(unsafe_code)]
    fn append_plainly(self, crc: u32, bytes: &[u8]) -> u32 {
        match self {
            Sum::None => crc,
            Sum::Crc32 => {
                let mut hasher = crc32fast::Hasher::new_with_initial(crc);
                hasher.update(bytes);
                hasher.finalize()
            }
            #[cfg(target_arch = "x86_64")]
            Sum::Crc32c if bytes.len() < fold::BLOCK && fold::is_available() => {
                // SAFETY: the processor has the instruction.
                !unsafe { fold::crc32c_of(!crc, bytes) }
            }
            Sum::Crc32c => crc32c::crc32c_append(crc, bytes),
        }
    }

    /// Copies bytes to `to` and returns what [`Sum::append`] would: for memory that may
    /// change meanwhile, such as a mapping, the checksum is that of the copy.
    ///
    /// # Safety
    ///
    /// There must be as many readable bytes at `from` as `to` is long, outside of `to`.
    #[inline]
    #[allow(unsafe_code)]
    pub unsafe fn copy(self, crc: u32, from: *const u8, to: &mut [u8]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if to.len() >= fold::BLOCK && self != Sum::None && fold::is_available() {
            let (to, len) = (to.as_mut_ptr(), to.len());
            // SAFETY: the processor has the instructions; the rest is promised by the caller.
            return unsafe {
                match self {
                    Sum::Crc32 => fold::sum::<{ fold::CRC32 }, true>(crc, from, to, len),
                    _ => fold::sum::<{ fold::CRC32C }, true>(crc, from, to, len),
                }
            };
        }
        let mut sum = crc;
        for (k, piece) in to.chunks_mut(PIECE).enumerate() {
            // SAFETY: as promised by the caller.
            unsafe {
                std::ptr::copy_nonoverlapping(from.add(k * PIECE), piece.as_mut_ptr(), piece.len())
            };
            sum = self.append(sum, piece);
        }
        sum
    }
}

/// Bytes that are summed while they are in the nearest cache.
const PIECE: usize = 4 << 10;

/// A message is congruent, modulo the polynomial of the checksum, to one in which a block
/// at the front is replaced by its product with a power of x further back. So
/// eight or sixteen lanes of 16 bytes each swallow the message, are then folded into one, and the
/// 16 bytes that are left have the checksum of the whole.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod fold {
    use super::Sum;
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _MM_HINT_T0, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64,
        _mm_loadu_si128, _mm_prefetch, _mm_set_epi32, _mm_set_epi64x, _mm_storeu_si128,
        _mm_xor_si128, _mm256_castsi256_si128, _mm256_clmulepi64_epi128, _mm256_extracti128_si256,
        _mm256_loadu_si256, _mm256_set_epi32, _mm256_set_epi64x, _mm256_storeu_si256,
        _mm256_xor_si256, _mm512_castsi512_si128, _mm512_clmulepi64_epi128,
        _mm512_extracti32x4_epi32, _mm512_loadu_si512, _mm512_set_epi64, _mm512_storeu_si512,
        _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
    };

    /// The polynomials, reflected.
    pub const CRC32: u32 = 0xedb8_8320;
    pub const CRC32C: u32 = 0x82f6_3b78;

    const REGISTERS: usize = 4;

    /// How far ahead of the copy the processor is told to fetch: sums leave it too little room
    /// to find out by itself.
    const AHEAD: usize = 1 << 10;

    /// Bytes that are folded at a time, and at least.
    pub const BLOCK: usize = 32 * REGISTERS;

    /// The same where registers have 64 bytes.
    const WIDE_BLOCK: usize = 64 * REGISTERS;

    pub fn is_available() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("sse4.2")
    }

    fn is_wide() -> bool {
        is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
    }

    /// Returns x to the `exponent`, reduced and reflected, in the upper half of a word.
    const fn power(polynomial: u32, exponent: usize) -> i64 {
        let (mut power, mut left) = (0x8000_0000_u32, exponent);
        while left > 0 {
            power = (power >> 1) ^ if power & 1 == 1 { polynomial } else { 0 };
            left -= 1;
        }
        ((power as u64) << 32) as i64
    }

    /// Returns the factors of the two halves of a lane that moves back by `bytes`. The
    /// product of two reflected words stands one bit too far up, hence the 1 less.
    const fn factors(polynomial: u32, bytes: usize) -> (i64, i64) {
        (power(polynomial, 8 * bytes + 63), power(polynomial, 8 * bytes - 1))
    }

    #[inline]
    #[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq")]
    fn fold_two(lanes: __m256i, factors: (i64, i64), onto: __m256i) -> __m256i {
        let factors = _mm256_set_epi64x(factors.1, factors.0, factors.1, factors.0);
        let front = _mm256_clmulepi64_epi128::<0x00>(lanes, factors);
        let back = _mm256_clmulepi64_epi128::<0x11>(lanes, factors);
        _mm256_xor_si256(_mm256_xor_si256(front, back), onto)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,vpclmulqdq,pclmulqdq")]
    fn fold_four(lanes: __m512i, factors: (i64, i64), onto: __m512i) -> __m512i {
        let (first, second) = factors;
        let factors = _mm512_set_epi64(second, first, second, first, second, first, second, first);
        let front = _mm512_clmulepi64_epi128::<0x00>(lanes, factors);
        let back = _mm512_clmulepi64_epi128::<0x11>(lanes, factors);
        _mm512_ternarylogic_epi64::<0x96>(front, back, onto)
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq")]
    fn fold_one(lane: __m128i, factors: (i64, i64), onto: __m128i) -> __m128i {
        let factors = _mm_set_epi64x(factors.1, factors.0);
        let front = _mm_clmulepi64_si128::<0x00>(lane, factors);
        let back = _mm_clmulepi64_si128::<0x11>(lane, factors);
        _mm_xor_si128(_mm_xor_si128(front, back), onto)
    }

    /// Sums `len` bytes, which are at least `BLOCK`, and copies them to `to` if `COPY`.
    ///
    /// # Safety
    ///
    /// The processor must have the instructions, see [`is_available`]. `from` must be readable
    /// and, if `COPY`, `to` writable for `len` bytes.
    #[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq,sse4.2")]
    pub unsafe fn sum<const POLYNOMIAL: u32, const COPY: bool>(
        crc: u32,
        from: *const u8,
        to: *mut u8,
        len: usize,
    ) -> u32 {
        debug_assert!(len >= BLOCK);
        // SAFETY: as promised by the caller; the wide kernel is used where there is one.
        let (mut lane, mut at) = unsafe {
            if len >= WIDE_BLOCK && is_wide() {
                swallow_wide::<POLYNOMIAL, COPY>(crc, from, to, len)
            } else {
                swallow::<POLYNOMIAL, COPY>(crc, from, to, len)
            }
        };
        while at + 16 <= len {
            // SAFETY: the access ends at `len` or before.
            let bytes = unsafe {
                let bytes = _mm_loadu_si128(from.add(at).cast());
                if COPY {
                    _mm_storeu_si128(to.add(at).cast(), bytes);
                }
                bytes
            };
            lane = fold_one(lane, const { factors(POLYNOMIAL, 16) }, bytes);
            at += 16;
        }
        let mut rest = [0_u8; 32];
        // SAFETY: fewer than 16 bytes are left, so both fit into `rest`.
        unsafe {
            _mm_storeu_si128(rest.as_mut_ptr().cast(), lane);
            std::ptr::copy_nonoverlapping(from.add(at), rest[16..].as_mut_ptr(), len - at);
            if COPY {
                std::ptr::copy_nonoverlapping(rest[16..].as_ptr(), to.add(at), len - at);
            }
        }
        let rest = &rest[..16 + len - at];
        if POLYNOMIAL == CRC32 { Sum::Crc32.append_plainly(!0, rest) } else { !crc32c_of(0, rest) }
    }

    /// Adds a few bytes to a CRC-32C; both are inverted.
    #[inline]
    #[target_feature(enable = "sse4.2")]
    pub fn crc32c_of(crc: u32, bytes: &[u8]) -> u32 {
        let (words, rest) = bytes.as_chunks();
        let mut crc = u64::from(crc);
        for word in words {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
        let mut crc = crc as u32;
        for &byte in rest {
            crc = _mm_crc32_u8(crc, byte);
        }
        crc
    }

    /// Folds whole blocks of bytes into one lane. Returns it, and how many bytes are in it.
    ///
    /// # Safety
    ///
    /// As for [`sum`].
    #[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq")]
    unsafe fn swallow<const POLYNOMIAL: u32, const COPY: bool>(
        crc: u32,
        from: *const u8,
        to: *mut u8,
        len: usize,
    ) -> (__m128i, usize) {
        // SAFETY: all offsets are such that the access ends at `len` or before.
        let two = |at: usize| unsafe {
            let bytes = _mm256_loadu_si256(from.add(at).cast());
            if COPY {
                _mm256_storeu_si256(to.add(at).cast(), bytes);
            }
            bytes
        };
        let mut lanes: [__m256i; REGISTERS] = std::array::from_fn(|k| two(32 * k));
        let state = _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, !crc as i32);
        lanes[0] = _mm256_xor_si256(lanes[0], state);
        let mut at = BLOCK;
        while at + BLOCK <= len {
            if COPY {
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at + AHEAD).cast());
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at + AHEAD + 64).cast());
            }
            for (k, lane) in lanes.iter_mut().enumerate() {
                *lane = fold_two(*lane, const { factors(POLYNOMIAL, BLOCK) }, two(at + 32 * k));
            }
            at += BLOCK;
        }
        let mut lane = lanes[0];
        for next in &lanes[1..] {
            lane = fold_two(lane, const { factors(POLYNOMIAL, 32) }, *next);
        }
        let halves = (_mm256_castsi256_si128(lane), _mm256_extracti128_si256::<1>(lane));
        (fold_one(halves.0, const { factors(POLYNOMIAL, 16) }, halves.1), at)
    }

    /// As [`swallow`], in registers of 64 bytes. It takes so few cycles that the processor finds
    /// out by itself what to fetch: telling it ahead made a copy of 4 KB slower by a tenth.
    ///
    /// # Safety
    ///
    /// As for [`sum`]; see [`is_wide`]. There are at least `WIDE_BLOCK` bytes.
    #[target_feature(enable = "avx512f,avx512vl,vpclmulqdq,pclmulqdq")]
    unsafe fn swallow_wide<const POLYNOMIAL: u32, const COPY: bool>(
        crc: u32,
        from: *const u8,
        to: *mut u8,
        len: usize,
    ) -> (__m128i, usize) {
        // SAFETY: all offsets are such that the access ends at `len` or before.
        let four = |at: usize| unsafe {
            let bytes = _mm512_loadu_si512(from.add(at).cast());
            if COPY {
                _mm512_storeu_si512(to.add(at).cast(), bytes);
            }
            bytes
        };
        let mut lanes: [__m512i; REGISTERS] = std::array::from_fn(|k| four(64 * k));
        let state = _mm512_zextsi128_si512(_mm_set_epi32(0, 0, 0, !crc as i32));
        lanes[0] = _mm512_xor_si512(lanes[0], state);
        let mut at = WIDE_BLOCK;
        while at + WIDE_BLOCK <= len {
            for (k, lane) in lanes.iter_mut().enumerate() {
                let factors = const { factors(POLYNOMIAL, WIDE_BLOCK) };
                *lane = fold_four(*lane, factors, four(at + 64 * k));
            }
            at += WIDE_BLOCK;
        }
        let mut lane = lanes[0];
        for next in &lanes[1..] {
            lane = fold_four(lane, const { factors(POLYNOMIAL, 64) }, *next);
        }
        while at + 64 <= len {
            lane = fold_four(lane, const { factors(POLYNOMIAL, 64) }, four(at));
            at += 64;
        }
        let quarters = [
            _mm512_castsi512_si128(lane),
            _mm512_extracti32x4_epi32::<1>(lane),
            _mm512_extracti32x4_epi32::<2>(lane),
            _mm512_extracti32x4_epi32::<3>(lane),
        ];
        let mut last = quarters[0];
        for next in &quarters[1..] {
            last = fold_one(last, const { factors(POLYNOMIAL, 16) }, *next);
        }
        (last, at)
    }
}

#[cfg(test)]
mod tests {
    use super::Sum;

    #[test]
    fn the_check_values_of_the_standards_come_out() {
        assert_eq!(Sum::Crc32c.append(0, b"123456789"), 0xe306_9283);
        assert_eq!(Sum::Crc32.append(0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn every_length_agrees_with_the_crates() {
        let bytes: Vec<u8> = (0..20_000_u32).map(|k| ((k * k) >> 5) as u8).collect();
        for len in (0..5_000).chain([8_161, 12_240, 16_384, 19_990]) {
            for (start, sum) in
                [(0, Sum::Crc32c), (1, Sum::Crc32), (7, Sum::Crc32c), (3, Sum::None)]
            {
                let bytes = &bytes[start..][..len];
                let seed = (len as u32).wrapping_mul(0x9e37_79b9);
                let expected = sum.append_plainly(seed, bytes);
                assert_eq!(sum.append(seed, bytes), expected, "{sum:?} {len}");
                let mut copied = vec![0; len];
                // SAFETY: `bytes` is as long as `copied`.
                #[allow(unsafe_code)]
                let found = unsafe { sum.copy(seed, bytes.as_ptr(), &mut copied) };
                assert_eq!((found, &copied[..]), (expected, bytes), "{sum:?} {len}");
            }
        }
    }
}
