//! The engine's errors as Python exceptions of `ingot.errors`.

use std::io;

use ingot::Error;
use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyIndexError, PyIsADirectoryError, PyMemoryError,
    PyPermissionError, PyRuntimeError, PyValueError,
};

pyo3::import_exception!(ingot.errors, ClosedError);
pyo3::import_exception!(ingot.errors, CorruptFileError);
pyo3::import_exception!(ingot.errors, FormatError);
pyo3::import_exception!(ingot.errors, StorageError);
pyo3::import_exception!(ingot.errors, UnfinishedFileError);
pyo3::import_exception!(ingot.errors, UnsupportedVersionError);

/// Returns the exception for an error of the engine.
pub fn raised(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Format { path, .. } => FormatError::new_err((message, path)),
        Error::Version { path, found, supported } => {
            UnsupportedVersionError::new_err((message, path, found, supported))
        }
        Error::Corrupt { path, record, offset, .. } => {
            CorruptFileError::new_err((message, path, record, offset))
        }
        Error::Unfinished { path, rows, offset, .. } => {
            UnfinishedFileError::new_err((message, path, rows, offset))
        }
        Error::Storage { path, record, offset, source, .. } => {
            storage(message, path, record, offset, &source)
        }
        Error::Locked { path } => {
            StorageError::new_err((message, path, None::<u64>, None::<u64>, LOCKED))
        }
        Error::Closed { path, .. } => ClosedError::new_err((message, path)),
        Error::Index { .. } => PyIndexError::new_err(message),
        Error::Invalid(_) => PyValueError::new_err(message),
        Error::Stopped => PyRuntimeError::new_err(message),
        Error::Memory { .. } => PyMemoryError::new_err(message),
    }
}

const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const EISDIR: i32 = 21;

/// `EAGAIN`: what a lock that is held by another answers.
const LOCKED: i32 = 11;

/// A missing or forbidden file is the builtin exception; the rest are ours.
fn storage(
    message: String,
    path: String,
    record: Option<u64>,
    offset: u64,
    source: &io::Error,
) -> PyErr {
    let errno = source.raw_os_error();
    let text = source.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    let builtin = |code: i32| (errno.unwrap_or(code), text, path.clone());
    match source.kind() {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(builtin(ENOENT)),
        io::ErrorKind::AlreadyExists => PyFileExistsError::new_err(builtin(EEXIST)),
        io::ErrorKind::PermissionDenied => PyPermissionError::new_err(builtin(EACCES)),
        io::ErrorKind::IsADirectory => PyIsADirectoryError::new_err(builtin(EISDIR)),
        io::ErrorKind::InvalidInput if errno.is_none() => PyValueError::new_err(message),
        _ => StorageError::new_err((message, path, record, Some(offset), errno)),
    }
}
