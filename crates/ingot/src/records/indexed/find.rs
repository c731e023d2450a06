//! Finding the index of a file: one that is sound, and made of this very file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Layout;
use super::container::Indexed;
use super::entry::{self, Width};
use super::stamp::Stamp;
use crate::error::Result;
use crate::format::ingot::{Field, Schema};
use crate::records::container::Container;
use crate::records::ingot::{Reader, path};
use crate::records::open::{Mode, reading};
use crate::records::source::Source;
use crate::storage::{Location, ReadAt};

/// The version of what is in an index.
pub const VERSION: u32 = 2;

/// An index of no more bytes is read and verified whole when it is opened.
const VERIFIED: u64 = 64 << 20;

/// What an index says about itself: the metadata of its file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub index: u32,
    pub format: String,
    pub options: String,
    pub fields: Vec<Field>,
    /// Whether nobody has asked for these fields, so that no row has any other.
    pub inferred: bool,
    pub wide: bool,
    pub data: Stamp,
}

/// A file whose index is looked for.
pub struct Target {
    pub location: Location,
    pub storage: Arc<dyn ReadAt>,
    pub name: String,
    pub stamp: Stamp,
    pub places: Vec<PathBuf>,
}

impl Target {
    pub fn of(location: &Location) -> Result<Target> {
        let storage = reading(location)?;
        let name = location.name();
        let stamp = Stamp::of(location, Source { storage: &*storage, name: &name })?;
        Ok(Target { location: location.clone(), storage, name, stamp, places: Vec::new() })
    }

    pub fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }
}

/// What is indexed.
pub struct Plan<'a> {
    pub layout: &'a dyn Layout,
    pub fields: &'a [Field],
    /// Whether nobody has asked for these fields, so that others must not be lost.
    pub is_inferred: bool,
}

impl Plan<'_> {
    /// Returns what tells one way to index a file from another.
    pub fn key(&self) -> String {
        let chosen = if self.is_inferred { "inferred" } else { "given" };
        [self.layout.format(), &self.layout.options(), chosen, &json_of(&self.fields)].join("\n")
    }
}

pub fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("these are plain values")
}

/// Returns the file with an index that is sound and belongs to it.
pub fn find(target: &Target, plan: &Plan<'_>) -> Option<Indexed> {
    target.places.iter().find_map(|place| opened(target, place, plan))
}

pub fn opened(target: &Target, place: &Path, plan: &Plan<'_>) -> Option<Indexed> {
    let index = path::open(place, Mode::Whole).ok()?;
    let about: About = serde_json::from_str(index.metadata()).ok()?;
    let width = if about.wide { Width::Wide } else { Width::Narrow };
    let is_ours = about.index == VERSION
        && about.format == plan.layout.format()
        && about.options == plan.layout.options()
        && about.data == target.stamp
        && about.fields == plan.fields
        && about.inferred == plan.is_inferred
        && entry::schema(&about.fields, width).is_ok_and(|schema| schema == *index.schema());
    if !is_ours || !is_sound(&index) {
        return None;
    }
    let schema = match &about.fields[..] {
        [] => None,
        fields => Some(Schema::new(fields.to_vec()).ok()?),
    };
    Some(Indexed {
        storage: Arc::clone(&target.storage),
        name: target.name.clone(),
        size: target.stamp.bytes,
        index: Arc::new(index),
        schema,
        width,
        fingerprint: target.stamp.content(),
    })
}

/// Whether nothing in an index is damaged, as far as that is looked at now. What is found
/// damaged later is an error that names the index.
fn is_sound(index: &Reader) -> bool {
    let is_small = index.stats().file_bytes <= VERIFIED;
    !is_small || index.verify(&mut |_| Ok(())).is_ok_and(|found| found.damaged.is_empty())
}
