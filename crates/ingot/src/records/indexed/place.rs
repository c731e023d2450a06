//! Where the index of a file is kept.

use std::env;
use std::path::{Path, PathBuf};

use crate::format::riegeli::hash;
use crate::storage::Location;

/// The folder beside the data.
const BESIDE: &str = ".ingot-index";

/// The environment variable with a folder for all indexes.
const FOLDER: &str = "INGOT_INDEX_DIR";

/// Characters of the file's name in that of its index.
const NAME_MAX: usize = 100;

/// Returns the files that may hold the index of a file, the best first. `key` tells apart what
/// is indexed in which way; `folder` is where users want all indexes.
pub fn candidates(location: &Location, key: &str, folder: Option<&Path>) -> Vec<PathBuf> {
    if let Some(folder) = chosen(folder) {
        return vec![folder.join(far_name(location, key))];
    }
    let cached = cache().map(|cache| cache.join(far_name(location, key)));
    let beside = match location {
        Location::Path(path) => path.parent().map(|parent| parent.join(BESIDE)),
        Location::Url(_) => None,
    };
    beside.map(|beside| beside.join(near_name(location, key))).into_iter().chain(cached).collect()
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

/// The name beside the data, where no other file has the name.
fn near_name(location: &Location, key: &str) -> String {
    let name = match location {
        Location::Path(path) => path.file_name().unwrap_or_default().as_encoded_bytes(),
        Location::Url(url) => url.as_bytes(),
    };
    let text = [name, b"\0", key.as_bytes()].concat();
    format!("{}.{:016x}.index", shown(location), hash(&text))
}

/// The name in a folder for all, where files of one name are told apart by their folders.
fn far_name(location: &Location, key: &str) -> String {
    let whole = match location {
        Location::Path(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        Location::Url(url) => PathBuf::from(url),
    };
    let text = [whole.as_os_str().as_encoded_bytes(), b"\0", key.as_bytes()].concat();
    format!("{}.{:016x}.index", shown(location), hash(&text))
}

fn shown(location: &Location) -> String {
    let name = match location {
        Location::Path(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        Location::Url(url) => url.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    let kept = name.chars().map(|one| if one.is_control() { '_' } else { one });
    let mut shown = String::new();
    for one in kept {
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
    fn an_index_is_beside_its_file_or_in_the_folder_that_is_asked_for() {
        let location = Location::Path(PathBuf::from("/data/a.tar"));
        let beside = &candidates(&location, "k", None)[0];
        assert_eq!(beside.parent(), Some(Path::new("/data/.ingot-index")));
        let other = Location::Path(PathBuf::from("/other/a.tar"));
        let folder = Path::new("/indexes");
        let [here] = &candidates(&location, "k", Some(folder))[..] else { panic!("one") };
        assert_eq!(here.parent(), Some(folder));
        assert_ne!(candidates(&other, "k", Some(folder))[0], *here);
        assert_ne!(candidates(&location, "l", Some(folder))[0], *here);
        let long = Location::Path(PathBuf::from("/data").join("x".repeat(250)));
        assert!(candidates(&long, "k", None)[0].file_name().unwrap().len() < 200);
    }
}
