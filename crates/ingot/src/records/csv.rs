//! CSV files: the first row names the fields.

use std::collections::HashSet;
use std::sync::Arc;

use super::indexed::{self, Extent, Layout, PROBE_BYTES, Seen, Sink, Stream, probe_rows};
use super::open::Format;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::foreign::csv::{Span, fields, row_end, text};
use crate::format::foreign::number::{Given, Number};
use crate::format::foreign::{Coding, Recipe};
use crate::format::ingot::{Field, Schema};
use crate::format::{Violation, bail};

/// CSV files.
pub static FORMAT: Format = Format {
    name: "csv",
    title: "a CSV file",
    suffixes: &[".csv", ".tsv"],
    is_checked: false,
    begins: |_| false,
    open: |opening, watch| indexed::open_one(&opening, Arc::new(Csv::default()), None, watch),
};

/// What separates fields in a `.csv` file whose first row has no comma, if it has one of these.
const SEPARATORS: [u8; 3] = [b';', b'|', b'\t'];

/// Columns of a file whose types are inferred, at most: the index has one more field.
const COLUMNS_MAX: usize = Schema::FIELDS_MAX - 1;

/// The layout of CSV files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Csv {
    /// What separates fields; none to find out from the name and the first row.
    pub separator: Option<u8>,
}

/// What every row of a file shares: what separates fields, and their names.
struct Table {
    separator: u8,
    names: Vec<String>,
    /// Lines of the first row.
    lines: u64,
}

impl Table {
    /// Reads the first row.
    fn read(csv: Csv, stream: &mut Stream<'_>) -> Result<Option<Table>> {
        let Some(row) = next_row(stream)? else { return Ok(None) };
        let lines = lines_in(stream.peek(row.next as u64)?);
        let name = stream.name().to_owned();
        let refuse = |why: &Violation| refused(&name, 1, why);
        let head = stream.peek(row.len as u64)?;
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let separator = match csv.separator {
            Some(separator) => separator,
            None => separator_of(&name, head).map_err(|why| refuse(&why))?,
        };
        let spans = fields(head, separator).map_err(|why| refuse(&why))?;
        let names: Vec<String> = spans
            .iter()
            .map(|span| String::from_utf8_lossy(&content(head, span)).trim().to_owned())
            .enumerate()
            .map(|(k, name)| if name.is_empty() { format!("unnamed_{k}") } else { name })
            .collect();
        let mut seen = HashSet::with_capacity(names.len());
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(refuse(&Violation(format!("two columns are named {twice:?}"))));
        }
        stream.advance(row.next);
        Ok(Some(Table { separator, names, lines }))
    }

    /// Returns the fields of a row.
    fn spans(&self, row: &[u8]) -> Result<Vec<Span>, Violation> {
        let spans = fields(row, self.separator)?;
        if spans.len() != self.names.len() {
            let (found, expected) = (spans.len(), self.names.len());
            bail!("expected {expected} fields, found {found}");
        }
        Ok(spans)
    }
}

/// Returns what separates fields: a tab in `.tsv` files, a comma in others, unless the first
/// row has no comma and one of the other separators.
fn separator_of(path: &str, head: &[u8]) -> Result<u8, Violation> {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    // Behind the suffix there may be the number of a shard, or that of a decompressed copy.
    let mut parts = name.rsplit('.').map(|part| part.split('-').next().unwrap_or(part));
    if parts.find(|part| ["csv", "tsv"].contains(part)) == Some("tsv") {
        return Ok(b'\t');
    }
    if has_outside(head, b',') {
        return Ok(b',');
    }
    let found: Vec<u8> =
        SEPARATORS.into_iter().filter(|&separator| has_outside(head, separator)).collect();
    match found[..] {
        [] => Ok(b','),
        [separator] => Ok(separator),
        _ => {
            let shown: Vec<String> =
                found.iter().map(|&one| format!("{:?}", char::from(one))).collect();
            let shown = shown.join(" and ");
            Err(Violation(format!("no comma, but {shown}: pass separator= to ingot.open")))
        }
    }
}

/// Whether a row has a byte outside of quotes.
fn has_outside(row: &[u8], wanted: u8) -> bool {
    let mut inside = false;
    row.iter().any(|&byte| {
        inside ^= byte == b'"';
        byte == wanted && !inside
    })
}

/// Returns how many lines end in these bytes.
fn lines_in(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

fn refused(path: &str, line: u64, why: &Violation) -> Error {
    Error::format(path, format!("line {line}: {why}"))
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
        let found = row_end(bytes, is_last)
            .map_err(|why| Error::format(&name, format!("offset {offset}: {why}")))?;
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

    fn options(&self) -> String {
        serde_json::json!({ "separator": self.separator.map(char::from) }).to_string()
    }

    fn infer(&self, files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>> {
        let mut seen = Seen::<Known>::default();
        for (k, stream) in files.iter_mut().enumerate() {
            let Some(table) = Table::read(*self, stream)? else { continue };
            check_columns(stream.name(), table.names.len(), 0)?;
            // Without any row, the columns are those that the first row names.
            table.names.iter().for_each(|name| seen.note_missing(name).is_seen = true);
            let (mut rows, mut line) = (probe_rows(k), table.lines + 1);
            while rows > 0 && stream.offset() < PROBE_BYTES {
                let Some(extent) = next_row(stream)? else { break };
                let name = stream.name().to_owned();
                let row = stream.peek(extent.len as u64)?;
                if !row.is_empty() {
                    seen.begin();
                    let spans = table.spans(row).map_err(|why| refused(&name, line, &why))?;
                    for (name, span) in table.names.iter().zip(&spans) {
                        match &row[span.start..span.end] {
                            [] if span.is_quoted => seen.note_missing(name).blanks += 1,
                            [] => seen.note_missing(name).is_seen = true,
                            bytes => seen.note(name).add(bytes, span.is_quoted),
                        }
                    }
                    rows -= 1;
                }
                line += lines_in(stream.peek(extent.next as u64)?);
                stream.advance(extent.next);
            }
        }
        if seen.is_empty() {
            return Ok(None);
        }
        seen.count_more(|known| if known.type_name() == TEXT { known.blanks } else { 0 });
        let fields = seen.fields(|_, known| Ok::<_, Error>(known.type_name().to_owned()))?;
        let columns = seen.names().count();
        check_columns(files[0].name(), columns, fields.len() - columns)?;
        Ok(Some(fields))
    }

    fn scan(&self, stream: &mut Stream<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let Some(table) = Table::read(*self, stream)? else { return Ok(()) };
        let fields = sink.fields();
        let places: Vec<Option<usize>> =
            table.names.iter().map(|name| fields.get(name.as_str()).copied()).collect();
        let mut lines = table.lines;
        while let Some(extent) = next_row(stream)? {
            let offset = stream.offset();
            let row = stream.peek(extent.len as u64)?;
            if !row.is_empty() {
                sink.begin(offset);
                sink.skipped = lines - sink.num_rows();
                let spans = table.spans(row).map_err(|why| sink.refuse(&why))?;
                for (span, place) in spans.iter().zip(&places) {
                    if let Some(place) = place {
                        put(*place, offset, row, span, sink)?;
                    }
                }
                sink.end(row.len() as u64, Sum::Crc32c.append(0, row))?;
            }
            lines += lines_in(stream.peek(extent.next as u64)?);
            stream.advance(extent.next);
        }
        Ok(())
    }
}

/// Rejects more columns than an index has fields for; one that may be missing takes two.
fn check_columns(path: &str, columns: usize, optional: usize) -> Result<()> {
    if columns + optional <= COLUMNS_MAX {
        return Ok(());
    }
    let missing = match optional {
        0 => String::new(),
        _ => format!(", of which {optional} have missing values and count twice"),
    };
    let reason = format!(
        "{columns} columns{missing}, at most {COLUMNS_MAX}: name those to read with \
         spec={{...}} in ingot.open"
    );
    Err(Error::format(path, reason))
}

fn put(field: usize, offset: u64, row: &[u8], span: &Span, sink: &mut Sink<'_>) -> Result<()> {
    let bytes = &row[span.start..span.end];
    let kind = sink.kind(field);
    // A quoted nothing is a text without characters, and no number: some writers quote all that
    // is not a number, what is missing too.
    let is_missing = bytes.is_empty() && (!span.is_quoted || kind.is_column());
    if is_missing && (kind.present.is_some() || kind.is_column()) {
        return Ok(());
    }
    if let Some(number) = kind.number.filter(|_| kind.is_column()) {
        let is_rounded = || matches!(number, Number::Float(_)) && is_rounded(bytes);
        let rounded = || is_rounded().then_some("would be rounded, so it is text");
        if let Some(why) = text_like(bytes).or_else(rounded).filter(|_| sink.is_strict) {
            let shown = bytes[..bytes.len().min(40)].escape_ascii();
            return Err(sink.misfit(field, format!("\"{shown}\" {why}")));
        }
        let given = number.parse(&content(row, span)).map_err(|why| sink.misfit(field, &why))?;
        return sink.number(field, given);
    }
    let coding = if span.is_escaped { Coding::plain(Recipe::CsvText) } else { Coding::RAW };
    sink.cell(field, offset + span.start as u64, bytes, coding)
}

/// More digits than these may be beyond float64 without a power of ten.
const DIGITS_MAX: usize = 300;

/// The type of columns that hold anything but numbers.
const TEXT: &str = "utf8";

/// What is known of a column.
#[derive(Debug, Default)]
struct Known {
    is_seen: bool,
    /// Rows that have a quoted nothing.
    blanks: u64,
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
            _ => TEXT,
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
