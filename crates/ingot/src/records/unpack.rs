//! Files that are compressed as a whole, decompressed once into the user's cache.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use super::indexed::{Stamp, cache, chosen, sweep, temporary};
use super::open::reading;
use super::publish::failed;
use super::source::{Source, Watch};
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::foreign::litdata::{Framed, unpacked_items};
use crate::format::riegeli::hash;
use crate::limit::Growth;

/// Bytes of the file's name in that of the decompressed one.
const NAME_MAX: usize = 100;

/// Bytes that are decompressed between two looks at whether to go on.
const STEP: usize = 1 << 20;

/// Returns the decompressed file of the one at `path`, and makes it unless it is there. `bytes`
/// is the size that it must have, where that is known.
pub fn unpack(
    path: &Path,
    compression: &str,
    bytes: Option<u64>,
    folder: Option<&Path>,
    watch: &mut Watch<'_>,
) -> Result<PathBuf> {
    let location = path.into();
    let storage = reading(&location)?;
    let name = location.name();
    let source = Source { storage: &*storage, name: &name };
    let stamp = Stamp::of(&location, source)?;
    let text = [name.as_bytes(), b"\0", &stamp.fingerprint(), compression.as_bytes()].concat();
    let folder = chosen(folder).or_else(cache).ok_or_else(|| {
        refused(&name, "there is no folder for the decompressed file; pass index_dir")
    })?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let shown = (0..=NAME_MAX).rev().find_map(|end| file_name.get(..end)).unwrap_or(&file_name);
    let target = folder.join(format!("{shown}.{:016x}.unpacked", hash(&text)));
    if fs::metadata(&target).is_ok_and(|found| bytes.is_none_or(|bytes| bytes == found.len())) {
        return Ok(target);
    }
    fs::create_dir_all(&folder).map_err(|source| failed(&folder, "create", source))?;
    sweep(&folder);
    let hidden = temporary(&target);
    let made = write(source, path, compression, bytes, &hidden, watch)
        .and_then(|()| fs::rename(&hidden, &target).map_err(|one| failed(&target, "rename", one)));
    if made.is_err() {
        let _ = fs::remove_file(&hidden);
    }
    made.map(|()| target)
}

fn refused(name: &str, reason: &str) -> Error {
    Error::Format { path: name.to_owned(), reason: reason.to_owned() }
}

fn write(
    source: Source<'_>,
    path: &Path,
    compression: &str,
    bytes: Option<u64>,
    hidden: &Path,
    watch: &mut Watch<'_>,
) -> Result<()> {
    let mut out = File::create(hidden).map_err(|source| failed(hidden, "create", source))?;
    if compression == "litdata" {
        let chunk = source.read(0, source.size()?)?;
        let plain = match Framed::begins(&chunk) {
            true => Framed::decode(&chunk).and_then(|framed| framed.unpacked()),
            false => unpacked_items(&chunk),
        };
        let plain = plain.map_err(|why| source.corrupt(0, why))?;
        out.write_all(&plain).map_err(|source| failed(hidden, "write", source))?;
        return out.sync_all().map_err(|source| failed(hidden, "write", source));
    }
    let file = File::open(path).map_err(|source| failed(path, "open", source))?;
    let mut plain = reader(compression, BufReader::new(file), source)?;
    let stored = source.size()?;
    let (mut done, mut growth) = (0, Growth::default());
    let mut buffer = vec![0; STEP];
    loop {
        watch()?;
        let some = plain.read(&mut buffer).map_err(|error| {
            source.corrupt(0, Violation(format!("cannot decompress {compression}: {error}")))
        })?;
        if some == 0 {
            break;
        }
        done += some as u64;
        let limit = if done == some as u64 { stored } else { 0 };
        if bytes.is_some_and(|bytes| done > bytes) {
            break;
        }
        growth.add(limit, some as u64).map_err(|why| refused(source.name, &why))?;
        out.write_all(&buffer[..some]).map_err(|source| failed(hidden, "write", source))?;
    }
    match bytes {
        Some(bytes) if bytes != done => {
            let why = format!("it decompresses to {done} bytes or more, expected {bytes}");
            Err(source.corrupt(0, Violation(why)))
        }
        // The name tells that all of it is there, also after a power failure.
        _ => out.sync_all().map_err(|source| failed(hidden, "write", source)),
    }
}

/// Returns what decompresses a file.
fn reader(compression: &str, file: BufReader<File>, source: Source<'_>) -> Result<Box<dyn Read>> {
    match compression {
        "zstd" => {
            let opened = zstd::stream::read::Decoder::with_buffer(file);
            let opened = opened.map_err(|error| source.failed(0, error))?;
            Ok(Box::new(opened))
        }
        "br" => Ok(Box::new(brotli::Decompressor::new(file, 64 << 10))),
        "bz2" => Ok(Box::new(bzip2::bufread::MultiBzDecoder::new(file))),
        "gz" => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(file))),
        "snappy" => {
            let stored = source.read(0, source.size()?)?;
            let len = snap::raw::decompress_len(&stored);
            let len = len.map_err(|error| source.corrupt(0, Violation(error.to_string())))?;
            let mut growth = Growth::default();
            growth
                .add(stored.len() as u64, len as u64)
                .map_err(|why| refused(source.name, &why))?;
            let plain = snap::raw::Decoder::new().decompress_vec(&stored);
            let plain = plain.map_err(|error| source.corrupt(0, Violation(error.to_string())))?;
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
