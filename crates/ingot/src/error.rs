//! The one error type of the engine.

use std::io;
use std::sync::Arc;

/// What can go wrong, with the place where it did.
///
/// Messages are lower case, name the file first, and say what was expected and
/// what was found.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The file is not an Ingot file, or its bytes break the specification.
    #[error("{path}: {reason}")]
    Format {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The file was written by a version of the format this build cannot read.
    #[error("{path}: format version {found} is not supported, this build reads up to {supported}")]
    Version {
        /// The file.
        path: String,
        /// The major version in the file.
        found: u16,
        /// The newest major version this build reads.
        supported: u16,
    },

    /// A checksum, a bound or a length does not hold: the bytes are damaged.
    #[error("{path}: {}offset {offset}: {reason}", record_prefix(.record))]
    Corrupt {
        /// The file.
        path: String,
        /// The row the bytes belong to, where they belong to one.
        record: Option<u64>,
        /// Where in the file the damaged bytes begin.
        offset: u64,
        /// What does not hold.
        reason: String,
    },

    /// The file does not end in a closing trailer.
    #[error("{path}: the file is not finished (offset {offset}: {reason}): {}", advice(*.rows, *.writing))]
    Unfinished {
        /// The file.
        path: String,
        /// Rows that are committed and can be read.
        rows: u64,
        /// Whether a writer has the file open.
        writing: bool,
        /// Where the closing trailer was looked for.
        offset: u64,
        /// What was found there.
        reason: String,
    },

    /// The operating system or the device refused a read or a write.
    #[error("{path}: {}offset {offset}: {action} failed: {source}", record_prefix(.record))]
    Storage {
        /// The file.
        path: String,
        /// The row that was wanted, where there was one.
        record: Option<u64>,
        /// The offset of the read or write.
        offset: u64,
        /// What was attempted.
        action: &'static str,
        /// The cause.
        source: Arc<io::Error>,
    },

    /// Another writer holds the file.
    #[error("{path}: another writer has this file open")]
    Locked {
        /// The file.
        path: String,
    },

    /// The reader or writer was closed.
    #[error("{path}: the {what} is closed")]
    Closed {
        /// The file.
        path: String,
        /// `reader` or `writer`.
        what: &'static str,
    },

    /// A row number is not in the file.
    #[error("{path}: index {index} is out of range for {}", counted(*.rows, "row"))]
    Index {
        /// The file.
        path: String,
        /// The index as it was given.
        index: i64,
        /// The number of rows.
        rows: u64,
    },

    /// An argument does not fit.
    #[error("{0}")]
    Invalid(String),

    /// The callback that reports progress has stopped the work.
    #[error("the work was stopped")]
    Stopped,

    /// Memory for a record could not be allocated.
    #[error("{path}: {}out of memory for {bytes} bytes", record_prefix(.record))]
    Memory {
        /// The file.
        path: String,
        /// The row that was wanted, where there was one.
        record: Option<u64>,
        /// How much was asked for.
        bytes: u64,
    },
}

/// The engine's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns a count and its noun in words, such as `1 row` or `1,000 rows`.
pub fn counted(count: u64, noun: &str) -> String {
    let digits = count.to_string();
    let groups: Vec<String> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| String::from_utf8_lossy(group).into_owned())
        .collect();
    format!("{} {noun}{}", groups.join(","), if count == 1 { "" } else { "s" })
}

fn advice(rows: u64, writing: bool) -> String {
    let committed = match rows {
        0 => "nothing is committed".to_owned(),
        1 => "1 row is committed".to_owned(),
        _ => format!("{} are committed", counted(rows, "row")),
    };
    if writing {
        return format!(
            "a writer is still writing it, and {committed} so far; wait until it is closed, or \
             open it with partial=True to read what is committed"
        );
    }
    if rows == 0 {
        return format!(
            "{committed}; if it is a truncated copy, copy it again; otherwise call \
             ingot.recover to make it an empty file"
        );
    }
    format!(
        "{committed}; open it with partial=True to read them, or call ingot.recover to make it \
         whole"
    )
}

fn record_prefix(record: &Option<u64>) -> String {
    record.map_or_else(String::new, |record| format!("record {record}: "))
}

impl Error {
    /// Returns the error for a file that is not what it should be.
    pub fn format(path: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Format { path: path.into(), reason: reason.into() }
    }

    /// Returns the error for a call of the operating system that concerns a whole file.
    pub fn storage(path: impl Into<String>, action: &'static str, source: io::Error) -> Error {
        Error::Storage { path: path.into(), record: None, offset: 0, action, source: source.into() }
    }

    /// Returns the error for memory that is not available.
    pub fn memory(path: impl Into<String>, bytes: u64) -> Error {
        Error::Memory { path: path.into(), record: None, bytes }
    }

    /// Returns where in the file it went wrong, if that is known.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Error::Corrupt { offset, .. }
            | Error::Unfinished { offset, .. }
            | Error::Storage { offset, .. } => Some(*offset),
            _ => None,
        }
    }

    /// Returns the error with the row it concerns filled in, where it has a place for one.
    #[must_use]
    pub fn at_record(mut self, row: u64) -> Self {
        match &mut self {
            Error::Corrupt { record, .. }
            | Error::Storage { record, .. }
            | Error::Memory { record, .. } => *record = Some(row),
            _ => {}
        }
        self
    }

    /// Returns the error of a row with the number that `number` gives the row elsewhere.
    #[must_use]
    pub fn renumbered(mut self, number: impl FnOnce(u64) -> u64) -> Self {
        match &mut self {
            Error::Corrupt { record: Some(record), .. }
            | Error::Storage { record: Some(record), .. }
            | Error::Memory { record: Some(record), .. } => *record = number(*record),
            _ => {}
        }
        self
    }
}

/// Returns an I/O error that says the same.
pub(crate) fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
