//! Bitmaps of deleted rows: any bytes, or any records in a file that is whole, with the right
//! figures or any others.

#![no_main]

use std::sync::Arc;

use ingot::format::ingot::Schema;
use ingot::records::deletes::{Claim, read_from};
use ingot::records::{Compression, Mode, Options, Reader, Writer};
use ingot::storage::Memory;
use ingot_fuzz::{ID, bounded};
use libfuzzer_sys::fuzz_target;

/// Memory that a bitmap may cost beyond a few times its length.
const LIMIT: usize = 16 << 20;

/// Bytes of the records that are made here.
const RECORD: usize = 64 << 10;

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, fill], rest)) = data.split_first_chunk() else { return };
    let Some((rows, rest)) = rest.split_first_chunk() else { return };
    let Some((count, rest)) = rest.split_first_chunk() else { return };
    let (mut rows, mut count) =
        (u32::from_le_bytes(*rows).into(), u32::from_le_bytes(*count).into());
    let (bytes, bitmap) = match choice {
        0 => (rest.to_vec(), None),
        _ => {
            // Up to four records, most of them of one byte over and over.
            let mut bitmap = vec![fill; usize::from(choice % 4) * RECORD];
            bitmap.extend_from_slice(rest);
            if choice >= 0x80 {
                rows = (8 * bitmap.len() as u64).saturating_sub(rows % 8);
                count = bitmap.iter().map(|byte| u64::from(byte.count_ones())).sum();
            }
            (written(&bitmap, rows, count), Some(bitmap))
        }
    };
    bounded(LIMIT + 8 * bytes.len(), || {
        let storage = Arc::new(Memory::from(bytes));
        let opened = Reader::open(storage, "fuzzed.bitmap", Mode::Whole, &mut || Ok(()));
        let Ok(file) = opened else { return };
        let claim = Claim { id: ID, of: Some(ID), rows, count };
        let Ok(found) = read_from(&file, &claim) else { return };
        assert_eq!(found.live.num_rows(), rows);
        assert_eq!(found.live.len() + count, rows);
        let deleted = found.live.to_deleted().expect("there is memory");
        assert!(bitmap.is_none_or(|bitmap| bitmap == deleted));
        for position in (0..found.live.len()).step_by(1 + found.live.len() as usize / 100) {
            let row = found.live.select(position);
            assert!(found.live.contains(row) && found.live.rank(row) == position);
        }
    });
});

fn written(bitmap: &[u8], rows: u64, count: u64) -> Vec<u8> {
    let storage = Memory::new();
    let options = Options { compression: Compression::Lz4, ..Options::default() };
    let of: String = ID.iter().map(|byte| format!("{byte:02x}")).collect();
    let metadata = format!(r#"{{"deletes": "{of}", "rows": {rows}, "count": {count}}}"#);
    let (target, schema) = (Box::new(storage.clone()), Schema::records());
    let made = Writer::create_with_id(target, "bitmap", schema, &metadata, options, ID);
    let mut writer = made.expect("the metadata are valid");
    for record in bitmap.chunks(RECORD) {
        writer.append(record).expect("memory takes everything");
    }
    writer.close().expect("memory takes everything");
    storage.bytes()
}
