//! JSON lines: each line is an object, its members are the fields.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::container::Container;
use super::indexed::{Extent, Layout, PROBE_BYTES, Seen, Sink, Stream, open_records, probe_rows};
use super::open::{Format, Opening};
use super::source::Watch;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::foreign::json::{Shape, elements, members, number, shape};
use crate::format::foreign::kind::{Kind, by_name};
use crate::format::foreign::number::{Given, Number};
use crate::format::foreign::{Coding, Recipe};
use crate::format::ingot::{Field, FieldKind};

/// JSON lines.
pub static FORMAT: Format = Format {
    name: "jsonlines",
    title: "a file of JSON lines",
    suffixes: &[".jsonl", ".ndjson"],
    is_checked: false,
    begins: |_| false,
    open: |opening: Opening<'_>, watch: &mut Watch<'_>| -> Result<Arc<dyn Container>> {
        open_records(&opening, Arc::new(JsonLines), watch)
    },
};

/// Objects inside objects that become fields of their own, at most; a deeper one is JSON.
const DEPTH: usize = 8;

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
                    noted.map_err(|why| Error::Format {
                        path: stream.name().to_owned(),
                        reason: format!("line {number}: {why}"),
                    })?;
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

    fn scan(
        &self,
        kinds: &[Option<Kind>],
        stream: &mut Stream<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let fields = by_name(kinds);
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

/// Whether a number is whole, but no `int`: as a `float` it would be rounded.
fn is_beyond(value: &str) -> bool {
    value.len() > 18 && !value.contains(['.', 'e', 'E']) && value.parse::<i64>().is_err()
}

/// Whether an array has such a number.
fn has_beyond(array: &str) -> bool {
    array.trim_matches(['[', ']']).split(',').any(|element| is_beyond(element.trim()))
}

/// The type that stands for an object whose members are fields; no field has it in the end.
const GROUP: &str = "group";

/// What is known of a member.
#[derive(Debug, Default)]
struct Known {
    bools: bool,
    ints: bool,
    floats: bool,
    texts: bool,
    lists: Option<Elements>,
    objects: bool,
    others: bool,
    /// Whether it was null.
    nulls: bool,
    /// How often it was there.
    count: u64,
}

/// What the elements of arrays are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elements {
    None,
    Ints,
    Floats,
    Texts,
    Others,
}

impl Elements {
    fn and(self, other: Elements) -> Elements {
        match (self, other) {
            (Elements::None, one) | (one, Elements::None) => one,
            (Elements::Ints, Elements::Floats) | (Elements::Floats, Elements::Ints) => {
                Elements::Floats
            }
            (one, two) if one == two => one,
            _ => Elements::Others,
        }
    }
}

impl Known {
    fn add(&mut self, value: &str) -> Result<(), Violation> {
        self.count += 1;
        match shape(value) {
            Shape::Null => self.nulls = true,
            Shape::Bool => self.bools = true,
            Shape::Text => self.texts = true,
            Shape::Object => self.objects = true,
            Shape::Number => match number(value)? {
                _ if is_beyond(value) => self.others = true,
                Given::Int(_) => self.ints = true,
                _ => self.floats = true,
            },
            Shape::Array => {
                let mut found = Elements::None;
                elements(value.as_bytes(), |element| {
                    let one = match shape(element) {
                        Shape::Text => Elements::Texts,
                        Shape::Number => match number(element)? {
                            _ if is_beyond(element) => Elements::Others,
                            Given::Int(_) => Elements::Ints,
                            _ => Elements::Floats,
                        },
                        _ => Elements::Others,
                    };
                    found = found.and(one);
                    Ok(())
                })?;
                self.lists = Some(self.lists.unwrap_or(Elements::None).and(found));
            }
        }
        Ok(())
    }

    fn type_name(&self) -> String {
        let is_number = self.ints || self.floats;
        let kinds = [self.bools, is_number, self.texts, self.lists.is_some(), self.objects];
        let several = kinds.into_iter().filter(|&seen| seen).count() > 1;
        let name = match self.lists {
            _ if several || self.others => "json",
            Some(Elements::Ints) => "int[]",
            Some(Elements::Floats) => "float[]",
            Some(Elements::Texts) => "utf8[]",
            Some(_) => "json",
            None if self.bools => "bool",
            None if self.floats => "float",
            None if self.ints => "int",
            None if self.texts => "utf8",
            None if self.nulls => "json",
            None => GROUP,
        };
        name.to_owned()
    }
}

/// Whether a key can be a part of the name of a field.
fn is_plain(name: &str) -> bool {
    let is_shown = |one: char| one.is_alphanumeric() || one.is_ascii_graphic() || one == ' ';
    let is_odd = name.contains(['.', '?']) || name.contains("[]");
    !name.is_empty() && !is_odd && name.chars().all(is_shown)
}

fn joined(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

fn is_inside(name: &str, above: &str) -> bool {
    name.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

/// Notes the members of an object, which has a name and is so deep in the line. `dotted` has the names of members of the line that have a
/// dot, as members of objects inside of it have as fields.
fn note(
    object: &[u8],
    (above, depth): (&str, usize),
    dotted: &mut Vec<String>,
    seen: &mut Seen<Known>,
) -> Result<(), Violation> {
    let mut inner: Vec<(String, Vec<u8>)> = Vec::new();
    members(object, |name, value| {
        if above.is_empty() && name.is_empty() {
            let why =
                "a member has an empty name: rename it, or pass spec= with the fields to read";
            return Err(Violation(why.to_owned()));
        }
        let whole = joined(above, &name);
        if depth > 0 && dotted.contains(&whole) {
            return Err(Violation(format!("two members are the field {whole:?}; rename one")));
        }
        if depth == 0 && name.contains('.') {
            dotted.push(whole.clone());
        }
        let known = if value == "null" { seen.note_missing(&whole) } else { seen.note(&whole) };
        known.add(value)?;
        if shape(value) == Shape::Object {
            known.others |= depth == DEPTH || value.trim_matches(['{', '}', ' ']).is_empty();
            inner.push((whole, value.as_bytes().to_vec()));
        }
        // A name that no field can have is read with the object around it.
        if !is_plain(&name) && !above.is_empty() {
            seen.note(above).others = true;
        }
        Ok(())
    })?;
    for (name, value) in inner {
        if depth < DEPTH {
            note(&value, (&name, depth + 1), dotted, seen)?;
        }
    }
    Ok(())
}

/// Whether the objects with a name are JSON as a whole, rather than fields of their own:
/// something else has the name too, some row has no such object, or their members differ or
/// have names that no field can have.
fn is_json(name: &str, seen: &Seen<Known>) -> bool {
    let Some((rows, known)) = seen.get(name) else { return true };
    let mut members =
        seen.names().filter(|one| is_inside(one, name) && !one[name.len() + 1..].contains('.'));
    known.type_name() != GROUP
        || rows < seen.num_rows()
        || members.any(|one| seen.get(one).is_none_or(|(_, member)| member.count < known.count))
}

/// A line whose members become the fields of a row.
struct Line<'a> {
    object: &'a [u8],
    start: u64,
    fields: &'a HashMap<&'a str, usize>,
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
            sink.misfit(field, &Violation(format!("the line has {shown}")))
        };
        let is_list = store == FieldKind::Cell && shape(value) == Shape::Array && base != "json";
        if sink.is_strict && numbers == Some(Number::Float(8)) {
            let is_rounded = if is_list { has_beyond(value) } else { is_beyond(value) };
            if is_rounded {
                let why = Violation("a whole number is beyond int64".to_owned());
                return Err(sink.misfit(field, &why));
            }
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
                        _ => return Err(Violation(format!("the line has {element:.40}"))),
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
