//! Numbers of any type, as cells and columns hold them.

use crate::format::Violation;

/// The type of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// True or false, one byte.
    Bool,
    /// A signed integer of this many bytes.
    Int(u8),
    /// An unsigned integer of this many bytes.
    Uint(u8),
    /// A floating-point number of this many bytes: 2, 4 or 8.
    Float(u8),
}

/// A number as text or another format has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// Any other number.
    Float(f64),
}

impl Number {
    /// Returns the type with a name that numpy has.
    pub fn of_name(name: &str) -> Option<Number> {
        (0..=u8::MAX).filter_map(Number::of_code).find(|number| number.name() == name)
    }

    /// Returns its name, as numpy has it.
    pub fn name(self) -> String {
        match self {
            Number::Bool => "bool".to_owned(),
            Number::Int(bytes) => format!("int{}", 8 * u32::from(bytes)),
            Number::Uint(bytes) => format!("uint{}", 8 * u32::from(bytes)),
            Number::Float(bytes) => format!("float{}", 8 * u32::from(bytes)),
        }
    }

    /// Returns its name in the head of an array, such as `<f4`.
    pub fn array_name(self) -> String {
        let (kind, bytes) = match self {
            Number::Bool => ('b', 1),
            Number::Int(bytes) => ('i', bytes),
            Number::Uint(bytes) => ('u', bytes),
            Number::Float(bytes) => ('f', bytes),
        };
        format!("{}{kind}{bytes}", if bytes == 1 { '|' } else { '<' })
    }

    /// Returns the type with a name that the head of an array has.
    pub fn of_array_name(name: &str) -> Option<Number> {
        let number = match name.as_bytes() {
            b"|b1" => Number::Bool,
            [_, b'i', bytes @ b'1'..=b'8'] => Number::Int(bytes - b'0'),
            [_, b'u', bytes @ b'1'..=b'8'] => Number::Uint(bytes - b'0'),
            [_, b'f', bytes @ b'2'..=b'8'] => Number::Float(bytes - b'0'),
            _ => return None,
        };
        (number.array_name() == name).then_some(number)
    }

    /// Bytes of one number.
    pub fn width(self) -> usize {
        match self {
            Number::Bool => 1,
            Number::Int(bytes) | Number::Uint(bytes) | Number::Float(bytes) => bytes.into(),
        }
    }

    /// The code of the type in an index; see [`Number::of_code`].
    pub fn code(self) -> u8 {
        match self {
            Number::Bool => 1,
            Number::Int(bytes) => 0x10 | bytes,
            Number::Uint(bytes) => 0x20 | bytes,
            Number::Float(bytes) => 0x30 | bytes,
        }
    }

    /// Returns the type with this code.
    pub fn of_code(code: u8) -> Option<Number> {
        let bytes = code & 0x0f;
        match code >> 4 {
            0 if bytes == 1 => Some(Number::Bool),
            1 if matches!(bytes, 1 | 2 | 4 | 8) => Some(Number::Int(bytes)),
            2 if matches!(bytes, 1 | 2 | 4 | 8) => Some(Number::Uint(bytes)),
            3 if matches!(bytes, 2 | 4 | 8) => Some(Number::Float(bytes)),
            _ => None,
        }
    }

    /// Appends a number; fails if the type cannot hold it.
    pub fn put(self, given: Given, out: &mut Vec<u8>) -> Result<(), Violation> {
        match (self, given) {
            (Number::Bool, Given::Bool(value)) => out.push(value.into()),
            (Number::Bool, Given::Int(value @ 0..=1)) => out.push(value as u8),
            (Number::Int(bytes), Given::Int(value)) => {
                let limit = 1_i128 << (8 * u32::from(bytes) - 1);
                if value < -limit || value >= limit {
                    return Err(self.refused(given));
                }
                out.extend_from_slice(&value.to_le_bytes()[..bytes.into()]);
            }
            (Number::Uint(bytes), Given::Int(value)) => {
                if value < 0 || value >= 1_i128 << (8 * u32::from(bytes)) {
                    return Err(self.refused(given));
                }
                out.extend_from_slice(&value.to_le_bytes()[..bytes.into()]);
            }
            (Number::Float(4), Given::Int(value)) => {
                out.extend_from_slice(&(value as f32).to_le_bytes());
            }
            (Number::Float(8), Given::Int(value)) => {
                out.extend_from_slice(&(value as f64).to_le_bytes());
            }
            (Number::Float(4), Given::Float(value)) => {
                out.extend_from_slice(&(value as f32).to_le_bytes());
            }
            (Number::Float(8), Given::Float(value)) => {
                out.extend_from_slice(&value.to_le_bytes());
            }
            _ => return Err(self.refused(given)),
        }
        Ok(())
    }

    #[cold]
    fn refused(self, given: Given) -> Violation {
        let found = match given {
            Given::Bool(value) => value.to_string(),
            Given::Int(value) => value.to_string(),
            Given::Float(value) => value.to_string(),
        };
        Violation::new(format!("{found} is not a valid {}", self.name()))
    }

    /// Returns the number that text holds.
    pub fn parse(self, text: &[u8]) -> Result<Given, Violation> {
        let text = std::str::from_utf8(text).map_err(|_| not_a(self, text))?.trim();
        let found = match self {
            Number::Bool => match text {
                "true" | "True" | "TRUE" | "1" => Some(Given::Bool(true)),
                "false" | "False" | "FALSE" | "0" => Some(Given::Bool(false)),
                _ => None,
            },
            Number::Int(_) | Number::Uint(_) => text.parse().ok().map(Given::Int),
            Number::Float(_) => text.parse().ok().map(Given::Float),
        };
        found.ok_or_else(|| not_a(self, text.as_bytes()))
    }
}

#[cold]
fn not_a(number: Number, text: &[u8]) -> Violation {
    let shown = &text[..text.len().min(40)];
    Violation::new(format!(
        "{:?} is not a valid {}",
        shown.escape_ascii().to_string(),
        number.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_round_trip() {
        for name in [
            "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
            "float16", "float32", "float64",
        ] {
            let number = Number::of_name(name).unwrap();
            assert_eq!(number.name(), name);
            assert_eq!(Number::of_code(number.code()), Some(number));
            assert_eq!(Number::of_array_name(&number.array_name()), Some(number));
        }
        assert_eq!((0..=255).filter_map(Number::of_code).count(), 12);
    }

    #[test]
    fn a_number_that_does_not_fit_is_rejected() {
        let mut out = Vec::new();
        for (number, given) in [
            (Number::Int(1), Given::Int(128)),
            (Number::Int(8), Given::Int(1 << 63)),
            (Number::Uint(2), Given::Int(-1)),
            (Number::Int(4), Given::Float(1.0)),
            (Number::Bool, Given::Int(2)),
            (Number::Float(4), Given::Bool(true)),
        ] {
            assert!(number.put(given, &mut out).is_err(), "{number:?} {given:?}");
        }
        assert!(out.is_empty());
        Number::Int(1).put(Given::Int(-128), &mut out).unwrap();
        Number::Uint(8).put(Given::Int(i128::from(u64::MAX)), &mut out).unwrap();
        assert_eq!(out, [&[0x80][..], &[0xff; 8]].concat());
    }
}
