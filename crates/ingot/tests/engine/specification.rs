//! The example in docs/format.md is a real file.

use ingot::format::ingot::Schema;
use ingot::records::{Compression, Options, Writer};
use ingot::storage::Memory;

const SPECIFICATION: &str = include_str!("../../../../docs/format.md");

/// Returns the bytes of the block tagged `hex`: lines of an offset, bytes and a comment.
fn documented() -> Vec<u8> {
    let block = SPECIFICATION.split("```hex\n").nth(1).expect("a block tagged hex");
    let block = block.split("```").next().expect("text before the fence");
    let mut bytes = Vec::new();
    for line in block.lines() {
        let mut parts = line.split("  ");
        let offset = parts.next().expect("an offset");
        assert_eq!(usize::from_str_radix(offset, 16), Ok(bytes.len()), "offset of {line:?}");
        let digits = parts.next().expect("bytes").split(' ');
        bytes.extend(digits.map(|byte| u8::from_str_radix(byte, 16).expect("a byte in hex")));
    }
    bytes
}

#[test]
fn the_file_in_the_specification_is_what_a_writer_writes() {
    let memory = Memory::new();
    let options = Options { compression: Compression::None, level: 3, sync: true };
    let id = std::array::from_fn(|k| k as u8);
    let storage = Box::new(memory.clone());
    let mut writer =
        Writer::create_with_id(storage, "x", Schema::records(), r#"{"k":1}"#, options, id).unwrap();
    writer.append(b"hello").unwrap();
    writer.append(b"").unwrap();
    writer.close().unwrap();
    assert_eq!(documented(), memory.bytes());
}
