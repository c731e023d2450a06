//! Bytes to structs and back, one module per container, and one for arrays. Nothing here does I/O.

pub mod array;
pub mod arrayrecord;
pub mod bag;
pub mod checksum;
pub mod example;
pub mod ffrecord;
pub mod foreign;
pub mod hdf5;
pub mod ingot;
pub mod lines;
pub mod manifest;
pub mod parquet;
pub mod riegeli;

mod fields;
mod group;
mod protobuf;
mod varint;

pub use group::{Group, View};

/// Returns from a function because of a [`Violation`], with a reason as `format!` takes it.
macro_rules! bail {
    ($($reason:tt)+) => {
        return Err($crate::format::Violation(format!($($reason)+)))
    };
}
pub(crate) use bail;

/// Why bytes are not what the specification asks for. The caller knows the file and the offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl Violation {
    fn new(reason: impl Into<String>) -> Self {
        Violation(reason.into())
    }
}

impl From<Violation> for String {
    fn from(violation: Violation) -> String {
        violation.0
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
