//! Where the index of a file is kept.

use std::env;
use std::path::{Path, PathBuf};

use crate::format::riegeli::hash;
use crate::storage::Location;

/// The folder beside the data.
const BESIDE: &str = ".ingot-index";

/// The environment variable with a folder for all indexes.
const FOLDER: &str = "INGOT_INDEX_DIR";

/// The environment variable that says whether indexes are written beside the data.
const WHERE: &str = "INGOT_INDEX";

/// Bytes of the file's name in that of its index.
pub const NAME_MAX: usize = 100;

/// The files that may hold the index of a file, the best first.
#[derive(Debug, Default, Clone)]
pub struct Places {
    /// Where it is looked for.
    pub read: Vec<PathBuf>,
    /// Where it is written.
    pub write: Vec<PathBuf>,
}

impl Places {
    /// Returns where the index of a file is. `key` tells apart what is indexed in which way;
    /// `folder` is where users want all indexes.
    pub fn of(location: &Location, key: &str, folder: Option<&Path>) -> Places {
        let name = name_of(location, key, "index");
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

    /// Returns the same places for files with another ending.
    #[must_use]
    pub fn with_extension(&self, extension: &str) -> Places {
        let renamed = |places: &[PathBuf]| {
            places.iter().map(|place| place.with_extension(extension)).collect()
        };
        Places { read: renamed(&self.read), write: renamed(&self.write) }
    }
}

/// Fails, and says why, if the environment variable that says where indexes are written makes no
/// sense.
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
pub fn chosen(folder: Option<&Path>) -> Option<PathBuf> {
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
pub fn home(folder: &Path, location: &Location) -> PathBuf {
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
pub fn name_of(location: &Location, key: &str, extension: &str) -> String {
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
    for one in name.chars().map(|one| if one.is_control() { '_' } else { one }) {
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
        let places = Places::of(&location, "k", None);
        assert_eq!(places.read[0].parent(), Some(Path::new("/data/.ingot-index")));
        assert!(!places.write.contains(&places.read[0]));
        let folder = Path::new("/indexes");
        let [here] = &Places::of(&location, "k", Some(folder)).write[..] else { panic!("one") };
        assert!(here.starts_with(folder));
    }

    #[test]
    fn no_two_files_or_ways_to_index_them_have_one_index() {
        let place = |path: &str, key: &str| {
            let location = Location::Path(PathBuf::from(path));
            Places::of(&location, key, Some(Path::new("/indexes"))).write[0].clone()
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
