//! Finding the index of a file: one that was made of this very file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Layout;
use super::container::Indexed;
use super::copy::Copy;
use super::entry::{self, Width};
use crate::error::{Error, Result};
use crate::format::ingot::{Field, Schema};
use crate::records::container::Container;
use crate::records::content::hex;
use crate::records::derived::{Change, Original, Places, Stamp};
use crate::records::ingot::{Reader, path};
use crate::records::open::Mode;
use crate::records::source::Source;
use crate::storage::{FileId, ReadAt};

/// The version of what is in an index.
pub const VERSION: u32 = 3;

/// How the name of an index ends.
pub const INDEX: &str = "index";

/// The ending of the note with the checksum of all that an index was made of.
const SUM: &str = "sum";

/// What an index says about itself: the metadata of its file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub index: u32,
    pub format: String,
    pub options: String,
    pub fields: Vec<Field>,
    /// Whether these fields were inferred, so that no row has any other.
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

/// A file whose rows an index finds.
pub struct Target {
    pub original: Original,
    /// The file that is indexed, if the original is compressed.
    pub copy: Option<Copy>,
    pub places: Places,
}

impl Target {
    pub fn storage(&self) -> &Arc<dyn ReadAt> {
        self.copy.as_ref().map_or(&self.original.storage, |copy| &copy.storage)
    }

    /// Returns the bytes that are indexed, under the name of the file that users know.
    pub fn source(&self) -> Source<'_> {
        Source { storage: &**self.storage(), name: &self.original.name }
    }

    pub fn stamp(&self) -> &Stamp {
        self.copy.as_ref().map_or(&self.original.stamp, |copy| &copy.stamp)
    }
}

/// What is indexed.
pub struct Plan<'a> {
    pub layout: &'a dyn Layout,
    pub fields: &'a [Field],
    /// Whether these fields were inferred, so that others must not be lost.
    pub is_inferred: bool,
}

impl Plan<'_> {
    /// Returns what distinguishes this way to index a file from others.
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
    /// It belongs to the file.
    Sound(Indexed),
    /// It belongs to the file if that has the same bytes.
    Unsure(Indexed, Content),
    /// The file has no index.
    Missing,
}

/// Looks for an index that belongs to a file. Fails if the file is damaged. The pages of the index
/// are verified when they are loaded.
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
    let Ok(Some((index, about))) = ours(place, plan) else { return Ok(Lookup::Missing) };
    let (id, stamp) = (hex(&index.header().id), target.stamp());
    let mut known = None;
    match &target.copy {
        // The bytes of a copy are known to be those that were decompressed.
        Some(copy) => {
            let is_same = |one: &Content| one.crc == copy.crc && one.data.bytes == stamp.bytes;
            if !known_content(target, &id).is_some_and(|one| is_same(&one)) {
                return Ok(Lookup::Missing);
            }
        }
        None => match stamp.since(&about.data) {
            Change::Same => {}
            Change::Changed => return Ok(Lookup::Missing),
            Change::Damaged(offset) => {
                let why = format!(
                    "these bytes differ from those that were indexed, although the file was not \
                     written to: it is damaged; copy it again, or remove {} to read it as it is",
                    place.display()
                );
                return Err(target.source().corrupt(offset, why));
            }
            Change::Unsure => match known_content(target, &id) {
                None => return Ok(Lookup::Missing),
                Some(one) if stamp.since(&one.data) == Change::Same => {}
                Some(one) => known = Some(one),
            },
        },
    }
    let found = container(target, index, about)?;
    Ok(match known {
        None => Lookup::Sound(found),
        Some(one) => Lookup::Unsure(found, one),
    })
}

/// Opens the index that was just built, and returns its id too.
pub fn built(target: &Target, place: &Path, plan: &Plan<'_>) -> Result<(Indexed, String)> {
    let (index, about) = ours(place, plan)?.ok_or_else(|| {
        let why = "another index was built here meanwhile; open the data again";
        Error::format(place.display().to_string(), why)
    })?;
    let id = hex(&index.header().id);
    Ok((container(target, index, about)?, id))
}

/// Keeps the checksum of what an index was made of.
pub fn keep_content(target: &Target, content: &Content) {
    target.places.with_extension(SUM).save_note(content);
}

fn known_content(target: &Target, id: &str) -> Option<Content> {
    let notes = target.places.with_extension(SUM);
    let mut known: Vec<Content> = notes.notes().filter(|one: &Content| one.index == id).collect();
    let newest = known.iter().position(|one| target.stamp().since(&one.data) == Change::Same);
    (!known.is_empty()).then(|| known.swap_remove(newest.unwrap_or(0)))
}

/// Returns whether an index was made of another state of a file than its current one, in whatever
/// way.
pub fn is_stale(target: &Target, place: &Path) -> bool {
    let index = match place.extension() {
        Some(end) if end == INDEX => path::open(place, Mode::Whole),
        _ => return false,
    };
    let about = match &index {
        Ok(index) => serde_json::from_str::<About>(index.metadata()).ok(),
        // An index that could not be opened for lack of descriptors or memory may be sound.
        Err(Error::Storage { .. } | Error::Memory { .. }) => return false,
        Err(_) => None,
    };
    about.is_none_or(|about| {
        let (then, now) = (&about.data, target.stamp());
        (then.bytes, then.mtime_ns) != (now.bytes, now.mtime_ns)
    })
}

/// Opens an index; none if it was made in another way.
fn ours(place: &Path, plan: &Plan<'_>) -> Result<Option<(Reader, About)>> {
    let index = path::open(place, Mode::Whole)?;
    let Ok(about) = serde_json::from_str::<About>(index.metadata()) else { return Ok(None) };
    let is_ours = about.index == VERSION
        && about.format == plan.layout.format()
        && about.options == plan.layout.options()
        && about.fields == plan.fields
        && about.inferred == plan.is_inferred
        && entry::schema(&about.fields, width_of(&about))
            .is_ok_and(|schema| schema == *index.schema());
    Ok(is_ours.then_some((index, about)))
}

fn width_of(about: &About) -> Width {
    if about.wide { Width::Wide } else { Width::Narrow }
}

fn container(target: &Target, index: Reader, about: About) -> Result<Indexed> {
    let width = width_of(&about);
    let schema = match about.fields {
        fields if fields.is_empty() => None,
        fields => Some(Schema::new(fields).map_err(|why| target.source().corrupt(0, why))?),
    };
    Ok(Indexed {
        storage: Arc::clone(target.storage()),
        name: target.original.name.clone(),
        size: target.stamp().bytes,
        index: Arc::new(index),
        schema,
        width,
        fingerprint: target.original.stamp.content(),
    })
}

impl Indexed {
    /// Takes what was looked up in the index. If that is damaged, it is removed, and built again
    /// when the file is opened the next time.
    pub(super) fn looked_up<T>(&self, found: Result<T>) -> Result<T> {
        found.map_err(|error| match error {
            Error::Corrupt { path, record, offset, reason } if path == self.index.source().name => {
                let is_removed = remove_damaged(&*self.index);
                let what = if is_removed { "was removed" } else { "must be removed" };
                let reason = format!(
                    "{reason}: this index is damaged and {what}; open {} again to \
                     rebuild it",
                    self.name
                );
                Error::Corrupt { path, record, offset, reason }
            }
            error => error,
        })
    }
}

/// Removes an index, unless another one has its name already. Returns whether it is gone.
#[cold]
fn remove_damaged(index: &dyn Container) -> bool {
    let place = Path::new(index.source().name);
    let (Ok(own), Ok(there)) = (index.source().storage.identity(), FileId::at(place)) else {
        return !place.exists();
    };
    own.tag.file != there || fs::remove_file(place).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::indexed::{Request, open};
    use crate::records::ingot::{Compression, Options};
    use crate::records::layout_of;
    use crate::storage::Location;

    #[test]
    fn bytes_that_changed_without_a_write_are_damage() {
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
