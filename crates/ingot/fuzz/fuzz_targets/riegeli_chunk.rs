//! Riegeli's chunks: any bytes, and chunks whose hashes are right or not.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use ingot::format::riegeli::chunk::{self, Header};
use ingot::format::riegeli::{Chunk, Kind, block, simple, transposed};
use ingot_fuzz::{CHUNK_MEMORY, bounded};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Arbitrary)]
struct Written<'a> {
    begin: u32,
    kind: u8,
    records: u16,
    decoded_len: u16,
    flips: Vec<(u32, u8)>,
    data: &'a [u8],
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    if choice == 0 {
        let begin = u64::from(rest.len() as u32 % 4) * (block::LEN - 10);
        bounded(CHUNK_MEMORY + 2 * rest.len(), || drop(Chunk::decode(rest, begin)));
        return;
    }
    let Ok(written) = Written::arbitrary_take_rest(Unstructured::new(rest)) else { return };
    let Some(begin) = block::round_up(written.begin.into()) else { return };
    let kinds = [Kind::SIGNATURE, Kind::SIMPLE, Kind::TRANSPOSED, Kind::PADDING];
    let kind = kinds[usize::from(written.kind % 4)];
    let header =
        Header::new(kind, written.records.into(), written.decoded_len.into(), written.data);
    let mut file = Vec::new();
    let end = chunk::append(&mut file, begin, &header, written.data);
    for &(place, bits) in &written.flips {
        let at = place as usize % file.len();
        file[at] ^= bits;
    }
    bounded(CHUNK_MEMORY + 1024 * file.len(), || {
        let Ok(found) = Chunk::decode(&file, begin) else {
            assert!(!written.flips.is_empty());
            return;
        };
        assert_eq!((found.header, &found.data[..], found.end), (header, written.data, end));
        let group = match kind {
            Kind::SIMPLE => simple::decode(&found),
            Kind::TRANSPOSED => transposed::decode(&found),
            _ => return,
        };
        if let Ok(group) = group {
            assert_eq!(group.len() as u64, header.records);
            assert_eq!(group.bytes.len() as u64, header.decoded_len);
        }
    });
});
