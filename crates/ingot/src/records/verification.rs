//! Checking every byte of a file, and the damage that this finds.

use super::container::{Cell, Container, Stored};
use super::fetch::{Files, check_growth};
use super::locate::{find, prepare};
use crate::error::{Error, Result};

/// Records that are verified between two calls of `progress`.
const STEP: u64 = 4096;

/// Values are checked in batches of about this many bytes.
const BATCH: u64 = 4 << 20;

/// Damage in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The first row it makes unreadable, if any.
    pub record: Option<u64>,
    /// How many rows it makes unreadable.
    pub records: u64,
    /// Where it is.
    pub offset: u64,
    /// What is wrong.
    pub reason: String,
}

impl Damage {
    /// Returns damage that makes no row unreadable.
    pub(super) fn elsewhere((offset, reason): (u64, String)) -> Self {
        Damage { record: None, records: 0, offset, reason }
    }

    pub(super) fn of(error: &Error, rows: std::ops::Range<u64>, offset: u64) -> Self {
        Damage {
            record: Some(rows.start),
            records: rows.end - rows.start,
            offset: error.offset().unwrap_or(offset),
            reason: error.to_string(),
        }
    }
}

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Rows that were checked.
    pub rows: u64,
    /// Everything that is wrong, in file order.
    pub damaged: Vec<Damage>,
}

/// Reads every record of a file and checks it. `progress` is called with the records done and
/// may stop the work by returning an error.
pub(super) fn verify_records<C: Container>(
    file: &C,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Verification> {
    let mut found = Verification::default();
    while found.rows < file.num_rows() {
        let rows: Vec<u64> = (found.rows..file.num_rows().min(found.rows + STEP)).collect();
        let pins = prepare(&[(file, rows.clone())]);
        let mut cells = Vec::with_capacity(rows.len());
        for &row in &rows {
            match find(file, row) {
                Ok(cell) => cells.push(cell),
                Err(error) => found.damaged.push(Damage::of(&error, row..row + 1, 0)),
            }
        }
        drop(pins);
        found.damaged.extend(verify_cells(file, &cells));
        found.rows += rows.len() as u64;
        progress(found.rows)?;
    }
    found.damaged.sort_by_key(|damage| damage.offset);
    Ok(found)
}

/// Reads cells of one file and checks them.
pub(super) fn verify_cells<S: Stored>(file: &S, cells: &[Cell]) -> Vec<Damage> {
    let mut damaged = Vec::new();
    let mut buffer = Vec::new();
    let (mut first, mut bytes) = (0, 0);
    for (k, cell) in cells.iter().enumerate() {
        bytes += cell.raw;
        if bytes >= BATCH || k + 1 == cells.len() {
            damaged.extend(verify_batch(file, &cells[first..=k], &mut buffer));
            (first, bytes) = (k + 1, 0);
        }
    }
    damaged
}

/// Checks cells together or, where there is no memory for all of them, one by one.
fn verify_batch<S: Stored>(file: &S, batch: &[Cell], buffer: &mut Vec<u8>) -> Vec<Damage> {
    let damage = |cell: &Cell, error: Error| {
        Damage::of(&error.at_record(cell.row), cell.row..cell.row + 1, cell.offset)
    };
    let bytes = batch.iter().map(|cell| cell.raw).sum();
    let room = check_growth(file, batch).and_then(|()| file.source().make_room(buffer, bytes));
    if let Err(error) = room {
        return match batch {
            [cell] => vec![damage(cell, error)],
            _ => batch.chunks(1).flat_map(|one| verify_batch(file, one, buffer)).collect(),
        };
    }
    let mut rest = &mut buffer[..];
    let mut bufs: Vec<&mut [u8]> = batch
        .iter()
        .map(|cell| rest.split_off_mut(..cell.raw as usize).expect("sized for all"))
        .collect();
    let mut failures = file.fetch_each(batch, &mut bufs);
    failures.sort_by_key(|&(k, _)| k);
    failures.into_iter().map(|(k, error)| damage(&batch[k], error)).collect()
}
