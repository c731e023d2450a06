//! `tf.train.Example` and `tf.train.SequenceExample`: named lists of bytes, floats or integers.

use super::number::{Given, Number};
use crate::format::protobuf::{Fields, Wire};
use crate::format::varint;
use crate::format::{Violation, bail};

/// What a feature holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// Byte strings.
    Bytes,
    /// Numbers of 32 bits.
    Floats,
    /// Integers of 64 bits.
    Ints,
}

impl ListKind {
    /// What TensorFlow calls it.
    pub fn name(self) -> &'static str {
        match self {
            ListKind::Bytes => "bytes_list",
            ListKind::Floats => "float_list",
            ListKind::Ints => "int64_list",
        }
    }
}

/// A `tf.train.Feature`: what it holds, and the message of its list.
#[derive(Debug, Clone, Copy)]
pub struct Feature<'a> {
    /// What it holds; nothing if no list is set.
    pub kind: Option<ListKind>,
    /// The message of the list.
    list: &'a [u8],
    /// The message of the feature.
    pub message: &'a [u8],
}

impl<'a> Feature<'a> {
    /// Reads the message of a feature; of several lists the last counts.
    pub fn of(message: &'a [u8]) -> Result<Feature<'a>, Violation> {
        let mut found = Feature { kind: None, list: &[], message };
        for field in Fields::of(message) {
            let (number, Wire::Bytes(list)) = field? else {
                bail!("a feature holds something other than a list");
            };
            let kind = match number {
                1 => ListKind::Bytes,
                2 => ListKind::Floats,
                3 => ListKind::Ints,
                _ => bail!("a feature has an unknown field {number}"),
            };
            (found.kind, found.list) = (Some(kind), list);
        }
        Ok(found)
    }

    /// Returns the byte strings of a `bytes_list`.
    pub fn strings(&self) -> impl Iterator<Item = Result<&'a [u8], Violation>> + use<'a> {
        Fields::of(self.list).map(|field| match field? {
            (1, Wire::Bytes(bytes)) => Ok(bytes),
            _ => Err(Violation::new("a bytes_list holds something other than byte strings")),
        })
    }

    /// Returns the floats of a `float_list` that are stored contiguously, if they are.
    pub fn packed_floats(&self) -> Option<&'a [u8]> {
        let mut fields = Fields::of(self.list);
        match (fields.next()?, fields.next()) {
            (Ok((1, Wire::Bytes(packed))), None) if packed.len().is_multiple_of(4) => Some(packed),
            _ => None,
        }
    }

    /// Calls `take` with each number.
    pub fn numbers(
        &self,
        mut take: impl FnMut(Given) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let mut float = |bytes| take(Given::Float(f32::from_le_bytes(bytes).into()));
        match self.kind {
            None => Ok(()),
            Some(ListKind::Bytes) => Err(Violation::new("expected numbers, found a bytes_list")),
            Some(ListKind::Floats) => {
                for field in Fields::of(self.list) {
                    match field? {
                        (1, Wire::Fixed32(bytes)) => float(bytes)?,
                        (1, Wire::Bytes(packed)) if packed.len().is_multiple_of(4) => {
                            packed.as_chunks().0.iter().try_for_each(|&bytes| float(bytes))?;
                        }
                        _ => bail!("a float_list holds something other than floats"),
                    }
                }
                Ok(())
            }
            Some(ListKind::Ints) => {
                for field in Fields::of(self.list) {
                    match field? {
                        (1, Wire::Varint(value)) => take(Given::Int((value as i64).into()))?,
                        (1, Wire::Bytes(mut packed)) => {
                            while !packed.is_empty() {
                                let value = varint::take(&mut packed)? as i64;
                                take(Given::Int(value.into()))?;
                            }
                        }
                        _ => bail!("an int64_list holds something other than integers"),
                    }
                }
                Ok(())
            }
        }
    }

    /// Number of values.
    pub fn count(&self) -> Result<u64, Violation> {
        let mut count = 0;
        if self.kind == Some(ListKind::Bytes) {
            for string in self.strings() {
                string?;
                count += 1;
            }
        } else {
            self.numbers(|_| {
                count += 1;
                Ok(())
            })?;
        }
        Ok(count)
    }
}

/// Returns the numbers of the message of a feature.
pub fn feature_numbers(message: &[u8], number: Number) -> Result<Vec<u8>, Violation> {
    let mut out = Vec::new();
    Feature::of(message)?.numbers(|given| number.put(given, &mut out))?;
    Ok(out)
}

/// Returns the numbers of all steps in the message of a feature list.
pub fn list_numbers(message: &[u8], number: Number) -> Result<Vec<u8>, Violation> {
    let mut out = Vec::new();
    for step in steps(message) {
        Feature::of(step?)?.numbers(|given| number.put(given, &mut out))?;
    }
    Ok(out)
}

/// Returns the messages of the steps of a feature list.
pub fn steps(message: &[u8]) -> impl Iterator<Item = Result<&[u8], Violation>> {
    Fields::of(message).map(|field| match field? {
        (1, Wire::Bytes(step)) => Ok(step),
        _ => Err(Violation::new("a feature list holds something other than features")),
    })
}

/// What is under a name in an example.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'a> {
    /// A feature.
    Feature(Feature<'a>),
    /// The message of a feature list, of a `SequenceExample`.
    List(&'a [u8]),
}

/// Calls `take` with each name of an example and what is under it. A `SequenceExample` has
/// context features and feature lists; an `Example` has features alone.
pub fn entries<'a>(
    example: &'a [u8],
    mut take: impl FnMut(&'a str, Entry<'a>) -> Result<(), Violation>,
) -> Result<(), Violation> {
    for field in Fields::of(example) {
        let (number, Wire::Bytes(map)) = field? else {
            bail!("an example holds something other than features");
        };
        if number > 2 {
            bail!("an example has an unknown field {number}");
        }
        for field in Fields::of(map) {
            let (1, Wire::Bytes(entry)) = field? else {
                bail!("features hold something other than features");
            };
            let (name, message) = named(entry)?;
            let entry = match number {
                1 => Entry::Feature(Feature::of(message)?),
                _ => Entry::List(message),
            };
            take(name, entry)?;
        }
    }
    Ok(())
}

/// Returns the name and the message of an entry of a map.
fn named(entry: &[u8]) -> Result<(&str, &[u8]), Violation> {
    let (mut name, mut message) = (&[][..], &[][..]);
    for field in Fields::of(entry) {
        match field? {
            (1, Wire::Bytes(bytes)) => name = bytes,
            (2, Wire::Bytes(bytes)) => message = bytes,
            _ => bail!("a feature has neither name nor value"),
        }
    }
    let name = std::str::from_utf8(name);
    Ok((name.map_err(|_| Violation::new("the name of a feature is not UTF-8"))?, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        varint::put(&mut out, bytes.len() as u64);
        out.extend_from_slice(bytes);
        out
    }

    #[test]
    fn packed_and_single_numbers_are_one_list() {
        let mut list = field(1, &[1, 0x80, 1]);
        list.extend_from_slice(&[8, 7]);
        let feature = field(3, &list);
        let found = feature_numbers(&feature, Number::Int(8)).unwrap();
        let numbers = [1_i64, 128, 7].map(i64::to_le_bytes).concat();
        assert_eq!(found, numbers);
        assert_eq!(Feature::of(&feature).unwrap().count().unwrap(), 3);
    }

    #[test]
    fn names_and_lists_come_out() {
        let feature = field(2, &field(1, &1.5_f32.to_le_bytes()));
        let entry = [field(1, b"x"), field(2, &feature)].concat();
        let example = field(1, &field(1, &entry));
        let mut found = Vec::new();
        entries(&example, |name, entry| {
            let Entry::Feature(feature) = entry else { panic!("no list") };
            found.push((name.to_owned(), feature.kind, feature.packed_floats().map(<[u8]>::len)));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [("x".to_owned(), Some(ListKind::Floats), Some(4))]);
        for cut in 1..example.len() {
            assert!(entries(&example[..cut], |_, _| Ok(())).is_err(), "{cut}");
        }
    }
}
