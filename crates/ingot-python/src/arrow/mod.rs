//! Arrays of the engine's `arrow` as objects of Python, with the methods of Arrow's PyCapsule
//! interface.

mod conversion;
mod stream;
mod values;

use std::sync::Arc;

use ingot::arrow::{self, Column, Data, Kind, Node, Part, Picks, Refusal, Stored};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyMemoryView, PySet};

use crate::buffer;
use crate::cells::{content, view};
use crate::error::FormatError;
use crate::object;

use conversion::{PyLayout, kind_of, refused, tuple_of};

pub use stream::{PyArrowReader, arrow_stream};

/// An array of Arrow: made of stored values, or taken from another library.
#[pyclass(frozen, name = "ArrowArray", module = "ingot._core")]
pub struct PyArrowArray {
    kind: Arc<Kind>,
    node: Arc<Node>,
}

/// Bytes, where each value begins and the last ends, how many each row has, and which rows have
/// one.
type Packed<'py> = (
    Bound<'py, PyMemoryView>,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
);

/// Returns the error for an array that breaks the rules of the interface.
fn malformed(reason: String) -> PyErr {
    FormatError::new_err((format!("Arrow data: {reason}"), "Arrow data"))
}

#[pymethods]
impl PyArrowArray {
    /// Takes an array from any object with `__arrow_c_array__`.
    #[new]
    fn new(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
            given.call_method0("__arrow_c_array__")?.extract()?;
        let kind = stream::schema_in(&schema)?.kind().map_err(malformed)?;
        let node = Node::foreign(stream::array_in(&array)?, &kind).map_err(malformed)?;
        Ok(PyArrowArray { kind: Arc::new(kind), node: Arc::new(node) })
    }

    /// Makes a struct of columns: for each its stored values, a list of such for a struct, None
    /// for nulls, or an array.
    #[staticmethod]
    fn made(
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        columns: Vec<Bound<'_, PyAny>>,
        rows: usize,
    ) -> PyResult<Self> {
        let kind = kind_of(kind)?;
        let columns = columns.iter().map(column_of).collect::<PyResult<_>>()?;
        let node = py.detach(|| arrow::table(&kind, columns, rows)).map_err(refused)?;
        Ok(PyArrowArray { kind: Arc::new(kind), node: Arc::new(node) })
    }

    fn __len__(&self) -> usize {
        self.node.num_values()
    }

    /// The type, as a tuple.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tuple_of(py, &self.kind)
    }

    /// Returns the values from `start` to `stop`.
    fn slice(&self, start: usize, stop: usize) -> PyResult<Self> {
        if start > stop || stop > self.node.num_values() {
            return Err(PyValueError::new_err("a slice is part of the array"));
        }
        let node = Arc::new(self.node.slice(start, stop - start));
        Ok(PyArrowArray { kind: Arc::clone(&self.kind), node })
    }

    /// Returns a struct with some of its parts.
    fn select(&self, chosen: Vec<usize>) -> PyResult<Self> {
        if chosen.iter().any(|&one| one >= self.kind.children.len()) {
            return Err(PyValueError::new_err("a column is not part of the array"));
        }
        let children = chosen.iter().map(|&one| self.kind.children[one].clone()).collect();
        let kind = Kind { children, ..(*self.kind).clone() };
        Ok(PyArrowArray { kind: Arc::new(kind), node: Arc::new(self.node.select(&chosen)) })
    }

    /// Returns about how many bytes the values take.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        self.part().num_bytes().map_err(malformed)
    }

    /// Returns the values at a path as a data set stores them.
    fn take<'py>(
        &self,
        py: Python<'py>,
        path: Vec<String>,
        layout: PyLayout,
        optional: bool,
        picks: Option<Picks>,
        check: bool,
    ) -> PyResult<Packed<'py>> {
        let taken = py
            .detach(|| arrow::take(self.part(), &path, &layout.0, optional, picks, check))
            .map_err(refused)?;
        let signed = |all: Vec<i64>| whole(py, &all, i64::to_ne_bytes);
        let unsigned = |all: Vec<u64>| whole(py, &all, u64::to_ne_bytes);
        let len = taken.data.len();
        Ok((
            view(py, taken.data, len)?,
            taken.offsets.map(signed).transpose()?,
            taken.counts.map(unsigned).transpose()?,
            taken.present.map(|all| object::bytes(py, &all)).transpose()?,
        ))
    }

    /// Returns the values at a path as objects; None for nulls.
    fn values<'py>(&self, py: Python<'py>, path: Vec<String>) -> PyResult<Bound<'py, PyList>> {
        let found = self.part().descend(&path);
        let (part, places, present) = found.map_err(|why| refused(why.somewhere()))?;
        let list = PyList::empty(py);
        for (row, place) in places.iter().enumerate() {
            if present.as_ref().is_none_or(|all| all[row]) {
                let found = values::value(py, part, place);
                list.append(found.map_err(|error| at_row(py, error, row))?)?;
            } else {
                list.append(py.None())?;
            }
        }
        Ok(list)
    }

    /// Returns which values at a path are not null, as bytes.
    fn valid<'py>(&self, py: Python<'py>, path: Vec<String>) -> PyResult<Bound<'py, PyBytes>> {
        let (_, places, present) = self.part().descend(&path).map_err(refused)?;
        PyBytes::new_with(py, places.len(), |room| {
            match present {
                None => room.fill(1),
                Some(all) => room.iter_mut().zip(all).for_each(|(one, is)| *one = u8::from(is)),
            }
            Ok(())
        })
    }

    /// Returns whether there are nulls among the values at a path, and whether there are others.
    fn nulls_and_values(&self, py: Python<'_>, path: Vec<String>) -> PyResult<(bool, bool)> {
        py.detach(|| self.part().nulls_and_values(&path)).map_err(refused)
    }

    /// Returns how values of bytes at a path begin.
    fn heads<'py>(
        &self,
        py: Python<'py>,
        path: Vec<String>,
        size: usize,
    ) -> PyResult<Bound<'py, PySet>> {
        let found = arrow::heads(self.part(), &path, size).map_err(refused)?;
        let found = found.iter().map(|one| object::bytes(py, one));
        PySet::new(py, found.collect::<PyResult<Vec<_>>>()?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        stream::schema_capsule(py, &self.kind)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        Ok((stream::schema_capsule(py, &self.kind)?, stream::array_capsule(py, &self.node)?))
    }
}

impl PyArrowArray {
    fn part(&self) -> Part<'_> {
        Part { kind: &self.kind, node: &self.node }
    }
}

/// Gives an error about one value the row that it is in.
fn at_row(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    match error.value(py).getattr("args").and_then(|args| args.extract::<(String, usize)>()) {
        Ok((message, _)) => refused(Refusal::at(message, row)),
        Err(_) => error,
    }
}

type StoredTuple<'py> = (
    PyLayout,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

/// Takes stored values, a list for a struct, None for nulls, or an array.
fn column_of(given: &Bound<'_, PyAny>) -> PyResult<Column> {
    if given.is_none() {
        return Ok(Column::Missing);
    }
    if let Ok(list) = given.cast::<PyList>() {
        let parts = list.iter().map(|one| column_of(&one)).collect::<PyResult<_>>()?;
        return Ok(Column::Struct(parts));
    }
    if let Ok(array) = given.cast::<PyArrowArray>() {
        let node = &array.get().node;
        return Ok(Column::Array(node.slice(0, node.num_values())));
    }
    let (layout, data, offsets, counts, present): StoredTuple<'_> = given.extract()?;
    let stored = Stored {
        data: data_of(&data)?,
        offsets: words(&offsets, i64::from_ne_bytes)?,
        counts: counts.map(|one| words(&one, u64::from_ne_bytes)).transpose()?,
        present: present.map(|one| truths(&one)).transpose()?,
    };
    Ok(Column::Stored(layout.0, stored))
}

/// Returns bytes: those of a buffer of ours without a copy.
fn data_of(given: &Bound<'_, PyAny>) -> PyResult<Data> {
    let bytes = PyBuffer::<u8>::get(given)?;
    let bytes = content(&bytes);
    let owner = given.getattr("obj").ok();
    if let Some(owner) = owner.as_ref().and_then(|one| one.cast::<buffer::PyBuffer>().ok()) {
        let block = Arc::clone(owner.get().block());
        let whole = (*block).as_ref();
        let start = bytes.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
        if start.checked_add(bytes.len()).is_some_and(|end| end <= whole.len()) {
            return Ok(Data::Shared(block, start, bytes.len()));
        }
    }
    Ok(Data::Own(bytes.to_vec()))
}

/// Returns numbers as the bytes of an array.
fn whole<'py, T: Copy>(
    py: Python<'py>,
    all: &[T],
    of: impl Fn(T) -> [u8; 8],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, size_of_val(all), |room| {
        let (words, _) = room.as_chunks_mut();
        words.iter_mut().zip(all).for_each(|(word, &one)| *word = of(one));
        Ok(())
    })
}

fn words<T>(given: &Bound<'_, PyAny>, of: impl Fn([u8; 8]) -> T) -> PyResult<Vec<T>> {
    let buffer = PyBuffer::<u8>::get(given)?;
    Ok(content(&buffer).as_chunks().0.iter().map(|&word| of(word)).collect())
}

fn truths(given: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    let buffer = PyBuffer::<u8>::get(given)?;
    Ok(content(&buffer).iter().map(|&byte| byte != 0).collect())
}

/// Returns the type that any object with `__arrow_c_schema__` has, as a tuple.
#[pyfunction]
pub fn arrow_kind<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let schema = match given.cast::<PyCapsule>() {
        Ok(capsule) => stream::kind_in(capsule)?,
        Err(_) => {
            let capsule = given.call_method0("__arrow_c_schema__")?;
            stream::kind_in(capsule.cast::<PyCapsule>().map_err(PyErr::from)?)?
        }
    };
    tuple_of(given.py(), &schema)
}

/// Returns a capsule that describes a type.
#[pyfunction]
pub fn arrow_schema<'py>(kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    stream::schema_capsule(kind.py(), &kind_of(kind)?)
}

/// Returns whether values that are stored in a way can be a column of a type as they are.
#[pyfunction]
pub fn arrow_fits(kind: &Bound<'_, PyAny>, layout: PyLayout) -> PyResult<bool> {
    Ok(layout.0.fits(&kind_of(kind)?))
}

/// Returns the type of arrays and how many dimensions they have; None if there are none.
#[pyfunction]
pub fn common_array(
    data: &Bound<'_, PyAny>,
    offsets: &Bound<'_, PyAny>,
    present: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<(String, usize)>> {
    let offsets = words(offsets, i64::from_ne_bytes)?;
    let present = present.map(truths).transpose()?;
    let buffer = PyBuffer::<u8>::get(data)?;
    let bytes = content(&buffer);
    if offsets.last().is_none_or(|&end| end as usize > bytes.len()) || !offsets.is_sorted() {
        return Err(PyTypeError::new_err("offsets go up to the end of the buffer"));
    }
    let found = arrow::common_array(bytes, &offsets, present.as_deref()).map_err(refused)?;
    Ok(found.map(|(name, dimensions)| (name.to_owned(), dimensions)))
}
