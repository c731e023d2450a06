//! Opening files of other formats: their fields, and their indexes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build::Index;
use super::copy::{Compressed, unpack_all};
use super::find::{INDEX, Plan, Target};
use super::inferred::Inferred;
use super::stream::Stream;
use super::{Layout, PROBE_ROWS};
use crate::error::{Error, Result};
use crate::format::foreign::kind::Kind;
use crate::format::ingot::Field;
use crate::records::container::Container;
use crate::records::derived::{Original, Places, Progress, Report, each, provide};
use crate::records::ingot::FORMAT as INGOT;
use crate::records::open::front;
use crate::storage::{Location, ReadAt};

/// Files that are inspected to infer fields.
const PROBED: usize = 8;

/// A file to open.
pub struct Input {
    /// Where it is.
    pub location: Location,
    /// Its bytes, if it is open already.
    pub storage: Option<Arc<dyn ReadAt>>,
    /// How it is compressed as a whole, if it is.
    pub packed: Option<Compressed>,
}

impl From<Location> for Input {
    fn from(location: Location) -> Input {
        Input { location, storage: None, packed: None }
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

    /// Verifies a file by what else is known of it, before anything is made of it.
    pub fn admit(&self, file: usize, progress: &Progress) -> Result<()> {
        self.admit.map_or(Ok(()), |admit| admit(file, &|| progress.add(0)))
    }
}

/// Opens files by their indexes, and builds those that are needed first. None if no fields are
/// asked for and the records have none, or if the first is an Ingot file, whatever its name.
pub fn open(
    inputs: &[Input],
    request: &Request<'_>,
    report: &mut Report<'_>,
) -> Result<Option<Vec<Arc<dyn Container>>>> {
    let layout = &*request.layout;
    let folder = request.folder.as_deref();
    let opened = each(inputs.len(), &|k| {
        let input = &inputs[k];
        let original = Original::open(&input.location, input.storage.as_ref())?;
        Ok((original, input.packed.clone()))
    });
    let opened = opened.into_iter().collect::<Result<Vec<_>>>()?;
    if opened.first().is_some_and(|(first, _)| (INGOT.begins)(&front(&*first.storage))) {
        return Ok(None);
    }
    let copies = unpack_all(&opened, request, report)?;
    let targets = opened.into_iter().zip(copies).map(|((original, _), copy)| {
        let places = Places::default();
        Target { original, copy, places }
    });
    let mut targets: Vec<Target> = targets.collect();
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
        target.places = Places::of(&target.original.location, &key, INDEX, folder);
    }
    let index = |(number, target)| Index { number, target, plan: &plan, request };
    let indexes: Vec<Index<'_>> = targets.iter().enumerate().map(index).collect();
    let found = provide(&indexes, report).map_err(|error| match error {
        Error::Format { .. } => unknown_field(&targets, &plan).unwrap_or(error),
        error => error,
    })?;
    if let Some(kept) = kept {
        kept.save(&fields);
    }
    Ok(Some(found.into_iter().map(|one| Arc::new(one) as Arc<dyn Container>).collect()))
}

/// Returns the fields that the rows of files have, and where to keep them if they are not kept
/// yet.
fn known_fields(
    layout: &dyn Layout,
    targets: &[Target],
    folder: Option<&Path>,
) -> Result<(Option<Vec<Field>>, Option<Inferred>)> {
    let looks = !layout.knows_fields();
    let inferred = looks.then(|| Inferred::of(layout, &originals(targets), folder));
    match inferred.as_ref().and_then(Inferred::load) {
        Some(fields) => Ok((Some(fields), None)),
        None => Ok((inferred_from(layout, targets)?, inferred)),
    }
}

/// Returns the files that are inspected to infer fields.
fn looked_at(targets: &[Target]) -> impl Iterator<Item = &Target> {
    targets.iter().step_by(targets.len().div_ceil(PROBED).max(1))
}

fn originals(targets: &[Target]) -> Vec<&Original> {
    looked_at(targets).map(|one| &one.original).collect()
}

/// Returns the fields that the rows of some files have.
fn inferred_from(layout: &dyn Layout, targets: &[Target]) -> Result<Option<Vec<Field>>> {
    let no_progress = |_| Ok(());
    let streams = looked_at(targets).map(|one| Stream::of(one.source(), &no_progress));
    let mut streams = streams.collect::<Result<Vec<_>>>()?;
    if streams.is_empty() { Ok(None) } else { layout.infer(&mut streams) }
}

/// Returns the error for a field that every row must have, but that no row has which is looked
/// at; none if every field was found.
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
    Some(Error::format(&targets.first()?.original.name, reason))
}

/// Returns how many rows of a file are inspected.
pub fn probe_rows(file: usize) -> usize {
    if file == 0 { PROBE_ROWS.0 } else { PROBE_ROWS.1 }
}
