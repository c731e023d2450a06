//! Record files by their path on the local file system.

mod bag;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::arrayrecord::{ArOptions, ArWriter, ArrayRecord};
use super::container::Container;
use super::contents::{Front, Source, Watch, read_header};
use super::draft::Finish;
use super::ffrecord::{FfRecord, FfWriter, Room};
use super::reader::{Mode, Reader};
use super::recovery::{self, Recovery};
use super::spool::Spool;
use super::writer::{Options, Writer};
use crate::error::{Error, Result};
use crate::format::arrayrecord::SIGNATURE_LEN;
use crate::format::ingot::{HEADER_LEN, Header, Schema};
use crate::storage::{self, Append as _, AppendFile, LocalFile, ReadAt};

pub use bag::{Existing, open_bag, open_named_bag, packing_of, write_bag};

/// Links that are followed, one to the next.
const LINKS_MAX: usize = 40;

/// Opens the file at `path` for reading.
pub fn open(path: &Path, mode: Mode) -> Result<Reader> {
    Reader::open(reading(path)?, &name(path), mode, &mut || Ok(()))
}

/// Opens a file of any container for reading, which is known by how it begins. FFRecord
/// files and bags have no signature, so they go by their name. Without `check` the records of
/// containers that leave it open are not verified; Ingot files always are.
pub fn open_any(
    path: &Path,
    mode: Mode,
    check: bool,
    watch: &mut Watch<'_>,
) -> Result<Arc<dyn Container>> {
    let storage = reading(path)?;
    let named = |suffixes: &[&str]| {
        let suffix = path.extension().unwrap_or_default();
        suffixes.iter().any(|known| suffix.eq_ignore_ascii_case(known))
    };
    let front = front(&*storage);
    if front.len() < HEADER_LEN || !Header::is_prefix(&front) {
        if ArrayRecord::is_prefix(&front) || is_named_arrayrecord(path) {
            return Ok(Arc::new(ArrayRecord::open(storage, &name(path))?));
        }
        if named(&["bag", "bagz"]) {
            return Ok(Arc::new(open_named_bag(path)?));
        }
        if named(&["ffr"]) {
            return Ok(Arc::new(FfRecord::open(storage, &name(path), check)?));
        }
    }
    Ok(Arc::new(Reader::open(storage, &name(path), mode, watch)?))
}

/// Returns whether a file whose front is damaged goes by the name of an ArrayRecord file,
/// such as `train.array_record-00000-of-00002`.
fn is_named_arrayrecord(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let known = [".array_record", ".arrayrecord", ".arecord", ".riegeli"];
    known.iter().any(|suffix| name.contains(suffix))
}

/// Returns whether the file at `path` is an Ingot file whose rows have fields.
pub fn has_fields(path: &Path) -> bool {
    let Ok(storage) = reading(path) else { return false };
    let name = name(path);
    let source = Source { storage: &*storage, name: &name };
    let header = source.size().and_then(|size| read_header(source, size));
    matches!(header, Ok(Front::Header(header)) if header.schema.is_typed())
}

/// Returns the first bytes of a file, as many as it takes to tell one container from
/// another; none of a shorter file.
fn front(storage: &dyn ReadAt) -> Vec<u8> {
    let mut front = vec![0; HEADER_LEN.max(SIGNATURE_LEN)];
    let size = storage.size().map_or(0, |size| size.min(front.len() as u64));
    front.truncate(size as usize);
    let mut found = Ok(());
    storage.read_many(&mut [storage::Read::new(0, &mut front)], &mut |_, _, outcome| {
        found = outcome;
    });
    if found.is_ok() { front } else { Vec::new() }
}

/// Starts an ArrayRecord file that appears at `path`, in place of what is there, when it is
/// closed.
pub fn write_arrayrecord(path: &Path, options: ArOptions) -> Result<ArWriter> {
    options.check()?;
    let target = target_of(path)?;
    let hidden = beside(&target, ".part");
    let file = Box::new(start_over(&hidden)?);
    ArWriter::new(file, &name(path), options, publishing(hidden, target, options.sync))
}

/// Returns what lets a file appear under its name if it is whole, and removes it if not.
fn publishing(hidden: PathBuf, target: PathBuf, sync: bool) -> Finish {
    Box::new(move |whole| if whole { publish(&hidden, &target, sync) } else { remove(&hidden) })
}

/// Starts a new file at `path`, which must not exist. If it is given up before anything
/// is committed, it is removed.
pub fn create(path: &Path, schema: Schema, metadata: &str, options: Options) -> Result<Writer> {
    let (writer, own) = start(path, schema, metadata, options)?;
    Ok(writer.then(
        move |whole, committed| {
            if whole || committed > 0 { Ok(()) } else { own.remove() }
        },
    ))
}

/// A file that a writer has made, as it can be told from another that has its name later.
struct OwnFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl OwnFile {
    fn of(path: &Path, file: &AppendFile) -> Result<OwnFile> {
        let identity = file.identity().map_err(|source| failed(path, "create", source))?;
        Ok(OwnFile { path: path.to_path_buf(), identity })
    }

    /// Removes the file, unless somebody has put another one in its place.
    fn remove(&self) -> Result<()> {
        match storage::identity_at(&self.path) {
            Ok(found) if found == self.identity => remove(&self.path),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(&self.path, "remove", error))
            }
            _ => Ok(()),
        }
    }
}

fn start(
    path: &Path,
    schema: Schema,
    metadata: &str,
    options: Options,
) -> Result<(Writer, OwnFile)> {
    // A header that cannot be is found out before there is a file.
    Header::new([0; 16], schema.clone(), metadata)
        .map_err(|why| Error::Invalid(format!("{}: {why}", name(path))))?;
    let file = AppendFile::create(path).map_err(|source| failed(path, "create", source))?;
    let own = OwnFile::of(path, &file)?;
    match Writer::create(Box::new(file), &name(path), schema, metadata, options) {
        Ok(writer) => Ok((writer, own)),
        Err(error) => own.remove().and(Err(error)),
    }
}

/// Starts a new file that takes the place of the one at `path` when it is closed; until
/// then the old one stays, and no other writer gets at it.
pub fn replace(path: &Path, schema: Schema, metadata: &str, options: Options) -> Result<Writer> {
    let link = path;
    let path = &target_of(path)?;
    check_linked(link, path)?;
    let old = match AppendFile::open(path) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened.map_err(|source| failed(path, "open", source))?),
    };
    let hidden = beside(path, ".new");
    remove_stale(&hidden)?;
    let (writer, own) = start(&hidden, schema, metadata, options)?;
    if let Ok(found) = fs::metadata(path) {
        fs::set_permissions(&hidden, found.permissions())
            .map_err(|source| failed(&hidden, "set permissions", source))?;
    }
    let target = path.to_path_buf();
    Ok(writer.then(move |whole, _| {
        let outcome = if whole { publish(&hidden, &target, options.sync) } else { own.remove() };
        drop(old);
        outcome
    }))
}

/// Refuses to replace a file behind a link that is none of ours.
fn check_linked(link: &Path, target: &Path) -> Result<()> {
    if !fs::symlink_metadata(link).is_ok_and(|found| found.is_symlink()) || !target.exists() {
        return Ok(());
    }
    let mut front = Vec::new();
    fs::File::open(target)
        .and_then(|file| file.take(HEADER_LEN as u64).read_to_end(&mut front))
        .map_err(|source| failed(target, "read", source))?;
    if front.is_empty() || Header::is_prefix(&front) {
        return Ok(());
    }
    let target = target.display();
    let reason = format!("this is a link to {target}, which is no Ingot file and stays");
    Err(Error::Format { path: name(link), reason })
}

/// Removes what a writer that was killed has left under the name of the new file.
fn remove_stale(hidden: &Path) -> Result<()> {
    match AppendFile::open(hidden) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed(hidden, "open", source)),
        Ok(_) => {
            let mut front = Vec::new();
            fs::File::open(hidden)
                .and_then(|file| file.take(HEADER_LEN as u64).read_to_end(&mut front))
                .map_err(|source| failed(hidden, "read", source))?;
            if Header::is_prefix(&front) {
                return remove(hidden);
            }
            let reason = "this file is in the way of the new one; move it away".to_owned();
            Err(Error::Format { path: name(hidden), reason })
        }
    }
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|source| failed(path, "remove", source))
}

/// Gives a finished file its name. It keeps the mode of the file that it replaces. An empty
/// file is filled instead, since somebody may have it open: a temporary file, say.
fn publish(hidden: &Path, target: &Path, sync: bool) -> Result<()> {
    if let Ok(found) = fs::metadata(target) {
        if found.is_file() && found.len() == 0 {
            return fill(hidden, target, sync);
        }
        fs::set_permissions(hidden, found.permissions())
            .map_err(|source| failed(hidden, "set permissions", source))?;
    }
    fs::rename(hidden, target).map_err(|source| failed(target, "rename", source))?;
    if !sync {
        return Ok(());
    }
    fs::File::open(folder_of(target))
        .and_then(|directory| directory.sync_all())
        .map_err(|source| failed(target, "sync of the directory", source))
}

fn fill(hidden: &Path, target: &Path, sync: bool) -> Result<()> {
    let filled = || {
        let mut file = fs::File::options().write(true).open(target)?;
        io::copy(&mut fs::File::open(hidden)?, &mut file)?;
        if sync { file.sync_all() } else { Ok(()) }
    };
    if let Err(source) = filled() {
        let _ = fs::File::options().write(true).truncate(true).open(target);
        return Err(failed(target, "write", source));
    }
    remove(hidden)
}

/// Starts an FFRecord file that appears at `path`, in place of what is there, when it is
/// closed. With `records` there must be exactly so many; without, they are spooled beside it.
pub fn write_ffrecord(path: &Path, records: Option<u64>, sync: bool) -> Result<FfWriter> {
    let target = target_of(path)?;
    FfWriter::check_count(&name(path), records.unwrap_or(0))?;
    let (hidden, spool) = (beside(&target, ".part"), beside(&target, ".spool"));
    let file = Box::new(start_over(&hidden)?);
    let publish = publishing(hidden, target, sync);
    let Some(records) = records else {
        let append = Box::new(start_over(&spool)?);
        let room = Room::Spooled(Spool { append, read: reading(&spool)? });
        let finish = Box::new(move |whole| remove(&spool).and_then(|()| publish(whole)));
        return FfWriter::new(file, room, &name(path), sync, finish);
    };
    FfWriter::new(file, Room::Announced(records), &name(path), sync, publish)
}

/// Returns the file that is to be written or replaced: behind a symbolic link it is that
/// file, not the link. What a file cannot take the place of is refused, and so is a path into
/// a folder that does not exist.
fn target_of(path: &Path) -> Result<PathBuf> {
    check_regular(path)?;
    if path.is_dir() {
        return Err(failed(path, "create", io::ErrorKind::IsADirectory.into()));
    }
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(_) => behind_links(path).map_err(|source| failed(path, "create", source))?,
    };
    fs::metadata(folder_of(&target).join(".")).map_err(|source| failed(path, "create", source))?;
    Ok(target)
}

/// Follows links to where there is no file yet.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&target) else { return Ok(target) };
        target = folder_of(&target).join(next);
    }
    Err(io::Error::other("too many links, one to the next"))
}

fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_path_buf().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Refuses what no writer has left: a link would lead to a file that is none of ours.
fn check_own(path: &Path) -> Result<()> {
    let found = fs::symlink_metadata(path).map_err(|source| failed(path, "open", source))?;
    #[cfg(unix)]
    let names = std::os::unix::fs::MetadataExt::nlink(&found);
    #[cfg(not(unix))]
    let names = 1;
    if found.is_file() && names == 1 {
        return Ok(());
    }
    let reason = "this file is in the way of the new one; move it away".to_owned();
    Err(Error::Format { path: name(path), reason })
}

/// Opens an empty file, in place of one that a writer which was killed has left.
fn start_over(path: &Path) -> Result<AppendFile> {
    match AppendFile::create(path) {
        // A file that was cut to nothing is written to the device as soon as it is closed, by
        // some systems, so that is done only where there is one.
        Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
            check_own(path)?;
            let mut file = AppendFile::open(path).map_err(|source| failed(path, "open", source))?;
            file.truncate(0).map_err(|source| failed(path, "truncate", source))?;
            Ok(file)
        }
        created => created.map_err(|source| failed(path, "create", source)),
    }
}

/// Goes on at the end of the file at `path`, closed or not.
pub fn append(path: &Path, options: Options, watch: &mut Watch<'_>) -> Result<(Writer, Recovery)> {
    let (target, storage) = both(path)?;
    recovery::append(&storage, target, &name(path), options, watch)
}

/// Cuts the file at `path` back to its last commit and closes it.
pub fn recover(path: &Path, options: Options, watch: &mut Watch<'_>) -> Result<Recovery> {
    let (target, storage) = both(path)?;
    recovery::recover(&storage, target, &name(path), options, watch)
}

/// Takes the lock first, so that what is read is not being written.
fn both(path: &Path) -> Result<(Box<AppendFile>, Arc<dyn ReadAt>)> {
    check_regular(path)?;
    let target = AppendFile::open(path).map_err(|source| failed(path, "open", source))?;
    Ok((Box::new(target), reading(path)?))
}

/// Refuses pipes and devices, some of which would never answer.
fn check_regular(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            Err(Error::Format { path: name(path), reason: "not a regular file".to_owned() })
        }
        _ => Ok(()),
    }
}

fn reading(path: &Path) -> Result<Arc<dyn ReadAt>> {
    check_regular(path)?;
    let file = LocalFile::open(path).map_err(|source| failed(path, "open", source))?;
    Ok(Arc::new(file))
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::WouldBlock {
        return Error::Locked { path: name(path) };
    }
    Error::Storage { path: name(path), record: None, offset: 0, action, source }
}
