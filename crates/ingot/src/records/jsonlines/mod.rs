//! JSON lines: each line is an object, its members are the fields.

mod known;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::indexed::{Extent, Layout, PROBE_BYTES, Seen, Sink, Stream, open_one, probe_rows};
use super::open::Format;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::foreign::json::{Shape, elements, members, number, shape};
use crate::format::foreign::number::Number;
use crate::format::foreign::{Coding, Recipe};
use crate::format::ingot::{Field, FieldKind};
use crate::format::{Violation, bail};
use known::{GROUP, Known, has_rounded, is_inside, is_json, is_rounded, joined, note};

/// JSON lines.
pub static FORMAT: Format = Format {
    name: "jsonlines",
    title: "a file of JSON lines",
    suffixes: &[".jsonl", ".ndjson"],
    is_checked: false,
    begins: |_| false,
    open: |opening, watch| open_one(&opening, Arc::new(JsonLines), Some(Vec::new()), watch),
};

/// The layout of JSON lines.
#[derive(Debug, Clone, Copy)]
pub struct JsonLines;

impl Layout for JsonLines {
    fn format(&self) -> &'static str {
        FORMAT.name
    }

    fn unit(&self) -> &'static str {
        "line"
    }

    fn infer(&self, files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>> {
        let mut seen = Seen::<Known>::default();
        for (k, stream) in files.iter_mut().enumerate() {
            let (mut rows, mut number) = (probe_rows(k), 0);
            while rows > 0 && stream.offset() < PROBE_BYTES {
                let Some(line) = next_line(stream)? else { break };
                number += 1;
                let text = stream.peek(line.len as u64)?;
                if let Some(object) = trimmed(text) {
                    seen.begin();
                    let noted = note(object, ("", 0), &mut Vec::new(), &mut seen);
                    let refused =
                        |why| Error::format(stream.name(), format!("line {number}: {why}"));
                    noted.map_err(refused)?;
                    rows -= 1;
                }
                stream.advance(line.next);
            }
        }
        if seen.is_empty() {
            return Ok(None);
        }
        let json = |name: &str| is_json(name, &seen);
        let fields = seen.fields(|name, known| {
            let is_json = known.type_name() == GROUP && json(name);
            Ok::<_, Error>(if is_json { "json".to_owned() } else { known.type_name() })
        })?;
        let is_kept = |field: &Field| {
            let name = field.name.trim_end_matches('?');
            let type_name = field.type_name.as_deref().unwrap_or_default();
            let mut above = name.match_indices('.').map(|(dot, _)| &name[..dot]);
            type_name != GROUP && !above.any(|group| seen.get(group).is_some() && json(group))
        };
        Ok(Some(fields.into_iter().filter(is_kept).collect()))
    }

    fn scan(&self, stream: &mut Stream<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let fields = sink.fields();
        let mut lines = 0;
        while let Some(line) = next_line(stream)? {
            let offset = stream.offset();
            let text = stream.peek(line.len as u64)?;
            if let Some(object) = trimmed(text) {
                let start = offset + (object.as_ptr() as usize - text.as_ptr() as usize) as u64;
                sink.begin(start);
                sink.skipped = lines - sink.num_rows();
                if !fields.is_empty() {
                    let line = Line { object, start, fields: &fields };
                    line.fill(object, "", sink)?;
                }
                sink.end(object.len() as u64, Sum::Crc32c.append(0, object))?;
            }
            lines += 1;
            stream.advance(line.next);
        }
        Ok(())
    }
}

fn next_line(stream: &mut Stream<'_>) -> Result<Option<Extent>> {
    if stream.left() == 0 {
        return Ok(None);
    }
    stream.find(|bytes, is_last| {
        Ok(match memchr::memchr(b'\n', bytes) {
            Some(end) => Some(Extent { len: end, next: end + 1 }),
            None => is_last.then_some(Extent { len: bytes.len(), next: bytes.len() }),
        })
    })
}

/// Returns a line without white space around it, and without the mark that begins some files;
/// none for an empty one.
fn trimmed(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    (!line.is_empty()).then_some(line)
}

/// A line whose members become the fields of a row.
struct Line<'a> {
    object: &'a [u8],
    start: u64,
    fields: &'a HashMap<String, usize>,
}

impl<'a> Line<'a> {
    fn fill(&self, object: &'a [u8], above: &str, sink: &mut Sink<'_>) -> Result<()> {
        let mut failure = None;
        let read = members(object, |name: Cow<'a, str>, value| {
            self.member(&joined(above, &name), value, sink).map_err(|error| {
                failure = Some(error);
                Violation(String::new())
            })
        });
        match (failure, read) {
            (Some(error), _) => Err(error),
            (None, Err(why)) => Err(sink.refuse(&why)),
            (None, Ok(())) => Ok(()),
        }
    }

    fn member(&self, name: &str, value: &'a str, sink: &mut Sink<'_>) -> Result<()> {
        match self.fields.get(name) {
            Some(&field) => sink.meet(field).and_then(|()| self.put(field, value, sink)),
            None if shape(value) == Shape::Object && self.has_fields_in(name) => {
                self.fill(value.as_bytes(), name, sink)
            }
            None => sink.unknown(name),
        }
    }

    fn has_fields_in(&self, name: &str) -> bool {
        self.fields.keys().any(|field| is_inside(field, name))
    }

    fn at(&self, part: &str) -> u64 {
        self.start + (part.as_ptr() as usize - self.object.as_ptr() as usize) as u64
    }

    fn put(&self, field: usize, value: &'a str, sink: &mut Sink<'_>) -> Result<()> {
        let kind = sink.kind(field);
        let (store, numbers, base) = (kind.kind, kind.number, kind.base.clone());
        if value == "null" && (kind.present.is_some() || base != "json") {
            return Ok(());
        }
        let refused = |sink: &Sink<'_>| {
            let shown: String = value.chars().take(40).collect();
            sink.misfit(field, format!("the line has {shown}"))
        };
        let is_list = store == FieldKind::Cell && shape(value) == Shape::Array && base != "json";
        let is_wide = || if is_list { has_rounded(value) } else { is_rounded(value) };
        if sink.is_strict && numbers == Some(Number::Float(8)) && is_wide() {
            return Err(sink.misfit(field, "a float would round a whole number"));
        }
        match (store, shape(value)) {
            (FieldKind::Column, Shape::Number | Shape::Bool) => {
                let given = number(value).map_err(|why| sink.misfit(field, &why))?;
                sink.number(field, given)
            }
            (FieldKind::Cell, _) if base == "json" => {
                sink.cell(field, self.at(value), value.as_bytes(), Coding::RAW)
            }
            (FieldKind::Cell, Shape::Array) if numbers.is_some() => {
                let coding = Coding::numbers(Recipe::JsonNumbers, numbers);
                sink.cell(field, self.at(value), value.as_bytes(), coding)
            }
            (FieldKind::Cell, Shape::Text) if numbers.is_none() => {
                let (inside, coding) = text_of(value);
                sink.cell(field, self.at(inside), inside.as_bytes(), coding)
            }
            (FieldKind::Sequence, Shape::Array) => {
                sink.sequence(field);
                let mut failure = None;
                let read = elements(value.as_bytes(), |element| {
                    let (stored, coding) = match (numbers, shape(element)) {
                        (_, _) if base == "json" => (element, Coding::RAW),
                        (None, Shape::Text) => text_of(element),
                        (Some(_), Shape::Array) => {
                            (element, Coding::numbers(Recipe::JsonNumbers, numbers))
                        }
                        _ => bail!("the line has {element:.40}"),
                    };
                    let put = sink.element(field, self.at(stored), stored.as_bytes(), coding);
                    put.map_err(|error| {
                        failure = Some(error);
                        Violation(String::new())
                    })
                });
                match (failure, read) {
                    (Some(error), _) => Err(error),
                    (None, read) => read.map_err(|why| sink.misfit(field, &why)),
                }
            }
            _ => Err(refused(sink)),
        }
    }
}

/// Returns the inside of a string, and how the text comes out of it.
fn text_of(value: &str) -> (&str, Coding) {
    let inside = &value[1..value.len() - 1];
    let is_escaped = inside.contains('\\');
    (inside, if is_escaped { Coding::plain(Recipe::JsonText) } else { Coding::RAW })
}
