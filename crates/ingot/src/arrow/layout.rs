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

/// Why values are refused, and in which row: none, if the number is larger than that of rows.
#[derive(Debug)]
pub struct Refusal(pub String, pub usize);

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal(message, usize::MAX >> 1)
    }
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
            if depth > 0 && fixed.iter().product::<usize>() == shape.iter().product::<usize>() =>
        {
            Some((fixed, inner))
        }
        None if depth == shape.len() => Some((shape.to_vec(), inner)),
        _ => None,
    }
}
