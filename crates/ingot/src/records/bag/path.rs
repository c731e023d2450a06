//! Bags by their paths.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::super::container::Container as _;
use super::super::draft::Spool;
use super::super::publish::{
    beside, failed, name, publish, reading, remove, start_over, target_of,
};
use super::{Bag, BagOptions, BagWriter, Packer, Packing, Placement};
use crate::error::{Error, Result};
use crate::format::bag::LIMIT_LEN;
use crate::storage::{Append as _, AppendFile};

/// What becomes of a bag that is at the path of a new one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// The new one takes its place.
    Replace,
    /// As [`Existing::Replace`]. If the file is missing or empty, the new one is written in
    /// place, with its limits in `limits.NAME` beside it until it is closed: meanwhile, or after
    /// a crash, it is a bag with separate limits.
    ReplaceInPlace,
    /// It stays, and creating the new one fails.
    Refuse,
    /// The writer appends to it; only with separate limits.
    Continue,
}

/// Opens a bag, whose limits are at its end or in a file of their own.
pub fn open_bag(path: &Path, limits: Option<&Path>, options: BagOptions) -> Result<Bag> {
    let storage = reading(path)?;
    let limits = match limits {
        Some(limits) => Some((reading(limits)?, name(limits))),
        None => None,
    };
    Bag::open(storage, limits, &name(path), options)
}

/// Opens a bag as its name and the files beside it say that it is.
pub fn open_named_bag(path: &Path) -> Result<Bag> {
    let options = BagOptions { packing: packing_of(path), ..BagOptions::default() };
    let limits = limits_of(path).filter(|limits| !is_stale(path, limits));
    open_bag(path, limits.as_deref(), options)
}

/// Whether the limits beside a bag are those of another one that it has replaced: they end
/// elsewhere, and it has limits of its own at its end.
fn is_stale(path: &Path, limits: &Path) -> bool {
    let last = || -> io::Result<u64> {
        let mut file = File::open(limits)?;
        let mut limit = [0; LIMIT_LEN as usize];
        file.seek(SeekFrom::End(-(LIMIT_LEN as i64)))?;
        file.read_exact(&mut limit)?;
        Ok(u64::from_le_bytes(limit))
    };
    let is_end = path.metadata().is_ok_and(|found| last().is_ok_and(|last| last == found.len()));
    !is_end && open_bag(path, None, BagOptions::default()).is_ok_and(|bag| bag.num_rows() > 0)
}

/// Returns how the records of a bag of this name are stored.
pub fn packing_of(path: &Path) -> Packing {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let is_packed = name.ends_with(".bagz") || name.contains(".bagz-");
    if is_packed { Packing::Zstd(None) } else { Packing::Plain }
}

/// Returns the file with the limits of a bag, if it has one: `x.idx` beside `x.bag` as
/// Granular writes it, or `limits.x.bag` as Bagz does.
fn limits_of(path: &Path) -> Option<PathBuf> {
    let granular = matches!(packing_of(path), Packing::Plain).then(|| path.with_extension("idx"));
    let mut known = granular.into_iter().chain([bagz_limits(path)]);
    known.find(|limits| limits.is_file())
}

/// Starts a bag. With its limits at its end it appears at `path` when it is closed; with
/// limits of their own both files are there from the start, and readers see what was
/// flushed.
pub fn write_bag(
    path: &Path,
    limits: Option<&Path>,
    existing: Existing,
    packer: Option<Packer>,
    sync: bool,
) -> Result<BagWriter> {
    match limits {
        Some(limits) => write_pair(path, limits, existing, packer, sync),
        None => write_tail(path, existing, packer, sync),
    }
}

fn write_tail(
    path: &Path,
    existing: Existing,
    packer: Option<Packer>,
    sync: bool,
) -> Result<BagWriter> {
    if existing == Existing::Continue {
        let message = format!(
            "{}: a bag with its limits at its end cannot be appended to; use separate limits",
            name(path)
        );
        return Err(Error::Invalid(message));
    }
    let target = target_of(path)?;
    let check = move |target: &Path| match existing {
        Existing::Refuse => refuse_existing(target),
        _ => Ok(()),
    };
    check(&target)?;
    let limits = bagz_limits(&target);
    if existing == Existing::ReplaceInPlace && is_vacant(&target) && is_vacant(&limits) {
        let file = Box::new(open_or_create(&target)?);
        let append = Box::new(start_over(&limits)?);
        let placement = Placement::Tail(Spool { append, read: reading(&limits)? });
        let finish = Box::new(move |whole| if whole { remove(&limits) } else { Ok(()) });
        return Ok(BagWriter::new(file, placement, &name(path), packer, sync, finish));
    }
    let (hidden, spool) = (beside(&target, ".part"), beside(&target, ".spool"));
    let file = Box::new(start_over(&hidden)?);
    let append = Box::new(start_over(&spool)?);
    let placement = Placement::Tail(Spool { append, read: reading(&spool)? });
    let finish = Box::new(move |whole| {
        remove(&spool)?;
        if whole && let Err(error) = check(&target) {
            remove(&hidden)?;
            return Err(error);
        }
        if !whole {
            return remove(&hidden);
        }
        publish(&hidden, &target, sync)?;
        // Those of the bag that is replaced.
        if existing == Existing::ReplaceInPlace && limits.exists() {
            remove(&limits)
        } else {
            Ok(())
        }
    });
    Ok(BagWriter::new(file, placement, &name(path), packer, sync, finish))
}

/// Whether there is no file, or one without bytes.
fn is_vacant(path: &Path) -> bool {
    path.metadata().map_or(true, |found| found.len() == 0)
}

fn bagz_limits(path: &Path) -> PathBuf {
    let mut limits = OsString::from("limits.");
    limits.push(path.file_name().unwrap_or_default());
    path.with_file_name(limits)
}

fn write_pair(
    path: &Path,
    limits: &Path,
    existing: Existing,
    packer: Option<Packer>,
    sync: bool,
) -> Result<BagWriter> {
    let (path, limits) = (target_of(path)?, target_of(limits)?);
    if path == limits {
        let message = format!("{}: a bag and its limits cannot be one file", name(&path));
        return Err(Error::Invalid(message));
    }
    if existing == Existing::Refuse {
        refuse_existing(&limits)?;
        refuse_existing(&path)?;
    }
    let has_limits = limits.exists();
    let mut records = open_or_create(&path)?;
    if existing == Existing::Continue && !has_limits && !records.is_empty() {
        let reason = format!(
            "the file {} with the ends of its records does not exist; if the bag is a single \
             file, it is complete and cannot be appended to",
            name(&limits)
        );
        return Err(Error::format(name(&path), reason));
    }
    let mut table = open_or_create(&limits)?;
    let (len, end) = match existing {
        Existing::Continue => {
            let bag = open_bag(&path, Some(&limits), BagOptions::default())?;
            (bag.num_rows(), bag.end()?)
        }
        _ => (0, 0),
    };
    cut(&mut table, len * LIMIT_LEN)?;
    cut(&mut records, end)?;
    let placement = Placement::Separate(Box::new(table), name(&limits));
    let finish = Box::new(|_| Ok(()));
    let writer = BagWriter::new(Box::new(records), placement, &name(&path), packer, sync, finish);
    Ok(writer.behind(len, end))
}

fn refuse_existing(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(failed(path, "create", io::ErrorKind::AlreadyExists.into())),
        Err(_) => Ok(()),
    }
}

fn open_or_create(path: &Path) -> Result<AppendFile> {
    match AppendFile::create(path) {
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
            AppendFile::open(path).map_err(|source| failed(path, "open", source))
        }
        created => created.map_err(|source| failed(path, "create", source)),
    }
}

/// Cuts a file that is longer than `len`.
fn cut(file: &mut AppendFile, len: u64) -> Result<()> {
    if file.len() <= len {
        return Ok(());
    }
    let outcome = file.truncate(len);
    outcome.map_err(|source| failed(file.path(), "truncate", source))
}
