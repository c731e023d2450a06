//! Finding the index of a file: one that is sound, and made of this very file.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::container::Indexed;
use super::entry::{self, Width};
use super::note;
use super::place::Places;
use super::stamp::{Change, Stamp};
use super::{Input, Layout};
use crate::error::Result;
use crate::format::Violation;
use crate::format::ingot::{Field, Schema};
use crate::records::container::Container;
use crate::records::ingot::{Reader, path};
use crate::records::open::{Mode, reading};
use crate::records::source::Source;
use crate::records::unpack::Copy;
use crate::storage::{Location, ReadAt};

/// The version of what is in an index.
pub const VERSION: u32 = 3;

/// The ending of the note with the checksum of all that an index was made of.
const SUM: &str = "sum";

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

/// The checksum of all bytes of the data that an index was made of.
#[derive(Debug, Serialize, Deserialize)]
pub struct Content {
    /// The id of the index, in hexadecimal digits.
    pub index: String,
    /// The stamp of a file that has these bytes.
    pub data: Stamp,
    /// Their CRC-32C.
    pub crc: u32,
}

/// A file whose index is looked for.
pub struct Target {
    pub location: Location,
    pub storage: Arc<dyn ReadAt>,
    pub name: String,
    pub stamp: Stamp,
    /// The file that users have named: this one, or the one that it is a decompressed copy of.
    pub home: Location,
    pub origin: Stamp,
    /// The CRC-32C of all its bytes, if it is a copy.
    pub crc: Option<u32>,
    pub places: Places,
}

impl Target {
    pub fn of(input: &Input, copy: Option<Copy>) -> Result<Target> {
        let home = input.location.clone();
        let Some(copy) = copy else {
            let (storage, name) = (reading(&home)?, home.name());
            let stamp = Stamp::of(&home, Source { storage: &*storage, name: &name })?;
            let (location, origin) = (home.clone(), stamp.clone());
            let places = Places::default();
            return Ok(Target { location, storage, name, stamp, home, origin, crc: None, places });
        };
        let location = Location::Path(copy.path);
        let (storage, name) = (reading(&location)?, location.name());
        let (stamp, origin, crc, places) =
            (copy.stamp, copy.origin, Some(copy.crc), Places::default());
        Ok(Target { location, storage, name, stamp, home, origin, crc, places })
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

/// What was found of an index.
pub enum Lookup {
    /// It is sound, and belongs to the file.
    Sound(Box<Indexed>),
    /// It is sound, and belongs to the file if that has the same bytes.
    Unsure(Box<Indexed>, Content),
    /// There is none of this file.
    Missing,
}

/// Looks for an index that is sound and belongs to a file. Fails if the file is damaged.
pub fn find(target: &Target, plan: &Plan<'_>) -> Result<Lookup> {
    let mut best = Lookup::Missing;
    for place in &target.places.read {
        match look(target, place, plan)? {
            sound @ Lookup::Sound(_) => return Ok(sound),
            unsure @ Lookup::Unsure(..) => best = unsure,
            Lookup::Missing => {}
        }
    }
    Ok(best)
}

fn look(target: &Target, place: &Path, plan: &Plan<'_>) -> Result<Lookup> {
    let Some((index, about)) = ours(place, plan) else { return Ok(Lookup::Missing) };
    let id = id_of(&index);
    let mut known = None;
    match target.crc {
        // The bytes of a copy are known to be those that were decompressed.
        Some(crc) => {
            let is_same = |one: &Content| one.crc == crc && one.data.bytes == target.stamp.bytes;
            if !known_content(target, &id).is_some_and(|one| is_same(&one)) {
                return Ok(Lookup::Missing);
            }
        }
        None => match target.stamp.since(&about.data) {
            Change::Same => {}
            Change::Changed => return Ok(Lookup::Missing),
            Change::Damaged(offset) => {
                let why = format!(
                    "these bytes are not those that were indexed, although nobody has written to \
                     the file: it is damaged; copy it again, or remove {} to read it as it is",
                    place.display()
                );
                return Err(target.source().corrupt(offset, Violation(why)));
            }
            Change::Unsure => match known_content(target, &id) {
                None => return Ok(Lookup::Missing),
                Some(one) if target.stamp.since(&one.data) == Change::Same => {}
                Some(one) => known = Some(one),
            },
        },
    }
    let Some(found) = opened(target, index, about) else { return Ok(Lookup::Missing) };
    let found = Box::new(found);
    Ok(match known {
        None => Lookup::Sound(found),
        Some(one) => Lookup::Unsure(found, one),
    })
}

/// Opens the index that was just built.
pub fn built(target: &Target, place: &Path, plan: &Plan<'_>) -> Option<(Indexed, String)> {
    let (index, about) = ours(place, plan)?;
    let id = id_of(&index);
    opened(target, index, about).map(|found| (found, id))
}

/// Keeps the checksum of what an index was made of.
pub fn keep_content(target: &Target, content: &Content) {
    let places = target.places.with_extension(SUM);
    let _ = places.write.iter().find(|place| note::save(place, content));
}

fn known_content(target: &Target, id: &str) -> Option<Content> {
    let places = target.places.with_extension(SUM);
    let known = places.read.iter().filter_map(|place| note::load::<Content>(place));
    let mut known: Vec<Content> = known.filter(|one| one.index == id).collect();
    let newest = known.iter().position(|one| target.stamp.since(&one.data) == Change::Same);
    (!known.is_empty()).then(|| known.swap_remove(newest.unwrap_or(0)))
}

fn id_of(index: &Reader) -> String {
    index.header().id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Opens an index that is made in this way, of whatever file.
fn ours(place: &Path, plan: &Plan<'_>) -> Option<(Reader, About)> {
    let index = path::open(place, Mode::Whole).ok()?;
    let about: About = serde_json::from_str(index.metadata()).ok()?;
    let width = width_of(&about);
    let is_ours = about.index == VERSION
        && about.format == plan.layout.format()
        && about.options == plan.layout.options()
        && about.fields == plan.fields
        && about.inferred == plan.is_inferred
        && entry::schema(&about.fields, width).is_ok_and(|schema| schema == *index.schema());
    is_ours.then_some((index, about))
}

fn width_of(about: &About) -> Width {
    if about.wide { Width::Wide } else { Width::Narrow }
}

fn opened(target: &Target, index: Reader, about: About) -> Option<Indexed> {
    if !is_sound(&index) {
        return None;
    }
    let width = width_of(&about);
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
        fingerprint: target.origin.content(),
    })
}

/// Whether nothing in an index is damaged, as far as that is looked at now. What is found
/// damaged later is an error that names the index.
fn is_sound(index: &Reader) -> bool {
    let is_small = index.stats().file_bytes <= VERIFIED;
    !is_small || index.verify(&mut |_| Ok(())).is_ok_and(|found| found.damaged.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::error::Error;
    use crate::records::indexed::{Request, open};
    use crate::records::ingot::{Compression, Options};
    use crate::records::layout_of;

    #[test]
    fn bytes_that_changed_although_nobody_has_written_are_damage() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("x.csv");
        let rows: String = (0..20_000).map(|k| format!("{k},text\n")).collect();
        fs::write(&data, format!("n,t\n{rows}")).unwrap();
        let indexes = folder.path().join("indexes");
        let opened = || {
            let layout = layout_of(r#"{"format": "csv"}"#).unwrap();
            let request = Request { folder: Some(indexes.clone()), ..Request::of(layout) };
            open(&[Location::from(data.as_path()).into()], &request, &mut |_, _| Ok(()))
        };
        assert_eq!(opened().unwrap().unwrap()[0].num_rows(), 20_000);
        let home = fs::read_dir(&indexes).unwrap().next().unwrap().unwrap().path();
        let mut places = fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
        let place = places.find(|one| one.extension().is_some_and(|one| one == "index")).unwrap();
        // An index of a file with the same times and another sample.
        let index = path::open(&place, Mode::Whole).unwrap();
        let mut about: About = serde_json::from_str(index.metadata()).unwrap();
        about.data.samples[3] ^= 1;
        fs::remove_file(&place).unwrap();
        let options = Options { compression: Compression::None, level: 0, sync: false };
        let schema = index.schema().clone();
        path::create(&place, schema, &json_of(&about), options).unwrap().close().unwrap();
        let Err(Error::Corrupt { path, offset, .. }) = opened() else { panic!("it is damaged") };
        assert_eq!(
            (path, offset),
            (data.display().to_string(), (about.data.bytes - 4096) / 15 * 3)
        );
    }
}
