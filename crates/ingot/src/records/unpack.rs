//! Files that are compressed as a whole, decompressed once.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::indexed::{Change, FolderLock, Input, Report, Request, Stamp, each, in_parallel, note};
use super::indexed::{cache, chosen, home, name_of, sweep, temporary};
use super::open::reading;
use super::publish::failed;
use super::source::Source;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::foreign::litdata::{Framed, unpacked_items};
use crate::limit::Growth;
use crate::storage::Location;

/// The version of the notes about copies.
const VERSION: u32 = 1;

/// The endings of a copy, and of the note about it.
const COPY: &str = "unpacked";
const NOTE: &str = "copy";

/// Bytes that are decompressed between two looks at whether to go on.
const STEP: usize = 1 << 20;

/// How a file is compressed as a whole.
#[derive(Debug, Clone)]
pub struct Compressed {
    /// The name of the compression.
    pub compression: String,
    /// The bytes that it decompresses to, where that is known.
    pub bytes: Option<u64>,
}

/// The decompressed copy of a file.
#[derive(Debug, Clone)]
pub struct Copy {
    /// Where it is.
    pub path: PathBuf,
    /// The stamp of the copy.
    pub stamp: Stamp,
    /// The CRC-32C of all its bytes.
    pub crc: u32,
    /// The stamp of the file that it is a copy of.
    pub origin: Stamp,
}

/// What is known of a copy.
#[derive(Debug, Serialize, Deserialize)]
struct Known {
    copy: u32,
    compression: String,
    origin: Stamp,
    data: Stamp,
    crc: u32,
}

/// A file that is to be decompressed.
struct Job<'a> {
    number: usize,
    location: &'a Location,
    packed: &'a Compressed,
    target: PathBuf,
}

/// Returns the decompressed copies of those files that are compressed, and makes them unless they
/// are there. Only one process does so in a folder at a time, and the others find what it has
/// made.
pub fn unpack_all(
    inputs: &[Input],
    request: &Request<'_>,
    report: &mut Report<'_>,
) -> Result<Vec<Option<Copy>>> {
    let mut copies = vec![None; inputs.len()];
    let jobs = jobs_of(inputs, request.folder.as_deref())?;
    if jobs.is_empty() {
        return Ok(copies);
    }
    let found = each(jobs.len(), &|k| jobs[k].find());
    for (job, found) in jobs.iter().zip(found) {
        copies[job.number] = found?;
    }
    let wanted: Vec<&Job<'_>> = jobs.iter().filter(|job| copies[job.number].is_none()).collect();
    if wanted.is_empty() {
        return Ok(copies);
    }
    let folders = wanted.iter().filter_map(|job| job.target.parent().map(Path::to_path_buf));
    let mut folders: Vec<PathBuf> = folders.collect();
    folders.dedup();
    for folder in &folders {
        fs::create_dir_all(folder).map_err(|source| failed(folder, "create", source))?;
    }
    let size_of = |job: &&Job<'_>| {
        let (storage, name) = (reading(job.location)?, job.location.name());
        Source { storage: &*storage, name: &name }.size()
    };
    let total = wanted.iter().map(size_of).sum::<Result<u64>>()?;
    let mut next = 0;
    let locks = FolderLock::wait(folders.clone(), &mut || {
        report(0, total)?;
        while let Some(job) = wanted.get(next) {
            copies[job.number] = job.find()?;
            if copies[job.number].is_none() {
                return Ok(false);
            }
            next += 1;
        }
        Ok(true)
    })?;
    let Some(_locks) = locks else { return Ok(copies) };
    folders.iter().for_each(|folder| sweep(folder));
    let made = in_parallel(wanted.len(), total, report, &|number, progress| {
        let job = wanted[number];
        if let Some(copy) = job.find()? {
            return Ok(copy);
        }
        request.admit(job.number, progress)?;
        job.make(&|bytes| progress.add(bytes))
    })?;
    for (job, copy) in wanted.iter().zip(made) {
        copies[job.number] = Some(copy);
    }
    Ok(copies)
}

/// Removes a copy, so that it is made anew.
pub fn remove_copy(path: &Path) {
    let _ = fs::remove_file(path.with_extension(NOTE));
    let _ = fs::remove_file(path);
}

fn jobs_of<'a>(inputs: &'a [Input], folder: Option<&Path>) -> Result<Vec<Job<'a>>> {
    let mut jobs = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let Input { location, packed: Some(packed) } = input else { continue };
        let folder = chosen(folder).or_else(cache).ok_or_else(|| {
            let why = "there is no folder for the decompressed file; pass index_dir";
            refused(&location.name(), why)
        })?;
        let target = home(&folder, location).join(name_of(location, &packed.compression, COPY));
        jobs.push(Job { number, location, packed, target });
    }
    Ok(jobs)
}

fn refused(name: &str, reason: &str) -> Error {
    Error::Format { path: name.to_owned(), reason: reason.to_owned() }
}

impl Job<'_> {
    /// Returns the copy if it is there, whole and of this very file.
    fn find(&self) -> Result<Option<Copy>> {
        let Some(known) = note::load::<Known>(&self.target.with_extension(NOTE)) else {
            return Ok(None);
        };
        let is_whole = self.packed.bytes.is_none_or(|bytes| bytes == known.data.bytes);
        if known.copy != VERSION || known.compression != self.packed.compression || !is_whole {
            return Ok(None);
        }
        let (storage, name) = (reading(self.location)?, self.location.name());
        let source = Source { storage: &*storage, name: &name };
        let origin = Stamp::of(self.location, source)?;
        match origin.since(&known.origin) {
            Change::Same => {}
            Change::Unsure | Change::Changed => return Ok(None),
            Change::Damaged(offset) => {
                let why = "these bytes are not those that were decompressed before, although \
                           nobody has written to the file: it is damaged; copy it again";
                return Err(source.corrupt(offset, Violation(why.to_owned())));
            }
        }
        let path = Location::Path(self.target.clone());
        let Ok(storage) = reading(&path) else { return Ok(None) };
        let source = Source { storage: &*storage, name: &path.name() };
        let is_same = |stamp: Stamp| stamp.since(&known.data) == Change::Same;
        if !Stamp::unsettled(&path, source).is_ok_and(is_same) {
            return Ok(None);
        }
        let (path, stamp, crc) = (self.target.clone(), known.data, known.crc);
        Ok(Some(Copy { path, stamp, crc, origin }))
    }

    /// Decompresses the file. Its copy takes the place of one of what the file was before.
    fn make(&self, progress: &dyn Fn(u64) -> Result<()>) -> Result<Copy> {
        let (storage, name) = (reading(self.location)?, self.location.name());
        let source = Source { storage: &*storage, name: &name };
        let origin = Stamp::of(self.location, source)?;
        let hidden = temporary(&self.target);
        remove_copy(&self.target);
        let made = self.write(source, &origin, &hidden, progress).and_then(|crc| {
            fs::rename(&hidden, &self.target)
                .map_err(|source| failed(&self.target, "rename", source))?;
            Ok(crc)
        });
        if made.is_err() {
            let _ = fs::remove_file(&hidden);
        }
        let crc = made?;
        if !Stamp::unsettled(self.location, source)?.is_steady(&origin) {
            remove_copy(&self.target);
            return Err(refused(&name, "it was changed while it was decompressed; open it again"));
        }
        let location = Location::Path(self.target.clone());
        let storage = reading(&location)?;
        let source = Source { storage: &*storage, name: &location.name() };
        let stamp = Stamp::unsettled(&location, source)?;
        let known = Known {
            copy: VERSION,
            compression: self.packed.compression.clone(),
            origin: origin.clone(),
            data: stamp.clone(),
            crc,
        };
        note::save(&self.target.with_extension(NOTE), &known);
        Ok(Copy { path: self.target.clone(), stamp, crc, origin })
    }

    /// Writes the decompressed bytes, and returns their checksum.
    fn write(
        &self,
        source: Source<'_>,
        origin: &Stamp,
        hidden: &Path,
        progress: &dyn Fn(u64) -> Result<()>,
    ) -> Result<u32> {
        let written = |source| failed(hidden, "write", source);
        let mut out = File::create(hidden).map_err(|source| failed(hidden, "create", source))?;
        let (mut done, mut crc, mut growth) = (0, 0, Growth::default());
        let mut plain = reader(&self.packed.compression, self.location, source, progress)?;
        let mut buffer = vec![0; STEP];
        loop {
            progress(0)?;
            let some = plain.read(&mut buffer).map_err(|error| {
                let compression = &self.packed.compression;
                source.corrupt(0, Violation(format!("cannot decompress {compression}: {error}")))
            })?;
            if some == 0 {
                break;
            }
            let stored = if done == 0 { origin.bytes } else { 0 };
            done += some as u64;
            if self.packed.bytes.is_some_and(|bytes| done > bytes) {
                break;
            }
            growth.add(stored, some as u64).map_err(|why| refused(source.name, &why))?;
            out.write_all(&buffer[..some]).map_err(written)?;
            crc = Sum::Crc32c.append(crc, &buffer[..some]);
        }
        if let Some(bytes) = self.packed.bytes.filter(|&bytes| bytes != done) {
            let why = format!("it decompresses to {done} bytes or more, expected {bytes}");
            return Err(source.corrupt(0, Violation(why)));
        }
        // A copy that is made again is the same file for those who tell files by this time.
        let time = origin.mtime_ns.and_then(|time| u64::try_from(time).ok());
        if let Some(time) = time {
            let _ = out.set_modified(UNIX_EPOCH + Duration::from_nanos(time));
        }
        // The note tells that all of it is there, also after a power failure.
        out.sync_all().map_err(written)?;
        Ok(crc)
    }
}

/// A file whose reader tells how far it is.
struct Counted<'a> {
    file: File,
    progress: &'a dyn Fn(u64) -> Result<()>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        // Whoever decompresses asks whether to go on.
        let _ = (self.progress)(read as u64);
        Ok(read)
    }
}

/// Returns what decompresses a file.
fn reader<'a>(
    compression: &str,
    location: &Location,
    source: Source<'a>,
    progress: &'a dyn Fn(u64) -> Result<()>,
) -> Result<Box<dyn Read + 'a>> {
    let whole = || source.read(0, source.size()?);
    let damaged = |why: String| source.corrupt(0, Violation(why));
    let counted = || {
        let path = match location {
            Location::Path(path) => path.as_path(),
            Location::Url(url) => Path::new(url),
        };
        let file = File::open(path).map_err(|source| failed(path, "open", source))?;
        Ok::<_, Error>(BufReader::new(Counted { file, progress }))
    };
    match compression {
        "litdata" => {
            let chunk = whole()?;
            let plain = match Framed::begins(&chunk) {
                true => Framed::decode(&chunk).and_then(|framed| framed.unpacked()),
                false => unpacked_items(&chunk),
            };
            Ok(Box::new(io::Cursor::new(plain.map_err(|why| source.corrupt(0, why))?)))
        }
        "zstd" => {
            let opened = zstd::stream::read::Decoder::with_buffer(counted()?);
            Ok(Box::new(opened.map_err(|error| source.failed(0, error))?))
        }
        "br" => Ok(Box::new(brotli::Decompressor::new(counted()?, 64 << 10))),
        "bz2" => Ok(Box::new(bzip2::bufread::MultiBzDecoder::new(counted()?))),
        "gz" => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(counted()?))),
        "snappy" => {
            let stored = whole()?;
            let len = snap::raw::decompress_len(&stored);
            let len = len.map_err(|error| damaged(error.to_string()))?;
            let mut growth = Growth::default();
            growth
                .add(stored.len() as u64, len as u64)
                .map_err(|why| refused(source.name, &why))?;
            let plain = snap::raw::Decoder::new().decompress_vec(&stored);
            let plain = plain.map_err(|error| damaged(error.to_string()))?;
            Ok(Box::new(io::Cursor::new(plain)))
        }
        other => {
            let why = format!(
                "files compressed with {other} are not read, only zstd, br, bz2, gz and snappy; \
                 decompress them"
            );
            Err(refused(source.name, &why))
        }
    }
}
