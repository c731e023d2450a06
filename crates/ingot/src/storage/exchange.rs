//! Two names that trade places in one step.

use std::io;
use std::path::Path;

/// Exchanges what two paths name, files or directories. Both names always exist, before or
/// after. Returns whether that was done: some file systems cannot.
///
/// # Errors
///
/// One of the paths does not exist, or the system refuses for another reason.
#[cfg(target_os = "linux")]
pub fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(source) => Err(source.into()),
    }
}

/// Exchanges nothing: this system has no call for it.
///
/// # Errors
///
/// None.
#[cfg(not(target_os = "linux"))]
pub fn exchange(_one: &Path, _other: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_and_a_directory_trade_places() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "a file").unwrap();
        fs::create_dir(&other).unwrap();
        if exchange(&one, &other).unwrap() {
            assert!(one.is_dir());
            assert_eq!(fs::read(&other).unwrap(), b"a file");
        } else {
            assert!(other.is_dir());
        }
        fs::remove_dir_all(folder.path().join("one")).or_else(|_| fs::remove_file(&one)).unwrap();
        assert!(exchange(&one, &other).is_err() || cfg!(not(target_os = "linux")));
    }
}
