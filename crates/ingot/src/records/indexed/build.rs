//! Building the indexes of files.

use std::fs::{self, File, TryLockError};
use std::io;
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::Layout;
use super::container::Indexed;
use super::entry::{self, Width};
use super::find::{About, Plan, Target, VERSION, find, json_of, opened};
use super::open::Report;
use super::part::{sweep, temporary};
use super::sink::Sink;
use super::stamp::Stamp;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::format::foreign::kind::Kind;
use crate::pool::Pool;
use crate::records::ingot::{Compression, Options, Writer, path};
use crate::records::source::Source;
use crate::storage::{Memory, ReadAt};

/// How long whoever waits sleeps until it looks how far the work is: short at first, for small
/// files.
const PAUSES: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(20));

/// Name of the file that is locked while indexes are built in its folder.
const LOCK: &str = "lock";

/// Builds the indexes that were not found, on several threads; only one process does so in a
/// folder at a time, and the others find what it has built.
pub fn build_all(
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

/// Goes through a storage as [`super::open`] would, with the fields that its first rows have, and
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
    let path = format!(
        "{} (the folder for the index of {}; INGOT_INDEX_DIR names another)",
        folder.display(),
        target.name
    );
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
