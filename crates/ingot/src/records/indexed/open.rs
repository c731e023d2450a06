//! Opening files of other formats: their fields, and their indexes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::build::build_all;
use super::find::{Lookup, Plan, Target, find};
use super::inferred::Inferred;
use super::parallel::Progress;
use super::place::Places;
use super::stamp::Stamp;
use super::stream::Stream;
use super::{Layout, PROBE_ROWS};
use crate::error::{Error, Result};
use crate::format::foreign::kind::Kind;
use crate::format::ingot::Field;
use crate::pool::Pool;
use crate::records::container::Container;
use crate::records::unpack::{Compressed, Copy, unpack_all};
use crate::storage::Location;

/// Files that are looked at to infer fields.
const PROBED: usize = 8;

/// A file to open.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where it is.
    pub location: Location,
    /// How it is compressed as a whole, if it is.
    pub packed: Option<Compressed>,
}

impl From<Location> for Input {
    fn from(location: Location) -> Input {
        Input { location, packed: None }
    }
}

/// What to open, and how.
pub struct Request<'a> {
    /// Where rows are in a file.
    pub layout: Arc<dyn Layout>,
    /// The fields of rows; none to infer them. No fields at all are records.
    pub fields: Option<Vec<Field>>,
    /// A folder for all indexes.
    pub folder: Option<PathBuf>,
    /// Called with the number of a file before it is decompressed or indexed; its error is that
    /// of the file.
    pub admit: Option<&'a Admit<'a>>,
}

/// Looks at the file of a number, and calls what it is given now and then, which stops it by an
/// error.
pub type Admit<'a> = dyn Fn(usize, &dyn Fn() -> Result<()>) -> Result<()> + Sync + 'a;

impl Request<'_> {
    /// Asks for all fields of rows of a layout.
    pub fn of(layout: Arc<dyn Layout>) -> Self {
        Request { layout, fields: None, folder: None, admit: None }
    }

    /// Lets those who know more of a file look at it before anything is made of it.
    pub fn admit(&self, file: usize, progress: &Progress) -> Result<()> {
        self.admit.map_or(Ok(()), |admit| admit(file, &|| progress.add(0)))
    }
}

/// Called with the bytes done and their total, now and then; an error stops the work.
pub type Report<'a> = dyn FnMut(u64, u64) -> Result<()> + 'a;

/// Opens files by their indexes, and builds those that are needed first. None if no fields are
/// asked for, and the records have none.
pub fn open(
    inputs: &[Input],
    request: &Request<'_>,
    report: &mut Report<'_>,
) -> Result<Option<Vec<Arc<dyn Container>>>> {
    let layout = &*request.layout;
    let folder = request.folder.as_deref();
    let copies = unpack_all(inputs, request, report)?;
    let copies: Vec<Mutex<Option<Copy>>> = copies.into_iter().map(Mutex::new).collect();
    let targets = each(inputs.len(), &|k| {
        let copy = copies[k].lock().expect("no panics under this lock").take();
        Target::of(&inputs[k], copy)
    });
    let mut targets = targets.into_iter().collect::<Result<Vec<Target>>>()?;
    let (fields, kept) = match &request.fields {
        Some(fields) => (fields.clone(), None),
        None => match known_fields(layout, &targets, folder)? {
            (Some(fields), kept) => (fields, kept),
            (None, _) => return Ok(None),
        },
    };
    let plan = Plan { layout, fields: &fields, is_inferred: request.fields.is_none() };
    let key = plan.key();
    for target in &mut targets {
        target.places = Places::of(&target.home, &key, folder);
    }
    let found = each(targets.len(), &|k| find(&targets[k], &plan));
    let mut found = found.into_iter().collect::<Result<Vec<Lookup>>>()?;
    if found.iter().any(|one| !matches!(one, Lookup::Sound(_))) {
        let built = build_all(&targets, &plan, &mut found, request, report);
        built.map_err(|error| unknown_field(&targets, &plan).unwrap_or(error))?;
    }
    if let Some(kept) = kept {
        kept.save(&fields);
    }
    let sound = found.into_iter().filter_map(|one| match one {
        Lookup::Sound(one) => Some(one),
        _ => None,
    });
    Ok(Some(sound.map(|one| Arc::from(one as Box<dyn Container>)).collect()))
}

/// Does something for each of many files, many at a time.
pub(in crate::records) fn each<T: Send>(
    count: usize,
    work: &(dyn Fn(usize) -> T + Sync),
) -> Vec<T> {
    if count == 1 { vec![work(0)] } else { Pool::blocking().map(count, work) }
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

/// Returns the files that are looked at to infer fields.
fn looked_at(targets: &[Target]) -> impl Iterator<Item = &Target> {
    targets.iter().step_by(targets.len().div_ceil(PROBED).max(1))
}

fn probed(targets: &[Target]) -> Vec<(&Location, &Stamp)> {
    looked_at(targets).map(|one| (&one.home, &one.origin)).collect()
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
