//! Shards of MDS, the format of Streaming: offsets, then samples of columns.

use super::indexed::{Layout, Offsets, Sink, Stream, scan_samples};
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::foreign::kind::{Kind, by_name, field};
use crate::format::foreign::mds::list;
use crate::format::foreign::number::Number;
use crate::format::foreign::{Coding, Recipe};
use crate::format::ingot::{Field, FieldKind};

/// The layout of MDS shards whose samples have these columns.
#[derive(Debug, Clone)]
pub struct Mds {
    columns: Vec<Column>,
    options: String,
}

/// A column: what it is called, and how its values are stored.
#[derive(Debug, Clone)]
struct Column {
    name: String,
    type_name: String,
    /// Bytes of a value, if that is fixed.
    size: Option<u64>,
    value: Value,
}

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// As a number.
    Number(Number),
    /// As the text of a number.
    Text,
    /// As bytes that a coding makes a value of.
    Cell(Coding),
    /// As a list of byte strings, whose number is so many bytes from the front.
    List(usize, Coding),
}

impl Mds {
    /// Returns the layout of columns with names and encodings, as `index.json` has them.
    pub fn of(columns: Vec<(String, String)>) -> Result<Mds> {
        let options = serde_json::json!({ "columns": columns }).to_string();
        let columns: Result<Vec<Column>> = columns.into_iter().map(Column::of).collect();
        Ok(Mds { columns: columns?, options })
    }
}

impl Column {
    fn of((name, encoding): (String, String)) -> Result<Column> {
        let array = |recipe| Value::Cell(Coding::plain(recipe));
        let (type_name, size, value) = match encoding.as_str() {
            "bytes" => ("bytes".to_owned(), None, Value::Cell(Coding::RAW)),
            "str" => ("utf8".to_owned(), None, Value::Cell(Coding::RAW)),
            "json" => ("json".to_owned(), None, Value::Cell(Coding::RAW)),
            "jpeg" => ("jpg".to_owned(), None, Value::Cell(Coding::RAW)),
            "png" => ("png".to_owned(), None, Value::Cell(Coding::RAW)),
            "pil" => ("array".to_owned(), None, array(Recipe::Pixels)),
            "pkl" => ("pickle".to_owned(), None, Value::Cell(Coding::RAW)),
            "int" => ("int".to_owned(), Some(8), Value::Number(Number::Int(8))),
            "str_int" => ("int".to_owned(), None, Value::Text),
            "str_float" => ("float".to_owned(), None, Value::Text),
            "str_decimal" => ("utf8".to_owned(), None, Value::Cell(Coding::RAW)),
            "jpeg_array" | "jpegarray" => ("jpg[]".to_owned(), None, Value::List(0, Coding::RAW)),
            "list[jpeg]" => ("jpg[]".to_owned(), None, Value::List(4, Coding::RAW)),
            "list[png]" => ("png[]".to_owned(), None, Value::List(4, Coding::RAW)),
            "list[pil]" => {
                let pixels = Coding::plain(Recipe::Pixels);
                ("array[]".to_owned(), None, Value::List(4, pixels))
            }
            "ndarray" => ("array".to_owned(), None, array(Recipe::MdsArray)),
            other => return Column::numbers(name, other),
        };
        Ok(Column { name, type_name, size, value })
    }

    /// Returns a column of numbers: `float32`, `ndarray:float32` or `ndarray:float32:3,4`.
    fn numbers(name: String, encoding: &str) -> Result<Column> {
        let unknown = || {
            let why = format!("column {name:?} has the encoding {encoding:?}, which is unknown");
            Error::Invalid(why)
        };
        if let Some(number) = Number::of_name(encoding).filter(|&one| one != Number::Bool) {
            let size = Some(number.width() as u64);
            let type_name = format!("array({encoding})");
            return Ok(Column { name, type_name, size, value: Value::Number(number) });
        }
        let rest = encoding.strip_prefix("ndarray:").ok_or_else(unknown)?;
        let (kind, shape) = rest.split_once(':').map_or((rest, None), |(a, b)| (a, Some(b)));
        let number = Number::of_name(kind).ok_or_else(unknown)?;
        let Some(shape) = shape else {
            let value = Value::Cell(Coding::numbers(Recipe::MdsArray, Some(number)));
            return Ok(Column { name, type_name: "array".to_owned(), size: None, value });
        };
        let lengths = shape.split(',').map(|length| length.trim().parse::<u64>().ok());
        let count = lengths.clone().try_fold(1_u64, |count, length| count.checked_mul(length?));
        let size = count.and_then(|count| count.checked_mul(number.width() as u64));
        let size = Some(size.ok_or_else(unknown)?);
        let type_name = format!("array({kind},{})", shape.replace(' ', ""));
        Ok(Column { name, type_name, size, value: Value::Cell(Coding::RAW) })
    }

    fn put(&self, field: usize, offset: u64, stored: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        match (self.value, sink.kind(field).kind) {
            (Value::Number(number), FieldKind::Column) => {
                if stored.len() != number.width() {
                    let why = Violation(format!("the value has {} bytes", stored.len()));
                    return Err(sink.misfit(field, &why));
                }
                sink.column(field, stored);
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
            _ => {
                let why = Violation(format!("the column is stored as {}", self.type_name));
                Err(sink.misfit(field, &why))
            }
        }
    }
}

impl Layout for Mds {
    fn format(&self) -> &'static str {
        "mds"
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

    fn scan(
        &self,
        kinds: &[Option<Kind>],
        stream: &mut Stream<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let fields = by_name(kinds);
        let places: Vec<Option<usize>> =
            self.columns.iter().map(|one| fields.get(one.name.as_str()).copied()).collect();
        let sizes: Vec<Option<u64>> = self.columns.iter().map(|one| one.size).collect();
        let offsets = Offsets::read(stream)?;
        scan_samples(&offsets, &sizes, stream, sink, |k, offset, stored, sink| match places[k] {
            Some(place) => self.columns[k].put(place, offset, stored, sink),
            None => Ok(()),
        })
    }
}
