//! TFRecord files: records, or the features of `tf.train.Example`.

use std::collections::HashMap;
use std::sync::Arc;

use super::indexed::{Layout, PROBE_BYTES, Seen, Sink, Stream, open_one, probe_rows};
use super::open::Format;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::checksum::mismatch;
use crate::format::foreign::example::{Entry, Feature, ListKind, entries, steps};
use crate::format::foreign::number::Number;
use crate::format::foreign::tfrecord::{HEAD_LEN, TAIL_LEN, begins, length, unmasked};
use crate::format::foreign::{Coding, Recipe};
use crate::format::ingot::{Field, FieldKind};

/// TFRecord files.
pub static FORMAT: Format = Format {
    name: "tfrecord",
    title: "a TFRecord file",
    suffixes: &[".tfrecord", ".tfrecords", ".tfrec"],
    is_checked: true,
    begins,
    open: |opening, watch| open_one(&opening, Arc::new(TfRecord), Some(Vec::new()), watch),
};

/// The layout of TFRecord files.
#[derive(Debug, Clone, Copy)]
pub struct TfRecord;

impl Layout for TfRecord {
    fn format(&self) -> &'static str {
        FORMAT.name
    }

    fn infer(&self, files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>> {
        let mut seen = Seen::<Known>::default();
        for (k, stream) in files.iter_mut().enumerate() {
            let (most, mut row) = (probe_rows(k) as u64, 0);
            while row < most && stream.left() > 0 && stream.offset() < PROBE_BYTES {
                let (_, len, _) = record(stream, row)?;
                let noted = note(stream.peek(len)?, &mut seen);
                if noted.is_err() {
                    return Ok(None);
                }
                stream.advance(len as usize);
                tail(stream)?;
                row += 1;
            }
        }
        if seen.is_empty() {
            return Ok(None);
        }
        seen.sort();
        let path = files.first().map_or_else(String::new, |first| first.name().to_owned());
        let fields = seen.fields(|name, known| {
            let advice = "give ingot.open a spec, or read the records with ingot.open_records";
            let refused = |why| Error::format(&path, format!("feature {name:?} {why}; {advice}"));
            known.type_name().map_err(refused)
        });
        fields.map(Some)
    }

    fn scan(&self, stream: &mut Stream<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let fields = sink.fields();
        while stream.left() > 0 {
            let (offset, len, crc) = record(stream, sink.num_rows())?;
            let payload = stream.peek(len)?;
            sink.begin(offset);
            if !fields.is_empty() {
                Example { payload, offset }.fill(&fields, sink)?;
            }
            stream.advance(len as usize);
            tail(stream)?;
            sink.end(len, crc)?;
        }
        Ok(())
    }
}

/// Reads the head of a record and verifies the record, whose number is for errors; returns where
/// it is, its length and its checksum. The record is next in the stream.
fn record(stream: &mut Stream<'_>, row: u64) -> Result<(u64, u64, u32)> {
    let corrupt = |stream: &Stream<'_>, offset, why| stream.corrupt(offset, why).at_record(row);
    let start = stream.offset();
    let head: [u8; HEAD_LEN] = match stream.peek(HEAD_LEN as u64)?.first_chunk() {
        Some(head) => *head,
        None => unreachable!("this many bytes were requested"),
    };
    let gzip = "the records of a gzip file cannot be read individually; decompress it with gunzip";
    let len = length(&head).map_err(|why| match (start, &head[..2]) {
        (0, [0x1f, 0x8b]) => Error::format(stream.name(), gzip),
        _ => corrupt(stream, start, why),
    })?;
    stream.advance(HEAD_LEN);
    let offset = stream.offset();
    if len.checked_add(TAIL_LEN as u64).is_none_or(|whole| whole > stream.left()) {
        let left = stream.left();
        let why = format!("the file ends inside a record of {len} bytes: {left} are left");
        return Err(corrupt(stream, start, Violation(why)));
    }
    let bytes = stream.peek(len + TAIL_LEN as u64)?;
    let (payload, stored) = bytes.split_at(len as usize);
    let expected = unmasked(u32::from_le_bytes([stored[0], stored[1], stored[2], stored[3]]));
    let found = Sum::Crc32c.append(0, payload);
    if found != expected {
        return Err(corrupt(stream, offset, mismatch(expected, found)));
    }
    Ok((offset, len, found))
}

fn tail(stream: &mut Stream<'_>) -> Result<()> {
    stream.peek(TAIL_LEN as u64)?;
    stream.advance(TAIL_LEN);
    Ok(())
}

/// What is known of a feature.
#[derive(Debug, Default)]
struct Known {
    kind: Option<ListKind>,
    is_list: bool,
    /// How many values it has in a row, or a step of a list; none before the first.
    count: Option<u64>,
    /// Whether that is always the same.
    is_ragged: bool,
    is_mixed: bool,
}

impl Known {
    fn add(&mut self, feature: &Feature<'_>, is_list: bool) -> Result<(), Violation> {
        let count = feature.count()?;
        self.is_ragged |= self.count.is_some_and(|known| known != count);
        self.is_mixed |= self.kind.is_some_and(|known| Some(known) != feature.kind);
        self.count = Some(count);
        self.kind = feature.kind;
        self.is_list |= is_list;
        Ok(())
    }

    fn type_name(&self) -> Result<String, &'static str> {
        if self.is_mixed {
            return Err("has values of several types");
        }
        let base = match self.kind {
            None | Some(ListKind::Bytes) => "bytes",
            Some(ListKind::Floats) => "array(float32)",
            Some(ListKind::Ints) => "int",
        };
        let is_one = self.count == Some(1) && !self.is_ragged;
        match (self.is_list, is_one, self.count) {
            (false, true, _) => Ok(base.to_owned()),
            (false, false, _) | (true, true, _) | (true, _, None) => Ok(format!("{base}[]")),
            (true, false, Some(count)) if !self.is_ragged && base != "bytes" => {
                let name = if base == "int" { "int64" } else { "float32" };
                Ok(format!("array({name},{count})[]"))
            }
            _ => Err("is a list whose steps have several values, in varying number"),
        }
    }
}

fn note(payload: &[u8], seen: &mut Seen<Known>) -> Result<(), Violation> {
    seen.begin();
    entries(payload, |name, entry| match entry {
        Entry::Feature(feature) if feature.kind.is_none() => {
            seen.note_missing(name);
            Ok(())
        }
        Entry::Feature(feature) => seen.note(name).add(&feature, false),
        Entry::List(message) => {
            let known = seen.note(name);
            known.is_list = true;
            for step in steps(message) {
                known.add(&Feature::of(step?)?, true)?;
            }
            Ok(())
        }
    })
}

/// A record that is an example.
struct Example<'a> {
    payload: &'a [u8],
    offset: u64,
}

impl Example<'_> {
    fn fill(&self, fields: &HashMap<String, usize>, sink: &mut Sink<'_>) -> Result<()> {
        let mut failure = None;
        let read = entries(self.payload, |name, entry| {
            let filled = match fields.get(name) {
                None => sink.unknown(name),
                Some(&field) => self.put(field, entry, sink),
            };
            filled.map_err(|error| {
                failure = Some(error);
                Violation(String::new())
            })
        });
        match (failure, read) {
            (Some(error), _) => Err(error),
            (None, Err(why)) => Err(sink.refuse(format!("not a tf.train.Example: {why}"))),
            (None, Ok(())) => Ok(()),
        }
    }

    fn at(&self, part: &[u8]) -> u64 {
        self.offset + (part.as_ptr() as usize - self.payload.as_ptr() as usize) as u64
    }

    fn put(&self, field: usize, entry: Entry<'_>, sink: &mut Sink<'_>) -> Result<()> {
        match entry {
            Entry::Feature(Feature { kind: None, .. }) => Ok(()),
            Entry::Feature(feature) => self.put_feature(field, &feature, sink),
            Entry::List(message) => self.put_list(field, message, sink),
        }
    }

    fn put_feature(&self, field: usize, feature: &Feature<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let (kind, number) = (sink.kind(field).kind, sink.kind(field).number);
        match (kind, feature.kind) {
            (FieldKind::Sequence, Some(ListKind::Bytes)) => {
                sink.sequence(field);
                for string in feature.strings() {
                    let string = string.map_err(|why| sink.misfit(field, &why))?;
                    sink.element(field, self.at(string), string, Coding::RAW)?;
                }
                Ok(())
            }
            (FieldKind::Cell, Some(ListKind::Bytes)) => {
                let string = self.only(feature.strings(), field, sink)?;
                sink.cell(field, self.at(string), string, Coding::RAW)
            }
            (FieldKind::Column, Some(ListKind::Floats | ListKind::Ints)) => {
                let mut numbers = Vec::new();
                let read = feature.numbers(|given| {
                    numbers.push(Ok(given));
                    Ok(())
                });
                read.map_err(|why| sink.misfit(field, &why))?;
                let given = self.only(numbers.into_iter(), field, sink)?;
                sink.number(field, given)
            }
            (FieldKind::Cell, _) if number.is_some() => {
                match feature.packed_floats().filter(|_| feature.kind == Some(ListKind::Floats)) {
                    Some(packed) if number == Some(Number::Float(4)) => {
                        sink.cell(field, self.at(packed), packed, Coding::RAW)
                    }
                    _ => {
                        let coding = Coding::numbers(Recipe::Feature, number);
                        sink.cell(field, self.at(feature.message), feature.message, coding)
                    }
                }
            }
            (_, found) => {
                let name = found.map_or("nothing", ListKind::name);
                Err(sink.misfit(field, format!("the record has a {name}")))
            }
        }
    }

    fn put_list(&self, field: usize, message: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        let (kind, number) = (sink.kind(field).kind, sink.kind(field).number);
        if kind == FieldKind::Cell && number.is_some() {
            let coding = Coding::numbers(Recipe::FeatureList, number);
            return sink.cell(field, self.at(message), message, coding);
        }
        if kind != FieldKind::Sequence {
            return Err(sink.misfit(field, "the record has a feature list"));
        }
        sink.sequence(field);
        for step in steps(message) {
            let step = step.map_err(|why| sink.misfit(field, &why))?;
            let feature = Feature::of(step).map_err(|why| sink.misfit(field, &why))?;
            if feature.kind == Some(ListKind::Bytes) {
                let string = self.only(feature.strings(), field, sink)?;
                sink.element(field, self.at(string), string, Coding::RAW)?;
            } else {
                let coding = Coding::numbers(Recipe::Feature, number);
                sink.element(field, self.at(step), step, coding)?;
            }
        }
        Ok(())
    }

    /// Returns the only value of a list.
    fn only<T>(
        &self,
        mut values: impl Iterator<Item = Result<T, Violation>>,
        field: usize,
        sink: &Sink<'_>,
    ) -> Result<T> {
        match (values.next(), values.next()) {
            (Some(Ok(value)), None) => Ok(value),
            (Some(Err(why)), _) | (_, Some(Err(why))) => Err(sink.misfit(field, &why)),
            (found, _) => {
                let count = if found.is_none() { "no value" } else { "several values" };
                Err(sink.misfit(field, format!("the record has {count}")))
            }
        }
    }
}
