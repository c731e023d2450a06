//! Samples as MDS and LitData store them: the sizes of values, then the values.

use std::ops::Range;

use super::Layout;
use super::sink::Sink;
use super::stream::Stream;
use crate::crc::Sum;
use crate::error::{Error, Result};
use crate::format::foreign::Coding;
use crate::format::foreign::kind::field;
use crate::format::foreign::mds::list;
use crate::format::foreign::number::Number;
use crate::format::ingot::{Field, FieldKind};
use crate::format::{Violation, bail};

/// How an Arrow file begins, which LitData can have in place of samples.
const ARROW: &[u8] = b"ARROW1\0\0";

/// The layout of files of samples: a table of offsets, then samples of these columns.
#[derive(Debug, Clone)]
pub struct Samples {
    format: &'static str,
    options: String,
    columns: Vec<Column>,
}

/// A column of samples: its field, and how its values are stored.
#[derive(Debug, Clone)]
pub struct Column {
    /// The name of the field.
    pub name: String,
    /// The type of the field.
    pub type_name: String,
    /// Bytes of a value; none if each sample says how many.
    pub size: Option<u64>,
    /// How values are stored.
    pub value: Value,
}

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// As a number.
    Number(Number),
    /// As the text of a number.
    Text,
    /// As bytes that are decoded by a coding.
    Cell(Coding),
    /// As a list of byte strings, which begins with their number after this many bytes.
    List(usize, Coding),
}

impl Samples {
    /// Returns the layout of a format with these options, which decide the columns.
    pub fn new(format: &'static str, options: String, columns: Vec<Column>) -> Samples {
        Samples { format, options, columns }
    }
}

impl Layout for Samples {
    fn format(&self) -> &'static str {
        self.format
    }

    fn options(&self) -> String {
        self.options.clone()
    }

    fn knows_fields(&self) -> bool {
        true
    }

    fn infer(&self, _files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>> {
        let fields = self.columns.iter().map(|one| field(&one.name, &one.type_name, false));
        Ok(Some(fields.collect()))
    }

    fn scan(&self, stream: &mut Stream<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let fields = sink.fields();
        let places: Vec<Option<usize>> =
            self.columns.iter().map(|one| fields.get(one.name.as_str()).copied()).collect();
        let sizes: Vec<Option<u64>> = self.columns.iter().map(|one| one.size).collect();
        let offsets = Offsets::read(stream)?;
        if stream.left() >= ARROW.len() as u64 && stream.peek(ARROW.len() as u64)? == ARROW {
            let reason = "the chunk holds an Arrow file, but its end does not say so, or the \
                          first chunk does not hold one";
            return Err(Error::format(stream.name(), reason));
        }
        for row in 0..offsets.num_rows() {
            let range = offsets.range(row, stream)?;
            let (start, len) = (range.start, range.end - range.start);
            let sample = stream.peek(len)?;
            sink.begin(start);
            let parts = parts(&sizes, sample).map_err(|why| sink.refuse(&why))?;
            for ((part, column), place) in parts.into_iter().zip(&self.columns).zip(&places) {
                if let Some(place) = *place {
                    column.put(place, start + part.start as u64, &sample[part], sink)?;
                }
            }
            let crc = Sum::Crc32c.append(0, sample);
            stream.advance(len as usize);
            sink.end(len, crc)?;
        }
        Ok(())
    }
}

impl Column {
    fn put(&self, field: usize, offset: u64, stored: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        match (self.value, sink.kind(field).kind) {
            (Value::Number(number), FieldKind::Column) => {
                if stored.len() != number.width() {
                    return Err(sink.misfit(field, format!("the value has {} bytes", stored.len())));
                }
                let is_true = number == Number::Bool && stored != [0];
                sink.column(field, if is_true { &[1] } else { stored });
                Ok(())
            }
            (Value::Text, FieldKind::Column) => {
                let number = sink.kind(field).number.unwrap_or(Number::Float(8));
                let given = number.parse(stored).map_err(|why| sink.misfit(field, &why))?;
                sink.number(field, given)
            }
            (Value::Cell(coding), FieldKind::Cell) => sink.cell(field, offset, stored, coding),
            (Value::List(head, coding), FieldKind::Sequence) => {
                sink.sequence(field);
                let parts = list(stored, head).map_err(|why| sink.misfit(field, &why))?;
                for part in parts {
                    let at = offset + part.start as u64;
                    sink.element(field, at, &stored[part], coding)?;
                }
                Ok(())
            }
            (Value::Text | Value::List(..), FieldKind::Cell) => {
                sink.cell(field, offset, stored, Coding::RAW)
            }
            _ => Err(sink.misfit(field, format!("the values are stored as {}", self.type_name))),
        }
    }
}

/// Returns where the values of a sample are: variable sizes come first.
fn parts(sizes: &[Option<u64>], sample: &[u8]) -> Result<Vec<Range<usize>>, Violation> {
    let cut = || Violation("the sample is truncated".to_owned());
    let num_varying = sizes.iter().filter(|size| size.is_none()).count();
    let (head, _) = sample.split_at_checked(4 * num_varying).ok_or_else(cut)?;
    let mut varying = head.as_chunks().0.iter().map(|&one| u32::from_le_bytes(one) as usize);
    let mut at = head.len();
    let mut parts = Vec::with_capacity(sizes.len());
    for size in sizes {
        let size = size.map_or_else(|| varying.next(), |size| usize::try_from(size).ok());
        let end = size.and_then(|size| at.checked_add(size)).filter(|&end| end <= sample.len());
        let end = end.ok_or_else(cut)?;
        parts.push(at..end);
        at = end;
    }
    if at != sample.len() {
        let left = sample.len() - at;
        bail!("{left} bytes follow the last value of the sample");
    }
    Ok(parts)
}

/// The table at the front of a file that says where its rows are: their number, and where each begins and the last one ends, as
/// numbers of 32 bits.
struct Offsets {
    offsets: Vec<u32>,
}

impl Offsets {
    /// Reads the table at the front of a file.
    fn read(stream: &mut Stream<'_>) -> Result<Offsets> {
        let head = stream.peek(4)?;
        let count = u64::from(u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
        let len = 4 * (count + 2);
        if len > stream.size() {
            let why = format!("the file declares {count} samples, but is too short");
            return Err(stream.corrupt(0, why));
        }
        let table = stream.peek(len)?;
        let offsets = table[4..].as_chunks().0.iter().map(|&one| u32::from_le_bytes(one)).collect();
        stream.advance(len as usize);
        Ok(Offsets { offsets })
    }

    /// Number of rows.
    fn num_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns where a row is, which must be next in the stream but for bytes that belong to
    /// no row; those are skipped.
    fn range(&self, row: usize, stream: &mut Stream<'_>) -> Result<Range<u64>> {
        let range = u64::from(self.offsets[row])..u64::from(self.offsets[row + 1]);
        let at = stream.offset();
        if range.start < at || range.end < range.start || range.end > stream.size() {
            let why = format!("sample {row} is at {} to {}", range.start, range.end);
            return Err(stream.corrupt(4 + 4 * row as u64, why));
        }
        stream.skip(range.start - at)?;
        Ok(range)
    }
}
