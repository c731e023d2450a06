//! Record files by their path on the local file system.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reader::{Mode, Reader};
use super::recovery::{self, Recovery};
use super::writer::{Options, Writer};
use crate::error::{Error, Result};
use crate::format::ingot::Schema;
use crate::storage::{AppendFile, LocalFile, ReadAt};

/// Opens the file at `path` for reading.
pub fn open(path: &Path, mode: Mode) -> Result<Reader> {
    Reader::open(reading(path)?, &name(path), mode)
}

/// Starts a new file at `path`, which must not exist.
pub fn create(path: &Path, schema: Schema, metadata: &str, options: Options) -> Result<Writer> {
    let file = AppendFile::create(path).map_err(|source| failed(path, "create", source))?;
    Writer::create(Box::new(file), &name(path), schema, metadata, options)
}

/// Starts a new file that takes the place of the one at `path` when it is closed;
/// until then the old one stays.
pub fn replace(path: &Path, schema: Schema, metadata: &str, options: Options) -> Result<Writer> {
    let target = path.to_path_buf();
    let mut hidden = target.clone().into_os_string();
    hidden.push(format!(".{}.new", std::process::id()));
    let hidden = PathBuf::from(hidden);
    let publish = {
        let hidden = hidden.clone();
        move || {
            fs::rename(&hidden, &target).map_err(|source| failed(&target, "rename", source))?;
            let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
            let synced = fs::File::open(parent.unwrap_or(Path::new(".")))
                .and_then(|dir| if options.sync { dir.sync_all() } else { Ok(()) });
            synced.map_err(|source| failed(&target, "sync of the directory", source))
        }
    };
    Ok(create(&hidden, schema, metadata, options)?.then(publish))
}

/// Goes on at the end of the file at `path`, closed or not.
pub fn append(path: &Path, options: Options) -> Result<(Writer, Recovery)> {
    let (target, storage) = both(path)?;
    recovery::append(&storage, target, &name(path), options)
}

/// Cuts the file at `path` back to its last commit and closes it.
pub fn recover(path: &Path, options: Options) -> Result<Recovery> {
    let (target, storage) = both(path)?;
    recovery::recover(&storage, target, &name(path), options)
}

/// Takes the lock first, so that what is read is not being written.
fn both(path: &Path) -> Result<(Box<AppendFile>, Arc<dyn ReadAt>)> {
    let target = AppendFile::open(path).map_err(|source| failed(path, "open", source))?;
    Ok((Box::new(target), reading(path)?))
}

fn reading(path: &Path) -> Result<Arc<dyn ReadAt>> {
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
