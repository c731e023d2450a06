//! Removing what was made of files that are gone, or of what they were before.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use super::find::{About, Target};
use super::place::NAME_MAX;
use crate::records::container::Container as _;
use crate::records::ingot::path;
use crate::records::open::Mode;
use crate::storage::Location;

/// The endings of what is made of files.
const EXTENSIONS: [&str; 5] = ["index", "sum", "fields", "unpacked", "copy"];

/// Removes from a folder what belongs to files that are gone from the folder of `targets`, and
/// the indexes of what `targets` were before. What cannot be removed stays.
pub fn remove_stale(folder: &Path, targets: &[&Target]) {
    let parent = match targets.first().map(|target| &target.home) {
        Some(Location::Path(path)) => path.parent(),
        _ => None,
    };
    let (Some(parent), Ok(entries)) = (parent, fs::read_dir(folder)) else { return };
    let named = |target: &Target| match &target.home {
        Location::Path(path) => Some(path.file_name()?.to_str()?.to_owned()),
        Location::Url(_) => None,
    };
    let by_name: HashMap<String, &Target> =
        targets.iter().filter_map(|&target| Some((named(target)?, target))).collect();
    for place in entries.flatten().map(|entry| entry.path()) {
        let Some((name, extension)) = parts(&place) else { continue };
        let is_stale = match by_name.get(name) {
            None => is_gone(&parent.join(name)),
            Some(target) => {
                extension == "index"
                    && !target.places.read.contains(&place)
                    && !is_of(&place, target)
            }
        };
        if is_stale {
            let _ = fs::remove_file(&place);
            let _ = fs::remove_file(place.with_extension("sum"));
        }
    }
}

/// Returns the name of the file that something was made of, and its ending; none if it is
/// something else, or the name is not known whole.
fn parts(place: &Path) -> Option<(&str, &str)> {
    let (front, extension) = place.file_name()?.to_str()?.rsplit_once('.')?;
    let (name, hash) = front.rsplit_once('.')?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|one| one.is_ascii_hexdigit());
    let is_whole = name.len() + 4 <= NAME_MAX && !name.contains(char::REPLACEMENT_CHARACTER);
    (EXTENSIONS.contains(&extension) && is_hash && is_whole && !name.starts_with('.'))
        .then_some((name, extension))
}

fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether an index was made of the file as it is, in whatever way.
fn is_of(place: &Path, target: &Target) -> bool {
    let Ok(index) = path::open(place, Mode::Whole) else { return false };
    let about = serde_json::from_str::<About>(index.metadata());
    about.is_ok_and(|about| {
        let (then, now) = (&about.data, &target.stamp);
        (then.bytes, then.mtime_ns) == (now.bytes, now.mtime_ns)
    })
}
