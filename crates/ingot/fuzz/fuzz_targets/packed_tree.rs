//! Trees of packed folders: any bytes behind the magic.

#![no_main]

use ingot::format::ffrecord::tree::{MAGIC, decode};
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Memory that reading a tree may take for each byte of it: an opcode of one
/// byte makes a folder.
const EXPANSION: usize = 256;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, pickle)) = data.split_first() else { return };
    let num_files = if choice == 0xff { u64::MAX } else { choice.into() };
    let record = [MAGIC, pickle].concat();
    bounded((1 << 20) + EXPANSION * record.len(), || {
        let _ = decode(&record, num_files);
    });
});
