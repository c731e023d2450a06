//! Power failures and failing devices: what a flush has acknowledged stays.

use crate::support;

use std::io::ErrorKind;

use ingot::format::ingot::Schema;
use ingot::records::{self, Compression, Mode, Options, Reader, Writer};
use ingot::storage::{Crashing, Failure, Faulty, Memory};
use ingot::{Error, Result};
use support::{
    Row, append_row, append_rows, create, fields_rows, fields_schema, names_the_file, open,
    options, random_rows, read_rows, recover, shared, similar_rows, without_columns,
};

#[derive(Clone, Copy)]
enum Step {
    Append(usize),
    Submit,
    Flush,
    /// Closes the file; the next step opens it again for appending.
    Close,
}

use Step::{Append, Close, Flush, Submit};

struct Script {
    name: &'static str,
    schema: Schema,
    options: Options,
    rows: Vec<Row>,
    steps: &'static [Step],
}

/// The way rows go into most files: several flushes, closed and opened again.
const USUAL: &[Step] = &[
    Append(3),
    Flush,
    Append(5),
    Submit,
    Append(2),
    Flush,
    Flush,
    Append(4),
    Close,
    Append(6),
    Flush,
    Append(1),
    Submit,
    Append(7),
    Close,
    Close,
    Append(2),
    Flush,
    Append(3),
    Submit,
    Flush,
    Append(9),
    Submit,
];

/// Enough rows for a dictionary, then more with and without one.
const TRAINED: &[Step] = &[
    Append(90),
    Flush,
    Append(10),
    Flush,
    Append(80),
    Close,
    Append(5),
    Flush,
    Append(90),
    Submit,
    Append(20),
    Flush,
    Append(10),
    Submit,
];

fn scripts() -> Vec<Script> {
    let none = options(Compression::None);
    let zstd = options(Compression::Zstd);
    let script =
        |name, schema: Schema, options, rows, steps| Script { name, schema, options, rows, steps };
    vec![
        script("records", Schema::records(), none, random_rows(60, 50, 11), USUAL),
        script("dictionary", Schema::records(), zstd, similar_rows(0..400), TRAINED),
        script("fields", fields_schema(), options(Compression::Lz4), fields_rows(60, 12), USUAL),
        script(
            "records without syncs",
            Schema::records(),
            Options { sync: false, ..none },
            random_rows(60, 50, 13),
            USUAL,
        ),
        script(
            "dictionary without syncs",
            Schema::records(),
            Options { sync: false, ..zstd },
            similar_rows(0..400),
            TRAINED,
        ),
    ]
}

/// What a script did to a disk.
struct Played {
    disk: Crashing,
    /// After so many operations so many rows were acknowledged.
    acknowledged: Vec<(usize, usize)>,
    rows: usize,
}

impl Played {
    /// Rows that a flush or close had acknowledged after `operations`.
    fn promised(&self, operations: usize) -> usize {
        let before = self.acknowledged.iter().filter(|&&(done, _)| done <= operations);
        before.map(|&(_, rows)| rows).max().unwrap_or(0)
    }
}

fn play(script: &Script) -> Played {
    let disk = Crashing::new();
    let mut writer = Some(create(disk.clone(), &script.schema, script.options));
    let mut rows = 0;
    let mut acknowledged = Vec::new();
    for step in script.steps {
        let open = writer.get_or_insert_with(|| reopen(&disk, script.options).0);
        match *step {
            Append(count) => {
                append_rows(open, &script.rows[rows..rows + count]);
                rows += count;
            }
            Submit => open.submit().unwrap(),
            Flush => open.flush().unwrap(),
            Close => open.close().unwrap(),
        }
        if matches!(step, Flush | Close) && script.options.sync {
            acknowledged.push((disk.operations(), rows));
        }
        if matches!(step, Close) {
            writer = None;
        }
    }
    drop(writer);
    Played { disk, acknowledged, rows }
}

fn reopen(disk: &Crashing, options: Options) -> (Writer, records::Recovery) {
    let now = Memory::from(disk.bytes());
    records::append(&shared(&now), Box::new(disk.clone()), support::NAME, options, &mut || Ok(()))
        .unwrap()
}

/// Checks that the first `promised` rows are as appended, and that each of the rest
/// is as one of `histories` has it, or an error. Returns how many rows there are.
fn compare(reader: &Reader, promised: usize, histories: &[&[Row]], what: &str) -> usize {
    let found = read_rows(reader);
    assert!(found.len() >= promised, "{what}: {} rows of {promised}", found.len());
    for (row, found) in found.iter().enumerate() {
        match found {
            Ok(found) => {
                let matches = |history: &&[Row]| {
                    history.get(row).is_some_and(|expected| without_columns(expected) == *found)
                };
                assert!(histories.iter().any(matches), "{what}: row {row} is wrong");
            }
            Err(error) => {
                assert!(row >= promised, "{what}: row {row} of {promised}: {error}");
                assert!(names_the_file(error), "{what}: {error}");
            }
        }
    }
    found.len()
}

/// Checks all that is promised of what a power failure left.
fn check(script: &Script, left: &[u8], promised: usize, histories: &[&[Row]], what: &str) {
    let storage = Memory::from(left.to_vec());
    match open(&storage, Mode::Partial) {
        Ok(reader) => {
            compare(&reader, promised, histories, what);
        }
        Err(error) => assert!(promised == 0 && names_the_file(&error), "{what}: {error}"),
    }
    let recovery = match recover(&storage) {
        Ok(recovery) => recovery,
        Err(error) => {
            assert!(promised == 0 && names_the_file(&error), "{what}: {error}");
            assert_eq!(storage.bytes(), left, "{what}: a file that cannot be recovered stays");
            return;
        }
    };
    let reader = open(&storage, Mode::Whole).expect("a recovered file is whole");
    let kept = compare(&reader, promised, histories, what);
    assert_eq!(recovery.rows as usize, kept, "{what}");
    if *reader.schema() != script.schema {
        // The failure came before the header was there: what becomes of it is an empty file.
        assert_eq!((promised, kept), (0, 0), "{what}");
        return;
    }
    if script.options.sync && !recovery.was_whole && recovery.damaged.is_empty() {
        let verified = reader.verify(&mut |_| Ok(())).unwrap();
        assert_eq!(verified.damaged, [], "{what}: recovery did not tell of it");
    }

    // A file that was recovered is one like any other: it goes on where it ends.
    let more = &histories[0][..3];
    let target = Box::new(storage.clone());
    let (mut writer, _) =
        records::append(&shared(&storage), target, support::NAME, script.options, &mut || Ok(()))
            .unwrap();
    append_rows(&mut writer, more);
    writer.close().unwrap();
    let reader = open(&storage, Mode::Whole).unwrap();
    let found = read_rows(&reader);
    assert_eq!(found.len(), kept + 3, "{what}");
    for (found, expected) in found[kept..].iter().zip(more) {
        assert_eq!(*found.as_ref().unwrap(), without_columns(expected), "{what}");
    }
}

#[test]
fn acknowledged_rows_survive_a_power_failure_at_any_moment() {
    for script in scripts() {
        let played = play(&script);
        let whole = Memory::from(played.disk.bytes());
        assert_eq!(compare_all(&whole, &script), played.promised(usize::MAX).max(kept(&whole)));
        for seed in 0..4 {
            for (k, state) in played.disk.states(seed, 800).enumerate() {
                let promised = played.promised(state.operations);
                let what = format!("{}, seed {seed}, state {k}", script.name);
                let rows = &script.rows[..played.rows];
                check(&script, &state.bytes, promised, &[rows], &what);
            }
        }
    }
}

fn kept(storage: &Memory) -> usize {
    open(storage, Mode::Partial).unwrap().num_rows() as usize
}

fn compare_all(storage: &Memory, script: &Script) -> usize {
    compare(&open(storage, Mode::Partial).unwrap(), 0, &[&script.rows], script.name)
}

#[test]
fn a_power_failure_during_recovery_or_appending_loses_nothing_more() {
    for (number, script) in scripts().iter().enumerate() {
        let played = play(script);
        let others = if script.schema.is_records() {
            random_rows(400, 70, 14)
        } else {
            fields_rows(400, 14)
        };
        for (k, state) in played.disk.states(5 + number as u64, 120).enumerate() {
            let promised = played.promised(state.operations);
            let what = format!("{}, state {k}", script.name);
            check_recovery(script, &played, &state.bytes, promised, &what);
            check_append(script, &played, &state.bytes, promised, &others, &what);
        }
    }
}

#[test]
fn a_search_that_is_stopped_changes_nothing() {
    for script in scripts() {
        let mut left = play(&script).disk.bytes();
        left.extend(vec![0; 5 << 20]);
        let storage = Memory::from(left.clone());
        let mut calls = 0;
        let mut watch = || {
            calls += 1;
            if calls % 3 == 0 { Err(Error::Invalid("stopped".to_owned())) } else { Ok(()) }
        };
        let target = || Box::new(storage.clone());
        let name = support::NAME;
        let stopped = [
            records::recover(&shared(&storage), target(), name, script.options, &mut watch).err(),
            records::append(&shared(&storage), target(), name, script.options, &mut watch).err(),
            Reader::open(shared(&storage), name, Mode::Partial, &mut watch).err(),
        ];
        for error in stopped {
            assert_eq!(error.map(|error| error.to_string()).as_deref(), Some("stopped"));
        }
        assert!(storage.bytes() == left, "{}", script.name);
    }
}

fn check_recovery(script: &Script, played: &Played, left: &[u8], promised: usize, what: &str) {
    let disk = Crashing::over(left.to_vec());
    let now = Memory::from(left.to_vec());
    let target = Box::new(disk.clone());
    if records::recover(&shared(&now), target, support::NAME, script.options, &mut || Ok(()))
        .is_err()
    {
        return;
    }
    let count = 3 * disk.operations() + 6;
    for (k, state) in disk.states(21, count).enumerate() {
        let what = format!("{what}, state {k} of the recovery");
        check(script, &state.bytes, promised, &[&script.rows[..played.rows]], &what);
    }
}

fn check_append(
    script: &Script,
    played: &Played,
    left: &[u8],
    promised: usize,
    others: &[Row],
    what: &str,
) {
    let disk = Crashing::over(left.to_vec());
    let now = Memory::from(left.to_vec());
    let target = Box::new(disk.clone());
    let appending =
        records::append(&shared(&now), target, support::NAME, script.options, &mut || Ok(()));
    let Ok((mut writer, recovery)) = appending else { return };
    let kept = recovery.rows as usize;
    let begun = Memory::from(disk.bytes());
    if *open(&begun, Mode::Partial).unwrap().schema() != script.schema {
        assert_eq!((promised, kept), (0, 0), "{what}");
        return;
    }
    append_rows(&mut writer, &others[..2]);
    writer.submit().unwrap();
    append_rows(&mut writer, &others[2..7]);
    writer.flush().unwrap();
    let acknowledged = disk.operations();
    append_rows(&mut writer, &others[7..9]);
    writer.close().unwrap();

    let old = &script.rows[..played.rows];
    let new: Vec<Row> = old[..kept].iter().chain(&others[..9]).cloned().collect();
    let count = 3 * disk.operations() + 6;
    for (k, state) in disk.states(22, count).enumerate() {
        let what = format!("{what}, state {k} of the appending");
        let flushed = state.operations >= acknowledged && script.options.sync;
        if flushed {
            check(script, &state.bytes, kept + 7, &[&new], &what);
        } else {
            check(script, &state.bytes, promised, &[&new, old], &what);
        }
    }
}

/// Plays a script on a disk that fails; returns the rows that were acknowledged,
/// and the error with the writer that got it.
fn play_until_failure(script: &Script, disk: Faulty<Memory>) -> (usize, Option<Failed>) {
    let created = Writer::create_with_id(
        Box::new(disk),
        support::NAME,
        script.schema.clone(),
        "{}",
        script.options,
        support::ID,
    );
    let mut writer = match created {
        Ok(writer) => writer,
        Err(error) => return (0, Some(Failed { error, writer: None })),
    };
    let (mut rows, mut acknowledged) = (0, 0);
    for step in script.steps {
        let outcome = match *step {
            Append(count) => {
                let appended = &script.rows[rows..rows + count];
                rows += count;
                appended.iter().try_for_each(|row| append_row(&mut writer, row).map(|_| ()))
            }
            Submit => writer.submit(),
            Flush | Close => writer.flush(),
        };
        if let Err(error) = outcome {
            return (acknowledged, Some(Failed { error, writer: Some(writer) }));
        }
        if matches!(step, Flush | Close) {
            acknowledged = rows;
        }
    }
    match writer.close() {
        Ok(()) => (rows, None),
        Err(error) => (acknowledged, Some(Failed { error, writer: Some(writer) })),
    }
}

struct Failed {
    error: Error,
    /// `None` if it failed to begin.
    writer: Option<Writer>,
}

fn check_failed(script: &Script, disk: &Memory, acknowledged: usize, failed: Failed, what: &str) {
    let Failed { error, writer } = failed;
    assert!(names_the_file(&error), "{what}: {error}");
    let Error::Storage { record: Some(record), offset, .. } = error else {
        panic!("{what}: {error} says neither row nor offset");
    };
    assert!(record >= acknowledged as u64, "{what}: row {record}, {acknowledged} acknowledged");
    assert!(offset <= disk.bytes().len() as u64, "{what}: offset {offset}");
    if let Some(mut writer) = writer {
        let row = &script.rows[0];
        let again: [Result<()>; 5] = [
            append_row(&mut writer, row).map(|_| ()),
            writer.submit(),
            writer.flush(),
            append_row(&mut writer, row).map(|_| ()),
            writer.close(),
        ];
        for (k, outcome) in again.into_iter().enumerate() {
            let later = outcome.expect_err(&format!("{what}: call {k} after the error"));
            assert_eq!(later.to_string(), error.to_string(), "{what}, call {k}");
        }
        assert!(
            writer.num_committed() <= kept(disk) as u64,
            "{what}: {} rows are said to be committed, {} are",
            writer.num_committed(),
            kept(disk)
        );
        assert!(writer.num_committed() >= acknowledged as u64, "{what}");
    }
    match open(disk, Mode::Partial) {
        Ok(reader) => {
            compare(&reader, acknowledged, &[&script.rows], what);
        }
        Err(error) => assert_eq!(acknowledged, 0, "{what}: {error}"),
    }
}

#[test]
fn a_write_that_fails_fails_the_writer_for_good_and_costs_no_committed_row() {
    for script in scripts() {
        for written in [0, 1, 50, usize::MAX] {
            let failures = (0..).take_while(|&nth| {
                let memory = Memory::new();
                let failure = Failure::Kind(ErrorKind::StorageFull);
                let disk = Faulty::new(memory.clone()).fail_append(nth, written, failure);
                let (acknowledged, failed) = play_until_failure(&script, disk);
                let what = format!("{}, write {nth} stops after {written}", script.name);
                match failed {
                    Some(failed) => check_failed(&script, &memory, acknowledged, failed, &what),
                    None => return false,
                }
                true
            });
            assert!(failures.count() > 5, "{}: the script writes more often", script.name);
        }
    }
}

#[test]
fn a_sync_that_fails_is_not_tried_again_and_costs_no_committed_row() {
    for script in scripts().into_iter().filter(|script| script.options.sync) {
        let failures = (0..).take_while(|&nth| {
            let memory = Memory::new();
            let disk = Faulty::new(memory.clone()).fail_sync(nth, Failure::Errno(5));
            let (acknowledged, failed) = play_until_failure(&script, disk);
            let what = format!("{}, sync {nth} fails", script.name);
            match failed {
                Some(failed) => check_failed(&script, &memory, acknowledged, failed, &what),
                None => return false,
            }
            true
        });
        assert!(failures.count() > 3, "{}: the script syncs more often", script.name);
    }
}

#[test]
fn rows_that_the_writer_calls_committed_can_be_read() {
    let storage = Memory::new();
    let mut writer = create(storage.clone(), &Schema::records(), options(Compression::None));
    for k in 0..20_000_u32 {
        writer.append(&k.to_le_bytes()).unwrap();
        if k % 1000 == 0 {
            let committed = writer.num_committed();
            let readable = open(&storage, Mode::Partial).map_or(0, |reader| reader.num_rows());
            assert!(committed <= readable, "{committed} committed, {readable} can be read");
        }
    }
    writer.flush().unwrap();
    assert_eq!(writer.num_committed(), 20_000);
    assert_eq!(kept(&storage), 20_000);
    for _ in 0..9000 {
        writer.append(b"more").unwrap();
    }
    writer.abandon();
    assert!(writer.num_committed() > 20_000);
    assert_eq!(writer.num_committed(), kept(&storage) as u64);
}
