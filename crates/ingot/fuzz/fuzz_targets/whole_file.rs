//! Whole files: any bytes, and valid files with some of their bytes changed, their
//! checksums right or not.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use ingot_fuzz::{bounded, exercise, samples};
use libfuzzer_sys::fuzz_target;

/// Memory that a file may cost beyond a few times its length.
const LIMIT: usize = 96 << 20;

#[derive(Debug, Arbitrary)]
struct Changed {
    sample: u8,
    patches: Vec<Patch>,
    /// Bytes that are cut from the end.
    cut: u8,
    reseal: bool,
    append: bool,
}

#[derive(Debug, Arbitrary)]
struct Patch {
    /// Counted from the end, where the trailer and the directory are.
    place: u16,
    value: Change,
}

#[derive(Debug, Arbitrary)]
enum Change {
    Flip(u8),
    Byte(u8),
    Word(u32),
    Long(u64),
    /// A number near the length of the file.
    Near(i8),
    /// Bytes from elsewhere in the file.
    Copy {
        from: u16,
        len: u8,
    },
}

impl Changed {
    fn bytes(&self) -> Vec<u8> {
        let sample = &samples()[usize::from(self.sample) % samples().len()];
        let mut bytes = sample.bytes.clone();
        let len = bytes.len();
        for Patch { place, value } in self.patches.iter().take(32) {
            let at = len - 1 - usize::from(*place) % len;
            let mut put = |value: &[u8]| {
                let value = &value[..value.len().min(len - at)];
                bytes[at..at + value.len()].copy_from_slice(value);
            };
            match *value {
                Change::Flip(bit) => bytes[at] ^= 1 << (bit % 8),
                Change::Byte(byte) => put(&[byte]),
                Change::Word(word) => put(&word.to_le_bytes()),
                Change::Long(long) => put(&long.to_le_bytes()),
                Change::Near(near) => put(&(len as i64 + i64::from(near)).to_le_bytes()),
                Change::Copy { from, len: count } => {
                    let from = usize::from(from) % len;
                    let count = usize::from(count).min(len - from).min(len - at);
                    bytes.copy_within(from..from + count, at);
                }
            }
        }
        if self.reseal {
            sample.reseal(&mut bytes);
        }
        bytes.truncate(len - usize::from(self.cut).min(len));
        bytes
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let (bytes, append) = if choice == 0 {
        (rest.to_vec(), false)
    } else {
        let Ok(changed) = Changed::arbitrary_take_rest(Unstructured::new(rest)) else { return };
        (changed.bytes(), changed.append)
    };
    bounded(LIMIT + 8 * bytes.len(), || exercise(&bytes, append));
});
