//! Whole files of other formats: any bytes, gone through as an index is built.

#![no_main]

use ingot::records::indexed::examine;
use ingot::records::layout_of;
use ingot::storage::Memory;
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Memory that a file may cost beyond a few times its length.
const LIMIT: usize = 64 << 20;

const LAYOUTS: [&str; 6] = [
    r#"{"format": "tfrecord"}"#,
    r#"{"format": "webdataset"}"#,
    r#"{"format": "jsonlines"}"#,
    r#"{"format": "csv"}"#,
    r#"{"format": "mds", "columns": [["a", "int"], ["b", "ndarray"], ["c", "list[png]"]]}"#,
    r#"{"format": "litdata", "leaves": [["a", "int"], ["b", "tensor"], ["c", "jpeg_array"]]}"#,
];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, file)) = data.split_first() else { return };
    let layout = layout_of(LAYOUTS[usize::from(choice) % LAYOUTS.len()]).expect("these are known");
    bounded(LIMIT + 64 * file.len(), || {
        let _ = examine(&*layout, &Memory::from(file.to_vec()), "fuzzed");
    });
});
