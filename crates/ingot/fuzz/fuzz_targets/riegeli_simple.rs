//! Riegeli's simple chunks: any data, and any records there and back.

#![no_main]

use ingot::format::riegeli::{Encoder, simple};
use ingot_fuzz::{CHUNK_MEMORY, bounded, chunk_of, compression, records_of};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    if choice % 2 == 0 {
        let Some(mut chunk) = chunk_of(rest) else { return };
        let said = (chunk.header.records * 16 + chunk.header.decoded_len) as usize;
        bounded(CHUNK_MEMORY + 2 * said, || {
            let Ok(group) = simple::decode(&chunk) else { return };
            assert_eq!(group.len() as u64, chunk.header.records);
            assert_eq!(group.bytes.len() as u64, chunk.header.decoded_len);
            if group.len() == 1 {
                let mut record = vec![0; group.bytes.len()];
                simple::decode_one(&chunk, &mut record).expect("it is the one record");
                assert!(record == group.bytes);
            }
        });
        chunk.header.records = 1;
        let mut record = vec![0; chunk.header.decoded_len as usize];
        let _ = simple::decode_one(&chunk, &mut record);
        return;
    }
    let group = records_of(rest);
    let mut data = Vec::new();
    let mut encoder = Encoder::new(compression(choice / 2));
    let header = simple::encode(&group, &mut encoder, &mut data).expect("all records fit");
    let chunk = ingot::format::riegeli::Chunk { header, data: data.into(), end: 0 };
    assert!(simple::decode(&chunk) == Ok(group));
});
