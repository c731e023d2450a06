//! How a data set stores the values of a field, and the columns of Arrow that fit these bytes.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::kind::{Kind, Number};

/// What a stored value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Numbers, or arrays of one shape.
    Numbers(Number, Vec<usize>),
    /// An array that tells its own type and shape.
    Array,
    Text,
    Bytes,
}

/// How many values a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    One,
    /// Any number of numbers in one cell.
    Run,
    /// Any number of cells.
    Many,
}

/// How values are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub cell: Cell,
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

impl From<Refusal> for PyErr {
    fn from(Refusal(message, place): Refusal) -> PyErr {
        PyValueError::new_err((message, place))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Layout {
    type Error = PyErr;

    /// Takes "text", "bytes", "array" or a type as numpy writes it; a shape; and "one", "run" or
    /// "many".
    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Layout> {
        let (cell, shape, repeat): (String, Vec<usize>, String) = given.extract()?;
        let cell = match cell.as_str() {
            "text" => Cell::Text,
            "bytes" => Cell::Bytes,
            "array" => Cell::Array,
            other => match Number::of_dtype(other) {
                Some(number) => Cell::Numbers(number, shape),
                None => return Err(PyValueError::new_err(format!("no layout {other:?}"))),
            },
        };
        let repeat = match repeat.as_str() {
            "one" => Repeat::One,
            "run" => Repeat::Run,
            _ => Repeat::Many,
        };
        Ok(Layout { cell, repeat })
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
pub fn sizes<'a>(kind: &'a Kind, shape: &[usize]) -> Option<(Vec<usize>, &'a Kind)> {
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
