//! How values are compressed is decided once, and handed on from file to file.

use crate::support;

use ingot::Error;
use ingot::compression::Codec;
use ingot::format::ingot::Schema;
use ingot::records::{Compression, Decisions, Mode, Writer};
use ingot::storage::Memory;
use support::{Random, Row, append_rows, create, open, options, read_rows, record_rows};

fn writer(memory: &Memory) -> Writer {
    create(memory.clone(), &Schema::records(), options(Compression::Auto))
}

/// Returns records with words in common.
fn texts(count: usize, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    let words: Vec<Vec<u8>> = (0..500).map(|word| Random(word).bytes(12)).collect();
    let mut text = || (0..20).flat_map(|_| words[random.below(500)].clone()).collect();
    record_rows(&(0..count).map(|_| text()).collect::<Vec<_>>())
}

fn noise(count: usize, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    record_rows(&(0..count).map(|_| random.bytes(240)).collect::<Vec<_>>())
}

/// Writes a file as `known` says; returns what is known then, and its bytes.
fn write(rows: &[Row], known: Option<Decisions>) -> (Decisions, Vec<u8>) {
    let memory = Memory::new();
    let mut writer = writer(&memory);
    if let Some(known) = known {
        writer.assume(known).unwrap();
    }
    append_rows(&mut writer, rows);
    writer.close().unwrap();
    let reader = open(&memory, Mode::Whole).unwrap();
    let found: Vec<Row> = read_rows(&reader).into_iter().map(Result::unwrap).collect();
    assert!(found == rows);
    (writer.decisions().unwrap(), memory.bytes())
}

#[test]
fn later_files_compress_as_the_first_has_decided() {
    let (known, first) = write(&texts(10_000, 1), None);
    let decision = known[0].clone().unwrap();
    assert_eq!((decision.choice.codec, decision.tries), (Codec::Zstd, 1));
    assert!(!decision.choice.dictionary.is_empty() && decision.is_settled());
    for seed in 2..4 {
        let (later, bytes) = write(&texts(10_000, seed), Some(known.clone()));
        assert_eq!(later, known);
        let dictionary = &decision.choice.dictionary;
        assert!(bytes.windows(dictionary.len()).any(|window| window == dictionary));
        assert!(bytes.len() * 100 < first.len() * 102, "{} {}", bytes.len(), first.len());
    }
}

#[test]
fn noise_is_tried_once_and_stored_as_it_is() {
    let (known, first) = write(&noise(10_000, 1), None);
    let decision = known[0].clone().unwrap();
    assert_eq!((decision.choice.codec, decision.tries), (Codec::None, 1));
    let (later, bytes) = write(&noise(10_000, 20_000), Some(known.clone()));
    assert_eq!((later, bytes.len()), (known, first.len()));
}

#[test]
fn short_files_keep_trying_until_there_is_enough_evidence() {
    let mut known: Decisions = vec![None];
    for file in 1..=4 {
        known = write(&texts(2000, file), Some(known)).0;
        let decision = known[0].as_ref().unwrap();
        assert_eq!((decision.tries, decision.is_settled()), (file.min(3) as u32, file >= 3));
    }
}

#[test]
fn a_file_without_values_decides_nothing_and_has_no_dictionary() {
    let (known, _) = write(&texts(10_000, 1), None);
    let (nothing, empty) = write(&[], None);
    assert_eq!(nothing, [None]);
    assert_eq!(write(&[], Some(known)).1.len(), empty.len());
}

#[test]
fn decisions_for_other_fields_are_rejected() {
    let mut writer = writer(&Memory::new());
    assert!(matches!(writer.assume(vec![None, None]), Err(Error::Invalid(_))));
}
