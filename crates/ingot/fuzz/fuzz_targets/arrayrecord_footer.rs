//! The footer and the postscript of ArrayRecord files: any records.

#![no_main]

use ingot::format::arrayrecord::{Index, postscript};
use ingot::format::riegeli::{Chunk, Encoder, Kind, simple};
use ingot_fuzz::{CHUNK_MEMORY, bounded, compression, records_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((footer, rest)) = input.split_first_chunk() else { return };
    let footer = u64::from_le_bytes(*footer);
    let group = records_of(rest);
    bounded(CHUNK_MEMORY + 64 * rest.len(), || {
        let Ok(index) = Index::decode(&group, footer) else { return };
        assert_eq!(index.chunks() + 1, group.len());
        let mut row = 0;
        for chunk in 0..index.chunks() {
            let (rows, range) = (index.rows(chunk), index.range(chunk));
            assert_eq!(rows.start, row);
            assert!(range.start < range.end && range.end <= footer);
            assert_eq!(index.chunk_at(range.start), Some(chunk));
            if !rows.is_empty() {
                assert_eq!(index.place(rows.start), (chunk, 0));
                assert_eq!(index.place(rows.end - 1), (chunk, rows.end - 1 - rows.start));
            }
            row = rows.end;
        }
        assert_eq!(row, index.records());
    });
    let mut data = Vec::new();
    let header = simple::encode(&group, &mut Encoder::new(compression(0)), &mut data);
    let mut header = header.expect("all records fit");
    header.kind = Kind::SIMPLE;
    let _ = postscript::decode(&Chunk { header, data: data.into(), end: 0 });
});
