//! The type of a column, as Arrow's C data interface describes it.

/// A name, a format string and the types inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name of the column.
    pub name: String,
    /// What the values are, as the interface writes it.
    pub format: String,
    /// The interface's flags, such as that of nullable columns.
    pub flags: i64,
    /// Keys and values that others have attached.
    pub metadata: Vec<(Vec<u8>, Vec<u8>)>,
    /// The types of the parts of a struct, or of the elements of a list.
    pub children: Vec<Kind>,
    /// The type of the values that indices refer to; none without a dictionary.
    pub dictionary: Option<Box<Kind>>,
}

/// What a value of a plain type is, and how many bytes it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A truth value: a byte as it is stored, a bit in an array.
    Bool,
    /// A signed integer.
    Signed(usize),
    /// An unsigned integer.
    Unsigned(usize),
    /// A floating-point number.
    Float(usize),
}

impl Number {
    /// Takes the name of a type as numpy writes it; none for others, such as complex numbers.
    pub fn of_dtype(name: &str) -> Option<Number> {
        let width = || name.get(2..)?.parse().ok();
        match name.as_bytes() {
            b"|b1" => Some(Number::Bool),
            [_, b'i', _] => width().map(Number::Signed),
            [_, b'u', _] => width().map(Number::Unsigned),
            [_, b'f', _] => width().map(Number::Float),
            _ => None,
        }
    }

    /// Returns the name as numpy writes it.
    pub fn dtype(self) -> String {
        let (letter, width) = match self {
            Number::Bool => ('b', 1),
            Number::Signed(width) => ('i', width),
            Number::Unsigned(width) => ('u', width),
            Number::Float(width) => ('f', width),
        };
        format!("{}{letter}{width}", if width == 1 { '|' } else { '<' })
    }

    /// Returns how many bytes a stored value takes.
    pub fn width(self) -> usize {
        match self {
            Number::Bool => 1,
            Number::Signed(width) | Number::Unsigned(width) | Number::Float(width) => width,
        }
    }
}

impl Kind {
    /// Returns what the values are, if they are numbers; times are.
    pub fn number(&self) -> Option<Number> {
        if self.dictionary.is_some() {
            return None;
        }
        Some(match self.format.as_str() {
            "b" => Number::Bool,
            "c" => Number::Signed(1),
            "s" => Number::Signed(2),
            "i" | "tdD" | "tts" | "ttm" => Number::Signed(4),
            "l" | "tdm" | "ttu" | "ttn" => Number::Signed(8),
            "C" => Number::Unsigned(1),
            "S" => Number::Unsigned(2),
            "I" => Number::Unsigned(4),
            "L" => Number::Unsigned(8),
            "e" => Number::Float(2),
            "f" => Number::Float(4),
            "g" => Number::Float(8),
            other if other.starts_with("ts") || other.starts_with("tD") => Number::Signed(8),
            _ => return None,
        })
    }

    /// Returns whether values are lists of any length with offsets of 32 or 64 bits.
    pub fn is_list(&self) -> bool {
        self.dictionary.is_none() && matches!(self.format.as_str(), "+l" | "+L")
    }

    /// Returns the length of lists that all have the same.
    pub fn list_size(&self) -> Option<usize> {
        let size = self.format.strip_prefix("+w:")?.parse().ok()?;
        self.dictionary.is_none().then_some(size)
    }

    /// Returns how many bytes each value has, if all have the same.
    pub fn byte_width(&self) -> Option<usize> {
        let width = self.format.strip_prefix("w:")?.parse().ok()?;
        self.dictionary.is_none().then_some(width)
    }

    /// Returns how many bits a decimal has, and how many of its digits are a fraction.
    pub fn decimal(&self) -> Option<(usize, i64)> {
        let mut parts = self.format.strip_prefix("d:")?.split(',');
        parts.next()?.parse::<u32>().ok()?;
        let scale: i32 = parts.next()?.parse().ok()?;
        let bits = parts.next().map_or(Some(128), |bits| bits.parse().ok())?;
        matches!(bits, 32 | 64 | 128 | 256).then_some((bits, i64::from(scale)))
    }

    /// Returns how many bytes the memory of an array has for each value, at least.
    pub(super) fn memory_width(&self) -> usize {
        match self.format.as_str() {
            "b" | "n" => 0,
            "u" | "z" | "+l" | "+m" => 4,
            "U" | "Z" | "+L" => 8,
            "vu" | "vz" => 16,
            _ => integer_width(&self.format)
                .or_else(|| self.number().map(Number::width))
                .or_else(|| self.decimal().map(|(bits, _)| bits / 8))
                .or_else(|| self.byte_width())
                .unwrap_or(0),
        }
    }

    /// Refuses a type that breaks the rules of the interface, or has such a type inside.
    pub fn check(&self) -> Result<(), String> {
        self.check_at("")
    }

    fn check_at(&self, above: &str) -> Result<(), String> {
        let path = self.path(above);
        if let Some(why) = self.fault() {
            return Err(named(&path, &why));
        }
        self.children.iter().try_for_each(|one| one.check_at(&path))?;
        self.dictionary.as_ref().map_or(Ok(()), |one| one.check_at(&path))
    }

    /// Returns the names that lead to a column inside of others.
    pub(super) fn path(&self, above: &str) -> String {
        let is_joined = !above.is_empty() && !self.name.is_empty();
        format!("{above}{}{}", if is_joined { "." } else { "" }, self.name)
    }

    /// Returns why the format string, or the number of types inside, is wrong.
    fn fault(&self) -> Option<String> {
        let format = self.format.as_str();
        if self.dictionary.is_some() && integer_width(format).is_none() {
            return Some(format!("the indices of a dictionary have type {format:?}"));
        }
        let is_known = match format.as_bytes() {
            [] => false,
            [b't', b's', unit, rest @ ..] => b"smun".contains(unit) && rest.starts_with(b":"),
            [b't', rest @ ..] => matches!(
                rest,
                [b'd', b'D' | b'm'] | [b't' | b'D', b's' | b'm' | b'u' | b'n'] | [b'i', _]
            ),
            [b'd', b':', ..] => self.decimal().is_some(),
            [b'w', b':', rest @ ..] | [b'+', b'w', b':', rest @ ..] => {
                std::str::from_utf8(rest).is_ok_and(|size| size.parse::<usize>().is_ok())
            }
            _ => true,
        };
        if !is_known {
            return Some(format!("Arrow has no type {format:?}"));
        }
        let found = self.children.len();
        let expected = match format {
            "+l" | "+L" | "+vl" | "+vL" | "+m" => 1,
            "+r" => 2,
            _ if format.starts_with("+w:") => 1,
            _ if format.starts_with('+') => found,
            _ => 0,
        };
        if found != expected {
            return Some(format!(
                "type {format:?} must have {expected} types inside, but has {found}"
            ));
        }
        let is_pair = |one: &Kind| one.format == "+s" && one.children.len() == 2;
        let is_bad_map = format == "+m" && !self.children.iter().all(is_pair);
        is_bad_map.then(|| "the entries of a map must be structs of key and value".to_owned())
    }

    /// Returns how many buffers an array of the type has; none for types that are not read here.
    pub fn num_buffers(&self) -> Option<usize> {
        if self.dictionary.is_some() || self.number().is_some() {
            return Some(2);
        }
        match self.format.as_str() {
            "n" => Some(0),
            "u" | "U" | "z" | "Z" => Some(3),
            "+l" | "+L" | "+m" => Some(2),
            "+s" => Some(1),
            other if other.starts_with("w:") || other.starts_with("d:") => Some(2),
            other if other.starts_with("+w:") => Some(1),
            _ => None,
        }
    }
}

/// Returns how many bytes an integer of a format takes; none for other types.
fn integer_width(format: &str) -> Option<usize> {
    match format {
        "c" | "C" => Some(1),
        "s" | "S" => Some(2),
        "i" | "I" => Some(4),
        "l" | "L" => Some(8),
        _ => None,
    }
}

/// Puts the name of a column before a reason; the outermost type has none.
pub(super) fn named(path: &str, why: &str) -> String {
    if path.is_empty() { why.to_owned() } else { format!("column '{path}': {why}") }
}
