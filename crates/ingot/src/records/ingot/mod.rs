//! Ingot's own container.

mod chain;
mod front;
mod pages;
pub mod path;
mod pending;
mod reader;
mod recovery;
mod table;
mod tail;
mod training;
mod verify;
mod writer;

use std::sync::Arc;

use super::container::Container;
use super::open::{Format, Opening};
use super::source::Watch;
use crate::error::Result;
use crate::format::ingot::{HEADER_LEN, Header};

pub use pending::{Packed, Value};
pub use reader::Reader;
pub use recovery::{Recovery, append, recover};
pub use training::{Choice, Compression, Decision, Decisions};
pub use writer::{Options, Writer};

/// Ingot files.
pub static FORMAT: Format = Format {
    name: "ingot",
    title: "an Ingot file",
    suffixes: &[".ingot"],
    is_checked: true,
    begins: |front| front.len() >= HEADER_LEN && Header::is_prefix(front),
    open,
};

fn open(
    Opening { location, storage, mode, .. }: Opening<'_>,
    watch: &mut Watch<'_>,
) -> Result<Arc<dyn Container>> {
    Ok(Arc::new(Reader::open(storage, &location.name(), mode, watch)?))
}
