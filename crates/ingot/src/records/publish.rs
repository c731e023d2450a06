//! Letting a file appear under its name when it is whole.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::draft::Finish;
use super::open;
use crate::error::{Error, Result};
use crate::storage::{Append as _, AppendFile, ReadAt};

/// Links that are followed, one to the next.
const LINKS_MAX: usize = 40;

/// Returns what lets a file appear under its name if it is whole, and removes it if not.
pub(super) fn publishing(hidden: PathBuf, target: PathBuf, sync: bool) -> Finish {
    Box::new(move |whole| if whole { publish(&hidden, &target, sync) } else { remove(&hidden) })
}

pub(super) fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|source| failed(path, "remove", source))
}

/// Gives a finished file its name. It keeps the mode of the file that it replaces. An empty
/// file is filled instead, since another program may have it open, such as a temporary file.
pub(super) fn publish(hidden: &Path, target: &Path, sync: bool) -> Result<()> {
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

/// Returns the file that is to be written or replaced: behind a symbolic link it is that
/// file, not the link. What a file cannot take the place of is refused, and so is a path into
/// a folder that does not exist.
pub(super) fn target_of(path: &Path) -> Result<PathBuf> {
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

/// Follows links to a path without a file.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&target) else { return Ok(target) };
        target = folder_of(&target).join(next);
    }
    Err(io::Error::other("too many levels of links"))
}

fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_path_buf().into_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

/// Rejects a file that no writer has left: a link would lead to someone else's file.
fn check_own(path: &Path) -> Result<()> {
    let found = fs::symlink_metadata(path).map_err(|source| failed(path, "open", source))?;
    if found.is_file() && found.nlink() == 1 {
        return Ok(());
    }
    Err(in_the_way(path))
}

/// Returns the error for a file that has the name of a hidden one, but is not.
pub(super) fn in_the_way(path: &Path) -> Error {
    Error::format(name(path), "this file is in the way of the new one; move it away")
}

/// Opens an empty file, in place of one that a writer which was killed has left.
pub(super) fn start_over(path: &Path) -> Result<AppendFile> {
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

/// Rejects pipes and devices, some of which would block forever.
pub(super) fn check_regular(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            Err(Error::format(name(path), "not a regular file"))
        }
        _ => Ok(()),
    }
}

pub(super) fn reading(path: &Path) -> Result<Arc<dyn ReadAt>> {
    open::reading(&path.into())
}

pub(super) fn name(path: &Path) -> String {
    path.display().to_string()
}

pub(super) fn failed(path: &Path, action: &'static str, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::WouldBlock {
        return Error::Locked { path: name(path) };
    }
    Error::storage(name(path), action, source)
}
