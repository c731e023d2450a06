//! What the type of a field asks of the formats of others.

use super::number::Number;
use crate::format::ingot::{Field, FieldKind};

/// What filling a field of a row requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// The name of the field.
    pub name: String,
    /// What the field contributes to a row.
    pub kind: FieldKind,
    /// The type of the numbers, if a value is a number or consists of numbers.
    pub number: Option<Number>,
    /// How many numbers a value has, if that is fixed.
    pub count: Option<u64>,
    /// The place of the column that says whether there is a value, if it may be missing.
    pub present: Option<usize>,
    /// The type without `[]` and `?`.
    pub base: String,
}

/// The type of the columns that say whether there is a value.
pub const PRESENT: &str = "present";

impl Kind {
    /// Returns what each field asks; none for a column that says whether there is a value.
    pub fn of_fields(fields: &[Field]) -> Vec<Option<Kind>> {
        let mut found = Vec::with_capacity(fields.len());
        for field in fields {
            let type_name = field.type_name.as_deref().unwrap_or("bytes");
            found.push((type_name != PRESENT).then(|| {
                let flag = format!("{}?", field.name);
                let is_optional = type_name.ends_with('?');
                let bare = type_name.trim_end_matches('?');
                let base = bare.trim_end_matches("[]").to_owned();
                let (number, count) = numbers_of(&base);
                let present = fields.iter().position(|one| is_optional && one.name == flag);
                let count = if bare.ends_with("[]") { None } else { count };
                Kind { name: field.name.clone(), kind: field.kind, number, count, present, base }
            }));
        }
        found
    }

    /// Whether a value is one number.
    pub fn is_column(&self) -> bool {
        self.kind == FieldKind::Column
    }
}

/// Returns the type of the numbers that values of a type consist of, and how many of them.
fn numbers_of(base: &str) -> (Option<Number>, Option<u64>) {
    match base {
        "int" => return (Some(Number::Int(8)), Some(1)),
        "float" => return (Some(Number::Float(8)), Some(1)),
        "bool" => return (Some(Number::Bool), Some(1)),
        _ => {}
    }
    let inner = base.strip_prefix("array(").and_then(|rest| rest.strip_suffix(')'));
    let mut parts = inner.unwrap_or_default().split(',').map(str::trim);
    let number = parts.next().and_then(Number::of_name);
    let count = parts.try_fold(1_u64, |count, length| count.checked_mul(length.parse().ok()?));
    (number, if number.is_some() { count } else { None })
}

/// Returns a field of a type that this crate has chosen: numbers are columns, runs of numbers
/// and everything else cells, and lists of anything else sequences. With `optional` there
/// must be a column `name?` too: [`flags`].
pub fn field(name: &str, type_name: &str, optional: bool) -> Field {
    let base = type_name.trim_end_matches("[]");
    let (number, count) = numbers_of(base);
    let is_number = number.filter(|_| count == Some(1) && !base.contains(','));
    let kind = match (is_number, type_name.ends_with("[]")) {
        (Some(_), false) => FieldKind::Column,
        (None, true) => FieldKind::Sequence,
        _ => FieldKind::Cell,
    };
    let width = is_number.filter(|_| kind == FieldKind::Column).map(|one| one.width() as u32);
    let suffix = if optional { "?" } else { "" };
    Field { name: name.to_owned(), kind, width, type_name: Some(format!("{type_name}{suffix}")) }
}

/// Returns the columns that say whether optional fields have a value.
pub fn flags(fields: &[Field]) -> Vec<Field> {
    let optional = fields
        .iter()
        .filter(|one| one.type_name.as_deref().is_some_and(|type_name| type_name.ends_with('?')));
    optional
        .map(|one| Field {
            name: format!("{}?", one.name),
            kind: FieldKind::Column,
            width: Some(1),
            type_name: Some(PRESENT.to_owned()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_says_how_it_is_stored() {
        for (type_name, kind, width) in [
            ("int", FieldKind::Column, Some(8)),
            ("array(float32)", FieldKind::Column, Some(4)),
            ("array(float32)[]", FieldKind::Cell, None),
            ("array(uint8,3,4)", FieldKind::Cell, None),
            ("array(uint8,1)", FieldKind::Cell, None),
            ("array(uint8,3,4)[]", FieldKind::Sequence, None),
            ("jpg", FieldKind::Cell, None),
            ("utf8[]", FieldKind::Sequence, None),
        ] {
            let found = field("x", type_name, false);
            assert_eq!((found.kind, found.width), (kind, width), "{type_name}");
        }
        let mut fields = vec![field("x", "int", true), field("y", "array(uint8,3,4)", false)];
        fields.extend(flags(&fields));
        let kinds = Kind::of_fields(&fields);
        assert_eq!(kinds[0].as_ref().unwrap().present, Some(2));
        assert_eq!(kinds[1].as_ref().unwrap().count, Some(12));
        assert!(kinds[2].is_none());
    }
}
