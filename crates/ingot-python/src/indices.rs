//! Python indices as row numbers.

use std::fmt::Display;

use ingot::error::counted;
use ingot::records::Sequence;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFrozenSet, PyInt, PyList, PySet, PySlice, PyString,
    PyTuple,
};

use crate::error::raised;

/// Returns the row of an index; negative ones count from the end.
pub fn row(reader: &Sequence, index: i64) -> PyResult<u64> {
    let rows = reader.num_rows();
    let row = if index < 0 { index.checked_add_unsigned(rows) } else { Some(index) };
    match row {
        Some(row) if row >= 0 && (row as u64) < rows => Ok(row as u64),
        _ => Err(raised(reader.out_of_range(index))),
    }
}

/// Returns the row of any object with `__index__`.
pub fn row_of(reader: &Sequence, index: &Bound<'_, PyAny>) -> PyResult<u64> {
    match index.extract::<i64>() {
        Ok(index) => row(reader, index),
        Err(error) if error.is_instance_of::<PyOverflowError>(index.py()) => {
            Err(out_of_range(reader, index))
        }
        Err(_) => Err(no_index(index)),
    }
}

/// Returns the exception for an index that is out of range of the engine's numbers.
fn out_of_range(reader: &Sequence, index: impl Display) -> PyErr {
    let (name, rows) = (reader.name(), reader.num_rows());
    let rows = counted(rows, "row");
    PyIndexError::new_err(format!("{name}: index {index} is out of range for {rows}"))
}

/// Returns the exception for an object that is neither an index nor a sequence of indices.
fn no_index(index: &Bound<'_, PyAny>) -> PyErr {
    match index.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!(
            "indices are integers, slices, or sequences or arrays of integers, not {name}"
        )),
        Err(error) => error,
    }
}

fn mask_error() -> PyErr {
    PyTypeError::new_err("a boolean mask is not an index array: where(mask) selects its rows")
}

/// Returns the rows of a list, tuple, range, integer array or other sequence of indices.
pub fn rows_of(reader: &Sequence, indices: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let number = |index: &Bound<'_, PyAny>| match index.is_instance_of::<PyBool>() {
        true => Err(mask_error()),
        false => row_of(reader, index),
    };
    if let Ok(list) = indices.cast::<PyList>() {
        return list.iter().map(|index| number(&index)).collect();
    }
    if let Ok(tuple) = indices.cast::<PyTuple>() {
        return tuple.iter().map(|index| number(&index)).collect();
    }
    let is_text = indices.is_instance_of::<PyString>()
        || indices.is_instance_of::<PyBytes>()
        || indices.is_instance_of::<PyByteArray>();
    let is_unordered = indices.is_instance_of::<PySet>()
        || indices.is_instance_of::<PyFrozenSet>()
        || indices.is_instance_of::<PyDict>();
    if is_text || is_unordered {
        return Err(no_index(indices));
    }
    let converters = [
        typed::<i64>,
        typed::<i32>,
        typed::<i16>,
        typed::<i8>,
        typed::<u64>,
        typed::<u32>,
        typed::<u16>,
        typed::<u8>,
    ];
    for convert in converters {
        if let Some(rows) = convert(reader, indices) {
            return rows;
        }
    }
    if let Ok(dtype) = indices.getattr("dtype")
        && let Ok(kind) = dtype.getattr("kind")
        && kind.eq("b")?
    {
        return Err(mask_error());
    }
    match indices.try_iter() {
        Ok(items) => items.map(|index| number(&index?)).collect(),
        Err(_) if indices.is_instance_of::<PyInt>() || indices.is_instance_of::<PySlice>() => {
            let found = indices.get_type().name()?;
            let message = format!("expected a sequence or an array of indices, not {found}");
            Err(PyTypeError::new_err(message))
        }
        Err(_) => Err(no_index(indices)),
    }
}

/// Reads an integer array through the buffer protocol; `None` if it is of another type.
fn typed<T: Element + TryInto<i64> + Display>(
    reader: &Sequence,
    indices: &Bound<'_, PyAny>,
) -> Option<PyResult<Vec<u64>>> {
    let buffer = PyBuffer::<T>::get(indices).ok()?;
    let foreign: &[u8] = if cfg!(target_endian = "little") { b">!" } else { b"<" };
    if buffer.format().to_bytes().first().is_some_and(|order| foreign.contains(order)) {
        return None; // The bytes of each number are the other way round.
    }
    if buffer.dimensions() != 1 {
        return Some(Err(PyValueError::new_err(format!(
            "an index array has one dimension, this one has {}",
            buffer.dimensions()
        ))));
    }
    let values = match buffer.to_vec(indices.py()) {
        Ok(values) => values,
        Err(error) => return Some(Err(error)),
    };
    let rows = values.into_iter().map(|index| match index.try_into() {
        Ok(index) => row(reader, index),
        Err(_) => Err(out_of_range(reader, index)),
    });
    Some(rows.collect())
}
