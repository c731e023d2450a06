//! Files that are compressed as a whole, decompressed once: the copies are derived files.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::open::Request;
use super::stream::Stream;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::foreign::litdata::{Framed, unpacked_items};
use crate::limit::Growth;
use crate::records::derived::{
    COPY, COPY_NOTE, Change, Derived, Original, Places, Progress, Report, Stamp, Use, protect,
    provide, publish, shrink,
};
use crate::records::publish::failed;
use crate::records::source::Source;
use crate::storage::{Guard, Location, ReadAt, opening};

/// The version of the notes about copies.
const VERSION: u32 = 1;

/// Bytes that are decompressed at a time.
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
#[derive(Clone)]
pub struct Copy {
    pub path: PathBuf,
    pub storage: Arc<dyn ReadAt>,
    pub stamp: Stamp,
    /// The CRC-32C of all its bytes.
    pub crc: u32,
    /// Whether it was there.
    pub is_found: bool,
}

impl Copy {
    /// Removes the copy, so that it is made again.
    pub fn remove(&self) {
        let _ = fs::remove_file(self.path.with_extension(COPY_NOTE));
        let _ = fs::remove_file(&self.path);
    }
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
    original: &'a Original,
    packed: &'a Compressed,
    places: Places,
    request: &'a Request<'a>,
    /// Says that the copy is in use.
    guard: Option<Guard>,
}

/// Returns the decompressed copies of those files that are compressed, which are made unless they
/// are there.
pub fn unpack_all(
    files: &[(Original, Option<Compressed>)],
    request: &Request<'_>,
    report: &mut Report<'_>,
) -> Result<Vec<Option<Copy>>> {
    let mut copies = vec![None; files.len()];
    let packed = files.iter().enumerate().filter_map(|(number, (original, packed))| {
        let packed = packed.as_ref()?;
        let (location, folder) = (&original.location, request.folder.as_deref());
        let places = Places::apart(location, &packed.compression, COPY, folder);
        Some(Job { number, original, packed, places, request, guard: None })
    });
    let mut jobs: Vec<Job<'_>> = packed.collect();
    if jobs.is_empty() {
        return Ok(copies);
    }
    let guard = Use::of(jobs.iter().flat_map(|job| &job.places.read)).map(|used| used as Guard);
    jobs.iter_mut().for_each(|job| job.guard.clone_from(&guard));
    for (job, copy) in jobs.iter().zip(provide(&jobs, report)?) {
        copies[job.number] = Some(copy);
    }
    let there = || copies.iter().flatten();
    if there().any(|copy| !copy.is_found) {
        shrink(&there().map(|copy| copy.path.clone()).collect::<Vec<_>>());
    }
    Ok(copies)
}

impl Job<'_> {
    fn open(&self, place: &Path) -> Result<Arc<dyn ReadAt>> {
        let opened = Location::Path(place.to_path_buf()).open_with(self.guard.clone());
        opened.map_err(|source| failed(place, "open", source))
    }

    /// Writes the decompressed bytes, and returns their checksum.
    fn write(&self, hidden: &Path, progress: &Progress) -> Result<u32> {
        let source = self.original.source();
        let written = |source| failed(hidden, "write", source);
        let out = create(hidden, &self.original.location);
        let mut out = out.map_err(|source| failed(hidden, "create", source))?;
        let (mut done, mut crc, mut growth) = (0, 0, Growth::default());
        let (read, broken) = (|bytes| progress.add(bytes), Mutex::new(None));
        let stored = Stored { stream: Stream::of(source, &read)?, broken: &broken };
        let mut plain = decompressed(&self.packed.compression, source, stored)?;
        let mut buffer = vec![0; STEP];
        loop {
            progress.add(0)?;
            let some = plain.read(&mut buffer).map_err(|error| {
                let broken = broken.lock().expect("no panics under this lock").take();
                let compression = &self.packed.compression;
                broken.unwrap_or_else(|| {
                    source.corrupt(0, format!("cannot decompress {compression}: {error}"))
                })
            })?;
            if some == 0 {
                break;
            }
            let stored = if done == 0 { self.original.stamp.bytes } else { 0 };
            done += some as u64;
            if self.packed.bytes.is_some_and(|bytes| done > bytes) {
                break;
            }
            growth.add(stored, some as u64).map_err(|why| Error::format(source.name, why))?;
            out.write_all(&buffer[..some]).map_err(written)?;
            crc = Sum::Crc32c.append(crc, &buffer[..some]);
        }
        if let Some(bytes) = self.packed.bytes.filter(|&bytes| bytes != done) {
            let why = format!("decompresses to at least {done} bytes, expected {bytes}");
            return Err(source.corrupt(0, why));
        }
        // The note says that the copy is complete, even after a power failure.
        out.sync_all().map_err(written)?;
        if !Stamp::unsettled(source)?.is_steady(&self.original.stamp) {
            let why = "changed while it was decompressed; open it again";
            return Err(Error::format(source.name, why));
        }
        Ok(crc)
    }
}

/// Creates a file that is readable only by users who may read the original.
fn create(path: &Path, original: &Location) -> io::Result<File> {
    let file = opening(|| File::create_new(path))?;
    protect(path, original)?;
    Ok(file)
}

impl Derived for Job<'_> {
    type Made = Copy;

    const TITLE: &'static str = "decompressed copy";

    fn original(&self) -> &Original {
        self.original
    }

    fn places(&self) -> &Places {
        &self.places
    }

    fn bytes(&self) -> u64 {
        self.original.stamp.bytes
    }

    fn find(&self) -> Result<Option<Copy>> {
        let notes = self.places.with_extension(COPY_NOTE);
        let (Some(place), Some(known)) = (self.places.read.first(), notes.notes::<Known>().next())
        else {
            return Ok(None);
        };
        let is_whole = self.packed.bytes.is_none_or(|bytes| bytes == known.data.bytes);
        if known.copy != VERSION || known.compression != self.packed.compression || !is_whole {
            return Ok(None);
        }
        match self.original.stamp.since(&known.origin) {
            Change::Same => {}
            Change::Unsure | Change::Changed => return Ok(None),
            Change::Damaged(offset) => {
                let why = "these bytes differ from those that were decompressed before, although \
                           the file was not written to: it is damaged; copy it again";
                return Err(self.original.source().corrupt(offset, why.to_owned()));
            }
        }
        let Ok(storage) = self.open(place) else { return Ok(None) };
        let now = Stamp::unsettled(Source { storage: &*storage, name: &self.original.name });
        if !now.is_ok_and(|now| now.since(&known.data) == Change::Same) {
            return Ok(None);
        }
        for note in &notes.read {
            // Tells which copies were not used for the longest time.
            let touched = File::options().append(true).open(note);
            let _ = touched.and_then(|note| note.set_modified(SystemTime::now()));
        }
        let (path, stamp, crc) = (place.clone(), known.data, known.crc);
        Ok(Some(Copy { path, storage, stamp, crc, is_found: true }))
    }

    fn make(&self, place: &Path, progress: &Progress) -> Result<Copy> {
        self.request.admit(self.number, progress)?;
        let crc = publish(place, |hidden| self.write(hidden, progress))?;
        let storage = self.open(place)?;
        let stamp = Stamp::unsettled(Source { storage: &*storage, name: &self.original.name })?;
        let known = Known {
            copy: VERSION,
            compression: self.packed.compression.clone(),
            origin: self.original.stamp.clone(),
            data: stamp.clone(),
            crc,
        };
        self.places.with_extension(COPY_NOTE).save_note(&known);
        Ok(Copy { path: place.to_path_buf(), storage, stamp, crc, is_found: false })
    }
}

/// The stored bytes of a file. An error of the storage is kept: decompressors report it as damage.
struct Stored<'a> {
    stream: Stream<'a>,
    broken: &'a Mutex<Option<Error>>,
}

impl BufRead for Stored<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let broken = self.broken;
        self.stream.ready().map_err(|error| {
            *broken.lock().expect("no panics under this lock") = Some(error);
            io::Error::other("the file cannot be read")
        })
    }

    fn consume(&mut self, bytes: usize) {
        self.stream.advance(bytes);
    }
}

impl Read for Stored<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let some = ready.len().min(buffer.len());
        buffer[..some].copy_from_slice(&ready[..some]);
        self.consume(some);
        Ok(some)
    }
}

/// Returns what decompresses the stored bytes of a file.
fn decompressed<'a>(
    compression: &str,
    source: Source<'a>,
    stored: Stored<'a>,
) -> Result<Box<dyn Read + 'a>> {
    let whole = || source.read(0, source.size()?);
    let damaged = |why: String| source.corrupt(0, why);
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
            let opened = zstd::stream::read::Decoder::with_buffer(stored);
            Ok(Box::new(opened.map_err(|error| source.failed(0, error))?))
        }
        "br" => Ok(Box::new(brotli::Decompressor::new(stored, 64 << 10))),
        "bz2" => Ok(Box::new(bzip2::bufread::MultiBzDecoder::new(stored))),
        "gz" => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(stored))),
        "snappy" => {
            let stored = whole()?;
            let len = snap::raw::decompress_len(&stored);
            let len = len.map_err(|error| damaged(error.to_string()))?;
            let mut growth = Growth::default();
            growth
                .add(stored.len() as u64, len as u64)
                .map_err(|why| Error::format(source.name, why))?;
            let plain = snap::raw::Decoder::new().decompress_vec(&stored);
            let plain = plain.map_err(|error| damaged(error.to_string()))?;
            Ok(Box::new(io::Cursor::new(plain)))
        }
        other => {
            let why = format!(
                "unsupported compression {other} (supported: zstd, br, bz2, gz, snappy); \
                 decompress the file"
            );
            Err(Error::format(source.name, why))
        }
    }
}
