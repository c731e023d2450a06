//! Where derived files are, what they are called, and how they appear there.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::format::ingot::Schema;
use crate::format::riegeli::hash;
use crate::records::container::Container as _;
use crate::records::ingot::{Compression, Options, path};
use crate::records::open::Mode;
use crate::records::publish::failed;
use crate::storage::{Location, opening};

/// The folder beside the data.
const BESIDE: &str = ".ingot-index";

/// The environment variable with a folder for all indexes.
const FOLDER: &str = "INGOT_INDEX_DIR";

/// The environment variable that says whether indexes are written beside the data.
const WHERE: &str = "INGOT_INDEX";

/// Bytes of the name of the original in that of a derived file.
const NAME_MAX: usize = 100;

/// Characters of the name of a file in the one that it has while it is hidden.
const HIDDEN_MAX: usize = 150;

/// How the names of derived files end.
const EXTENSIONS: [&str; 5] = ["index", "sum", "fields", COPY, COPY_NOTE];
pub const COPY: &str = "unpacked";
pub const COPY_NOTE: &str = "copy";

/// How the names of hidden files end.
const HIDDEN: &str = ".part";

/// The files that may be a derived one, the best first.
#[derive(Debug, Default, Clone)]
pub struct Places {
    /// Where it is looked for.
    pub read: Vec<PathBuf>,
    /// Where it is made: in the first folder that can be written to.
    pub write: Vec<PathBuf>,
}

impl Places {
    /// Returns where what is made of a file is. `key` says what is made in which way, and
    /// `extension` how its name ends; `folder` is where users want all derived files.
    pub fn of(location: &Location, key: &str, extension: &str, folder: Option<&Path>) -> Places {
        let name = name_of(location, key, extension);
        if let Some(folder) = chosen(folder) {
            let place = home(&folder, location).join(name);
            return Places { read: vec![place.clone()], write: vec![place] };
        }
        let cached = cache().map(|cache| home(&cache, location).join(&name));
        let beside = match location {
            Location::Path(path) => path.parent().map(|parent| parent.join(BESIDE).join(&name)),
            Location::Url(_) => None,
        };
        let read: Vec<PathBuf> = beside.into_iter().chain(cached.clone()).collect();
        let write = if is_beside() { read.clone() } else { cached.into_iter().collect() };
        Places { read, write }
    }

    /// As [`Places::of`], of what is never beside its original.
    pub fn apart(location: &Location, key: &str, extension: &str, folder: Option<&Path>) -> Places {
        let folder = chosen(folder).or_else(cache);
        let place =
            |folder: PathBuf| home(&folder, location).join(name_of(location, key, extension));
        let places: Vec<PathBuf> = folder.map(place).into_iter().collect();
        Places { read: places.clone(), write: places }
    }

    /// Returns the same places for files with another ending.
    #[must_use]
    pub fn with_extension(&self, extension: &str) -> Places {
        let renamed = |places: &[PathBuf]| {
            places.iter().map(|place| place.with_extension(extension)).collect()
        };
        Places { read: renamed(&self.read), write: renamed(&self.write) }
    }

    /// Returns the notes that are here: JSON with a checksum, in an Ingot file without rows.
    /// Those that are damaged or of another kind are left out.
    pub fn notes<T: DeserializeOwned>(&self) -> impl Iterator<Item = T> {
        self.read.iter().filter_map(|place| {
            let kept = path::open(place, Mode::Whole).ok()?;
            serde_json::from_str(kept.metadata()).ok()
        })
    }

    /// Writes a note, if that is possible: what it says can be found out again.
    pub fn save_note(&self, note: &impl Serialize) {
        let text = serde_json::to_string(note).expect("these are plain values");
        let _ = self.write.iter().find(|place| write_note(place, &text).is_ok());
    }

    /// Makes the folder for a derived file, the first that can be written to, and returns the
    /// place of the file in it. `title` is what users call the file, `name` its original.
    pub fn prepare(&self, title: &str, name: &str) -> Result<&Path> {
        let mut refused = None;
        for place in &self.write {
            let folder = folder_of(place);
            match fs::create_dir_all(folder).and_then(|()| try_folder(folder)) {
                Ok(()) => return Ok(place),
                Err(source) => refused = Some((folder, source)),
            }
        }
        let Some((folder, source)) = refused else {
            let reason = format!("no folder for its {title}; pass index_dir");
            return Err(Error::format(name, reason));
        };
        let path = format!(
            "{} (the folder for the {title} of {name}; INGOT_INDEX_DIR names another)",
            folder.display()
        );
        Err(Error::storage(path, "write", source))
    }
}

fn write_note(place: &Path, text: &str) -> Result<()> {
    let folder = folder_of(place);
    fs::create_dir_all(folder).map_err(|source| failed(folder, "create", source))?;
    let options = Options { compression: Compression::None, level: 0, sync: false };
    publish(place, |hidden| path::create(hidden, Schema::records(), text, options)?.close())
}

/// Fails if no file can be made in a folder.
fn try_folder(folder: &Path) -> io::Result<()> {
    let probe = temporary(&folder.join("probe"));
    opening(|| File::create(&probe))?;
    fs::remove_file(probe)
}

pub fn folder_of(place: &Path) -> &Path {
    place.parent().unwrap_or(Path::new("."))
}

/// Makes a file under a hidden name, and lets it appear at its place if that succeeds.
pub fn publish<T>(place: &Path, make: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let hidden = temporary(place);
    let published = make(&hidden).and_then(|made| {
        fs::rename(&hidden, place).map_err(|source| failed(place, "rename", source))?;
        Ok(made)
    });
    if published.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    published
}

/// Makes a derived file readable only by users who may read the original.
pub fn protect(derived: &Path, original: &Location) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let Location::Path(original) = original else { return Ok(()) };
    let (original, own) = (fs::metadata(original)?, fs::metadata(derived)?);
    // The group of the original may be another one.
    let groups = if original.gid() == own.gid() { 0o660 } else { 0o600 };
    let others = if original.mode() & 0o004 == 0 { groups } else { 0o666 };
    let mode = own.mode() & others & (original.mode() | 0o600);
    if mode == own.mode() & 0o777 {
        return Ok(());
    }
    fs::set_permissions(derived, fs::Permissions::from_mode(mode))
}

/// Returns a hidden name beside `place` that no other process or thread uses.
pub fn temporary(place: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut random = [0; 8];
    // Without randomness the process and the number make names unique.
    let _ = getrandom::fill(&mut random);
    let id = u64::from_le_bytes(random);
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let process = std::process::id();
    place.with_file_name(format!(".{name:.HIDDEN_MAX$}.{process}-{number}-{id:016x}{HIDDEN}"))
}

/// Returns whether a file has a name that [`temporary`] gives.
pub fn is_temporary(name: &str) -> bool {
    let made = name.strip_prefix('.').and_then(|name| name.strip_suffix(HIDDEN));
    let Some((_, id)) = made.and_then(|name| name.rsplit_once('.')) else { return false };
    let parts: Vec<&str> = id.split('-').collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    matches!(parts[..], [process, number, random]
        if is_number(process) && is_number(number) && is_hash(random))
}

/// Returns whether a part of a name is the hash in it.
fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|one| one.is_ascii_hexdigit())
}

/// Returns the name of the original in that of a derived file, and how that ends; none if it is
/// something else, or the name is not there whole.
pub fn parts_of(place: &Path) -> Option<(&str, &str)> {
    let (front, extension) = place.file_name()?.to_str()?.rsplit_once('.')?;
    let (name, hash) = front.rsplit_once('.')?;
    let is_whole = name.len() + 4 <= NAME_MAX && !name.contains(char::REPLACEMENT_CHARACTER);
    (EXTENSIONS.contains(&extension) && is_hash(hash) && is_whole && !name.starts_with('.'))
        .then_some((name, extension))
}

/// Fails, and says why, if the environment variable that says where indexes are written is
/// invalid.
pub fn check_environment() -> Result<(), String> {
    match env::var_os(WHERE).unwrap_or_default() {
        text if ["", "beside", "cache"].iter().any(|known| text == *known) => Ok(()),
        other => Err(format!("{WHERE}={}: expected beside or cache", other.display())),
    }
}

fn is_beside() -> bool {
    env::var_os(WHERE).is_some_and(|text| text == "beside")
}

/// Returns the folder that users have chosen for all that can be made again, by an argument or
/// by the environment.
fn chosen(folder: Option<&Path>) -> Option<PathBuf> {
    let given = folder.map(Path::to_path_buf).or_else(|| env::var_os(FOLDER).map(PathBuf::from));
    given.filter(|folder| !folder.as_os_str().is_empty())
}

/// Returns the folder for what can be made again: `$XDG_CACHE_HOME/ingot`, or
/// `~/.cache/ingot`.
pub fn cache() -> Option<PathBuf> {
    let given = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let given = given.filter(|cache| cache.is_absolute());
    let home = || env::home_dir().map(|home| home.join(".cache"));
    Some(given.or_else(home)?.join("ingot"))
}

/// Returns the part of a folder for all that is for the files that are beside this one.
fn home(folder: &Path, location: &Location) -> PathBuf {
    let text = match location {
        Location::Path(path) => {
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            whole.parent().unwrap_or(Path::new("/")).as_os_str().as_encoded_bytes().to_vec()
        }
        Location::Url(url) => url.rsplit_once('/').map_or("", |(front, _)| front).into(),
    };
    folder.join(format!("{:016x}", hash(&text)))
}

/// Returns the name of what belongs to a file, where no other file has the name of that one.
fn name_of(location: &Location, key: &str, extension: &str) -> String {
    let name = file_name(location);
    let text = [name.as_encoded_bytes(), b"\0", key.as_bytes()].concat();
    format!("{}.{:016x}.{extension}", shown(&name.to_string_lossy()), hash(&text))
}

fn file_name(location: &Location) -> &std::ffi::OsStr {
    match location {
        Location::Path(path) => path.file_name().unwrap_or_default(),
        Location::Url(url) => url.rsplit('/').next().unwrap_or_default().as_ref(),
    }
}

/// Returns the beginning of the name of what belongs to a file of this name.
fn shown(name: &str) -> String {
    let mut shown = String::new();
    for one in
        name.chars().map(|one| if one.is_control() { char::REPLACEMENT_CHARACTER } else { one })
    {
        if shown.len() + one.len_utf8() > NAME_MAX {
            break;
        }
        shown.push(one);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_in_the_cache_or_in_the_folder_that_is_asked_for() {
        let location = Location::Path(PathBuf::from("/data/a.tar"));
        let places = Places::of(&location, "k", "index", None);
        assert_eq!(places.read[0].parent(), Some(Path::new("/data/.ingot-index")));
        assert!(!places.write.contains(&places.read[0]));
        let folder = Path::new("/indexes");
        let [here] = &Places::of(&location, "k", "index", Some(folder)).write[..] else {
            panic!("one")
        };
        assert!(here.starts_with(folder));
    }

    #[test]
    fn no_two_files_or_ways_to_index_them_have_one_index() {
        let place = |path: &str, key: &str| {
            let location = Location::Path(PathBuf::from(path));
            Places::of(&location, key, "index", Some(Path::new("/indexes"))).write[0].clone()
        };
        let here = place("/data/a.tar", "k");
        assert_ne!(place("/other/a.tar", "k"), here);
        assert_ne!(place("/data/b.tar", "k"), here);
        assert_ne!(place("/data/a.tar", "l"), here);
        let long = place(&format!("/data/{}", "x".repeat(250)), "k");
        assert_ne!(long, place(&format!("/data/{}", "x".repeat(251)), "k"));
        assert!(long.file_name().unwrap().len() < 200);
    }
}
