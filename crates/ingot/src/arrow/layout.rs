//! How a data set stores the values of a field, and the columns of Arrow that fit these bytes.

use super::kind::{Kind, Number};

/// What a stored value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Numbers, or arrays of one shape.
    Numbers(Number, Vec<usize>),
    /// An array that tells its own type and shape.
    Array,
    /// Text in UTF-8.
    Text,
    /// Any bytes.
    Bytes,
}

/// How many values a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// One cell.
    One,
    /// Any number of numbers in one cell.
    Run,
    /// Any number of cells.
    Many,
}

/// How values are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// What a cell holds.
    pub cell: Cell,
    /// How many a row has.
    pub repeat: Repeat,
}

/// The row of what is about no row.
const NOWHERE: usize = usize::MAX >> 1;

/// Why values are refused.
#[derive(Debug)]
pub enum Refusal {
    /// The reason, and the row: none, if the number is larger than that of rows.
    Value(String, usize),
    /// There is no memory for so many bytes.
    Memory(usize),
}

impl Refusal {
    /// Refuses the value of a row.
    pub fn at(message: impl Into<String>, row: usize) -> Refusal {
        Refusal::Value(message.into(), row)
    }

    /// Replaces the number of a row, if there is one.
    pub(super) fn moved(self, row: impl FnOnce(usize) -> usize) -> Refusal {
        match self {
            Refusal::Value(message, place) if place != NOWHERE => {
                Refusal::Value(message, row(place))
            }
            other => other,
        }
    }

    /// Names the field before the reason.
    pub(super) fn of_field(self, name: &str) -> Refusal {
        match self {
            Refusal::Value(why, row) => Refusal::Value(format!("field '{name}': {why}"), row),
            other => other,
        }
    }

    /// Names the first row, if it is about none.
    pub fn somewhere(self) -> Refusal {
        match self {
            Refusal::Value(message, NOWHERE) => Refusal::Value(message, 0),
            other => other,
        }
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal::Value(message, NOWHERE)
    }
}

/// Makes room for more values, if there is memory for them.
pub(super) fn reserve<T>(all: &mut Vec<T>, more: usize) -> Result<(), Refusal> {
    let bytes = more.saturating_mul(size_of::<T>());
    all.try_reserve(more).map_err(|_| Refusal::Memory(bytes))
}

/// Collects at most `count` values, if there is memory for them.
pub(super) fn collected<T>(
    count: usize,
    each: impl IntoIterator<Item = T>,
) -> Result<Vec<T>, Refusal> {
    let mut all = Vec::new();
    reserve(&mut all, count)?;
    all.extend(each.into_iter().take(count));
    Ok(all)
}

/// Appends bytes, if there is memory for them.
pub(super) fn append(data: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Refusal> {
    reserve(data, bytes.len())?;
    data.extend_from_slice(bytes);
    Ok(())
}

/// Returns how many elements an array of a shape has; none if no memory has room for them.
pub(super) fn num_elements(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1_usize, |count, &length| count.checked_mul(length))
}

impl Layout {
    /// Returns whether stored bytes can be a column of a type without being converted.
    pub fn fits(&self, kind: &Kind) -> bool {
        match self.repeat {
            Repeat::One => cell_fits(&self.cell, kind),
            Repeat::Run | Repeat::Many => {
                kind.is_list() && cell_fits(&self.cell, &kind.children[0])
            }
        }
    }
}

fn cell_fits(cell: &Cell, kind: &Kind) -> bool {
    if kind.dictionary.is_some() {
        return false;
    }
    match cell {
        Cell::Numbers(number, shape) if shape.is_empty() => kind.number() == Some(*number),
        Cell::Numbers(number, shape) => {
            sizes(kind, shape).is_some_and(|(_, inner)| inner.number() == Some(*number))
        }
        Cell::Array => {
            let mut inner = kind;
            while inner.is_list() {
                inner = &inner.children[0];
            }
            kind.format == "n" || (kind.is_list() && inner.number().is_some())
        }
        Cell::Text => matches!(kind.format.as_str(), "u" | "U" | "vu"),
        Cell::Bytes => {
            matches!(kind.format.as_str(), "z" | "Z" | "vz") || kind.byte_width().is_some()
        }
    }
}

/// Returns the lengths of the lists that hold arrays of one shape, from outside to inside, and
/// the type of the numbers. A tensor may be stored flat, as one list.
pub(super) fn sizes<'a>(kind: &'a Kind, shape: &[usize]) -> Option<(Vec<usize>, &'a Kind)> {
    let (mut fixed, mut depth, mut inner) = (Some(Vec::new()), 0, kind);
    while inner.is_list() || inner.list_size().is_some() {
        fixed = fixed.zip(inner.list_size()).map(|(mut all, size)| {
            all.push(size);
            all
        });
        inner = &inner.children[0];
        depth += 1;
    }
    match fixed {
        Some(fixed)
            if depth > 0
                && num_elements(&fixed).is_some_and(|each| Some(each) == num_elements(shape)) =>
        {
            Some((fixed, inner))
        }
        None if depth == shape.len() => Some((shape.to_vec(), inner)),
        _ => None,
    }
}
