//! Valid files, and how to make one valid again whose blocks were changed.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use ingot::format::checksum::{self, Seed};
use ingot::format::ingot::{BlockKind, FieldKind, Header, Schema, TRAILER_LEN, Trailer};
use ingot::records::{self, Compression, Options, Value, Writer};
use ingot::storage::{Memory, ReadAt};

use crate::{ID, schemas};

const NAME: &str = "sample.ingot";

/// A valid file and where its blocks are.
pub struct Sample {
    /// The file.
    pub bytes: Vec<u8>,
    header_len: usize,
    segments: Vec<Segment>,
}

struct Segment {
    kind: BlockKind,
    block: Range<usize>,
}

/// Returns valid files of several shapes.
pub fn samples() -> &'static [Sample] {
    static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
        let [records, fields, ..] = &schemas()[..] else { unreachable!("there are four") };
        vec![
            sample(records, 9, Compression::None, 4, true, 1),
            sample(fields, 9, Compression::Lz4, 5, true, 1),
            sample(records, 150, Compression::Zstd, 100, true, 1),
            sample(records, 12, Compression::None, 5, true, 2),
            sample(fields, 12, Compression::None, 5, false, 1),
            sample(records, 150, Compression::Zstd, 100, false, 1),
        ]
    });
    &SAMPLES
}

/// Writes `rows` rows with a flush behind every `run` of them, `times` times over.
fn sample(
    schema: &Schema,
    rows: usize,
    compression: Compression,
    run: usize,
    closed: bool,
    times: usize,
) -> Sample {
    let storage = Memory::new();
    let options = Options { compression, ..Options::default() };
    let target = Box::new(storage.clone());
    let mut writer =
        Writer::create_with_id(target, NAME, schema.clone(), "{}", options, ID).unwrap();
    for time in 0..times {
        if time > 0 {
            writer.close().unwrap();
            let shared: Arc<dyn ReadAt> = Arc::new(storage.clone());
            let target = Box::new(storage.clone());
            writer = records::append(&shared, target, NAME, options, &mut || Ok(())).unwrap().0;
        }
        for row in 0..rows {
            append(&mut writer, schema, row);
            if row % run == run - 1 {
                writer.flush().unwrap();
            }
        }
    }
    if closed {
        writer.close().unwrap();
    } else {
        writer.submit().unwrap();
        writer.abandon();
    }
    Sample::new(storage.bytes())
}

fn append(writer: &mut Writer, schema: &Schema, row: usize) {
    let text =
        format!("{{\"row\": {row}, \"city\": \"Lisbon\", \"score\": {}}}", row * 7919 % 1000);
    let elements: Vec<&[u8]> = vec![text.as_bytes(); row % 3];
    let values: Vec<Value<'_>> = schema
        .fields()
        .iter()
        .map(|field| match field.kind {
            FieldKind::Cell => Value::Cell(text.as_bytes()),
            FieldKind::Sequence => Value::Sequence(&elements),
            FieldKind::Column => Value::Column(&text.as_bytes()[..field.width.unwrap() as usize]),
        })
        .collect();
    writer.append_row(&values).unwrap();
}

impl Sample {
    fn new(bytes: Vec<u8>) -> Sample {
        let header_len = Header::measure(&bytes[..40]).unwrap();
        let trailer = |at: usize| {
            let found = bytes.get(at..at + TRAILER_LEN)?;
            Some(Trailer::decode(found, at as u64, &ID).ok()?.0)
        };
        let mut next = (0..bytes.len()).rev().find_map(trailer);
        let mut segments = Vec::new();
        while let Some(found) = next {
            let block = found.block.offset as usize..found.offset as usize;
            segments.push(Segment { kind: found.block.kind, block });
            next = trailer(found.previous.0 as usize);
        }
        segments.reverse();
        Sample { bytes, header_len, segments }
    }

    /// Makes every checksum of `bytes` right again, which were changed but have the
    /// layout of this file.
    pub fn reseal(&self, bytes: &mut [u8]) {
        let crc = checksum::unseeded(&[&bytes[..36], &bytes[40..self.header_len]].concat());
        put(bytes, 36, crc);
        let seed = Seed::new(&bytes[16..32].try_into().unwrap());
        let (mut pages, mut dictionaries) = (Vec::new(), Vec::new());
        let mut previous = None;
        for Segment { kind, block } in &self.segments {
            let mut crc = 0;
            if *kind == BlockKind::Directory {
                let listed = pages.iter().chain(&dictionaries);
                for (k, crc) in listed.enumerate() {
                    put(bytes, block.start + 32 + 24 * k + 12, *crc);
                }
            }
            if *kind != BlockKind::Mark {
                crc = seed.block(&bytes[block.start..block.end - 4]);
                put(bytes, block.end - 4, crc);
            }
            match kind {
                BlockKind::Page => pages.push(crc),
                BlockKind::Dictionary => dictionaries.push(crc),
                _ => {}
            }
            let trailer = block.end;
            put(bytes, trailer + 84, crc);
            if let Some(previous) = previous {
                put(bytes, trailer + 88, previous);
            }
            let crc = seed.block(&bytes[trailer..trailer + TRAILER_LEN - 4]);
            put(bytes, trailer + TRAILER_LEN - 4, crc);
            previous = Some(crc);
        }
    }
}

fn put(bytes: &mut [u8], at: usize, crc: u32) {
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}
