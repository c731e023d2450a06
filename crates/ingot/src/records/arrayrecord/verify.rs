//! Checking every byte of an ArrayRecord file.

use std::ops::Range;

use super::super::container::Stored as _;
use super::super::verification::{Damage, Verification};
use super::reader::ArrayRecord;
use crate::error::Result;
use crate::format::arrayrecord::SIGNATURE_LEN;
use crate::format::riegeli::{Chunk, Kind, block};
use crate::format::{Violation, bail};
use crate::pool::Pool;

/// Stretches of a file are checked in batches of about this many bytes.
const BATCH: u64 = 8 << 20;

/// A stretch of the file from one known chunk to the next.
struct Stretch {
    range: Range<u64>,
    /// The data chunk that it begins with.
    chunk: Option<usize>,
}

/// Reads every chunk and checks every hash; see [`super::super::container::Container::verify`].
pub fn verify(
    file: &ArrayRecord,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Verification> {
    let index = file.index();
    let (footer, size) = (file.footer().offset, file.file_bytes());
    let postscript = size - block::LEN;
    let first = if index.chunks() == 0 { footer } else { index.range(0).start };
    let other = |range| Stretch { range, chunk: None };
    let data = (0..index.chunks()).map(|k| Stretch { range: index.range(k), chunk: Some(k) });
    let stretches = [other(0..SIGNATURE_LEN as u64), other(SIGNATURE_LEN as u64..first)]
        .into_iter()
        .chain(data)
        .chain([other(footer..postscript), other(postscript..size)]);
    let mut found = Verification::default();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for stretch in stretches {
        bytes += stretch.range.end - stretch.range.start;
        batch.push(stretch);
        if bytes >= BATCH {
            found.damaged.extend(check(file, &batch));
            found.rows = rows_done(file, &batch).unwrap_or(found.rows);
            progress(found.rows)?;
            (batch, bytes) = (Vec::new(), 0);
        }
    }
    found.damaged.extend(check(file, &batch));
    found.rows = index.records();
    progress(found.rows)?;
    found.damaged.sort_by_key(|damage| damage.offset);
    Ok(found)
}

fn rows_done(file: &ArrayRecord, batch: &[Stretch]) -> Option<u64> {
    batch.iter().rev().find_map(|stretch| stretch.chunk).map(|chunk| file.index().rows(chunk).end)
}

/// Checks stretches on several threads.
fn check(file: &ArrayRecord, batch: &[Stretch]) -> Vec<Damage> {
    let damaged = Pool::compute().map(batch.len(), &|k| check_stretch(file, &batch[k]));
    damaged.into_iter().flatten().collect()
}

fn check_stretch(file: &ArrayRecord, stretch: &Stretch) -> Option<Damage> {
    let Range { start, end } = stretch.range;
    let source = file.source();
    let rows = stretch.chunk.map_or(0..0, |chunk| file.index().rows(chunk));
    let outcome = source.read(start, end - start).and_then(|stored| {
        let mut place = start;
        if let Some(chunk) = stretch.chunk {
            file.unpack(chunk, &stored)?;
            place = Chunk::measure(&stored, start).map_or(end, |(_, end)| end);
        }
        while place < end {
            let rest = &stored[(place - start) as usize..];
            place = walk(rest, place).map_err(|why| source.corrupt(place, why))?;
        }
        if place == end {
            return Ok(());
        }
        Err(source.corrupt(start, format!("a chunk reaches past {end}, where the next one begins")))
    });
    let error = outcome.err()?;
    if rows.is_empty() {
        let offset = error.offset().unwrap_or(start);
        return Some(Damage::elsewhere((offset, error.to_string())));
    }
    Some(Damage::of(&error, rows, start))
}

/// Checks the chunk at `place`; returns where it ends.
fn walk(stored: &[u8], place: u64) -> std::result::Result<u64, Violation> {
    let chunk = Chunk::decode(stored, place)?;
    let is_zero = || chunk.data.iter().all(|&byte| byte == 0);
    if chunk.header.kind == Kind::PADDING && !is_zero() {
        bail!("a padding chunk holds more than zeros");
    }
    Ok(chunk.end)
}
