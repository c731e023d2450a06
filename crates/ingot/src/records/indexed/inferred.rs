//! The fields that were inferred from a set of files, kept beside the indexes.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Layout;
use super::find::VERSION;
use crate::format::ingot::Field;
use crate::records::derived::{Original, Places, Stamp};

/// How the name of the note ends.
const FIELDS: &str = "fields";

/// All that decides which fields are inferred.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    index: u32,
    format: String,
    options: String,
    /// The files that are inspected, in their order.
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
    /// Returns where the fields of a set of files are kept; `files` are those that are inspected.
    pub fn of(layout: &dyn Layout, files: &[&Original], folder: Option<&Path>) -> Inferred {
        let last = |name: String| name.rsplit(['/', '\\']).next().map(str::to_owned);
        let named =
            files.iter().map(|one| (last(one.name.clone()).unwrap_or_default(), one.stamp.clone()));
        let origin = Origin {
            index: VERSION,
            format: layout.format().to_owned(),
            options: layout.options(),
            files: named.collect(),
        };
        let names = origin.files.iter().map(|(name, _)| name.as_str());
        let key: Vec<&str> =
            [origin.format.as_str(), &origin.options].into_iter().chain(names).collect();
        let key = key.join("\n");
        let places = files.first().map(|one| Places::of(&one.location, &key, FIELDS, folder));
        let places = places.unwrap_or_default();
        Inferred { origin, places }
    }

    /// Returns the fields, if they are kept.
    pub fn load(&self) -> Option<Vec<Field>> {
        let mut kept = self.places.notes::<About>();
        kept.find(|about| about.inferred == self.origin).map(|about| about.fields)
    }

    /// Keeps the fields. They are inferred again where that is not possible.
    pub fn save(self, fields: &[Field]) {
        let about = About { inferred: self.origin, fields: fields.to_vec() };
        self.places.save_note(&about);
    }
}
