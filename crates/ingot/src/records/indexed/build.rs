//! Building the indexes of files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::Layout;
use super::container::Indexed;
use super::entry::{self, Width};
use super::find::{
    About, Content, Lookup, Plan, Target, VERSION, built, find, json_of, keep_content,
};
use super::lock::FolderLock;
use super::open::{Report, Request};
use super::parallel::{Progress, in_parallel};
use super::part::{sweep, temporary};
use super::sink::Sink;
use super::stale::remove_stale;
use super::stamp::{Stamp, content};
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::foreign::kind::Kind;
use crate::limit;
use crate::records::ingot::{Compression, Options, Writer, path};
use crate::records::publish::failed;
use crate::records::source::Source;
use crate::records::unpack::remove_copy;
use crate::storage::{Memory, ReadAt};

/// Builds the indexes that were not found, on several threads; only one process does so in a
/// folder at a time, and the others find what it has built.
pub fn build_all(
    targets: &[Target],
    plan: &Plan<'_>,
    found: &mut [Lookup],
    request: &Request<'_>,
    report: &mut Report<'_>,
) -> Result<()> {
    let is_sound = |one: &Lookup| matches!(one, Lookup::Sound(_));
    let wanted: Vec<usize> = (0..targets.len()).filter(|&k| !is_sound(&found[k])).collect();
    let folders = prepared_all(targets, &wanted)?;
    let total = wanted.iter().map(|&k| targets[k].stamp.bytes).sum();
    let mut next = 0;
    let locks = FolderLock::wait(folders.clone(), &mut || {
        report(0, total)?;
        while let Some(&k) = wanted.get(next) {
            match find(&targets[k], plan)? {
                Lookup::Sound(one) => found[k] = Lookup::Sound(one),
                _ => return Ok(false),
            }
            next += 1;
        }
        Ok(true)
    })?;
    let Some(_locks) = locks else { return report(total, total) };
    tidy(targets, &wanted, &folders);
    let made = in_parallel(wanted.len(), total, report, &|number, progress| {
        let (k, target) = (wanted[number], &targets[wanted[number]]);
        one(target, plan, &folders[number], progress, &|| match target.crc {
            // It was admitted before it was decompressed.
            Some(_) => Ok(()),
            None => request.admit(k, progress),
        })
    })?;
    for (&k, one) in wanted.iter().zip(made) {
        found[k] = Lookup::Sound(Box::new(one));
    }
    Ok(())
}

/// Finds the index of a file, or builds it in a folder.
fn one(
    target: &Target,
    plan: &Plan<'_>,
    folder: &Path,
    progress: &Progress,
    admit: &dyn Fn() -> Result<()>,
) -> Result<Indexed> {
    let read = |bytes| progress.add(bytes);
    match find(target, plan)? {
        Lookup::Sound(found) => {
            progress.add(target.stamp.bytes)?;
            return Ok(*found);
        }
        Lookup::Unsure(found, known) => {
            let crc = content(target.source(), &read)?;
            if crc == known.crc && is_steady(target)? {
                keep_content(target, &Content { data: target.stamp.clone(), ..known });
                return Ok(*found);
            }
        }
        Lookup::Missing => {}
    }
    admit()?;
    let (place, crc) = build(target, plan, folder, &read)?;
    let (found, index) = built(target, &place, plan).ok_or_else(|| changed(target))?;
    keep_content(target, &Content { index, data: target.stamp.clone(), crc });
    Ok(found)
}

/// Removes what is of no use in the folders of indexes that are about to be built.
fn tidy(targets: &[Target], wanted: &[usize], folders: &[PathBuf]) {
    let mut there: HashMap<&Path, Vec<&Target>> = HashMap::new();
    for (&k, folder) in wanted.iter().zip(folders) {
        there.entry(folder).or_default().push(&targets[k]);
    }
    for (folder, targets) in there {
        sweep(folder);
        remove_stale(folder, &targets);
    }
}

/// Goes through a storage as [`super::open`] would, with the fields that its first rows have, and
/// returns the number of rows. Nothing is kept.
pub fn examine(layout: &dyn Layout, storage: &dyn ReadAt, name: &str) -> Result<u64> {
    let source = Source { storage, name };
    let no_progress = |_| Ok(());
    let fields = layout.infer(&mut [Stream::of(source, &no_progress)?])?.unwrap_or_default();
    let options = Options { compression: Compression::None, level: 0, sync: false };
    let schema = entry::schema(&fields, Width::Wide).map_err(|why| refused(name, why))?;
    let index = Box::new(Memory::default());
    let mut writer = Writer::create(index, "index", schema, "{}", options)?;
    let mut sink = Sink::new(&mut writer, name, &fields, Width::Wide, layout.unit());
    sink.is_strict = true;
    sink.max_bytes = limit::max_index_bytes(source.size()?);
    let kinds = Kind::of_fields(&fields);
    layout.scan(&kinds, &mut Stream::of(source, &no_progress)?, &mut sink)?;
    let rows = sink.num_rows();
    writer.close()?;
    Ok(rows)
}

fn changed(target: &Target) -> Error {
    let reason = "the file was changed while its index was built; open it again".to_owned();
    Error::Format { path: target.name.clone(), reason }
}

/// Returns the error for rows that cannot be indexed as they are.
fn refused(name: &str, why: Violation) -> Error {
    let reason = format!("{why}; give ingot.open a spec with the fields that you need");
    Error::Format { path: name.to_owned(), reason }
}

/// Makes the folders for the indexes of files, and returns them.
fn prepared_all(targets: &[Target], wanted: &[usize]) -> Result<Vec<PathBuf>> {
    let mut known: HashMap<Option<&Path>, PathBuf> = HashMap::new();
    let each = wanted.iter().map(|&k| {
        let first = targets[k].places.write.first().and_then(|place| place.parent());
        if let Some(folder) = known.get(&first) {
            return Ok(folder.clone());
        }
        let folder = prepared(&targets[k])?;
        known.insert(first, folder.clone());
        Ok(folder)
    });
    each.collect()
}

/// Makes the folder for the index of a file, and returns it: the first that can be written to.
fn prepared(target: &Target) -> Result<PathBuf> {
    let mut refused = None;
    for place in &target.places.write {
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

/// Builds the index of a file in a folder, and returns where it is, and the checksum of all bytes
/// of the file.
fn build(
    target: &Target,
    plan: &Plan<'_>,
    folder: &Path,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<(PathBuf, u32)> {
    let place = target.places.write.iter().find(|place| place.parent() == Some(folder));
    let place = place.expect("one of these folders was prepared");
    let hidden = temporary(place);
    let mut outcome = write(target, plan, Width::Narrow, &hidden, progress);
    if let Ok(Written::TooNarrow) = outcome {
        outcome = write(target, plan, Width::Wide, &hidden, progress);
    }
    let published = outcome.and_then(|written| {
        fs::rename(&hidden, place).map_err(|source| failed(place, "rename", source))?;
        Ok(written)
    });
    match published {
        Ok(Written::Whole(crc)) => Ok((place.clone(), crc)),
        other => {
            let _ = fs::remove_file(&hidden);
            Err(other.err().unwrap_or_else(|| changed(target)))
        }
    }
}

enum Written {
    /// All of it; the checksum is that of the file.
    Whole(u32),
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
    let schema = entry::schema(fields, width).map_err(|why| refused(&target.name, why))?;
    let mut writer = path::create(hidden, schema, &json_of(&about), options)?;
    let mut stream = Stream::of(target.source(), progress)?;
    let mut sink = Sink::new(&mut writer, &target.name, fields, width, layout.unit());
    sink.is_strict = is_inferred;
    sink.max_bytes = limit::max_index_bytes(target.origin.bytes);
    let scanned = layout.scan(&Kind::of_fields(fields), &mut stream, &mut sink);
    let is_too_narrow = sink.is_too_narrow && width == Width::Narrow;
    if let Err(error) = scanned {
        writer.abandon();
        let _ = fs::remove_file(hidden);
        return if is_too_narrow { Ok(Written::TooNarrow) } else { Err(error) };
    }
    let crc = stream.finish();
    writer.close()?;
    let crc = crc?;
    if target.crc.is_some_and(|known| known != crc) {
        remove_copy(Path::new(&target.name));
        let why = format!(
            "this decompressed copy of {} was damaged, and is removed; open the file again",
            target.home.name()
        );
        return Err(target.source().corrupt(0, Violation(why)));
    }
    if is_steady(target)? { Ok(Written::Whole(crc)) } else { Err(changed(target)) }
}

/// Whether nobody has written to a file since its index was looked for.
fn is_steady(target: &Target) -> Result<bool> {
    let current = Stamp::unsettled(&target.location, target.source())?;
    Ok(current.is_steady(&target.stamp))
}
