//! Damage of every kind: found, contained, and survived by the rows it did not hit.

use crate::support;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ingot::Error;
use ingot::records::{Mode, Reader};
use ingot::storage::{Append, Memory};
use support::{
    Part, Random, Row, Sample, column_of, names_the_file, open, read_rows, recover, samples,
    without_columns,
};

/// Flips of single bits, over all samples.
const FLIPS: usize = 400_000;

/// Flips of single bits that are followed by a recovery, over all samples.
const RECOVERIES: usize = 100_000;

/// Mutations of other kinds, over all samples.
const MUTATIONS: usize = 50_000;

/// Compares what can be read with what was written: a value is right or an error
/// of ours. Returns the rows that cannot be read.
fn compare(reader: &Reader, rows: &[Row]) -> Vec<usize> {
    let found = read_rows(reader);
    assert!(found.len() <= rows.len(), "{} rows of {}", found.len(), rows.len());
    let mut lost: Vec<usize> = (found.len()..rows.len()).collect();
    for (row, (found, expected)) in found.iter().zip(rows).enumerate() {
        match found {
            Ok(found) => assert!(*found == without_columns(expected), "row {row} is wrong"),
            Err(error) => {
                assert!(names_the_file(error), "{error}");
                let known = matches!(error, Error::Corrupt { record: Some(_), .. });
                assert!(known, "{error} says neither record nor offset");
                lost.push(row);
            }
        }
    }
    for (field, _) in reader.schema().of_kind(ingot::format::ingot::FieldKind::Column) {
        match reader.column(field) {
            Ok(values) => assert!(values == column_of(&rows[..found.len()], field)),
            Err(error) => assert!(names_the_file(&error), "{error}"),
        }
    }
    lost.sort_unstable();
    lost
}

/// Runs one case; a panic says which one it was.
fn case<T>(sample: &Sample, what: &str, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| panic!("file {:?}, {what}", sample.name))
}

fn damages(reader: &Reader) -> usize {
    reader.verify(&mut |_| Ok(())).map_or(1, |found| found.damaged.len())
}

/// Inverts one bit; the same call again undoes it.
fn flip(storage: &mut Memory, bytes: &[u8], offset: usize, bit: u8) {
    storage.rewrite(offset as u64, &[bytes[offset] ^ (1 << bit)]).unwrap();
}

fn restore(storage: &mut Memory, bytes: &[u8], range: Range<usize>) {
    storage.rewrite(range.start as u64, &bytes[range]).unwrap();
}

/// The rows that damage to a part of a file may cost.
fn at_stake(sample: &Sample, part: &Part) -> Vec<usize> {
    match part {
        Part::Cell(row) => vec![*row],
        Part::Page(rows) => rows.clone().collect(),
        Part::Dictionary => sample.dictionary_rows.clone(),
        // The commit itself is what was hit: a reader sees the file as it was before it.
        Part::Trailer { last: true, rows } if !sample.closed => rows.clone().collect(),
        _ => Vec::new(),
    }
}

/// Each of the first bits of a file, then random ones.
fn bits(sample: &Sample, count: usize, seed: u64) -> impl Iterator<Item = (usize, u8)> {
    let len = sample.bytes.len();
    let mut random = Random(seed);
    (0..count).map(move |k| {
        if k < 8 * len {
            (k / 8, (k % 8) as u8)
        } else {
            (random.below(len), random.below(8) as u8)
        }
    })
}

fn share_of(total: usize, samples: &[Sample]) -> usize {
    total.div_ceil(samples.len())
}

fn check_flip(sample: &Sample, storage: &Memory, part: &Part) {
    let whole = open(storage, Mode::Whole);
    let partial = open(storage, Mode::Partial);
    if let Err(error) = &whole {
        assert!(names_the_file(error), "{error}");
    }
    let closes = matches!(part, Part::Directory { last: true } | Part::Trailer { last: true, .. });
    let opens = *part != Part::Header;
    assert_eq!(whole.is_ok(), opens && sample.closed && !closes);
    assert_eq!(partial.is_ok(), opens, "{:?}", partial.err());
    let refused = whole.is_err();
    let Ok(reader) = whole.or(partial) else { return };

    let lost = compare(&reader, &sample.rows);
    let stake = at_stake(sample, part);
    assert!(lost.iter().all(|row| stake.contains(row)), "{lost:?} are lost, {stake:?} were hit");
    if let Part::Cell(row) = part {
        assert_eq!(lost, [*row]);
    }
    // Without its last commit, or with other bytes behind it, an unfinished file is as good.
    let told = sample.closed && refused
        || !sample.closed && matches!(part, Part::Torn | Part::Trailer { last: true, .. });
    assert!(told || damages(&reader) > 0, "verify finds nothing");
}

#[test]
fn a_flipped_bit_is_found_and_costs_no_more_than_what_it_hit() {
    let samples = samples();
    let share = share_of(FLIPS, &samples);
    for (k, sample) in samples.iter().enumerate() {
        let mut storage = Memory::from(sample.bytes.clone());
        for (offset, bit) in bits(sample, share, k as u64) {
            let part = sample.part(offset);
            flip(&mut storage, &sample.bytes, offset, bit);
            let what = format!("bit {bit} of byte {offset}, in {part:?}");
            case(sample, &what, || check_flip(sample, &storage, part));
            restore(&mut storage, &sample.bytes, offset..offset + 1);
        }
        assert!(compare(&open(&storage, Mode::Partial).unwrap(), &sample.rows).is_empty());
    }
}

#[test]
fn a_file_that_is_not_damaged_verifies_and_reads_right() {
    for sample in samples() {
        let storage = Memory::from(sample.bytes.clone());
        let reader = open(&storage, Mode::Partial).unwrap();
        assert_eq!(reader.is_closed_file(), sample.closed, "{}", sample.name);
        assert!(compare(&reader, &sample.rows).is_empty(), "{}", sample.name);
        assert_eq!(damages(&reader), 0, "{}", sample.name);
    }
}

#[test]
fn a_truncated_file_never_passes_for_a_shorter_one() {
    for sample in samples() {
        let storage = Memory::from(sample.bytes.clone());
        for len in (0..sample.bytes.len()).rev() {
            storage.clone().truncate(len as u64).unwrap();
            case(&sample, &format!("cut to {len} bytes"), || check_cut(&sample, &storage, len));
        }
    }
}

fn check_cut(sample: &Sample, storage: &Memory, len: usize) {
    let earlier = sample.earlier.iter().find(|&&(whole, _)| whole == len);
    match open(storage, Mode::Whole) {
        Ok(reader) => {
            let (_, rows) = earlier.expect("only a file that was whole opens as one");
            assert!(compare(&reader, &sample.rows[..*rows]).is_empty());
        }
        Err(error) => {
            assert!(earlier.is_none(), "{error}");
            assert!(names_the_file(&error), "{error}");
        }
    }
    let header = sample.parts[0].0.end;
    match open(storage, Mode::Partial) {
        Ok(reader) => {
            let rows = reader.num_rows() as usize;
            assert!(compare(&reader, &sample.rows[..rows]).is_empty());
            assert_eq!(rows, committed_before(sample, len));
        }
        Err(error) => assert!(len < header && names_the_file(&error), "{error}"),
    }
}

/// Rows whose commit lies wholly before `len`.
fn committed_before(sample: &Sample, len: usize) -> usize {
    let trailers = sample.parts.iter().filter_map(|(range, part)| match part {
        Part::Trailer { rows, .. } if range.end <= len => Some(rows.end),
        _ => None,
    });
    trailers.max().unwrap_or(0)
}

/// Damage of one kind to `bytes`; returns the place, or `None` if it changes nothing.
fn mutate(random: &mut Random, bytes: &mut [u8], other: &[u8]) -> Option<(&'static str, usize)> {
    let before = bytes.to_vec();
    let len = bytes.len();
    let at = random.below(len);
    let what = match random.below(6) {
        0 => {
            let second = random.below(len);
            bytes[at] ^= 1 << random.below(8);
            bytes[second] ^= 1 << random.below(8);
            "two bits"
        }
        1 => {
            let second = random.below(len);
            bytes.swap(at, second);
            "two bytes swapped"
        }
        2 => {
            let start = at & !511;
            let end = (start + 512).min(len);
            bytes[start..end].fill(0);
            "a sector of zeros"
        }
        // A write that landed in the wrong place; blocks that fit these small files.
        3 | 4 => {
            let size = [64, 256, 1024, 4096][random.below(4)].min(len / 2);
            let (from, to) = (random.below(len / size) * size, random.below(len / size) * size);
            bytes.copy_within(from..from + size, to);
            "a misdirected write"
        }
        _ => {
            let size = 1 + random.below(300);
            let end = (at + size).min(len).min(other.len());
            if at < end {
                bytes[at..end].copy_from_slice(&other[at..end]);
            }
            "bytes of another file"
        }
    };
    (*bytes != before[..]).then_some((what, at))
}

/// Returns the same rows in a file with another id.
fn twin(sample: &Sample) -> Vec<u8> {
    let storage = Memory::new();
    let options = support::options(ingot::records::Compression::None);
    let mut writer = ingot::records::Writer::create_with_id(
        Box::new(storage.clone()),
        support::NAME,
        sample.schema.clone(),
        "{}",
        options,
        *b"another file, id",
    )
    .unwrap();
    for row in &sample.rows {
        support::append_row(&mut writer, row).unwrap();
        if writer.num_rows().is_multiple_of(7) {
            writer.flush().unwrap();
        }
    }
    writer.close().unwrap();
    storage.bytes()
}

#[test]
fn bursts_swaps_and_misdirected_writes_never_give_wrong_bytes() {
    let samples = samples();
    let share = share_of(MUTATIONS, &samples);
    for (k, sample) in samples.iter().enumerate() {
        let mut random = Random(1000 + k as u64);
        let other = twin(sample);
        let mut done = 0;
        while done < share {
            let mut bytes = sample.bytes.clone();
            let Some((what, at)) = mutate(&mut random, &mut bytes, &other) else { continue };
            done += 1;
            let storage = Memory::from(bytes);
            let what = format!("{what} at byte {at}, mutation {done}");
            case(sample, &what, || check_mutation(sample, &storage));
        }
    }
}

fn check_mutation(sample: &Sample, storage: &Memory) {
    let whole = open(storage, Mode::Whole);
    if let Ok(reader) = &whole {
        assert!(sample.closed);
        assert_eq!(reader.num_rows() as usize, sample.rows.len());
        compare(reader, &sample.rows);
        assert!(damages(reader) > 0, "verify finds nothing");
    }
    if let Ok(reader) = open(storage, Mode::Partial) {
        compare(&reader, &sample.rows);
        let _ = damages(&reader);
    }
    if let Err(error) = &whole {
        assert!(names_the_file(error), "{error}");
    }
    if let Ok(recovery) = recover(storage) {
        let reader = open(storage, Mode::Whole).expect("a recovered file is whole");
        assert_eq!(recovery.rows, reader.num_rows());
        compare(&reader, &sample.rows);
    }
}

fn check_recovery(sample: &Sample, storage: &Memory, part: &Part) {
    let outcome = recover(storage);
    if *part == Part::Header && !sample.closed {
        // Only a closed file holds a second copy of its header.
        let error = outcome.expect_err("what the rows look like is not known any more");
        assert!(names_the_file(&error), "{error}");
        assert_eq!(storage.bytes().len(), sample.bytes.len(), "the file is left as it is");
        return;
    }
    let recovery = outcome.unwrap();
    let reader = open(storage, Mode::Whole).expect("a recovered file is whole");
    assert_eq!(recovery.rows, reader.num_rows());
    let stake = match part {
        // Everything that a damaged trailer committed is there to be found again.
        Part::Trailer { .. } => Vec::new(),
        // No flush has secured this page: it is taken for one that a power failure tore.
        Part::Cell(row) if !sample.closed && !sample.secured(*row) => sample.page_of(*row),
        part => at_stake(sample, part),
    };
    let lost = compare(&reader, &sample.rows);
    assert!(lost.iter().all(|row| stake.contains(row)), "{lost:?} are lost, {stake:?} were hit");
}

#[test]
fn recovery_keeps_every_committed_row_that_was_not_hit_itself() {
    let samples = samples();
    let share = share_of(RECOVERIES, &samples);
    for (k, sample) in samples.iter().enumerate() {
        let mut random = Random(2000 + k as u64);
        for _ in 0..share {
            let (offset, bit) = (random.below(sample.bytes.len()), random.below(8) as u8);
            let part = sample.part(offset);
            let mut storage = Memory::from(sample.bytes.clone());
            flip(&mut storage, &sample.bytes, offset, bit);
            let what = format!("bit {bit} of byte {offset}, in {part:?}");
            case(sample, &what, || check_recovery(sample, &storage, part));
        }
    }
}
