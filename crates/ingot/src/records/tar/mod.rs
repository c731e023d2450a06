//! Tar archives, as WebDataset writes them: the members that share a key are a row.

mod members;

use std::sync::Arc;

use super::indexed::{self, Layout, PROBE_BYTES, Place, Seen, Sink, Stream, probe_rows};
use super::open::Format;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::foreign::number::Number;
use crate::format::foreign::tar::{begins, is_meta, split};
use crate::format::foreign::{Coding, Recipe};
use crate::format::ingot::Field;
use members::{Found, Members, Named, padded};

/// Tar archives. Index files and Python call the format `webdataset`.
pub static FORMAT: Format = Format {
    name: "webdataset",
    title: "a tar archive",
    suffixes: &[".tar"],
    is_checked: false,
    begins,
    open: |opening, watch| indexed::open_one(&opening, Arc::new(Tar::default()), None, watch),
};

/// The field with the key of a row.
const KEY: &str = "__key__";

/// Numbers, and arrays in `.npy` files, are read when the index is built if they have no more
/// bytes than these.
const SMALL: u64 = 1 << 30;

/// The layout of tar archives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tar {
    /// Whether the whole samples of a truncated archive are read.
    pub is_partial: bool,
}

impl Tar {
    /// Rejects an archive that is truncated at an offset, after `rows` whole samples.
    fn check_whole(self, cut: Option<u64>, rows: u64, stream: &Stream<'_>) -> Result<()> {
        match cut.filter(|_| !self.is_partial) {
            None => Ok(()),
            Some(offset) => {
                let or = if rows > 0 { ", or open it with partial=True to read these" } else { "" };
                let why = format!(
                    "the archive is truncated: the final block of zeros is missing; {rows} whole \
                     samples are there; copy it again{or}"
                );
                Err(stream.corrupt(offset, why))
            }
        }
    }
}

impl Layout for Tar {
    fn format(&self) -> &'static str {
        FORMAT.name
    }

    fn options(&self) -> String {
        let options = if self.is_partial { r#"{"partial":true}"# } else { "{}" };
        options.to_owned()
    }

    fn infer(&self, files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>> {
        let mut seen = Seen::<Known>::default();
        for (k, stream) in files.iter_mut().enumerate() {
            let mut members = Members::default();
            let mut sample: Option<Sample> = None;
            let mut rows = 0;
            while let Some(found) = members.next(stream)? {
                let Some((own, field)) = sample_of(&found.name) else {
                    stream.skip(padded(found.size))?;
                    continue;
                };
                if sample.as_ref().is_none_or(|sample| sample.key != own) {
                    rows += u64::from(sample.is_some());
                    if let Some(sample) = sample.take() {
                        sample.note(&mut seen);
                    }
                    if rows == probe_rows(k) as u64 || stream.offset() > PROBE_BYTES {
                        break;
                    }
                    sample = Some(Sample { key: own.to_vec(), fields: Vec::new() });
                }
                let is_text = type_of(&field) == "int" && !is_int(stream, found.size)?;
                let sample = sample.as_mut().expect("a sample was begun");
                sample.fields.push((field, is_text));
                stream.skip(padded(found.size))?;
            }
            // The missing part may have belonged to the last sample.
            let last = sample.filter(|one| members.cut.is_none() || one.has_all(&seen));
            rows += u64::from(last.is_some());
            if let Some(sample) = last {
                sample.note(&mut seen);
            }
            self.check_whole(members.cut, rows, stream)?;
        }
        if seen.is_empty() {
            let path = files.first().map_or_else(String::new, |first| first.name().to_owned());
            let why = "the archive has no samples: no member has a name with a dot";
            return Err(Error::format(path, why));
        }
        seen.fields(|name, known| match name {
            KEY => Ok("utf8".to_owned()),
            _ if known.is_text => Ok("utf8".to_owned()),
            _ => Ok(type_of(name).to_owned()),
        })
        .map(Some)
    }

    fn scan(&self, stream: &mut Stream<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let fields = sink.fields();
        let mut members = Members::default();
        let mut row: Option<Row> = None;
        while let Some(found) = members.next(stream)? {
            let Some((key, field)) = sample_of(&found.name) else {
                members.skip(stream, padded(found.size))?;
                continue;
            };
            match &mut row {
                Some(row) if row.key == key => row.crc = members.since_row,
                _ => {
                    if let Some(row) = row.take() {
                        sink.end(row.end - row.start, row.crc)?;
                    }
                    sink.begin(found.start);
                    members.since_row = members.since_start;
                    let (start, crc) = (found.start, members.since_row);
                    row = Some(Row { key: key.to_vec(), start, end: start, crc, names: vec![] });
                    if let Some(&place) = fields.get(KEY) {
                        put_key(place, &found, key.len(), sink)?;
                    }
                }
            }
            let row = row.as_mut().expect("a row was begun");
            if row.names.contains(&field) {
                return Err(sink.refuse(format!("the sample has two members {field:?}")));
            }
            match fields.get(field.as_str()) {
                Some(&place) => put(place, &found, stream, &mut members, sink)?,
                None => {
                    sink.unknown(&field)?;
                    members.skip(stream, found.size)?;
                }
            }
            members.skip(stream, padded(found.size) - found.size)?;
            row.names.push(field);
            (row.end, row.crc) = (stream.offset(), members.since_row);
        }
        let has_all = |row: &Row| fields.keys().all(|name| name == KEY || row.names.contains(name));
        if let Some(row) = row.filter(|row| members.cut.is_none() || has_all(row)) {
            sink.end(row.end - row.start, row.crc)?;
        }
        self.check_whole(members.cut, sink.num_rows(), stream)
    }
}

/// A sample whose members are being read.
struct Row {
    key: Vec<u8>,
    start: u64,
    end: u64,
    crc: u32,
    names: Vec<String>,
}

/// A sample that is being inspected: its key, and for each field whether it is text where a
/// number was expected.
struct Sample {
    key: Vec<u8>,
    fields: Vec<(String, bool)>,
}

impl Sample {
    fn note(self, seen: &mut Seen<Known>) {
        seen.begin();
        seen.note(KEY);
        for (field, is_text) in self.fields {
            seen.note(&field).is_text |= is_text;
        }
    }

    /// Whether the sample has every field that others have.
    fn has_all(&self, seen: &Seen<Known>) -> bool {
        let has = |name: &str| name == KEY || self.fields.iter().any(|(field, _)| field == name);
        !seen.is_empty() && seen.names().all(has)
    }
}

/// What is known of a field.
#[derive(Debug, Default)]
struct Known {
    is_text: bool,
}

/// Returns the key and the field that a member belongs to; none if to no sample.
fn sample_of(name: &[u8]) -> Option<(&[u8], String)> {
    if is_meta(name) {
        return None;
    }
    let (key, field) = split(name)?;
    let field = String::from_utf8_lossy(field).to_lowercase();
    (!field.is_empty()).then_some((key, field))
}

/// Returns the type of a field by its extension.
fn type_of(field: &str) -> &'static str {
    match field.rsplit('.').next().unwrap_or_default() {
        "jpg" | "jpeg" => "jpg",
        "png" => "png",
        "webp" => "webp",
        "txt" | "text" | "transcript" => "utf8",
        "json" | "jsn" => "json",
        "cls" | "cls2" | "index" | "inx" | "id" => "int",
        "npy" => "array",
        "mp" | "msg" => "msgpack",
        "pyd" | "pkl" | "pickle" => "pickle",
        "wav" => "wav",
        "flac" => "flac",
        _ => "bytes",
    }
}

fn is_int(stream: &mut Stream<'_>, size: u64) -> Result<bool> {
    if size > 64 {
        return Ok(false);
    }
    Ok(Number::Int(8).parse(stream.peek(size)?).is_ok())
}

/// Gives a row its key.
fn put_key(field: usize, found: &Found, len: usize, sink: &mut Sink<'_>) -> Result<()> {
    match &found.named {
        Named::At(offset) => sink.cell(field, *offset, &found.name[..len], Coding::RAW),
        Named::Split(offset, block) => {
            sink.cell(field, *offset, &block[..], Coding::plain(Recipe::TarKey))
        }
    }
}

/// Gives a row the value that is next in the stream.
fn put(
    field: usize,
    found: &Found,
    stream: &mut Stream<'_>,
    members: &mut Members,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let (offset, kind) = (stream.offset(), sink.kind(field).clone());
    let is_npy = kind.base == "array" && kind.name.ends_with("npy");
    if (kind.is_column() || is_npy) && found.size <= SMALL {
        let bytes = stream.peek(found.size)?;
        if let Some(number) = kind.number.filter(|_| kind.is_column()) {
            let given = number.parse(bytes).map_err(|why| sink.misfit(field, &why))?;
            sink.number(field, given)?;
        } else {
            sink.cell(field, offset, bytes, Coding::plain(Recipe::Npy))?;
        }
        return members.skip(stream, found.size);
    }
    let (mut left, mut crc) = (found.size, 0);
    while left > 0 {
        let bytes = stream.some(left)?;
        crc = Sum::Crc32c.append(crc, bytes);
        members.since_row = Sum::Crc32c.append(members.since_row, bytes);
        left -= bytes.len() as u64;
    }
    let (stored, raw) = (found.size, found.size);
    sink.place(field, Place { offset, stored, raw, crc, coding: Coding::RAW })
}
