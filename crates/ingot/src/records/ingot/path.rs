//! Ingot files by their path on the local file system.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::open::Mode;
use super::super::publish::{
    beside, check_regular, failed, in_the_way, name, publish, reading, remove, target_of,
};
use super::super::source::{Source, Watch};
use super::front::{Front, read_header};
use super::reader::Reader;
use super::recovery::{self, Recovery};
use super::writer::{Options, Writer};
use crate::error::{Error, Result};
use crate::format::ingot::{HEADER_LEN, Header, Schema};
use crate::storage::{AppendFile, FileId, ReadAt};

/// Opens the file at `path` for reading.
pub fn open(path: &Path, mode: Mode) -> Result<Reader> {
    Reader::open(reading(path)?, &name(path), mode, &mut || Ok(()))
}

/// Returns whether the file at `path` is an Ingot file whose rows have fields.
pub fn has_fields(path: &Path) -> bool {
    let Ok(storage) = reading(path) else { return false };
    let name = name(path);
    let source = Source { storage: &*storage, name: &name };
    let header = source.size().and_then(|size| read_header(source, size));
    matches!(header, Ok(Front::Header(header)) if header.schema.is_typed())
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

/// A file that a writer has made, distinguishable from another that gets its name later.
struct OwnFile {
    path: PathBuf,
    id: Option<FileId>,
}

impl OwnFile {
    fn of(path: &Path, file: &AppendFile) -> Result<OwnFile> {
        let id = file.id().map_err(|source| failed(path, "create", source))?;
        Ok(OwnFile { path: path.to_path_buf(), id })
    }

    /// Removes the file, unless another one has taken its place.
    fn remove(&self) -> Result<()> {
        match FileId::at(&self.path) {
            Ok(found) if found == self.id => remove(&self.path),
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
    // An invalid header is rejected before the file is created.
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

/// Rejects replacing a file through a link unless it is an Ingot file.
fn check_linked(link: &Path, target: &Path) -> Result<()> {
    if !fs::symlink_metadata(link).is_ok_and(|found| found.is_symlink()) || !target.exists() {
        return Ok(());
    }
    let front = front_of(target)?;
    if front.is_empty() || Header::is_prefix(&front) {
        return Ok(());
    }
    let target = target.display();
    let reason = format!("a link to {target}, which is not an Ingot file and is kept");
    Err(Error::format(name(link), reason))
}

/// Reads the bytes that distinguish an Ingot file from others.
fn front_of(path: &Path) -> Result<Vec<u8>> {
    let mut front = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(HEADER_LEN as u64).read_to_end(&mut front))
        .map_err(|source| failed(path, "read", source))?;
    Ok(front)
}

/// Removes what a writer that was killed has left under the name of the new file.
fn remove_stale(hidden: &Path) -> Result<()> {
    match AppendFile::open(hidden) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(failed(hidden, "open", source)),
        Ok(_) => {
            if Header::is_prefix(&front_of(hidden)?) {
                remove(hidden)
            } else {
                Err(in_the_way(hidden))
            }
        }
    }
}

/// Appends to the file at `path`, closed or not.
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
