//! Shards of MDS, the format of Streaming: offsets, then samples of columns.

use super::indexed::{Column, Samples, Value};
use crate::error::{Error, Result};
use crate::format::foreign::number::Number;
use crate::format::foreign::{Coding, Recipe};

/// Returns the layout of columns with names and encodings, as `index.json` has them.
pub fn layout(columns: Vec<(String, String)>) -> Result<Samples> {
    let options = serde_json::json!({ "columns": columns }).to_string();
    let columns = columns.into_iter().map(column).collect::<Result<_>>()?;
    Ok(Samples::new("mds", options, columns))
}

/// Returns the column of a name and an encoding.
fn column((name, encoding): (String, String)) -> Result<Column> {
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
        other => return numbers(name, other),
    };
    Ok(Column { name, type_name, size, value })
}

/// Returns a column of numbers: `float32`, `ndarray:float32` or `ndarray:float32:3,4`.
fn numbers(name: String, encoding: &str) -> Result<Column> {
    let unknown = || {
        let why = format!("column {name:?} has the unknown encoding {encoding:?}");
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
