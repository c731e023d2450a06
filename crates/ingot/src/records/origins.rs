//! Where the fields of a data set are in the files of a shard.

use std::collections::HashMap;
use std::sync::Arc;

use super::container::Container;
use crate::error::{Error, Result};
use crate::format::ingot::{Field, FieldKind, Schema};

/// The fields that all shards of a data set must have.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    /// The fields.
    pub schema: Arc<Schema>,
    /// Whether each file of rows must have exactly these; otherwise it may have others, and lack
    /// those that files of columns add, and optional ones.
    pub is_exact: bool,
}

/// For each field of a data set the place of the file that it is in, and its place there; none for
/// a field that is missing in all rows of the shard.
pub(super) struct Origins(Vec<Option<(u32, u32)>>);

impl Origins {
    /// Returns where field `field` is, if it is anywhere.
    #[inline]
    pub fn get(&self, field: usize) -> Option<(usize, usize)> {
        let (place, own) = (*self.0.get(field)?)?;
        Some((place as usize, own as usize))
    }

    /// Finds the fields of a data set, by default those of the file of rows, in the files of a
    /// shard, of which that is the first. None if they are those of the file of rows.
    pub fn find(files: &[Arc<dyn Container>], fields: Option<&Fields>) -> Result<Option<Origins>> {
        let Some(own) = files[0].table().map(|table| table.schema()) else {
            return if fields.is_some() || files.len() > 1 {
                Err(differs(files))
            } else {
                Ok(None)
            };
        };
        let schema = fields.map_or(own, |fields| &fields.schema);
        if schema != own && fields.is_some_and(|fields| fields.is_exact) {
            return Err(differs(files));
        }
        if schema == own && files.len() == 1 {
            return Ok(None);
        }
        let names: Vec<HashMap<&str, usize>> = files.iter().map(places_of).collect();
        let holder = |name: &str| names.iter().rposition(|own| own.contains_key(name));
        let known: HashMap<&str, &Field> =
            schema.fields().iter().map(|field| (field.name.as_str(), field)).collect();
        let is_optional = |field: &Field| {
            let flag = known.get(format!("{}?", field.name).as_str());
            flag.is_some_and(|flag| flag.optional().is_some())
        };
        let mut found = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            // Whether there is a value is in the file that the value is in.
            let flagged = field.optional().filter(|name| known.contains_key(name));
            found.push(match holder(flagged.unwrap_or(&field.name)) {
                Some(place) => {
                    let own = names[place].get(field.name.as_str());
                    Some((place as u32, checked(&*files[place], own.copied(), field)?))
                }
                None if flagged.is_some() || is_optional(field) => None,
                None => {
                    let why = format!("it lacks the field {:?}, which is not optional", field.name);
                    return Err(Error::format(files[0].source().name, why));
                }
            });
        }
        Ok(Some(Origins(found)))
    }
}

/// Checks that a field of a file, if it has one, is the field of the data set, and returns its
/// place.
fn checked(file: &dyn Container, found: Option<usize>, field: &Field) -> Result<u32> {
    let refused = |why: String| Err(Error::format(file.source().name, why));
    let own = found.and_then(|k| file.table()?.schema().fields().get(k));
    match (found, own) {
        (Some(k), Some(own)) if own == field => Ok(k as u32),
        (_, Some(own)) => {
            let (own, other) = (told(own), told(field));
            refused(format!("field {:?} is {own}, but {other} in the data set", field.name))
        }
        _ => refused(format!("it lacks the column {:?}", field.name)),
    }
}

/// Returns how a field is stored, in words.
fn told(field: &Field) -> String {
    let kind = match (field.kind, field.width) {
        (FieldKind::Column, Some(width)) => format!("a column of width {width}"),
        (FieldKind::Column, None) => "a column".to_owned(),
        (FieldKind::Cell, _) => "a cell".to_owned(),
        (FieldKind::Sequence, _) => "a sequence".to_owned(),
    };
    match &field.type_name {
        Some(name) => format!("{kind} of type {name}"),
        None => kind,
    }
}

/// Returns the places of the fields of a file by their names.
fn places_of(file: &Arc<dyn Container>) -> HashMap<&str, usize> {
    let fields = file.table().map_or(&[][..], |table| table.schema().fields());
    fields.iter().enumerate().map(|(k, field)| (field.name.as_str(), k)).collect()
}

fn differs(files: &[Arc<dyn Container>]) -> Error {
    let why = "its fields differ from those of the other files";
    Error::format(files[0].source().name, why)
}
