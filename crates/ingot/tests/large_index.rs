//! An index that does not stay in memory.
#![allow(unsafe_code)]

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ingot::format::ingot::Schema;
use ingot::records::{Compression, Files as _, Mode, Reader, Sequence};
use ingot::storage::{Cost, Landed, Memory, Read, ReadAt};
use support::{Random, append_rows, create, options, record_rows};

/// Counts how many ranges were asked for.
struct Counted(Memory, Arc<AtomicU64>);

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_many(&self, reads: &mut [Read<'_>], landed: &mut Landed<'_>) {
        self.1.fetch_add(reads.len() as u64, Ordering::Relaxed);
        self.0.read_many(reads, landed);
    }

    fn cost(&self) -> Cost {
        self.0.cost()
    }
}

const PAGES: usize = 300;
const ROWS: usize = 50;

#[test]
fn a_batch_reads_each_page_once_however_few_of_them_stay_in_memory() {
    // SAFETY: this test is alone in its process.
    unsafe { std::env::set_var("INGOT_INDEX_BYTES", "20000") };
    let storage = Memory::new();
    let mut writer = create(storage.clone(), &Schema::records(), options(Compression::None));
    for page in 0..PAGES {
        let records: Vec<Vec<u8>> =
            (0..ROWS).map(|row| format!("{}", page * ROWS + row).into_bytes()).collect();
        append_rows(&mut writer, &record_rows(&records));
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    let reads = Arc::new(AtomicU64::new(0));
    let counted = Counted(storage, Arc::clone(&reads));
    let reader = Reader::open(Arc::new(counted), "large", Mode::Whole, &mut || Ok(())).unwrap();
    assert_eq!(reader.stats().pages, PAGES as u64);
    assert!(reader.stats().index_bytes > 3 * 20_000, "the index is larger than what stays");
    let files: Sequence = [Arc::new(reader) as Arc<_>].into_iter().collect();
    let mut random = Random(1);
    for _ in 0..100 {
        let rows: Vec<u64> = (0..64).map(|_| random.below(PAGES * ROWS) as u64).collect();
        let pages: std::collections::HashSet<u64> =
            rows.iter().map(|row| row / ROWS as u64).collect();
        reads.store(0, Ordering::Relaxed);
        let mut cells = Vec::new();
        files.locate_many(&rows, &mut cells).unwrap();
        let needed = reads.load(Ordering::Relaxed);
        assert!(needed <= pages.len() as u64, "{needed} reads for {} pages", pages.len());
        let mut values: Vec<Vec<u8>> =
            cells.iter().map(|cell| vec![0; cell.raw as usize]).collect();
        let mut bufs: Vec<&mut [u8]> = values.iter_mut().map(|value| &mut value[..]).collect();
        files.fetch(&cells, &mut bufs).unwrap();
        for (row, value) in rows.iter().zip(values) {
            assert_eq!(value, row.to_string().into_bytes());
        }
    }
    // Once more than everything was used, a batch that is asked for again finds its pages.
    let rows: Vec<u64> = (0..5).map(|page| page * ROWS as u64).collect();
    files.locate_many(&rows, &mut Vec::new()).unwrap();
    reads.store(0, Ordering::Relaxed);
    files.locate_many(&rows, &mut Vec::new()).unwrap();
    assert_eq!(reads.load(Ordering::Relaxed), 0);
}
