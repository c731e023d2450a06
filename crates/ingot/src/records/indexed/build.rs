//! Finding the indexes of files, and building those that are missing, stale or damaged.

use std::fs::{self, File, TryLockError};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::container::Indexed;
use super::entry::{self, Width};
use super::inferred::Inferred;
use super::part::{sweep, temporary};
use super::place::candidates;
use super::sink::Sink;
use super::stamp::Stamp;
use super::stream::Stream;
use super::{Layout, PROBE_ROWS};
use crate::error::{Error, Result};
use crate::format::foreign::kind::Kind;
use crate::format::ingot::{Field, Schema};
use crate::pool::Pool;
use crate::records::container::Container;
use crate::records::ingot::{Compression, Options, Reader, Writer, path};
use crate::records::open::{Mode, reading};
use crate::records::source::Source;
use crate::storage::{Location, Memory, ReadAt};

/// The version of what is in an index.
pub(super) const VERSION: u32 = 2;

/// An index of no more bytes is read and verified whole when it is opened.
const VERIFIED: u64 = 64 << 20;

/// Files that are looked at to infer fields.
const PROBED: usize = 8;

/// How long whoever waits sleeps until it looks how far the work is: short at first, for small
/// files.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(20));

/// Name of the file that is locked while indexes are built in its folder.
const LOCK: &str = "lock";

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

/// What an index says about itself: the metadata of its file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct About {
    index: u32,
    format: String,
    options: String,
    fields: Vec<Field>,
    /// Whether nobody has asked for these fields, so that no row has any other.
    inferred: bool,
    wide: bool,
    data: Stamp,
}

/// A file whose index is looked for.
struct Target {
    location: Location,
    storage: Arc<dyn ReadAt>,
    name: String,
    stamp: Stamp,
    places: Vec<PathBuf>,
}

impl Target {
    fn of(location: &Location) -> Result<Target> {
        let storage = reading(location)?;
        let name = location.name();
        let stamp = Stamp::of(location, Source { storage: &*storage, name: &name })?;
        Ok(Target { location: location.clone(), storage, name, stamp, places: Vec::new() })
    }

    fn source(&self) -> Source<'_> {
        Source { storage: &*self.storage, name: &self.name }
    }
}

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

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("these are plain values")
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

/// Returns the file with an index that is sound and belongs to it.
fn find(target: &Target, plan: &Plan<'_>) -> Option<Indexed> {
    target.places.iter().find_map(|place| opened(target, place, plan))
}

fn opened(target: &Target, place: &Path, plan: &Plan<'_>) -> Option<Indexed> {
    let index = path::open(place, Mode::Whole).ok()?;
    let about: About = serde_json::from_str(index.metadata()).ok()?;
    let width = if about.wide { Width::Wide } else { Width::Narrow };
    let is_ours = about.index == VERSION
        && about.format == plan.layout.format()
        && about.options == plan.layout.options()
        && about.data == target.stamp
        && about.fields == plan.fields
        && about.inferred == plan.is_inferred
        && entry::schema(&about.fields, width).is_ok_and(|schema| schema == *index.schema());
    if !is_ours || !is_sound(&index) {
        return None;
    }
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
        fingerprint: target.stamp.fingerprint(),
    })
}

/// Whether nothing in an index is damaged, as far as that is looked at now. What is found
/// damaged later is an error that names the index.
fn is_sound(index: &Reader) -> bool {
    let is_small = index.stats().file_bytes <= VERIFIED;
    !is_small || index.verify(&mut |_| Ok(())).is_ok_and(|found| found.damaged.is_empty())
}

/// What is indexed.
struct Plan<'a> {
    layout: &'a dyn Layout,
    fields: &'a [Field],
    /// Whether nobody has asked for these fields, so that others must not be lost.
    is_inferred: bool,
}

impl Plan<'_> {
    /// Returns what tells one way to index a file from another.
    fn key(&self) -> String {
        let chosen = if self.is_inferred { "inferred" } else { "given" };
        [self.layout.format(), &self.layout.options(), chosen, &json_of(&self.fields)].join("\n")
    }
}

/// Builds the indexes that were not found, on several threads; only one process does so in a
/// folder at a time, and the others find what it has built.
fn build_all(
    targets: &[Target],
    plan: &Plan<'_>,
    found: &mut [Option<Indexed>],
    report: &mut Report<'_>,
) -> Result<()> {
    let wanted: Vec<usize> = (0..targets.len()).filter(|&k| found[k].is_none()).collect();
    let folder = prepared(&targets[wanted[0]])?;
    let total = wanted.iter().map(|&k| targets[k].stamp.bytes).sum();
    let _lock = locked(&folder, &mut || report(0, total))?;
    sweep(&folder);
    let work = Work {
        next: AtomicUsize::new(0),
        done: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        outcomes: wanted.iter().map(|_| Mutex::new(None)).collect(),
    };
    let one = |k: usize| -> Result<Indexed> {
        let target = &targets[k];
        if let Some(found) = find(target, plan) {
            work.done.fetch_add(target.stamp.bytes, Ordering::Relaxed);
            return Ok(found);
        }
        let built = build(target, plan, &|bytes| work.add(bytes))?;
        opened(target, &built, plan).ok_or_else(|| changed(target))
    };
    thread::scope(|scope| {
        let threads = Pool::compute().width().clamp(1, wanted.len());
        let running: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| work.run(|number| one(wanted[number])))).collect();
        let (mut told, mut pause) = (Ok(()), PAUSES.0);
        while running.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(pause);
            pause = PAUSES.1.min(2 * pause);
            told = told.and_then(|()| report(work.done.load(Ordering::Relaxed), total));
            if told.is_err() {
                work.stopped.store(true, Ordering::Relaxed);
            }
        }
        told
    })?;
    report(total, total)?;
    let mut stopped = None;
    for (&k, outcome) in wanted.iter().zip(work.outcomes) {
        match outcome.into_inner().expect("no panics under this lock") {
            Some(Ok(one)) => found[k] = Some(one),
            // The others stopped because one failed; that one says why.
            Some(Err(Error::Invalid(_))) | None => stopped = Some(&targets[k]),
            Some(Err(error)) => return Err(error),
        }
    }
    stopped.map_or(Ok(()), |target| Err(changed(target)))
}

/// Goes through a storage as [`open`] would, with the fields that its first rows have, and
/// returns the number of rows. Nothing is kept.
pub fn examine(layout: &dyn Layout, storage: &dyn ReadAt, name: &str) -> Result<u64> {
    let source = Source { storage, name };
    let no_progress = |_| Ok(());
    let fields = layout.infer(&mut [Stream::of(source, &no_progress)?])?.unwrap_or_default();
    let options = Options { compression: Compression::None, level: 0, sync: false };
    let schema = entry::schema(&fields, Width::Wide)?;
    let index = Box::new(Memory::default());
    let mut writer = Writer::create(index, "index", schema, "{}", options)?;
    let mut sink = Sink::new(&mut writer, name, &fields, Width::Wide, layout.unit());
    sink.is_strict = true;
    let kinds = Kind::of_fields(&fields);
    layout.scan(&kinds, &mut Stream::of(source, &no_progress)?, &mut sink)?;
    let rows = sink.num_rows();
    writer.close()?;
    Ok(rows)
}

/// Files that several threads index.
struct Work {
    next: AtomicUsize,
    done: AtomicU64,
    stopped: AtomicBool,
    outcomes: Vec<Mutex<Option<Result<Indexed>>>>,
}

impl Work {
    fn add(&self, bytes: u64) -> Result<()> {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::Invalid("stopped".to_owned()));
        }
        Ok(())
    }

    fn run(&self, one: impl Fn(usize) -> Result<Indexed>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(outcome) = self.outcomes.get(number) else { return };
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let found = one(number);
            if found.is_err() {
                self.stopped.store(true, Ordering::Relaxed);
            }
            *outcome.lock().expect("no panics under this lock") = Some(found);
        }
    }
}

fn changed(target: &Target) -> Error {
    let reason = "the file was changed while its index was built; open it again".to_owned();
    Error::Format { path: target.name.clone(), reason }
}

/// Makes the folder for the index of a file, and returns it: the first that can be written to.
fn prepared(target: &Target) -> Result<PathBuf> {
    let mut refused = None;
    for place in &target.places {
        let folder = place.parent().unwrap_or(Path::new("."));
        match fs::create_dir_all(folder).and_then(|()| try_folder(folder)) {
            Ok(()) => return Ok(folder.to_path_buf()),
            Err(source) => refused = Some((folder, source)),
        }
    }
    let (folder, source) = refused.ok_or_else(|| {
        let reason = "there is no folder for its index; pass index_dir".to_owned();
        Error::Format { path: target.name.clone(), reason }
    })?;
    let path = format!("{} (the folder for the index of {})", folder.display(), target.name);
    Err(Error::Storage { path, record: None, offset: 0, action: "write", source })
}

/// Fails if no file can be made in a folder.
fn try_folder(folder: &Path) -> io::Result<()> {
    let probe = temporary(&folder.join("probe"));
    File::create(&probe)?;
    fs::remove_file(probe)
}

/// Waits until no other process builds indexes in a folder. Where files cannot be locked, they
/// build the same indexes side by side, and each is whole when it gets its name.
fn locked(folder: &Path, watch: &mut dyn FnMut() -> Result<()>) -> Result<Option<File>> {
    let mut options = File::options();
    options.create(true).append(true);
    // Neither a link that leads elsewhere nor a pipe that nobody reads is a lock.
    #[cfg(unix)]
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let Ok(file) = options.open(folder.join(LOCK)) else { return Ok(None) };
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {
                watch()?;
                thread::sleep(PAUSES.1);
            }
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
}

/// Builds the index of a file, and returns where it is.
fn build(
    target: &Target,
    plan: &Plan<'_>,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<PathBuf> {
    let folder = prepared(target)?;
    let place = target.places.iter().find(|place| place.parent() == Some(&folder));
    let place = place.expect("one of these folders was prepared");
    let hidden = temporary(place);
    let mut outcome = write(target, plan, Width::Narrow, &hidden, progress);
    if let Ok(Written::TooNarrow) = outcome {
        outcome = write(target, plan, Width::Wide, &hidden, progress);
    }
    let published = outcome.and_then(|_| {
        fs::rename(&hidden, place).map_err(|source| Error::Storage {
            path: place.display().to_string(),
            record: None,
            offset: 0,
            action: "rename",
            source,
        })
    });
    if published.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    published.map(|()| place.clone())
}

#[derive(PartialEq, Eq)]
enum Written {
    Whole,
    TooNarrow,
}

fn write(
    target: &Target,
    plan: &Plan<'_>,
    width: Width,
    hidden: &Path,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<Written> {
    let Plan { layout, fields, is_inferred } = *plan;
    let about = About {
        index: VERSION,
        format: layout.format().to_owned(),
        options: layout.options(),
        fields: fields.to_vec(),
        inferred: is_inferred,
        wide: width == Width::Wide,
        data: target.stamp.clone(),
    };
    // A torn index is found damaged and built again, so nobody waits for the device.
    let options = Options { compression: Compression::None, level: 0, sync: false };
    let schema = entry::schema(fields, width)?;
    let mut writer = path::create(hidden, schema, &json_of(&about), options)?;
    let mut stream = Stream::of(target.source(), progress)?;
    let mut sink = Sink::new(&mut writer, &target.name, fields, width, layout.unit());
    sink.is_strict = is_inferred;
    let scanned = layout.scan(&Kind::of_fields(fields), &mut stream, &mut sink);
    let is_too_narrow = sink.is_too_narrow && width == Width::Narrow;
    if let Err(error) = scanned {
        writer.abandon();
        let _ = fs::remove_file(hidden);
        return if is_too_narrow { Ok(Written::TooNarrow) } else { Err(error) };
    }
    writer.close()?;
    if Stamp::of(&target.location, target.source())? != target.stamp {
        return Err(changed(target));
    }
    Ok(Written::Whole)
}
