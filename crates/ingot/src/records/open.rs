//! Opening a file of any container: the table of formats.

use std::sync::Arc;

use super::arrayrecord;
use super::bag;
use super::container::Container;
use super::csv;
use super::ffrecord;
use super::indexed::Compressed;
use super::ingot;
use super::jsonlines;
use super::npy;
use super::publish::check_regular;
use super::source::Watch;
use super::tar;
use super::tfrecord;
use crate::error::{Error, Result};
use crate::storage::{Location, Read, ReadAt};

/// Bytes that distinguish formats.
const FRONT: u64 = 512;

/// A container: what its files are called, how they begin, and how they are opened. One entry of
/// [`FORMATS`] is all that the rest of the engine, and Python, know of it.
#[derive(Debug)]
pub struct Format {
    /// The name of the format.
    pub name: &'static str,
    /// What users call a file of the format, with an article.
    pub title: &'static str,
    /// How the names of its files end, in lower case.
    pub suffixes: &'static [&'static str],
    /// Whether every record has a checksum.
    pub is_checked: bool,
    /// Whether a file that begins with these bytes is one.
    pub begins: fn(&[u8]) -> bool,
    /// Opens a file.
    pub open: fn(Opening<'_>, &mut Watch<'_>) -> Result<Arc<dyn Container>>,
}

/// All formats. A file goes by how it begins; one whose beginning no format knows goes by its
/// name, since some formats have no signature.
pub static FORMATS: [&Format; 9] = [
    &ingot::FORMAT,
    &arrayrecord::FORMAT,
    &bag::FORMAT,
    &ffrecord::FORMAT,
    &tfrecord::FORMAT,
    &tar::FORMAT,
    &jsonlines::FORMAT,
    &csv::FORMAT,
    &npy::FORMAT,
];

/// A file to be opened, and how.
pub struct Opening<'a> {
    /// Where it is.
    pub location: &'a Location,
    /// Its bytes.
    pub storage: Arc<dyn ReadAt>,
    /// What to do if its writer has not finished it.
    pub mode: Mode,
    /// Whether to verify records where the format leaves that open.
    pub check: bool,
    /// How it is compressed as a whole, if it is.
    pub packed: Option<Compressed>,
}

/// What to do with a file that does not end in a closing trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Refuse it.
    Whole,
    /// Read the rows that are committed.
    Partial,
}

/// Opens a file of any format. Without `check` the records of containers that leave it open are
/// not verified; Ingot files always are.
pub fn open(
    location: &Location,
    mode: Mode,
    check: bool,
    watch: &mut Watch<'_>,
) -> Result<Arc<dyn Container>> {
    let storage = reading(location)?;
    let (format, packed) = format_of(location, &*storage)?;
    (format.open)(Opening { location, storage, mode, check, packed }, watch)
}

/// Returns the format of a file, Ingot's if no other is found, and how it is compressed as a
/// whole. Records of a compressed file are read from a decompressed copy, if its format is indexed.
fn format_of(
    location: &Location,
    storage: &dyn ReadAt,
) -> Result<(&'static Format, Option<Compressed>)> {
    let front = front(storage);
    let name = location.file_name();
    let begins = || FORMATS.iter().find(|format| (format.begins)(&front));
    let named = || FORMATS.iter().find(|format| format.is_name(&name));
    // A bag begins with its first record, which may be a file of any format.
    let is_bag = bag::FORMAT.is_name(&name);
    let found = if is_bag { named() } else { begins().or_else(named) }.copied();
    // The records of a bag may be compressed, and an FFRecord file begins with any bytes.
    if found.is_some_and(|format| [bag::FORMAT.name, ffrecord::FORMAT.name].contains(&format.name))
    {
        return Ok((found.unwrap_or(&ingot::FORMAT), None));
    }
    let compressed = COMPRESSED.iter().find(|(magic, ..)| front.starts_with(magic));
    if let Some((_, compression, command)) = compressed {
        let plain = name.rsplit_once('.').map_or("", |(plain, _)| plain);
        let inside = PACKED.iter().find(|format| format.is_name(plain)).copied();
        let packed = Compressed { compression: (*compression).to_owned(), bytes: None };
        return inside.map(|format| (format, Some(packed))).ok_or_else(|| {
            let why =
                "compressed as a whole, so its records cannot be read individually; decompress it";
            Error::format(location.name(), format!("{why} with {command}"))
        });
    }
    Ok((found.unwrap_or(&ingot::FORMAT), None))
}

/// How files begin that are compressed as a whole, how that is called, and what decompresses them.
const COMPRESSED: [(&[u8], &str, &str); 3] = [
    (b"\x1f\x8b\x08", "gz", "gunzip"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unzstd"),
    (b"BZh", "bz2", "bunzip2"),
];

/// The formats whose records are read from a decompressed copy.
static PACKED: [&Format; 2] = [&tfrecord::FORMAT, &jsonlines::FORMAT];

impl Format {
    /// Returns whether a file of this name, in lower case, is one by its suffix; shards such
    /// as `train.array_record-00000-of-00002` are.
    fn is_name(&self, name: &str) -> bool {
        self.suffixes.iter().any(|suffix| {
            name.ends_with(suffix) || name.split_once(&format!("{suffix}-")).is_some()
        })
    }
}

/// Returns the bytes of a file.
pub(super) fn reading(location: &Location) -> Result<Arc<dyn ReadAt>> {
    if let Location::Path(path) = location {
        check_regular(path)?;
    }
    location.open().map_err(|source| Error::storage(location.name(), "open", source))
}

/// Returns the first bytes of a file; fewer of a shorter one, and none if reading fails:
/// opening the file then reports the error.
pub(super) fn front(storage: &dyn ReadAt) -> Vec<u8> {
    let mut front = vec![0; storage.size().map_or(0, |size| size.min(FRONT)) as usize];
    let mut found = Ok(());
    storage.read_many(&mut [Read::new(0, &mut front)], &mut |_, _, outcome| found = outcome);
    if found.is_ok() { front } else { Vec::new() }
}
