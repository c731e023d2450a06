//! Chunks of LitData: offsets, then items of leaves.

use super::indexed::{Column, Samples, Value};
use crate::error::{Error, Result};
use crate::format::foreign::litdata::{numpy_type, tensor_type};
use crate::format::foreign::number::Number;
use crate::format::foreign::{Coding, Recipe};

/// Returns the layout of leaves with names and data formats, as `index.json` has them.
pub fn layout(leaves: Vec<(String, String)>) -> Result<Samples> {
    let options = serde_json::json!({ "leaves": leaves }).to_string();
    let columns = leaves.into_iter().map(column).collect::<Result<_>>()?;
    Ok(Samples::new("litdata", options, columns))
}

/// Returns the column of a leaf with a name and a data format.
fn column((name, format): (String, String)) -> Result<Column> {
    let (base, rest) = format.split_once(':').unwrap_or((&format, ""));
    let unknown = || {
        let why = format!("leaf {name:?} has the unsupported data format {format:?}");
        Error::Invalid(why)
    };
    let run = |number: Option<Number>| {
        let number = number.ok_or_else(unknown)?;
        Ok((format!("array({})[]", number.name()), Value::Cell(Coding::RAW)))
    };
    let raw = |name: &str| Ok((name.to_owned(), Value::Cell(Coding::RAW)));
    let array = |recipe| Ok(("array".to_owned(), Value::Cell(Coding::plain(recipe))));
    let (type_name, value) = match base {
        "int" => Ok(("int".to_owned(), Value::Number(Number::Int(8)))),
        "float" => Ok(("float".to_owned(), Value::Number(Number::Float(8)))),
        "bool" => Ok(("bool".to_owned(), Value::Number(Number::Bool))),
        "str" | "text" => raw("utf8"),
        "jpeg" => raw("jpg"),
        "image" => raw(match rest {
            "jpg" | "jpeg" => "jpg",
            "png" => "png",
            "webp" => "webp",
            _ => "bytes",
        }),
        "jpeg_array" => Ok(("jpg[]".to_owned(), Value::List(0, Coding::RAW))),
        "pil" => array(Recipe::Pixels),
        "numpy" => array(Recipe::LitNumpy),
        "tensor" => array(Recipe::LitTensor),
        "no_header_numpy" => run(rest.parse().ok().and_then(numpy_type)),
        "no_header_tensor" => run(rest.parse().ok().and_then(tensor_type)),
        "pickle" => raw("pickle"),
        // Files, and values that LitData packs in its own ways, as bytes.
        _ => raw("bytes"),
    }?;
    Ok(Column { name, type_name, size: None, value })
}
