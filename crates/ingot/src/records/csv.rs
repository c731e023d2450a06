//! CSV files: the first row names the fields.

use std::sync::Arc;

use super::container::Container;
use super::indexed::{self, Extent, Layout, PROBE_BYTES, Request, Seen, Sink, Stream, probe_rows};
use super::open::{Format, Opening};
use super::source::Watch;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::foreign::csv::{Span, fields, row_end, text};
use crate::format::foreign::kind::{Kind, by_name};
use crate::format::foreign::number::{Given, Number};
use crate::format::foreign::{Coding, Recipe};
use crate::format::ingot::Field;

/// CSV files.
pub static FORMAT: Format = Format {
    name: "csv",
    title: "a CSV file",
    suffixes: &[".csv", ".tsv"],
    is_checked: false,
    begins: |_| false,
    open: |opening: Opening<'_>, watch: &mut Watch<'_>| -> Result<Arc<dyn Container>> {
        let request = Request { layout: Arc::new(Csv), fields: None, folder: None };
        let locations = [opening.location.clone()];
        let mut found = indexed::open(&locations, &request, &mut |_, _| watch())?;
        Ok(found.pop().expect("one container for each file"))
    },
};

/// The layout of CSV files.
#[derive(Debug, Clone, Copy)]
pub struct Csv;

/// What every row of a file shares: what separates fields, and their names.
struct Table {
    separator: u8,
    names: Vec<String>,
}

impl Table {
    /// Reads the first row.
    fn read(stream: &mut Stream<'_>) -> Result<Option<Table>> {
        let is_tabbed = stream.name().to_ascii_lowercase().contains(".tsv");
        let separator = if is_tabbed { b'\t' } else { b',' };
        let Some(row) = next_row(stream)? else { return Ok(None) };
        let head = stream.peek(row.len as u64)?;
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let spans = fields(head, separator).map_err(|why| refused(stream, 1, &why))?;
        let head = {
            let bytes = stream.peek(row.len as u64)?;
            bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
        };
        let names: Vec<String> = spans
            .iter()
            .map(|span| String::from_utf8_lossy(&content(head, span)).trim().to_owned())
            .enumerate()
            .map(|(k, name)| if name.is_empty() { format!("unnamed_{k}") } else { name })
            .collect();
        if let Some(k) = (1..names.len()).find(|&k| names[..k].contains(&names[k])) {
            let why = format!("two columns are called {:?}", names[k]);
            return Err(refused(stream, 1, &Violation(why)));
        }
        stream.advance(row.next);
        Ok(Some(Table { separator, names }))
    }

    /// Returns the fields of a row.
    fn spans(&self, row: &[u8]) -> Result<Vec<Span>, Violation> {
        let spans = fields(row, self.separator)?;
        if spans.len() != self.names.len() {
            let (found, expected) = (spans.len(), self.names.len());
            return Err(Violation(format!("expected {expected} fields, found {found}")));
        }
        Ok(spans)
    }
}

fn refused(stream: &Stream<'_>, line: u64, why: &Violation) -> Error {
    Error::Format { path: stream.name().to_owned(), reason: format!("row {line}: {why}") }
}

fn content(row: &[u8], span: &Span) -> Vec<u8> {
    let bytes = &row[span.start..span.end];
    if span.is_escaped { text(bytes) } else { bytes.to_vec() }
}

fn next_row(stream: &mut Stream<'_>) -> Result<Option<Extent>> {
    if stream.left() == 0 {
        return Ok(None);
    }
    let (name, offset) = (stream.name().to_owned(), stream.offset());
    stream.find(|bytes, is_last| {
        let found = row_end(bytes, is_last).map_err(|why| Error::Format {
            path: name.clone(),
            reason: format!("offset {offset}: {why}"),
        })?;
        Ok(found.map(|(len, next)| Extent { len, next }))
    })
}

impl Layout for Csv {
    fn format(&self) -> &'static str {
        FORMAT.name
    }

    fn unit(&self) -> &'static str {
        "line"
    }

    fn infer(&self, files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>> {
        let mut seen = Seen::<Known>::default();
        for (k, stream) in files.iter_mut().enumerate() {
            let Some(table) = Table::read(stream)? else { continue };
            // Without any row, the columns are those that the first row names.
            table.names.iter().for_each(|name| seen.note_missing(name).is_seen = true);
            let (mut rows, mut line) = (probe_rows(k), 1);
            while rows > 0 && stream.offset() < PROBE_BYTES {
                let Some(extent) = next_row(stream)? else { break };
                let row = stream.peek(extent.len as u64)?;
                if !row.is_empty() {
                    seen.begin();
                    line += 1;
                    let spans = table.spans(row);
                    let spans = spans.map_err(|why| refused(stream, line, &why))?;
                    let row = stream.peek(extent.len as u64)?;
                    for (name, span) in table.names.iter().zip(&spans) {
                        let bytes = &row[span.start..span.end];
                        match bytes {
                            [] if !span.is_quoted => seen.note_missing(name).is_seen = true,
                            _ => seen.note(name).add(bytes, span.is_quoted),
                        }
                    }
                    rows -= 1;
                }
                stream.advance(extent.next);
            }
        }
        if seen.is_empty() {
            return Ok(None);
        }
        seen.fields(|_, known| Ok::<_, Error>(known.type_name().to_owned())).map(Some)
    }

    fn scan(
        &self,
        kinds: &[Option<Kind>],
        stream: &mut Stream<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let Some(table) = Table::read(stream)? else { return Ok(()) };
        let fields = by_name(kinds);
        let places: Vec<Option<usize>> =
            table.names.iter().map(|name| fields.get(name.as_str()).copied()).collect();
        sink.skipped = 1;
        while let Some(extent) = next_row(stream)? {
            let offset = stream.offset();
            let row = stream.peek(extent.len as u64)?;
            if !row.is_empty() {
                sink.begin(offset);
                let spans = table.spans(row).map_err(|why| sink.refuse(&why))?;
                for (span, place) in spans.iter().zip(&places) {
                    if let Some(place) = place {
                        put(*place, offset, row, span, sink)?;
                    }
                }
                sink.end(row.len() as u64, Sum::Crc32c.append(0, row))?;
            }
            stream.advance(extent.next);
        }
        Ok(())
    }
}

fn put(field: usize, offset: u64, row: &[u8], span: &Span, sink: &mut Sink<'_>) -> Result<()> {
    let bytes = &row[span.start..span.end];
    let kind = sink.kind(field);
    let is_missing = bytes.is_empty() && !span.is_quoted;
    if is_missing && (kind.present.is_some() || kind.is_column()) {
        return Ok(());
    }
    if let Some(number) = kind.number.filter(|_| kind.is_column()) {
        let is_rounded = || matches!(number, Number::Float(_)) && is_rounded(bytes);
        let rounded = || is_rounded().then_some("would be rounded, so it is text");
        if let Some(why) = text_like(bytes).or_else(rounded).filter(|_| sink.is_strict) {
            let shown = bytes[..bytes.len().min(40)].escape_ascii();
            return Err(sink.misfit(field, &Violation(format!("\"{shown}\" {why}"))));
        }
        let given = number.parse(&content(row, span)).map_err(|why| sink.misfit(field, &why))?;
        return sink.number(field, given);
    }
    let coding = if span.is_escaped { Coding::plain(Recipe::CsvText) } else { Coding::RAW };
    sink.cell(field, offset + span.start as u64, bytes, coding)
}

/// More digits than these may be beyond float64 without a power of ten.
const DIGITS_MAX: usize = 300;

/// What is known of a column.
#[derive(Debug, Default)]
struct Known {
    is_seen: bool,
    is_bool: Option<bool>,
    is_int: Option<bool>,
    is_float: Option<bool>,
    /// Whether there was an integer that a float rounds.
    is_wide: bool,
}

impl Known {
    fn add(&mut self, bytes: &[u8], is_quoted: bool) {
        let is = |number: Number| !is_quoted && number.parse(bytes).is_ok();
        let is_bool = !is_quoted
            && matches!(bytes, b"true" | b"false" | b"True" | b"False" | b"TRUE" | b"FALSE");
        let is_number = text_like(bytes).is_none();
        self.is_bool = Some(self.is_bool.unwrap_or(true) && is_bool);
        let is_int = is(Number::Int(8)) && is_number;
        self.is_int = Some(self.is_int.unwrap_or(true) && is_int);
        let is_float = is(Number::Float(8)) && is_number;
        self.is_float = Some(self.is_float.unwrap_or(true) && is_float);
        self.is_wide |= is_int && is_rounded(bytes);
    }

    fn type_name(&self) -> &'static str {
        match (self.is_bool, self.is_int, self.is_float) {
            (Some(true), ..) => "bool",
            (_, Some(true), _) => "int",
            (.., Some(true)) if !self.is_wide => "float",
            _ => "utf8",
        }
    }
}

/// Returns why digits are text unless users say otherwise: as a number they would lose
/// something. None for everything else.
fn text_like(bytes: &[u8]) -> Option<&'static str> {
    let bytes = bytes.trim_ascii();
    let digits = bytes.strip_prefix(b"-").or(bytes.strip_prefix(b"+")).unwrap_or(bytes);
    let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit() {
        return Some("has a leading zero, so it is text");
    }
    if is_whole && bytes[0] == b'+' {
        return Some("has a plus sign, so it is text");
    }
    let has_power = || digits.iter().any(|one| one.eq_ignore_ascii_case(&b'e'));
    if digits.first().is_some_and(|one| b".0123456789".contains(one))
        && (digits.len() > DIGITS_MAX || has_power())
        && matches!(Number::Float(8).parse(bytes), Ok(Given::Float(number)) if number.is_infinite())
    {
        return Some("is beyond float64, so it is text");
    }
    let fits = || std::str::from_utf8(bytes).is_ok_and(|text| text.parse::<i64>().is_ok());
    (is_whole && digits.len() > 18 && !fits()).then_some("is beyond int64, so it is text")
}

/// Whether digits are a whole number that a float rounds.
fn is_rounded(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).unwrap_or_default().trim();
    text.len() > 15 && text.parse::<i64>().is_ok_and(|whole| whole as f64 as i64 != whole)
}
