//! Which rows of a file are deleted: a file with a bitmap. format.md, Deleted rows.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::container::{Cell, Container as _, Stats};
use super::content::{hex, id_of};
use super::fetch::{Files as _, check_growth};
use super::ingot::{Compression, Options, Reader, Writer, path};
use super::live::{Live, LiveWords};
use super::open::{Mode, reading};
use super::verification::Damage;
use crate::error::{Error, Result};
use crate::format::checksum::FileId;
use crate::format::ingot::Schema;
use crate::storage::{Append, Location};

/// Bytes of the bitmap in each record but the last.
const RECORD: u64 = 64 << 10;

/// Records that are read at a time.
const TOGETHER: usize = 64;

/// What a list says about a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The id of the bitmap.
    pub id: FileId,
    /// The id of the file whose rows are deleted, if the list knows it.
    pub of: Option<FileId>,
    /// Number of rows of that file.
    pub rows: u64,
    /// How many of them are deleted.
    pub count: u64,
}

/// A bitmap in memory.
#[derive(Debug)]
pub struct Deletes {
    /// The id of the file whose rows are deleted.
    pub of: FileId,
    /// The rows that are not.
    pub live: Live,
    /// Figures about the file of the bitmap.
    pub stats: Stats,
}

/// The metadata of a bitmap.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    deletes: String,
    rows: u64,
    count: u64,
}

/// Writes which of the `rows` rows of file `of` are deleted: bit k of byte j of the bitmap is row
/// 8 j + k. Returns the id of the new file and its size.
pub fn write(
    storage: Box<dyn Append>,
    name: &str,
    of: FileId,
    rows: u64,
    bitmap: &[u8],
    sync: bool,
) -> Result<(FileId, u64)> {
    let metadata = metadata_of(name, of, rows, bitmap)?;
    let bytes = Arc::new(AtomicU64::new(0));
    let storage = Box::new(Counted { storage, bytes: Arc::clone(&bytes) });
    let writer = Writer::create(storage, name, Schema::records(), &metadata, options(sync))?;
    Ok((fill(writer, bitmap)?, bytes.load(Ordering::Acquire)))
}

/// As [`write`], to a new file at `path`, which is removed if that fails.
pub fn create(
    path: &Path,
    of: FileId,
    rows: u64,
    bitmap: &[u8],
    sync: bool,
) -> Result<(FileId, u64)> {
    let name = path.display().to_string();
    let metadata = metadata_of(&name, of, rows, bitmap)?;
    let writer = path::create(path, Schema::records(), &metadata, options(sync))?;
    let id = fill(writer, bitmap)?;
    let written = path.metadata().map_err(|source| Error::storage(name, "open", source))?;
    Ok((id, written.len()))
}

fn options(sync: bool) -> Options {
    Options { compression: Compression::Auto, sync, ..Options::default() }
}

fn metadata_of(name: &str, of: FileId, rows: u64, bitmap: &[u8]) -> Result<String> {
    let invalid = |why: String| Error::Invalid(format!("{name}: {why}"));
    if bitmap.len() as u64 != rows.div_ceil(8) {
        return Err(invalid(format!("a bitmap of {} bytes for {rows} rows", bitmap.len())));
    }
    if let Some(last) = bitmap.last()
        && !rows.is_multiple_of(8)
        && last >> (rows % 8) != 0
    {
        return Err(invalid("the bitmap deletes rows behind the last".to_owned()));
    }
    let count = bitmap.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let about = About { deletes: hex(&of), rows, count };
    serde_json::to_string(&about).map_err(|error| invalid(error.to_string()))
}

fn fill(mut writer: Writer, bitmap: &[u8]) -> Result<FileId> {
    for record in bitmap.chunks(RECORD as usize) {
        writer.append(record)?;
    }
    writer.close()?;
    Ok(writer.id())
}

/// A storage that counts what it is given.
struct Counted {
    storage: Box<dyn Append>,
    bytes: Arc<AtomicU64>,
}

impl Append for Counted {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::AcqRel);
        self.storage.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.storage.sync()
    }

    fn check(&self) -> io::Result<()> {
        self.storage.check()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.bytes.store(len, Ordering::Release);
        self.storage.truncate(len)
    }

    fn rewrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.storage.rewrite(offset, bytes)
    }
}

/// Reads a bitmap and checks it against what a list says. Damage is an error, whatever it is.
pub fn read(location: &Location, claim: &Claim) -> Result<Deletes> {
    let name = location.name();
    read_from(&open(location)?, claim).map_err(|error| of_file(error, &name))
}

/// Opens a bitmap.
pub(super) fn open(location: &Location) -> Result<Reader> {
    let name = location.name();
    let opened = Reader::open(reading(location)?, &name, Mode::Whole, &mut || Ok(()));
    opened.map_err(|error| of_file(error, &name))
}

/// As [`read`], from an open file.
pub fn read_from(file: &Reader, claim: &Claim) -> Result<Deletes> {
    let refused = |why: String| Error::format(file.name(), why);
    let (own, id) = (file.header().id, claim.id);
    if own != id {
        let (own, id) = (hex(&own), hex(&id));
        return Err(refused(format!("another file is in its place: its id is {own}, not {id}")));
    }
    let about: Option<About> = serde_json::from_str(file.metadata()).ok();
    let about = about.filter(|_| file.schema().is_records() && !file.schema().is_typed());
    let known = about.and_then(|about| Some((id_of(&about.deletes)?, about.rows, about.count)));
    let Some((of, rows, count)) = known else {
        return Err(refused("not a bitmap of deleted rows".to_owned()));
    };
    if let Some(other) = claim.of.filter(|&other| other != of) {
        return Err(misfit(file.name(), of, other));
    }
    if (rows, count) != (claim.rows, claim.count) {
        let listed = format!("but the manifest says {} of {}", claim.count, claim.rows);
        return Err(refused(format!("it deletes {count} of {rows} rows, {listed}")));
    }
    let live = Live::of_words(words_of(file, rows)?)
        .ok_or_else(|| Error::memory(file.name(), rows / 8))?;
    let found = rows - live.len();
    if found != count {
        return Err(refused(format!("it deletes {found} rows, but says {count}")));
    }
    Ok(Deletes { of, live, stats: file.stats() })
}

/// Returns the error for a bitmap that is about another file.
pub(super) fn misfit(name: &str, of: FileId, expected: FileId) -> Error {
    let (of, expected) = (hex(&of), hex(&expected));
    Error::format(name, format!("it deletes rows of file {of}, not of file {expected}"))
}

/// Reads the bitmap with live rows as 1.
fn words_of(file: &Reader, rows: u64) -> Result<LiveWords> {
    let refused = |why: String| Error::format(file.name(), why);
    let bytes = rows.div_ceil(8);
    if file.num_rows() != bytes.div_ceil(RECORD) {
        return Err(refused(format!("{} records are no bitmap of {rows} rows", file.num_rows())));
    }
    let mut cells = Vec::new();
    file.locate(&(0..file.num_rows()).collect::<Vec<_>>(), 0, &mut cells)?;
    for (cell, start) in cells.iter().zip((0..bytes).step_by(RECORD as usize)) {
        let expected = RECORD.min(bytes - start);
        if cell.raw != expected {
            let why = format!("record {} has {} bytes, not {expected}", cell.row, cell.raw);
            return Err(refused(why));
        }
    }
    check_growth(file, &cells)?;
    let words = LiveWords::new(rows);
    let mut words = words.ok_or_else(|| Error::memory(file.name(), bytes))?;
    let mut buffer = Vec::new();
    for some in cells.chunks(TOGETHER) {
        words.push_deleted(read_records(file, some, &mut buffer)?);
    }
    if !words.finish() {
        return Err(refused(format!("it deletes rows behind the last of {rows}")));
    }
    Ok(words)
}

/// Reads records, one after the other.
fn read_records<'b>(file: &Reader, cells: &[Cell], buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    use super::container::Stored as _;
    let bytes: u64 = cells.iter().map(|cell| cell.raw).sum();
    file.source().make_room(buffer, bytes)?;
    let mut rest = &mut buffer[..];
    let mut bufs: Vec<&mut [u8]> = cells
        .iter()
        .map(|cell| rest.split_off_mut(..cell.raw as usize).expect("sized for all"))
        .collect();
    file.fetch(cells, &mut bufs)?;
    Ok(&buffer[..bytes as usize])
}

/// Returns an error of a bitmap without the record that it concerns, which is not a row of the
/// data set. A bitmap that is not whole is damaged: nobody appends to one.
pub(super) fn of_file(error: Error, name: &str) -> Error {
    match error {
        Error::Unfinished { offset, reason, .. } => {
            let reason = format!("the bitmap of deleted rows is truncated or damaged: {reason}");
            Error::Corrupt { path: name.to_owned(), record: None, offset, reason }
        }
        Error::Corrupt { path, offset, reason, .. } => {
            Error::Corrupt { path, record: None, offset, reason }
        }
        Error::Storage { path, offset, action, source, .. } => {
            Error::Storage { path, record: None, offset, action, source }
        }
        Error::Memory { path, bytes, .. } => Error::Memory { path, record: None, bytes },
        other => other,
    }
}

/// Checks every byte of a bitmap, and that it is still what a list says.
pub(super) fn verify(location: &Location, claim: &Claim) -> Vec<Damage> {
    let name = location.name();
    let checked = open(location).and_then(|file| {
        let found = file.verify(&mut |_| Ok(()))?;
        if found.damaged.is_empty() {
            read_from(&file, claim)?;
        }
        Ok(found.damaged)
    });
    match checked {
        Ok(damaged) => {
            let whole = |one: Damage| {
                let told = one.record.map_or_else(String::new, |k| format!("record {k}: "));
                Damage::elsewhere((one.offset, one.reason.replacen(&told, "", 1)))
            };
            damaged.into_iter().map(whole).collect()
        }
        Err(error) => {
            let error = of_file(error, &name);
            vec![Damage::elsewhere((error.offset().unwrap_or(0), error.to_string()))]
        }
    }
}
