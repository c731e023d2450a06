//! Headers: any bytes, and any JSON under a checksum that is right.

#![no_main]

use ingot::format::checksum;
use ingot::format::ingot::{Header, Schema};
use ingot_fuzz::{ID, bounded};
use libfuzzer_sys::fuzz_target;

/// Memory that parsing may take for each byte of the JSON: its fields become structs.
const EXPANSION: usize = 16;

fuzz_target!(|data: &[u8]| {
    let Some((sealed, rest)) = data.split_first() else { return };
    let bytes = if sealed % 2 == 0 { rest.to_vec() } else { with_json(rest) };
    bounded((1 << 20) + EXPANSION * bytes.len(), || {
        let Ok(header) = Header::decode(&bytes) else { return };
        assert_eq!(Header::measure(&bytes), Ok(bytes.len()));
        let again = Header::new(header.id, header.schema.clone(), &header.metadata)
            .expect("what was read can be written");
        let read = Header::decode(&again.bytes).expect("what was written can be read");
        assert_eq!((read.schema, read.metadata), (header.schema, header.metadata));
    });
});

fn with_json(json: &[u8]) -> Vec<u8> {
    let mut bytes = Header::new(ID, Schema::records(), "{}").unwrap().bytes[..32].to_vec();
    bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
    let crc = checksum::unseeded(&[&bytes[..], json].concat());
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(json);
    bytes
}
