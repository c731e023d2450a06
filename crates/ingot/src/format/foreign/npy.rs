//! The head of an `.npy` file.

use super::coding::array_of;
use super::number::Number;
use crate::format::{Violation, bail};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// What a head has.
const MEMBERS: [&str; 3] = ["descr", "fortran_order", "shape"];

/// Longest head that is read.
pub const HEAD_MAX: usize = 64 << 10;

/// What the head of an `.npy` file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The type of the elements.
    pub number: Number,
    /// Whether their bytes are in the other order, the high ones first.
    pub is_swapped: bool,
    /// Whether the first axis is the fastest.
    pub is_fortran: bool,
    /// The length of each axis.
    pub shape: Vec<u64>,
    /// Where the elements begin.
    pub start: usize,
}

/// Why the head of a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It is not what NumPy writes.
    Damaged(Violation),
    /// It is, but the elements are not numbers.
    Elements(Violation),
}

impl From<Violation> for Refusal {
    fn from(why: Violation) -> Refusal {
        Refusal::Damaged(why)
    }
}

impl From<Refusal> for Violation {
    fn from(refusal: Refusal) -> Violation {
        match refusal {
            Refusal::Damaged(why) | Refusal::Elements(why) => why,
        }
    }
}

impl Head {
    /// Reads the head at the front of a file.
    pub fn decode(front: &[u8]) -> Result<Head, Refusal> {
        let cut = || Violation::new("the header of the .npy file is truncated");
        let rest = front.strip_prefix(MAGIC).ok_or_else(|| Violation::new("not an .npy file"))?;
        let (&[major, _], rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let (len, width) = match major {
            1 => (u16::from_le_bytes(*rest.first_chunk().ok_or_else(cut)?).into(), 2),
            2 | 3 => (u32::from_le_bytes(*rest.first_chunk().ok_or_else(cut)?) as usize, 4),
            _ => return Err(Violation::new(format!("version {major} of .npy is unknown")).into()),
        };
        if len > HEAD_MAX {
            return Err(
                Violation::new(format!("the header of the .npy file has {len} bytes")).into()
            );
        }
        let text = rest.get(width..width + len).ok_or_else(cut)?;
        let text =
            std::str::from_utf8(text).map_err(|_| Violation::new("the header is not text"))?;
        let [descr, order, shape] = members(text)?;
        let (number, is_swapped) = quoted(descr).and_then(number_of).map_err(Refusal::Elements)?;
        let is_fortran = match order {
            "True" => true,
            "False" => false,
            _ => return Err(odd().into()),
        };
        let shape = shape_of(shape)?;
        let start = MAGIC.len() + 2 + width + len;
        Ok(Head { number, is_swapped, is_fortran, shape, start })
    }

    /// Bytes of all elements, if that is a number.
    pub fn len(&self) -> Option<u64> {
        let width = self.number.width() as u64;
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(width, |len, &length| len.checked_mul(length))
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}

fn odd() -> Violation {
    Violation::new("the header of the .npy file is not what NumPy writes")
}

/// Returns the values of the members of a head, in the order of [`MEMBERS`]. It has each of them
/// once, and no others.
fn members(text: &str) -> Result<[&str; 3], Violation> {
    let mut found = [None; 3];
    let inside = text.trim_ascii().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let mut rest = inside.ok_or_else(odd)?.trim_ascii();
    while !rest.is_empty() {
        let key = rest.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
        let (key, behind) = key.ok_or_else(odd)?;
        let place = MEMBERS.iter().position(|name| *name == key).ok_or_else(odd)?;
        let value = behind.trim_ascii_start().strip_prefix(':').ok_or_else(odd)?;
        let value = value.trim_ascii_start();
        let (value, behind) = value.split_at(value_len(value).ok_or_else(odd)?);
        if found[place].replace(value).is_some() {
            return Err(odd());
        }
        let behind = behind.trim_ascii_start();
        rest = match behind.strip_prefix(',') {
            Some(more) => more.trim_ascii_start(),
            None if behind.is_empty() => behind,
            None => return Err(odd()),
        };
    }
    let mut values = [""; 3];
    for ((value, found), name) in values.iter_mut().zip(found).zip(MEMBERS) {
        let none = || Violation::new(format!("the header of the .npy file has no {name:?}"));
        *value = found.ok_or_else(none)?;
    }
    Ok(values)
}

/// Returns the length of the value at the front of a text: a text in quotes, a tuple of numbers,
/// a list or a word.
fn value_len(text: &str) -> Option<usize> {
    let mut depth = 0;
    match text.as_bytes().first()? {
        b'\'' => text[1..].find('\'').map(|end| end + 2),
        b'(' => text.find(')').map(|end| end + 1),
        b'[' => {
            let is_end = |byte| {
                depth += i64::from(byte == b'[') - i64::from(byte == b']');
                depth == 0
            };
            text.bytes().position(is_end).map(|end| end + 1)
        }
        _ => text.find(|one: char| !one.is_ascii_alphanumeric()).or(Some(text.len())),
    }
}

fn quoted(text: &str) -> Result<&str, Violation> {
    let inside = text.strip_prefix('\'').and_then(|rest| rest.split_once('\''));
    let why = || Violation::new("the elements of the .npy file are structures, not numbers");
    inside.map(|(inside, _)| inside).ok_or_else(why)
}

fn number_of(descr: &str) -> Result<(Number, bool), Violation> {
    let unknown = || Violation::new(format!("elements of type {descr:?} are not numbers"));
    let (order, rest) = descr.split_at_checked(1).ok_or_else(unknown)?;
    let (kind, width) = rest.split_at_checked(1).ok_or_else(unknown)?;
    let width: u8 = width.parse().map_err(|_| unknown())?;
    let number = match (kind, width) {
        ("b", 1) => Number::Bool,
        ("i", 1 | 2 | 4 | 8) => Number::Int(width),
        ("u", 1 | 2 | 4 | 8) => Number::Uint(width),
        ("f", 2 | 4 | 8) => Number::Float(width),
        _ => return Err(unknown()),
    };
    match order {
        "<" | "|" | "=" => Ok((number, false)),
        ">" => Ok((number, width > 1)),
        _ => Err(unknown()),
    }
}

fn shape_of(text: &str) -> Result<Vec<u64>, Violation> {
    let why = || Violation::new("the header of the .npy file has no valid shape");
    let inside = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let (inside, _) = inside.ok_or_else(why)?;
    let lengths = inside.split(',').map(str::trim).filter(|length| !length.is_empty());
    lengths.map(|length| length.parse().map_err(|_| why())).collect()
}

/// Returns the array in an `.npy` file as format.md has it.
pub fn array(file: &[u8]) -> Result<Vec<u8>, Violation> {
    let head = Head::decode(file)?;
    if head.is_fortran && head.shape.len() > 1 {
        bail!("the array is in Fortran order; save it in C order");
    }
    let elements = &file[head.start..];
    let kind = head.number.array_name();
    if !head.is_swapped {
        return array_of(&kind, &head.shape, elements);
    }
    let width = head.number.width();
    let swapped: Vec<u8> =
        elements.chunks(width).flat_map(|element| element.iter().rev().copied()).collect();
    array_of(&kind, &head.shape, &swapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(head: &str, elements: &[u8]) -> Vec<u8> {
        let len = (head.len() as u16).to_le_bytes();
        [&MAGIC[..], &[1, 0], &len, head.as_bytes(), elements].concat()
    }

    #[test]
    fn a_head_tells_type_and_shape() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n";
        let head = Head::decode(&file(text, &[])).unwrap();
        assert_eq!((head.number, &head.shape[..]), (Number::Float(4), &[2, 3][..]));
        assert_eq!(head.len(), Some(24));
        let one = file("{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }", &[1, 2]);
        assert_eq!(array(&one).unwrap()[13..], [2, 1]);
    }

    #[test]
    fn values_other_than_numbers_are_rejected() {
        for text in [
            "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (2,), }",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
            "{b'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': f(1), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,) 7}",
        ] {
            assert!(Head::decode(&file(text, &[])).is_err(), "{text}");
        }
    }
}
