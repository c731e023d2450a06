//! Bags with their limits at their end or apart: any bytes.

#![no_main]

use std::ops::Range;
use std::sync::Arc;

use ingot::records::{Bag, BagOptions, Container as _, Files as _, Packing, find, prepare};
use ingot::storage::{Memory, ReadAt};
use ingot_fuzz::bounded;
use libfuzzer_sys::fuzz_target;

/// Memory that a bag may cost beyond a few times its length.
const LIMIT: usize = 16 << 20;

/// Values larger than this are not asked for.
const VALUE: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, len], rest)) = data.split_first_chunk() else { return };
    let (is_separate, is_packed, leading_zero) =
        (choice & 1 != 0, choice & 2 != 0, choice & 4 != 0);
    let (limits, records) = match is_separate {
        true => rest.split_at(usize::from(len).min(rest.len())),
        false => (&[][..], rest),
    };
    let packing = if is_packed { Packing::Zstd(None) } else { Packing::Plain };
    bounded(LIMIT + 8 * data.len(), || {
        let storage = |bytes: &[u8]| -> Arc<dyn ReadAt> { Arc::new(Memory::from(bytes.to_vec())) };
        let table = is_separate.then(|| (storage(limits), "limits.fuzzed.bag".to_owned()));
        let options = BagOptions { packing, leading_zero };
        let Ok(bag) = Bag::open(storage(records), table, "fuzzed.bag", options) else { return };
        let ends = if is_separate { words(limits) } else { tail(records) };
        let ends = if leading_zero { ends.get(1..).unwrap_or_default() } else { &ends };
        assert_eq!(bag.num_rows(), ends.len() as u64);
        let place = |row: usize| -> Option<&[u8]> { records.get(place_of(ends, row)?) };
        let rows: Vec<u64> = (0..bag.num_rows()).collect();
        let _pins = prepare(&[(&bag, rows.clone())]);
        for &row in &rows {
            let Ok(cell) = find(&bag, row) else { continue };
            if cell.raw > VALUE {
                continue;
            }
            let mut value = vec![0; cell.raw as usize];
            if bag.fetch(&[cell], &mut [&mut value]).is_ok() && !is_packed {
                assert_eq!(Some(&value[..]), place(row as usize));
            }
        }
        let _ = bag.verify(&mut |_| Ok(()));
    });
});

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Returns the limits at the end of a bag that could be opened.
fn tail(bytes: &[u8]) -> Vec<u64> {
    let Some(last) = bytes.last_chunk() else { return Vec::new() };
    words(&bytes[u64::from_le_bytes(*last) as usize..])
}

fn place_of(ends: &[u64], row: usize) -> Option<Range<usize>> {
    let start = row.checked_sub(1).map_or(0, |before| ends[before]);
    Some(usize::try_from(start).ok()?..usize::try_from(ends[row]).ok()?)
}
