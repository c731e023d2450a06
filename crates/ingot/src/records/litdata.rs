//! Chunks of LitData: offsets, then items of leaves.

use super::indexed::{Layout, Offsets, Sink, Stream, scan_samples};
use crate::error::{Error, Result};
use crate::format::Violation;
use crate::format::foreign::kind::{Kind, by_name, field};
use crate::format::foreign::litdata::{numpy_type, tensor_type};
use crate::format::foreign::mds::list;
use crate::format::foreign::number::Number;
use crate::format::foreign::{Coding, Recipe};
use crate::format::ingot::{Field, FieldKind};

/// How the content of a chunk begins that has its items in columns.
const ARROW: &[u8] = b"ARROW1\0\0";

/// The layout of LitData chunks whose items have these leaves.
#[derive(Debug, Clone)]
pub struct LitData {
    leaves: Vec<Leaf>,
    options: String,
}

/// A leaf of an item: the field it becomes, and how its values are stored.
#[derive(Debug, Clone)]
struct Leaf {
    name: String,
    type_name: String,
    value: Value,
}

/// How a value is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// As a number.
    Number(Number),
    /// As bytes that a coding makes a value of.
    Cell(Coding),
    /// As a list of byte strings.
    List,
}

impl LitData {
    /// Returns the layout of leaves with names and data formats, as `index.json` has them.
    pub fn of(leaves: Vec<(String, String)>) -> Result<LitData> {
        let options = serde_json::json!({ "leaves": leaves }).to_string();
        let leaves: Result<Vec<Leaf>> = leaves.into_iter().map(Leaf::of).collect();
        Ok(LitData { leaves: leaves?, options })
    }
}

impl Leaf {
    fn of((name, format): (String, String)) -> Result<Leaf> {
        let (base, rest) = format.split_once(':').unwrap_or((&format, ""));
        let unknown = || {
            let why = format!("leaf {name:?} has the data format {format:?}, which is not read");
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
            "jpeg_array" => Ok(("jpg[]".to_owned(), Value::List)),
            "pil" => array(Recipe::Pixels),
            "numpy" => array(Recipe::LitNumpy),
            "tensor" => array(Recipe::LitTensor),
            "no_header_numpy" => run(rest.parse().ok().and_then(numpy_type)),
            "no_header_tensor" => run(rest.parse().ok().and_then(tensor_type)),
            "pickle" => raw("pickle"),
            // Files, and what LitData packs in ways of its own: the bytes, as they are.
            _ => raw("bytes"),
        }?;
        Ok(Leaf { name, type_name, value })
    }

    fn put(&self, field: usize, offset: u64, stored: &[u8], sink: &mut Sink<'_>) -> Result<()> {
        match (self.value, sink.kind(field).kind) {
            (Value::Number(number), FieldKind::Column) if stored.len() == number.width() => {
                let is_bool = number == Number::Bool;
                sink.column(field, if is_bool && stored != [0] { &[1] } else { stored });
                Ok(())
            }
            (Value::Cell(coding), FieldKind::Cell) => sink.cell(field, offset, stored, coding),
            (Value::List, FieldKind::Sequence) => {
                sink.sequence(field);
                let parts = list(stored, 0).map_err(|why| sink.misfit(field, &why))?;
                for part in parts {
                    let at = offset + part.start as u64;
                    sink.element(field, at, &stored[part], Coding::RAW)?;
                }
                Ok(())
            }
            _ => {
                let (name, len) = (&self.type_name, stored.len());
                let why = Violation(format!("the item has {len} bytes of {name}"));
                Err(sink.misfit(field, &why))
            }
        }
    }
}

impl Layout for LitData {
    fn format(&self) -> &'static str {
        "litdata"
    }

    fn options(&self) -> String {
        self.options.clone()
    }

    fn knows_fields(&self) -> bool {
        true
    }

    fn infer(&self, _files: &mut [Stream<'_>]) -> Result<Option<Vec<Field>>> {
        let fields = self.leaves.iter().map(|one| field(&one.name, &one.type_name, false));
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
            self.leaves.iter().map(|one| fields.get(one.name.as_str()).copied()).collect();
        let offsets = Offsets::read(stream)?;
        if stream.left() >= ARROW.len() as u64 && stream.peek(ARROW.len() as u64)? == ARROW {
            let reason = "the chunk holds an Arrow file, but its end does not say so, or the \
                          first chunk holds none";
            let path = stream.name().to_owned();
            return Err(Error::Format { path, reason: reason.to_owned() });
        }
        let sizes = vec![None; self.leaves.len()];
        scan_samples(&offsets, &sizes, stream, sink, |k, offset, stored, sink| match places[k] {
            Some(place) => self.leaves[k].put(place, offset, stored, sink),
            None => Ok(()),
        })
    }
}
