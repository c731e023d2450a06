//! Values of JSON, as they are in a line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer as _};
use serde_json::value::RawValue;

use super::number::{Given, Number};
use crate::format::Violation;

/// What a value is, by how it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// Text.
    Text,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// Returns what a value is, which must be valid JSON without white space around it.
pub fn shape(value: &str) -> Shape {
    match value.as_bytes().first() {
        Some(b'n') => Shape::Null,
        Some(b't' | b'f') => Shape::Bool,
        Some(b'"') => Shape::Text,
        Some(b'[') => Shape::Array,
        Some(b'{') => Shape::Object,
        _ => Shape::Number,
    }
}

/// Calls `take` with each member of an object: its name and its value. The text is checked to
/// be JSON as a whole.
pub fn members<'a>(
    object: &'a [u8],
    mut take: impl FnMut(Cow<'a, str>, &'a str) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let mut failure = None;
    let take = |name: Option<_>, value| take(name.unwrap_or_default(), value);
    let each = Each { what: "an object", take, failure: &mut failure };
    let mut reader = serde_json::Deserializer::from_slice(object);
    let read = reader.deserialize_map(each).and_then(|()| reader.end());
    failure.map_or_else(|| read.map_err(|error| not_an_object(object, &error)), Err)
}

/// Calls `take` with each element of an array.
pub fn elements<'a>(
    array: &'a [u8],
    mut take: impl FnMut(&'a str) -> Result<(), Violation>,
) -> Result<(), Violation> {
    let mut failure = None;
    let each = Each { what: "an array", take: |_, value| take(value), failure: &mut failure };
    let mut reader = serde_json::Deserializer::from_slice(array);
    let read = reader.deserialize_seq(each).and_then(|()| reader.end());
    failure.map_or_else(|| read.map_err(|error| not_json(&error)), Err)
}

/// As [`not_json`]; names what Python writes for numbers that JSON does not have.
fn not_an_object(object: &[u8], error: &serde_json::Error) -> Violation {
    let column = error.column();
    let end = object.len().min(column + 9);
    let near = String::from_utf8_lossy(&object[end.min(column.saturating_sub(3))..end]);
    match ["-Infinity", "Infinity", "NaN"].into_iter().find(|&name| near.contains(name)) {
        Some(name) => Violation::new(format!(
            "not a JSON object: {name} at column {column}, which JSON does not have; write null, \
             or text"
        )),
        None => not_json(error),
    }
}

fn not_json(error: &serde_json::Error) -> Violation {
    let column = error.column();
    let text = error.to_string();
    let why = text.split(" at line").next().unwrap_or_default();
    Violation::new(format!("not a JSON object: {why} at column {column}"))
}

/// Calls `take` with each member of an object, or each element of an array, which has no name.
struct Each<'f, F> {
    what: &'static str,
    take: F,
    failure: &'f mut Option<Violation>,
}

impl<'de, F: FnMut(Option<Cow<'de, str>>, &'de str) -> Result<(), Violation>> Each<'_, F> {
    fn take<E: serde::de::Error>(
        &mut self,
        name: Option<Cow<'de, str>>,
        value: &'de RawValue,
    ) -> Result<(), E> {
        (self.take)(name, value.get()).map_err(|why| {
            *self.failure = Some(why);
            E::custom("rejected")
        })
    }
}

impl<'de, F> Visitor<'de> for Each<'_, F>
where
    F: FnMut(Option<Cow<'de, str>>, &'de str) -> Result<(), Violation>,
{
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.what)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((Name(name), value)) = map.next_entry()? {
            self.take(Some(name), value)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<(), A::Error> {
        while let Some(value) = array.next_element()? {
            self.take(None, value)?;
        }
        Ok(())
    }
}

/// Text that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the number that a value is.
pub fn number(value: &str) -> Result<Given, Violation> {
    match value {
        "true" => return Ok(Given::Bool(true)),
        "false" => return Ok(Given::Bool(false)),
        _ => {}
    }
    let is_whole = !value.contains(['.', 'e', 'E']);
    let whole = value.parse().ok().filter(|_| is_whole).map(Given::Int);
    whole
        .or_else(|| value.parse().ok().filter(|number: &f64| number.is_finite()).map(Given::Float))
        .ok_or_else(|| Violation::new(format!("{value:.40} is not a number")))
}

/// Returns the numbers of an array.
pub fn numbers(array: &[u8], kind: Number) -> Result<Vec<u8>, Violation> {
    let mut out = Vec::new();
    elements(array, |value| kind.put(number(value)?, &mut out))?;
    Ok(out)
}

/// Returns text whose inside, between the quotes, has escapes.
pub fn text(inside: &[u8]) -> Result<Vec<u8>, Violation> {
    let quoted = [b"\"", inside, b"\""].concat();
    let text: String = serde_json::from_slice(&quoted).map_err(|error| not_json(&error))?;
    Ok(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_slices_of_the_line() {
        let line = br#" {"a": 1, "b\n": [1.5, 2], "c": {"d": "x"}} "#;
        let mut found = Vec::new();
        members(line, |name, value| {
            let start = value.as_ptr() as usize - line.as_ptr() as usize;
            assert_eq!(&line[start..start + value.len()], value.as_bytes());
            found.push((name.into_owned(), value.to_owned()));
            Ok(())
        })
        .unwrap();
        let expected = [("a", "1"), ("b\n", "[1.5, 2]"), ("c", r#"{"d": "x"}"#)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn values_other_than_objects_are_rejected() {
        for text in ["", "1", "[1]", "{\"a\": NaN}", "{\"a\": 1} x", "{\"a\": 01}", "{\"a\"}"] {
            assert!(members(text.as_bytes(), |_, _| Ok(())).is_err(), "{text}");
        }
        assert!(members("[".repeat(10_000).as_bytes(), |_, _| Ok(())).is_err());
    }

    #[test]
    fn numbers_and_text_come_out() {
        assert_eq!(numbers(b"[1, 2]", Number::Uint(1)).unwrap(), [1, 2]);
        assert!(numbers(b"[1, 2.5]", Number::Uint(1)).is_err());
        assert_eq!(text(br#"a\u00e9\n"#).unwrap(), "a\u{e9}\n".as_bytes());
    }
}
