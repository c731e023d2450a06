//! Many files, slow storage, and indexes that do not stay in memory.

use crate::support;

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ingot::format::ingot::Schema;
use ingot::records::{
    Ask, Cell, Compression, Container, Files, Listed, Mode, Reader, Rows, Sequence, fetch_found,
    find,
};
use ingot::storage::{Cost, Delayed, Failure, Faulty, Landed, Memory, Read, ReadAt};
use support::{append_rows, create, fields_rows, fields_schema, options, record_rows};

const DELAY: Duration = Duration::from_millis(150);

fn record_of(file: usize, row: usize) -> Vec<u8> {
    format!("record {row} of file {file}").into_bytes()
}

fn records(file: usize, rows: Range<usize>) -> Memory {
    let storage = Memory::new();
    let mut writer = create(storage.clone(), &Schema::records(), options(Compression::None));
    let records: Vec<Vec<u8>> = rows.map(|row| record_of(file, row)).collect();
    append_rows(&mut writer, &record_rows(&records));
    writer.close().unwrap();
    storage
}

fn open(storage: impl ReadAt + 'static, name: &str) -> Arc<dyn Container> {
    Arc::new(Reader::open(Arc::new(storage), name, Mode::Whole, &mut || Ok(())).unwrap())
}

/// Returns the least number of waits, one after the other, that three tries of `work` take:
/// on a busy machine a thread may come too late to wait with the others.
fn waits_of(clock: &AtomicU64, mut work: impl FnMut()) -> u64 {
    let waits = (0..3).map(|_| {
        let before = clock.load(Ordering::SeqCst);
        work();
        clock.load(Ordering::SeqCst) - before
    });
    waits.min().unwrap()
}

fn fetch(files: &impl Files, cells: &[Cell]) -> Vec<Vec<u8>> {
    let mut values: Vec<Vec<u8>> = cells.iter().map(|cell| vec![0; cell.raw as usize]).collect();
    let mut bufs: Vec<&mut [u8]> = values.iter_mut().map(|value| &mut value[..]).collect();
    files.fetch(cells, &mut bufs).unwrap();
    values
}

#[test]
fn a_batch_over_64_slow_files_waits_once() {
    let clock = Arc::new(AtomicU64::new(0));
    let open_slow = |file: usize| {
        let storage = Delayed::new(records(file, 0..100), DELAY).with_clock(&clock);
        let opened = std::thread::spawn(move || open(storage, "slow"));
        move || opened.join().unwrap()
    };
    let opening: Vec<_> = (0..64).map(open_slow).collect();
    let files: Sequence = opening.into_iter().map(|join| join()).collect();
    let rows: Vec<u64> = (0..64).map(|file| file * 100 + (file * 7) % 100).collect();
    let mut cells = Vec::new();
    let waits = waits_of(&clock, || {
        // In a child of a fork nothing is loaded: so this finds the index unread.
        let fresh = files.after_fork();
        cells.clear();
        fresh.locate_many(&rows, &mut cells).unwrap();
    });
    assert_eq!(waits, 1, "the index pages of all files come together");
    files.locate_many(&rows, &mut Vec::new()).unwrap();
    let mut values = Vec::new();
    assert_eq!(waits_of(&clock, || values = fetch(&files, &cells)), 1);
    for (file, value) in values.iter().enumerate() {
        assert_eq!(*value, record_of(file, (file * 7) % 100));
    }
}

#[test]
fn several_data_sets_are_read_in_one_go() {
    let clock = Arc::new(AtomicU64::new(0));
    let schema = fields_schema();
    let sets: Vec<Rows> = (0..4)
        .map(|seed| {
            let storage = Memory::new();
            let mut writer = create(storage.clone(), &schema, options(Compression::None));
            append_rows(&mut writer, &fields_rows(50, seed));
            writer.close().unwrap();
            let storage = Delayed::new(storage, DELAY).with_clock(&clock);
            Rows::of(Arc::new([open(storage, "slow")].into_iter().collect())).unwrap()
        })
        .collect();
    let asks: Vec<Ask> =
        (0..schema.fields().len()).map(|field| Ask { field, elements: None }).collect();
    let find = |rows: &Rows| rows.find(&[3, 49, 0], &asks).unwrap();
    sets.iter().for_each(|rows| drop(find(rows)));
    let waits = waits_of(&clock, || {
        let parts: Vec<_> = sets.iter().map(|rows| (rows, find(rows))).collect();
        fetch_found(&parts, |len| Some(vec![0; len])).unwrap();
    });
    assert_eq!(waits, 1);
}

#[test]
fn a_large_batch_over_slow_files_waits_once() {
    let clock = Arc::new(AtomicU64::new(0));
    let slow = |file| Delayed::new(records(file, 0..100), DELAY).with_clock(&clock);
    let files: Sequence = (0..4).map(|file| open(slow(file), "slow")).collect();
    let rows: Vec<u64> = (0..400).collect();
    let mut cells = Vec::new();
    files.locate_many(&rows, &mut cells).unwrap();
    let mut values = Vec::new();
    assert_eq!(waits_of(&clock, || values = fetch(&files, &cells)), 1);
    for (row, value) in values.iter().enumerate() {
        assert_eq!(*value, record_of(row / 100, row % 100));
    }
}

#[test]
fn batches_of_one_data_set_are_read_in_one_go() {
    let reads = Arc::new(AtomicU64::new(0));
    let schema = fields_schema();
    let storage = Memory::new();
    let mut writer = create(storage.clone(), &schema, options(Compression::None));
    append_rows(&mut writer, &fields_rows(50, 1));
    writer.close().unwrap();
    let calls = Calls { inner: storage, calls: Arc::clone(&reads) };
    let set = Rows::of(Arc::new([open(calls, "counted")].into_iter().collect())).unwrap();
    let asks: Vec<Ask> =
        (0..schema.fields().len()).map(|field| Ask { field, elements: None }).collect();
    let batches: Vec<Vec<u64>> = (0..5).map(|k| (10 * k..10 * k + 10).collect()).collect();
    let find = |rows: &Vec<u64>| set.find(rows, &asks).unwrap();
    let alone: Vec<_> = batches
        .iter()
        .map(|rows| fetch_found(&[(&set, find(rows))], |len| Some(vec![0; len])).unwrap())
        .collect();
    let parts: Vec<_> = batches.iter().map(|rows| (&set, find(rows))).collect();
    reads.store(0, Ordering::SeqCst);
    let together = fetch_found(&parts, |len| Some(vec![0; len])).unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 1, "one call for all batches");
    assert_eq!(together, alone.into_iter().flatten().collect::<Vec<_>>());
}

/// Counts the batches of reads of a storage.
struct Calls {
    inner: Memory,
    calls: Arc<AtomicU64>,
}

impl ReadAt for Calls {
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.inner.read_many(reads, landed);
    }

    fn cost(&self) -> Cost {
        Cost::remote(DELAY)
    }
}

/// Counts the reads of a storage.
struct Counted {
    inner: Faulty<Memory>,
    reads: Arc<AtomicU64>,
}

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        self.reads.fetch_add(reads.len() as u64, Ordering::SeqCst);
        self.inner.read_many(reads, landed);
    }
}

#[test]
fn a_read_that_fails_costs_the_others_no_second_try() {
    let storage = records(0, 0..64);
    let counted = Arc::new(AtomicU64::new(0));
    let reads_to_open = {
        let inner = Faulty::new(storage.clone());
        let file = open(Counted { inner, reads: Arc::clone(&counted) }, "counted");
        find(&*file, 0).unwrap();
        counted.swap(0, Ordering::SeqCst)
    };
    let inner = Faulty::new(storage).fail_read(reads_to_open + 20, Failure::Errno(libc::EIO));
    let file = open(Counted { inner, reads: Arc::clone(&counted) }, "counted");
    let files: Sequence = [file].into_iter().collect();
    let rows: Vec<u64> = (0..64).collect();
    let mut cells = Vec::new();
    files.locate_many(&rows, &mut cells).unwrap();
    assert_eq!(counted.swap(0, Ordering::SeqCst), reads_to_open);
    let mut values: Vec<Vec<u8>> = cells.iter().map(|cell| vec![0; cell.raw as usize]).collect();
    let mut bufs: Vec<&mut [u8]> = values.iter_mut().map(|value| &mut value[..]).collect();
    let failed = files.fetch_each(&cells, &mut bufs);
    assert_eq!((failed.len(), counted.load(Ordering::SeqCst)), (1, 64));
    let (bad, error) = &failed[0];
    assert_eq!(error.offset(), Some(cells[*bad].offset));
    for (row, value) in values.iter().enumerate().filter(|(row, _)| row != bad) {
        assert_eq!(*value, record_of(0, row));
    }
}

#[test]
fn a_column_of_many_pages_is_read_in_few_waits() {
    let schema = fields_schema();
    let storage = Memory::new();
    let mut writer = create(storage.clone(), &schema, options(Compression::None));
    let rows = fields_rows(2_000, 5);
    for some in rows.chunks(10) {
        append_rows(&mut writer, some);
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let clock = Arc::new(AtomicU64::new(0));
    let slow = Delayed::new(storage, Duration::from_millis(2)).with_clock(&clock);
    let reader = Reader::open(Arc::new(slow), "slow", Mode::Whole, &mut || Ok(())).unwrap();
    assert_eq!(reader.stats().pages, 200);
    let before = clock.load(Ordering::SeqCst);
    let field = schema.fields().iter().position(|field| field.width.is_some()).unwrap();
    assert_eq!(reader.column(field).unwrap(), support::column_of(&rows, field));
    let waits = clock.load(Ordering::SeqCst) - before;
    assert!(waits <= 4, "{waits} waits for 200 pages");
}

#[test]
fn a_column_of_consecutive_rows_is_that_part_of_the_whole() {
    let schema = fields_schema();
    let field = schema.fields().iter().position(|field| field.width.is_some()).unwrap();
    let rows = fields_rows(60, 5);
    let file = |rows: &[support::Row]| {
        let storage = Memory::new();
        let mut writer = create(storage.clone(), &schema, options(Compression::None));
        for some in rows.chunks(7) {
            append_rows(&mut writer, some);
            writer.flush().unwrap();
        }
        writer.close().unwrap();
        open(storage, "part")
    };
    let files = [&rows[..20], &rows[20..20], &rows[20..25], &rows[25..]].map(file);
    let set = Rows::of(Arc::new(files.into_iter().collect())).unwrap();
    for start in 0..=60 {
        for stop in start..=60 {
            let found = set.column(field, start as u64..stop as u64).unwrap();
            assert_eq!(found, support::column_of(&rows[start..stop], field), "{start}..{stop}");
        }
    }
    assert!(set.column(field, 0..61).is_err());
    assert!(set.column(field, 70..71).is_err());
}

#[test]
fn listed_files_are_opened_when_they_are_needed() {
    let folder = tempfile::tempdir().unwrap();
    let listed: Vec<Listed> = (0..100)
        .map(|file| {
            let path = folder.path().join(format!("{file}.ingot"));
            std::fs::write(&path, records(file, 0..10).bytes()).unwrap();
            Listed::plain(path, 10, None)
        })
        .collect();
    let files = Sequence::listed(listed.clone(), None).unwrap();
    for file in 1..100 {
        std::fs::remove_file(folder.path().join(format!("{file}.ingot"))).unwrap();
    }
    assert_eq!((files.num_rows(), files.num_files()), (1_000, 100));
    assert!(files.locate(7).is_ok(), "the first is open");
    let error = files.locate(57).unwrap_err().to_string();
    assert!(error.contains("5.ingot"), "{error}");

    std::fs::write(folder.path().join("5.ingot"), records(5, 0..9).bytes()).unwrap();
    let error = files.locate(57).unwrap_err().to_string();
    assert!(error.contains("9 rows") && error.contains("says 10"), "{error}");

    let other = Listed { id: Some([7; 16]), ..listed[0].clone() };
    let error = Sequence::listed(vec![other], None).err().unwrap().to_string();
    assert!(error.contains("another file is in its place"), "{error}");
}

/// A storage whose bytes are all in memory, and that counts what is waited for nevertheless.
struct InMemory {
    inner: Memory,
    waits: Arc<AtomicU64>,
}

impl ReadAt for InMemory {
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        self.waits.fetch_add(1, Ordering::SeqCst);
        self.inner.read_many(reads, landed);
    }

    fn read_ready(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) -> Vec<usize> {
        self.inner.read_many(reads, landed);
        Vec::new()
    }
}

#[test]
fn a_batch_loads_index_pages_that_are_in_memory_without_waiting() {
    let waits = Arc::new(AtomicU64::new(0));
    let storage = |file| InMemory { inner: records(file, 0..100), waits: Arc::clone(&waits) };
    let files: Sequence = (0..4).map(|file| open(storage(file), "ready")).collect();
    waits.store(0, Ordering::SeqCst);
    let rows: Vec<u64> = (0..400).collect();
    let mut cells = Vec::new();
    files.locate_many(&rows, &mut cells).unwrap();
    assert_eq!(fetch(&files, &cells)[399], record_of(3, 99));
    assert_eq!(waits.load(Ordering::SeqCst), 0);
}
