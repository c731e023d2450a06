//! Small notes beside indexes and copies: JSON with a checksum, in an Ingot file without rows.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::entry::{self, Width};
use super::part::temporary;
use crate::records::container::Container as _;
use crate::records::ingot::{Compression, Options, path};
use crate::records::open::Mode;

/// Reads a note; none if there is none, or it is damaged or of another kind.
pub fn load<T: DeserializeOwned>(place: &Path) -> Option<T> {
    let kept = path::open(place, Mode::Whole).ok()?;
    serde_json::from_str(kept.metadata()).ok()
}

/// Writes a note, and returns whether that was possible: what it says can be found out again.
pub fn save(place: &Path, note: &impl Serialize) -> bool {
    let text = serde_json::to_string(note).expect("these are plain values");
    let hidden = temporary(place);
    let schema = entry::schema(&[], Width::Narrow).expect("a schema without fields is one");
    let options = Options { compression: Compression::None, level: 0, sync: false };
    let written = || path::create(&hidden, schema, &text, options)?.close();
    let made = place.parent().is_some_and(|folder| fs::create_dir_all(folder).is_ok());
    let published = made && written().is_ok() && fs::rename(&hidden, place).is_ok();
    if made && !published {
        let _ = fs::remove_file(&hidden);
    }
    published
}
