//! Types and layouts of Arrow's columns, from Python and to it.

use ingot::arrow::{Cell, Kind, Layout, Number, Refusal, Repeat};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::malformed;
use crate::object;

/// Returns the exception for values that the engine refuses.
pub fn refused(why: Refusal) -> PyErr {
    match why {
        Refusal::Value(message, place) => PyValueError::new_err((message, place)),
        Refusal::Memory(bytes) => {
            PyMemoryError::new_err(format!("Arrow data: out of memory for {bytes} bytes"))
        }
    }
}

/// Takes a tuple of name, format, flags, metadata, children and dictionary.
pub fn kind_of(given: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let kind = unchecked(given)?;
    kind.check().map_err(malformed)?;
    Ok(kind)
}

fn unchecked(given: &Bound<'_, PyAny>) -> PyResult<Kind> {
    type Tuple<'py> = (
        String,
        String,
        i64,
        Bound<'py, PyDict>,
        Vec<Bound<'py, PyAny>>,
        Option<Bound<'py, PyAny>>,
    );
    let (name, format, flags, metadata, children, dictionary): Tuple<'_> = given.extract()?;
    Ok(Kind {
        name,
        format,
        flags,
        metadata: metadata
            .iter()
            .map(|(key, value)| Ok((key.extract()?, value.extract()?)))
            .collect::<PyResult<_>>()?,
        children: children.iter().map(unchecked).collect::<PyResult<_>>()?,
        dictionary: dictionary.map(|one| unchecked(&one).map(Box::new)).transpose()?,
    })
}

/// Returns the tuple that [`kind_of`] takes.
pub fn tuple_of<'py>(py: Python<'py>, kind: &Kind) -> PyResult<Bound<'py, PyAny>> {
    let metadata = PyDict::new(py);
    for (key, value) in &kind.metadata {
        metadata.set_item(object::bytes(py, key)?, object::bytes(py, value)?)?;
    }
    let children: Vec<Bound<'py, PyAny>> =
        kind.children.iter().map(|one| tuple_of(py, one)).collect::<PyResult<_>>()?;
    let dictionary = kind.dictionary.as_ref().map(|one| tuple_of(py, one)).transpose()?;
    let tuple = (&kind.name, &kind.format, kind.flags, metadata, children, dictionary);
    Ok(tuple.into_pyobject(py)?.into_any())
}

/// A layout as Python gives it.
pub struct PyLayout(pub Layout);

impl<'a, 'py> FromPyObject<'a, 'py> for PyLayout {
    type Error = PyErr;

    /// Takes "text", "bytes", "array" or a type as numpy writes it; a shape; and "one", "run" or
    /// "many".
    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<PyLayout> {
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
        Ok(PyLayout(Layout { cell, repeat }))
    }
}
