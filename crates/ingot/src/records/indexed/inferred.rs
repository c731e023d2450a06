//! The fields that were inferred from a set of files, kept beside the indexes.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Layout;
use super::find::VERSION;
use super::note;
use super::place::Places;
use super::stamp::Stamp;
use crate::format::ingot::Field;
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
    places: Places,
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
        let names = origin.files.iter().map(|(name, _)| name.as_str());
        let key: Vec<&str> =
            [origin.format.as_str(), &origin.options].into_iter().chain(names).collect();
        let places = files.first().map(|(first, _)| Places::of(first, &key.join("\n"), folder));
        let places = places.unwrap_or_default().with_extension("fields");
        Inferred { origin, places }
    }

    /// Returns the fields, if they are kept.
    pub fn load(&self) -> Option<Vec<Field>> {
        self.places.read.iter().find_map(|place| {
            let about: About = note::load(place)?;
            (about.inferred == self.origin).then_some(about.fields)
        })
    }

    /// Keeps the fields in the first place that can be written to. They are inferred again
    /// where there is none.
    pub fn save(self, fields: &[Field]) {
        let about = About { inferred: self.origin, fields: fields.to_vec() };
        let _ = self.places.write.iter().find(|place| note::save(place, &about));
    }
}
