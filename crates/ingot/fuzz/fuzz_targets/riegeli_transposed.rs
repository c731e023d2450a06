//! Riegeli's transposed chunks: any data, and any records there and back.

#![no_main]

use ingot::format::riegeli::{Chunk, Encoder, transposed};
use ingot_fuzz::{CHUNK_MEMORY, bounded, chunk_of, compression, records_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    if choice % 2 == 0 {
        let Some(chunk) = chunk_of(rest) else { return };
        let said = (chunk.header.records + chunk.header.decoded_len) as usize;
        bounded(CHUNK_MEMORY + 128 * said + 512 * rest.len(), || {
            let Ok(group) = transposed::decode(&chunk) else { return };
            assert_eq!(group.len() as u64, chunk.header.records);
            assert_eq!(group.bytes.len() as u64, chunk.header.decoded_len);
        });
        return;
    }
    let group = records_of(rest);
    let mut data = Vec::new();
    let mut encoder = Encoder::new(compression(choice / 2));
    let bucket_len = u64::from(choice / 8);
    let header =
        transposed::encode(&group, &mut encoder, bucket_len, &mut data).expect("all records fit");
    let chunk = Chunk { header, data: data.into(), end: 0 };
    assert!(transposed::decode(&chunk) == Ok(group));
});
