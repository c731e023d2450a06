//! Opening files of other formats: their fields, and their indexes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build::build_all;
use super::container::Indexed;
use super::find::{Plan, Target, find};
use super::inferred::Inferred;
use super::place::candidates;
use super::stamp::Stamp;
use super::stream::Stream;
use super::{Layout, PROBE_ROWS};
use crate::error::{Error, Result};
use crate::format::foreign::kind::Kind;
use crate::format::ingot::Field;
use crate::pool::Pool;
use crate::records::container::Container;
use crate::storage::Location;

/// Files that are looked at to infer fields.
const PROBED: usize = 8;

/// What to open, and how.
pub struct Request {
    /// Where rows are in a file.
    pub layout: Arc<dyn Layout>,
    /// The fields of rows; none to infer them. No fields at all are records.
    pub fields: Option<Vec<Field>>,
    /// A folder for all indexes.
    pub folder: Option<PathBuf>,
}

/// Called with the bytes done and their total, now and then; an error stops the work.
pub type Report<'a> = dyn FnMut(u64, u64) -> Result<()> + 'a;

/// Opens files by their indexes, and builds those that are needed first.
pub fn open(
    locations: &[Location],
    request: &Request,
    report: &mut Report<'_>,
) -> Result<Vec<Arc<dyn Container>>> {
    let layout = &*request.layout;
    let folder = request.folder.as_deref();
    let mut targets = targets_of(locations)?;
    let (fields, kept) = match &request.fields {
        Some(fields) => (fields.clone(), None),
        None => {
            let (fields, kept) = known_fields(layout, &targets, folder)?;
            (fields.ok_or_else(|| no_fields(&targets))?, kept)
        }
    };
    let plan = Plan { layout, fields: &fields, is_inferred: request.fields.is_none() };
    let key = plan.key();
    for target in &mut targets {
        target.places = candidates(&target.location, &key, folder);
    }
    let mut found: Vec<Option<Indexed>> = each(targets.len(), &|k| find(&targets[k], &plan));
    if found.iter().any(Option::is_none) {
        let built = build_all(&targets, &plan, &mut found, report);
        built.map_err(|error| unknown_field(&targets, &plan).unwrap_or(error))?;
    }
    if let Some(kept) = kept {
        kept.save(&fields);
    }
    Ok(found.into_iter().flatten().map(|one| Arc::new(one) as Arc<dyn Container>).collect())
}

fn targets_of(locations: &[Location]) -> Result<Vec<Target>> {
    each(locations.len(), &|k| Target::of(&locations[k])).into_iter().collect()
}

/// Does something for each of many files, many at a time.
fn each<T: Send>(count: usize, work: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    if count == 1 { vec![work(0)] } else { Pool::blocking().map(count, work) }
}

/// Returns the fields that the rows of files have; none if they are records without fields.
pub fn infer(locations: &[Location], request: &Request) -> Result<Option<Vec<Field>>> {
    let (layout, targets) = (&*request.layout, targets_of(locations)?);
    Ok(known_fields(layout, &targets, request.folder.as_deref())?.0)
}

/// Returns the fields that the rows of files have, and where to keep them if they are not kept
/// yet.
fn known_fields(
    layout: &dyn Layout,
    targets: &[Target],
    folder: Option<&Path>,
) -> Result<(Option<Vec<Field>>, Option<Inferred>)> {
    let looks = !layout.knows_fields();
    let inferred = looks.then(|| Inferred::of(layout, &probed(targets), folder));
    match inferred.as_ref().and_then(Inferred::load) {
        Some(fields) => Ok((Some(fields), None)),
        None => Ok((inferred_from(layout, targets)?, inferred)),
    }
}

fn no_fields(targets: &[Target]) -> Error {
    let path = targets.first().map_or_else(String::new, |target| target.name.clone());
    Error::Format { path, reason: "its records have no fields".to_owned() }
}

/// Returns the files that are looked at to infer fields.
fn looked_at(targets: &[Target]) -> impl Iterator<Item = &Target> {
    targets.iter().step_by(targets.len().div_ceil(PROBED).max(1))
}

fn probed(targets: &[Target]) -> Vec<(&Location, &Stamp)> {
    looked_at(targets).map(|one| (&one.location, &one.stamp)).collect()
}

/// Returns the fields that the rows of some files have.
fn inferred_from(layout: &dyn Layout, targets: &[Target]) -> Result<Option<Vec<Field>>> {
    let no_progress = |_| Ok(());
    let streams = looked_at(targets).map(|one| Stream::of(one.source(), &no_progress));
    let mut streams = streams.collect::<Result<Vec<_>>>()?;
    if streams.is_empty() { Ok(None) } else { layout.infer(&mut streams) }
}

/// Returns the error for a field that every row must have, but that no row has which is looked
/// at; none if there is no such field.
fn unknown_field(targets: &[Target], plan: &Plan<'_>) -> Option<Error> {
    if plan.is_inferred || plan.fields.is_empty() {
        return None;
    }
    let there = inferred_from(plan.layout, targets).ok()??;
    let there = Kind::of_fields(&there);
    let names: Vec<&str> = there.iter().flatten().map(|kind| kind.name.as_str()).collect();
    // An object of JSON is a field, or its members are.
    let is_in = |name: &str, above: &str| {
        name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let kinds = Kind::of_fields(plan.fields);
    let unknown = kinds.iter().flatten().find(|kind| {
        kind.present.is_none()
            && !names.iter().any(|name| is_in(name, &kind.name) || is_in(&kind.name, name))
    })?;
    let reason = format!("there is no field {:?}; the fields are {names:?}", unknown.name);
    Some(Error::Format { path: targets.first()?.name.clone(), reason })
}

/// Returns how many rows of a file are looked at.
pub fn probe_rows(file: usize) -> usize {
    if file == 0 { PROBE_ROWS.0 } else { PROBE_ROWS.1 }
}
