//! What is known of the members of JSON objects, and which types they have as fields.

use super::super::indexed::Seen;
use crate::format::foreign::json::{Shape, elements, members, number, shape};
use crate::format::foreign::number::Given;
use crate::format::{Violation, bail};

/// Objects inside objects that become fields of their own, at most; a deeper one is JSON.
const DEPTH: usize = 8;

/// Whether a number is whole, but no `int`: as a `float` it would be rounded.
fn is_beyond(value: &str) -> bool {
    value.len() > 18 && !value.contains(['.', 'e', 'E']) && value.parse::<i64>().is_err()
}

/// Whether a number is whole, and a `float` would round it.
pub fn is_rounded(value: &str) -> bool {
    let is_long = value.len() > 15 && !value.contains(['.', 'e', 'E']);
    is_long && value.parse::<i128>().map_or(true, |number| number as f64 as i128 != number)
}

/// Whether an array has a number that a `float` would round.
pub fn has_rounded(array: &str) -> bool {
    array.trim_matches(['[', ']']).split(',').any(|element| is_rounded(element.trim()))
}

/// Marks an object whose members are fields; no field has this type in the end.
pub const GROUP: &str = "group";

/// What is known of a member.
#[derive(Debug, Default)]
pub struct Known {
    bools: bool,
    ints: bool,
    /// Whether one of the integers is rounded as a float.
    wide_ints: bool,
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
    /// Integers that floats cannot all represent.
    WideInts,
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
            (Elements::Ints, Elements::WideInts) | (Elements::WideInts, Elements::Ints) => {
                Elements::WideInts
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
                Given::Int(_) => {
                    self.ints = true;
                    self.wide_ints |= is_rounded(value);
                }
                _ => self.floats = true,
            },
            Shape::Array => {
                let mut found = Elements::None;
                elements(value.as_bytes(), |element| {
                    let one = match shape(element) {
                        Shape::Text => Elements::Texts,
                        Shape::Number => match number(element)? {
                            _ if is_beyond(element) => Elements::Others,
                            Given::Int(_) if is_rounded(element) => Elements::WideInts,
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

    pub fn type_name(&self) -> String {
        let is_number = self.ints || self.floats;
        let kinds = [self.bools, is_number, self.texts, self.lists.is_some(), self.objects];
        let several = kinds.into_iter().filter(|&seen| seen).count() > 1;
        let name = match self.lists {
            _ if several || self.others => "json",
            Some(Elements::Ints | Elements::WideInts) => "int[]",
            Some(Elements::Floats) => "float[]",
            Some(Elements::Texts) => "utf8[]",
            Some(_) => "json",
            None if self.bools => "bool",
            None if self.floats && self.wide_ints => "json",
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

pub fn joined(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

pub fn is_inside(name: &str, above: &str) -> bool {
    name.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

/// Notes the members of an object, which has a name and is so deep in the line. `dotted` has the
/// names of members of the line that have a dot, as members of objects inside of it have as
/// fields.
pub fn note(
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
            bail!("two members are named {whole:?}; rename one");
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
pub fn is_json(name: &str, seen: &Seen<Known>) -> bool {
    let Some((rows, known)) = seen.get(name) else { return true };
    let mut members =
        seen.names().filter(|one| is_inside(one, name) && !one[name.len() + 1..].contains('.'));
    known.type_name() != GROUP
        || rows < seen.num_rows()
        || members.any(|one| seen.get(one).is_none_or(|(_, member)| member.count < known.count))
}
