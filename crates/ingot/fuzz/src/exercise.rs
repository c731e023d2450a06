//! All that can be done to a file.

use std::sync::Arc;

use ingot::format::ingot::FieldKind;
use ingot::records::{self, Compression, Files as _, Mode, Options, Reader, Table as _};
use ingot::storage::{Memory, ReadAt};

const NAME: &str = "fuzzed.ingot";

/// Rows that are read of each file.
const ROWS: u64 = 64;

/// Values larger than this are not asked for.
const VALUE: u64 = 1 << 20;

/// Opens, reads, verifies and recovers a file, and appends to it if `append`.
/// Nothing may panic, and what was recovered is whole.
pub fn exercise(bytes: &[u8], append: bool) {
    let storage = Memory::from(bytes.to_vec());
    for mode in [Mode::Whole, Mode::Partial] {
        if let Ok(reader) = open(&storage, mode) {
            read(&reader);
        }
    }
    let options = Options { compression: Compression::None, ..Options::default() };
    let shared: Arc<dyn ReadAt> = Arc::new(storage.clone());
    let target = Box::new(storage.clone());
    if append {
        if let Ok((mut writer, recovery)) =
            records::append(&shared, target, NAME, options, &mut || Ok(()))
        {
            writer.close().expect("memory takes everything");
            check_whole(&storage, recovery.rows);
        }
    } else if let Ok(recovery) = records::recover(&shared, target, NAME, options, &mut || Ok(())) {
        check_whole(&storage, recovery.rows);
    }
}

fn open(storage: &Memory, mode: Mode) -> ingot::Result<Reader> {
    Reader::open(Arc::new(storage.clone()), NAME, mode, &mut || Ok(()))
}

fn check_whole(storage: &Memory, rows: u64) {
    let reader = open(storage, Mode::Whole).expect("what was recovered is whole");
    assert_eq!(reader.num_rows(), rows);
}

fn read(reader: &Reader) {
    let last = reader.num_rows().checked_sub(1);
    for row in (0..reader.num_rows().min(ROWS)).chain(last) {
        for (field, declared) in reader.schema().fields().iter().enumerate() {
            let cells = match declared.kind {
                FieldKind::Column => Ok(Vec::new()),
                FieldKind::Cell => reader.locate_field(row, field).map(|cell| vec![cell]),
                FieldKind::Sequence => reader
                    .num_elements(row, field)
                    .and_then(|len| reader.locate_elements(row, field, 0..len.min(ROWS), &[])),
            };
            for cell in cells.into_iter().flatten().filter(|cell| cell.raw <= VALUE) {
                let mut value = vec![0; cell.raw as usize];
                let _ = reader.fetch(&[cell], &mut [&mut value]);
            }
        }
    }
    for (field, _) in reader.schema().of_kind(FieldKind::Column) {
        let _ = reader.column(field);
    }
    let _ = reader.verify(&mut |_| Ok(()));
    let _ = reader.stats();
}
