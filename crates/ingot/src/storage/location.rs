//! Where a file is: a local path or an address in a store.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Delayed, Guard, Identity, LocalFile, ReadAt};

/// The environment variable that delays every read, in milliseconds, for tests and benchmarks.
const DELAY: &str = "INGOT_DELAY_MS";

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// On a local file system.
    Path(PathBuf),
    /// In a store, such as `s3://bucket/name`.
    Url(String),
}

impl From<&Path> for Location {
    /// Takes `scheme://` for an address, and anything else for a path.
    fn from(path: &Path) -> Location {
        match path.to_str() {
            Some(text) if is_url(text) => Location::Url(text.to_owned()),
            _ => Location::Path(path.to_path_buf()),
        }
    }
}

impl Location {
    /// Returns what errors call it.
    pub fn name(&self) -> String {
        match self {
            Location::Path(path) => path.display().to_string(),
            Location::Url(url) => url.clone(),
        }
    }

    /// Returns the last part of it, in lower case.
    pub fn file_name(&self) -> String {
        let name = match self {
            Location::Path(path) => path.file_name().unwrap_or_default().to_string_lossy(),
            Location::Url(url) => url.rsplit('/').next().unwrap_or_default().into(),
        };
        name.to_ascii_lowercase()
    }

    /// Returns what distinguishes the file, as it is, from others.
    pub fn identity(&self) -> io::Result<Identity> {
        match self {
            Location::Path(path) => Identity::at(path),
            Location::Url(_) => self.open()?.identity(),
        }
    }

    /// Opens the file for reading.
    pub fn open(&self) -> io::Result<Arc<dyn ReadAt>> {
        self.open_with(None)
    }

    /// As [`Location::open`]; a guard is kept for as long as the file is open.
    pub fn open_with(&self, guard: Option<Guard>) -> io::Result<Arc<dyn ReadAt>> {
        let Location::Path(path) = self else {
            let why = "unsupported kind of store; copy the file to a local disk";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        };
        let file = LocalFile::open(path)?;
        let file = match guard {
            Some(guard) => file.with_guard(guard),
            None => file,
        };
        match env::var_os(DELAY) {
            None => Ok(Arc::new(file)),
            Some(delay) => {
                let delay = delay.to_str().and_then(|text| text.parse().ok());
                let delay = delay.ok_or_else(|| {
                    let why = format!("{DELAY}: expected a number of milliseconds");
                    io::Error::new(io::ErrorKind::InvalidInput, why)
                })?;
                Ok(Arc::new(Delayed::new(file, Duration::from_millis(delay))))
            }
        }
    }
}

fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|one| one.is_ascii_alphanumeric() || "+.-".contains(one))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_not_a_path() {
        for (text, is_address) in
            [("s3://a/b.ingot", true), ("/a/b", false), ("c://x", false), ("a b://x", false)]
        {
            let location = Location::from(Path::new(text));
            assert_eq!(matches!(location, Location::Url(_)), is_address, "{text}");
            assert_eq!(location.name(), text);
        }
        let error = Location::from(Path::new("s3://a/b.ingot")).open().err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
