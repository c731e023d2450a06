//! Files that are made of other files and can be made again: indexes, decompressed copies, notes.
//!
//! A derived file is named after its original and a key, which says what was made of it in which
//! way ([`Places`]), and holds the [`Stamp`] of what the original was. [`provide`] finds those that
//! are sound and belong to their originals, and makes the others: once, in one process, under the
//! lock of their folder. The process that makes one removes stale files from its folder, and from the
//! cache copies that take too much space (docs/index_file.md).

mod folder;
mod make;
mod place;
mod stamp;
mod usage;

use std::path::Path;
use std::sync::Arc;

use super::open::reading;
use super::source::Source;
use crate::error::Result;
use crate::storage::{Location, ReadAt};

pub use make::{Progress, Report, each, provide};
pub use place::{COPY, COPY_NOTE, Places, protect, publish};
pub use stamp::{Change, Stamp};
pub use usage::{Use, shrink};

/// A file that others are made of. It is opened once, and what it is like is found out once.
pub struct Original {
    pub location: Location,
    pub storage: Arc<dyn ReadAt>,
    pub name: String,
    pub stamp: Stamp,
}

impl Original {
    /// Takes a file that may be open already.
    pub fn open(location: &Location, storage: Option<&Arc<dyn ReadAt>>) -> Result<Original> {
        let storage = storage.map_or_else(|| reading(location), |open| Ok(Arc::clone(open)))?;
        let name = location.name();
        let stamp = Stamp::of(Source { storage: &*storage, name: &name })?;
        Ok(Original { location: location.clone(), storage, name, stamp })
    }

    pub fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }
}

/// A file that is made of another one.
pub trait Derived: Sync {
    /// What is known of it once it is there.
    type Made: Send;

    /// What users call it.
    const TITLE: &'static str;

    /// Returns what it is made of.
    fn original(&self) -> &Original;

    /// Returns where it is looked for, and where it is made.
    fn places(&self) -> &Places;

    /// Returns how many bytes are read to make it.
    fn bytes(&self) -> u64;

    /// Returns it if it is there, sound, and made of the original as it is.
    fn find(&self) -> Result<Option<Self::Made>>;

    /// Makes it at a place, where it appears whole or not at all.
    fn make(&self, place: &Path, progress: &Progress) -> Result<Self::Made>;

    /// Returns whether another file that was made of the original is stale.
    fn is_stale(&self, _place: &Path) -> bool {
        false
    }
}

/// Fails, and says why, if an environment variable about derived files is invalid.
pub fn check_environment() -> Result<(), String> {
    place::check_environment()?;
    usage::check_environment()
}
