//! The fields that were inferred from a set of files, kept beside the indexes.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Layout;
use super::entry::{self, Width};
use super::find::VERSION;
use super::part::temporary;
use super::place::candidates;
use super::stamp::Stamp;
use crate::error::Result;
use crate::format::ingot::Field;
use crate::records::container::Container;
use crate::records::ingot::{Compression, Options, path};
use crate::records::open::Mode;
use crate::storage::Location;

/// All that decides which fields are inferred.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    index: u32,
    format: String,
    options: String,
    /// The files that are looked at, in their order.
    files: Vec<(String, Stamp)>,
}

/// The metadata of the file that keeps them.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    inferred: Origin,
    fields: Vec<Field>,
}

/// Where the fields of a set of files are kept.
pub struct Inferred {
    origin: Origin,
    places: Vec<PathBuf>,
}

impl Inferred {
    /// Returns where the fields of files are kept, of which these are looked at.
    pub fn of(
        layout: &dyn Layout,
        files: &[(&Location, &Stamp)],
        folder: Option<&Path>,
    ) -> Inferred {
        let last = |name: String| name.rsplit(['/', '\\']).next().map(str::to_owned);
        let named = files
            .iter()
            .map(|(location, stamp)| (last(location.name()).unwrap_or_default(), (*stamp).clone()));
        let origin = Origin {
            index: VERSION,
            format: layout.format().to_owned(),
            options: layout.options(),
            files: named.collect(),
        };
        let key = serde_json::to_string(&origin).expect("these are plain values");
        let places = files.first().map(|(first, _)| candidates(first, &key, folder));
        let places = places.unwrap_or_default().into_iter();
        Inferred { origin, places: places.map(|place| place.with_extension("fields")).collect() }
    }

    /// Returns the fields, if they are kept.
    pub fn load(&self) -> Option<Vec<Field>> {
        self.places.iter().find_map(|place| {
            let kept = path::open(place, Mode::Whole).ok()?;
            let about: About = serde_json::from_str(kept.metadata()).ok()?;
            (about.inferred == self.origin).then_some(about.fields)
        })
    }

    /// Keeps the fields in the first place that can be written to. They are inferred again
    /// where there is none.
    pub fn save(self, fields: &[Field]) {
        let about = About { inferred: self.origin, fields: fields.to_vec() };
        let about = serde_json::to_string(&about).expect("these are plain values");
        let _ = self.places.iter().find(|place| write(place, &about).is_some());
    }
}

fn write(place: &Path, about: &str) -> Option<()> {
    fs::create_dir_all(place.parent()?).ok()?;
    let hidden = temporary(place);
    let written = || -> Result<()> {
        let options = Options { compression: Compression::None, level: 0, sync: false };
        path::create(&hidden, entry::schema(&[], Width::Narrow)?, about, options)?.close()?;
        Ok(())
    };
    let published = written().ok().and_then(|()| fs::rename(&hidden, place).ok());
    if published.is_none() {
        let _ = fs::remove_file(&hidden);
    }
    published
}
