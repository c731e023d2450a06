//! Building the indexes of files.

use std::fs;
use std::path::Path;

use super::Layout;
use super::container::Indexed;
use super::entry::{self, Width};
use super::find::{
    About, Content, Lookup, Plan, Target, VERSION, built, find, is_stale, json_of, keep_content,
};
use super::open::Request;
use super::sink::Sink;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::limit;
use crate::records::derived::{Derived, Original, Places, Progress, Stamp, protect, publish};
use crate::records::ingot::{Compression, Options, Writer, path};
use crate::records::publish::failed;
use crate::records::source::Source;
use crate::storage::{Memory, ReadAt};

/// The index of a file, as a file that is derived of it.
pub struct Index<'a> {
    pub number: usize,
    pub target: &'a Target,
    pub plan: &'a Plan<'a>,
    pub request: &'a Request<'a>,
}

impl Derived for Index<'_> {
    type Made = Indexed;

    const TITLE: &'static str = "index";

    fn original(&self) -> &Original {
        &self.target.original
    }

    fn places(&self) -> &Places {
        &self.target.places
    }

    fn bytes(&self) -> u64 {
        self.target.stamp().bytes
    }

    fn find(&self) -> Result<Option<Indexed>> {
        Ok(match find(self.target, self.plan)? {
            Lookup::Sound(found) => Some(found),
            _ => None,
        })
    }

    fn make(&self, place: &Path, progress: &Progress) -> Result<Indexed> {
        let (target, plan) = (self.target, self.plan);
        let read = |bytes| progress.add(bytes);
        if let Lookup::Unsure(found, known) = find(target, plan)? {
            let crc = Stream::of(target.source(), &read)?.finish()?;
            if crc == known.crc && is_steady(target)? {
                keep_content(target, &Content { data: target.stamp().clone(), ..known });
                return Ok(found);
            }
        }
        // What was decompressed just now was admitted before.
        if target.copy.as_ref().is_none_or(|copy| copy.is_found) {
            self.request.admit(self.number, progress)?;
        }
        let crc =
            publish(place, |hidden| match write(target, plan, Width::Narrow, hidden, &read)? {
                Written::Whole(crc) => Ok(crc),
                Written::TooNarrow => match write(target, plan, Width::Wide, hidden, &read)? {
                    Written::Whole(crc) => Ok(crc),
                    Written::TooNarrow => Err(changed(target)),
                },
            })?;
        let (found, index) = built(target, place, plan)?;
        keep_content(target, &Content { index, data: target.stamp().clone(), crc });
        Ok(found)
    }

    fn is_stale(&self, place: &Path) -> bool {
        is_stale(self.target, place)
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
    layout.scan(&mut Stream::of(source, &no_progress)?, &mut sink)?;
    let rows = sink.num_rows();
    writer.close()?;
    Ok(rows)
}

fn changed(target: &Target) -> Error {
    let why = "the file was changed while its index was built; open it again";
    Error::format(&target.original.name, why)
}

/// Returns the error for rows that cannot be indexed as they are.
fn refused(name: &str, why: Violation) -> Error {
    Error::format(name, format!("{why}; give ingot.open a spec with the fields that you need"))
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
        data: target.stamp().clone(),
    };
    // A torn index is found damaged and built again, so this does not wait for the device.
    let options = Options { compression: Compression::None, level: 0, sync: false };
    let schema = entry::schema(fields, width).map_err(|why| refused(&target.original.name, why))?;
    let mut writer = path::create(hidden, schema, &json_of(&about), options)?;
    protect(hidden, &target.original.location)
        .map_err(|source| failed(hidden, "set permissions", source))?;
    let mut stream = Stream::of(target.source(), progress)?;
    let mut sink = Sink::new(&mut writer, &target.original.name, fields, width, layout.unit());
    sink.is_strict = is_inferred;
    sink.max_bytes = limit::max_index_bytes(target.original.stamp.bytes);
    let scanned = layout.scan(&mut stream, &mut sink);
    let is_too_narrow = sink.is_too_narrow && width == Width::Narrow;
    if let Err(error) = scanned {
        writer.abandon();
        let _ = fs::remove_file(hidden);
        return if is_too_narrow { Ok(Written::TooNarrow) } else { Err(error) };
    }
    let crc = stream.finish();
    writer.close()?;
    let crc = crc?;
    if let Some(copy) = target.copy.as_ref().filter(|copy| copy.crc != crc) {
        copy.remove();
        let why = format!(
            "its decompressed copy {} was damaged, and is removed; open the file again",
            copy.path.display()
        );
        return Err(target.source().corrupt(0, why));
    }
    if is_steady(target)? { Ok(Written::Whole(crc)) } else { Err(changed(target)) }
}

/// Whether a file was not written to since its index was looked for.
fn is_steady(target: &Target) -> Result<bool> {
    Ok(Stamp::unsettled(target.source())?.is_steady(target.stamp()))
}
