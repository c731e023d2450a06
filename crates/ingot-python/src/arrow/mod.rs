//! Batches in Arrow's shape: stored values as arrays, arrays as stored values, and both through
//! Arrow's C data interface, which needs no library of Arrow.

mod ffi;
mod kind;
mod layout;
mod make;
mod stream;
mod take;
mod values;

use std::collections::BTreeSet;
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyMemoryView, PySet};

use crate::buffer;
use crate::cells::{content, view};
use crate::error::FormatError;
use crate::object;

use ffi::{Data, Node};
use kind::Kind;
use layout::{Layout, Refusal};
use make::Stored;
use take::{Part, Picks, Places};

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
        let kind = Kind::of(kind)?;
        let given: Vec<Given> = columns.iter().map(Given::of).collect::<PyResult<_>>()?;
        let node = py.detach(|| {
            let parts = kind.children.iter().zip(given);
            let parts = parts.map(|(kind, one)| one.made(kind, rows, &kind.name));
            let parts = parts.collect::<Result<_, _>>()?;
            Ok::<Node, Refusal>(Node::new(rows, vec![None], parts))
        })?;
        Ok(PyArrowArray { kind: Arc::new(kind), node: Arc::new(node) })
    }

    fn __len__(&self) -> usize {
        self.node.len
    }

    /// The type, as a tuple.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.kind.tuple(py)
    }

    /// Returns the values from `start` to `stop`.
    fn slice(&self, start: usize, stop: usize) -> PyResult<Self> {
        if start > stop || stop > self.node.len {
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
    fn nbytes(&self) -> usize {
        size(self.part(), 0, self.node.len)
    }

    /// Returns the values at a path as a data set stores them.
    fn take<'py>(
        &self,
        py: Python<'py>,
        path: Vec<String>,
        layout: Layout,
        optional: bool,
        picks: Option<Picks>,
        check: bool,
    ) -> PyResult<Packed<'py>> {
        let taken =
            py.detach(|| take::take(self.part(), &path, &layout, optional, picks, check))?;
        let whole = |words: Vec<[u8; 8]>| object::bytes(py, words.as_flattened());
        let signed = |all: Vec<i64>| whole(all.into_iter().map(i64::to_ne_bytes).collect());
        let unsigned = |all: Vec<u64>| whole(all.into_iter().map(u64::to_ne_bytes).collect());
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
        let (part, places, present) = self.part().descend(&path)?;
        let list = PyList::empty(py);
        for (row, (place, there)) in places.iter().zip(present).enumerate() {
            if there {
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
        let (_, _, present) = self.part().descend(&path)?;
        let present: Vec<u8> = present.into_iter().map(u8::from).collect();
        object::bytes(py, &present)
    }

    /// Returns how values of bytes at a path begin.
    fn heads<'py>(
        &self,
        py: Python<'py>,
        path: Vec<String>,
        size: usize,
    ) -> PyResult<Bound<'py, PySet>> {
        let (part, places, present) = self.part().descend(&path)?;
        let mut found = BTreeSet::new();
        for (place, _) in places.iter().zip(present).filter(|(_, there)| *there) {
            let (mut data, _) = take::texts(part, &Places::Range(place, 1))?;
            data.truncate(size);
            found.insert(data);
        }
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
        Ok((message, _)) => Refusal(message, row).into(),
        Err(_) => error,
    }
}

/// Returns about how many bytes some values take.
fn size(part: Part<'_>, start: usize, len: usize) -> usize {
    let (kind, node) = (part.kind, part.node);
    let inside = |number: usize, start: usize, len: usize| {
        size(Part { kind: &kind.children[number], node: &node.children[number] }, start, len)
    };
    if let Some(number) = kind.number() {
        return number.width() * len;
    }
    let spans = || {
        let ends = Places::Range(start, len);
        let spans = if kind.format.starts_with('+') {
            part.elements(&ends)
        } else {
            part.spans(&ends, matches!(kind.format.as_str(), "U" | "Z"))
        };
        spans.ok().and_then(|all| Some((all.first()?.0, all.last()?.1))).unwrap_or((0, 0))
    };
    match kind.format.as_str() {
        "+s" => (0..kind.children.len()).map(|one| inside(one, node.offset + start, len)).sum(),
        "u" | "z" | "U" | "Z" => spans().1.saturating_sub(spans().0),
        format if format.starts_with('+') && !kind.children.is_empty() => {
            let (first, last) = spans();
            inside(0, first, last.saturating_sub(first))
        }
        _ => kind.byte_width().unwrap_or(16).saturating_mul(len),
    }
}

/// What a column is made of.
enum Given {
    Stored(Layout, Stored),
    Struct(Vec<Given>),
    Missing,
    Array(Node),
}

type StoredTuple<'py> = (
    Layout,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

impl Given {
    fn of(given: &Bound<'_, PyAny>) -> PyResult<Given> {
        if given.is_none() {
            return Ok(Given::Missing);
        }
        if let Ok(list) = given.cast::<PyList>() {
            let parts = list.iter().map(|one| Given::of(&one)).collect::<PyResult<_>>()?;
            return Ok(Given::Struct(parts));
        }
        if let Ok(array) = given.cast::<PyArrowArray>() {
            let node = &array.get().node;
            return Ok(Given::Array(node.slice(0, node.len)));
        }
        let (layout, data, offsets, counts, present): StoredTuple<'_> = given.extract()?;
        let stored = Stored {
            data: data_of(&data)?,
            offsets: words(&offsets, i64::from_ne_bytes)?,
            counts: counts.map(|one| words(&one, u64::from_ne_bytes)).transpose()?,
            present: present.map(|one| truths(&one)).transpose()?,
        };
        Ok(Given::Stored(layout, stored))
    }

    /// Makes the column that has a full name.
    fn made(self, kind: &Kind, rows: usize, name: &str) -> Result<Node, Refusal> {
        let made = match self {
            Given::Stored(layout, stored) => make::column(kind, &layout, stored)
                .map_err(|Refusal(why, row)| Refusal(format!("field '{name}': {why}"), row)),
            Given::Struct(parts) => {
                let parts = kind.children.iter().zip(parts);
                let parts =
                    parts.map(|(kind, one)| one.made(kind, rows, &format!("{name}.{}", kind.name)));
                Ok(make::structure(rows, parts.collect::<Result<_, _>>()?))
            }
            Given::Missing => make::missing(kind, rows),
            Given::Array(node) => Ok(node),
        }?;
        if made.len == rows {
            return Ok(made);
        }
        Err(format!("field '{name}' has {} values for {rows} rows", made.len).into())
    }
}

/// Returns bytes: those of a buffer of ours without a copy.
fn data_of(given: &Bound<'_, PyAny>) -> PyResult<Data> {
    let bytes = PyBuffer::<u8>::get(given)?;
    let bytes = content(&bytes);
    let owner = given.getattr("obj").ok();
    if let Some(owner) = owner.as_ref().and_then(|one| one.cast::<buffer::PyBuffer>().ok()) {
        let block = owner.get().block();
        let start = bytes.as_ptr().addr().wrapping_sub(block.bytes().as_ptr().addr());
        if start.checked_add(bytes.len()).is_some_and(|end| end <= block.bytes().len()) {
            return Ok(Data::Shared(Arc::clone(block), start, bytes.len()));
        }
    }
    Ok(Data::Own(bytes.to_vec()))
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
    schema.tuple(given.py())
}

/// Returns a capsule that describes a type.
#[pyfunction]
pub fn arrow_schema<'py>(kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    stream::schema_capsule(kind.py(), &Kind::of(kind)?)
}

/// Returns whether values that are stored in a way can be a column of a type as they are.
#[pyfunction]
pub fn arrow_fits(kind: &Bound<'_, PyAny>, layout: Layout) -> PyResult<bool> {
    Ok(layout.fits(&Kind::of(kind)?))
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
    let found = make::common_array(bytes, &offsets, present.as_deref())?;
    Ok(found.map(|(name, dimensions)| (name.to_owned(), dimensions)))
}
