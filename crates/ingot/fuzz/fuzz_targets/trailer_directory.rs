//! Trailers, directories and dictionaries: any bytes under a checksum that is right.

#![no_main]

use ingot::format::checksum::Seed;
use ingot::format::ingot::{Dictionary, Directory, Trailer};
use ingot_fuzz::{ID, bounded};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    let seed = Seed::new(&ID);
    let mut bytes = body.to_vec();
    let own = |at: usize| {
        body.get(at..at + 8).map_or(0, |own| u64::from_le_bytes(own.try_into().unwrap()))
    };
    let crc = seed.seal(&mut bytes);
    bounded((1 << 20) + 4 * bytes.len(), || match choice % 3 {
        0 => {
            if let Ok((trailer, found)) = Trailer::decode(&bytes, own(24), &ID) {
                assert!(trailer.previous.0 == 0 || trailer.previous.0 < trailer.offset);
                assert!(trailer.durable <= trailer.offset);
                assert_eq!((trailer.encode(&ID).0, found), (bytes, crc));
            }
        }
        1 => {
            if let Ok((directory, found)) = Directory::decode(&bytes, own(8), seed) {
                assert_eq!((directory.encode(own(8), seed).0, found), (bytes, crc));
            }
        }
        _ => {
            if let Ok((dictionary, found)) = Dictionary::decode(&bytes, own(8), seed) {
                assert_eq!((dictionary.encode(own(8), seed).0, found), (bytes.clone(), crc));
                let _ = ingot::compression::Dictionary::new(&dictionary.bytes);
            }
        }
    });
});
