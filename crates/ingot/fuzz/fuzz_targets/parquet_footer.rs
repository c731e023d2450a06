//! The footer of a Parquet file: any bytes.

#![no_main]

use ingot::format::parquet::Footer;
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Memory that a footer may cost beyond a few times its length.
const LIMIT: usize = 16 << 20;

fuzz_target!(|data: &[u8]| {
    bounded(LIMIT + 64 * data.len(), || {
        if let Ok(footer) = Footer::decode(data) {
            assert!(footer.groups.iter().all(|group| group.rows >= 0 && group.largest >= 0));
            assert!(footer.columns.iter().all(|column| !column.path.is_empty()));
        }
    });
});
