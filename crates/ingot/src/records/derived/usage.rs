//! Decompressed copies in the user's cache directory: which of them are in use, and how many bytes
//! they may take.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::folder::FolderLock;
use super::place::{COPY, COPY_NOTE, cache, folder_of, publish};
use crate::format::riegeli::hash;
use crate::limit;
use crate::records::publish::failed;
use crate::storage::opening;

/// The environment variable that says how many bytes copies may take.
const BYTES: &str = "INGOT_CACHE_BYTES";

/// How many bytes they may take otherwise: 64 GiB.
const BYTES_MAX: u64 = 64 << 30;

/// The folder in the cache with a file for each set of copies in use. A process that uses them has a
/// shared lock on the file, which lists them; its children have the lock too.
const USED: &str = "in-use";

/// What separates the copies in this file.
const END: char = '\0';

/// How often the lock of that folder is tried, which others have for a moment only.
const TRIES: usize = 250;

/// Says for as long as it lives that copies are in use.
#[derive(Debug)]
pub struct Use {
    place: PathBuf,
    file: Option<File>,
}

impl Drop for Use {
    fn drop(&mut self) {
        drop(self.file.take());
        if let Some(_lock) = FolderLock::brief(folder_of(&self.place), 1) {
            remove_unused(&self.place);
        }
    }
}

impl Use {
    /// Says that copies are about to be used, whether they are there or not. None if none of them
    /// is in the cache, or files cannot be locked there.
    pub fn of<'a>(copies: impl Iterator<Item = &'a PathBuf>) -> Option<Arc<Use>> {
        let cache = cache()?;
        let used = copies.filter(|copy| copy.starts_with(&cache)).map(|copy| copy.to_str());
        let list: String = used.collect::<Option<Vec<&str>>>()?.join(&END.to_string());
        if list.is_empty() {
            return None;
        }
        let folder = cache.join(USED);
        fs::create_dir_all(&folder).ok()?;
        let _lock = FolderLock::brief(&folder, TRIES)?;
        let place = folder.join(format!("{:016x}", hash(list.as_bytes())));
        if !fs::read_to_string(&place).is_ok_and(|known| known == list) {
            let write = |hidden: &Path| {
                fs::write(hidden, &list).map_err(|source| failed(hidden, "write", source))
            };
            publish(&place, write).ok()?;
        }
        let file = opening(|| File::open(&place)).ok()?;
        file.try_lock_shared().ok()?;
        Some(Arc::new(Use { place, file: Some(file) }))
    }
}

/// Removes the list of copies at `place` unless some process uses them; returns whether it did.
fn remove_unused(place: &Path) -> bool {
    let free = opening(|| File::open(place)).is_ok_and(|file| file.try_lock().is_ok());
    free && fs::remove_file(place).is_ok()
}

/// Returns the copies that some process uses.
pub fn in_use() -> HashSet<PathBuf> {
    let folder = cache().map(|cache| cache.join(USED)).unwrap_or_default();
    FolderLock::brief(&folder, TRIES).map_or_else(HashSet::new, |_lock| listed_in(&folder))
}

/// As [`in_use`], under the lock of the folder. Lists that no process has are removed.
fn listed_in(folder: &Path) -> HashSet<PathBuf> {
    let mut used = HashSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let place = entry.path();
        if let Ok(list) = fs::read_to_string(&place)
            && !remove_unused(&place)
        {
            used.extend(list.split(END).map(PathBuf::from));
        }
    }
    used
}

/// Removes copies from the cache until they take no more space than they may: those first that were
/// not used for the longest time, and none that is in use or in `kept`.
pub fn shrink(kept: &[PathBuf]) {
    let Some(cache) = cache() else { return };
    let mut copies = copies_in(&cache);
    let mut bytes: u64 = copies.iter().map(|(_, _, bytes)| bytes).sum();
    let max = bytes_max().unwrap_or(BYTES_MAX);
    if bytes <= max {
        return;
    }
    let folder = cache.join(USED);
    let Some(_lock) = FolderLock::brief(&folder, TRIES) else { return };
    let used = listed_in(&folder);
    copies.sort();
    for (_, copy, len) in copies {
        if bytes <= max {
            break;
        }
        if !used.contains(&copy) && !kept.contains(&copy) && remove(&copy).is_ok() {
            bytes -= len;
        }
    }
}

fn remove(copy: &Path) -> io::Result<()> {
    let _ = fs::remove_file(copy.with_extension(COPY_NOTE));
    fs::remove_file(copy)
}

/// Returns when each copy was used, where it is, and its size.
fn copies_in(cache: &Path) -> Vec<(SystemTime, PathBuf, u64)> {
    let folders = fs::read_dir(cache).into_iter().flatten().flatten();
    let files = folders.filter_map(|folder| fs::read_dir(folder.path()).ok()).flatten().flatten();
    let copies = files.filter(|file| file.path().extension().is_some_and(|end| end == COPY));
    let about = copies.filter_map(|file| {
        let (place, found) = (file.path(), file.metadata().ok()?);
        // The note about a copy is written, or its time is set, when the copy is used.
        let note = fs::metadata(place.with_extension(COPY_NOTE));
        let used = note.and_then(|note| note.modified()).or_else(|_| found.modified()).ok()?;
        Some((used, place, found.len()))
    });
    about.collect()
}

fn bytes_max() -> Option<u64> {
    limit::asked(BYTES).ok().flatten()
}

/// Fails, and says why, if the environment variable is not a number of bytes.
pub fn check_environment() -> Result<(), String> {
    limit::asked(BYTES).map(drop)
}
