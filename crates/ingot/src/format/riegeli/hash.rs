//! HighwayHash with Riegeli's key.

use highway::{HighwayHash, HighwayHasher, Key};

const KEY: [u64; 4] =
    [0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572, 0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572];

/// Returns the hash of `bytes`.
pub fn hash(bytes: &[u8]) -> u64 {
    HighwayHasher::new(Key(KEY)).hash64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_come_out() {
        let data: Vec<u8> = (0..1000_usize).map(|k| k as u8).collect();
        for (len, expected) in [
            (0, 0x72c3_b1e9_c013_9fe1),
            (1, 0x2cd5_7bc4_7907_559d),
            (4, 0x4d9e_8297_9ab1_7ce7),
            (7, 0x81d0_0cb7_03e0_9f52),
            (16, 0x3e13_be3a_4140_f4a7),
            (31, 0x4d26_2a70_9c34_ae7d),
            (32, 0xb73f_6df5_50f9_dce4),
            (33, 0xec2f_9200_14ea_a741),
            (65, 0xb412_5566_520c_e871),
            (1000, 0x64a6_a10b_a111_0d87),
        ] {
            assert_eq!(hash(&data[..len]), expected, "{len} bytes");
        }
    }
}
