//! Cells that were read into one buffer, as the values that they hold.
#![allow(unsafe_code)]

use std::sync::{Arc, LazyLock};

use ingot::format::array::Array;
use ingot::limit::Growth;
use ingot::picture::{self, Kind, Shape};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString};

use crate::buffer::{self, Spares};
use crate::object;
use crate::threads;

/// Memory that decoded values stood in: the batch that is used and the next one take turns.
pub static SPARES: LazyLock<Arc<Spares>> =
    LazyLock::new(|| Arc::new(Spares::keeping(2, 128 << 20)));

/// A buffer, and where each cell in it ends; the first begins at 0.
pub struct Cells {
    buffer: PyBuffer<u8>,
    ends: Vec<usize>,
}

impl Cells {
    /// Takes a buffer, and the offsets of the cells as int64 bytes, from 0 to its end.
    pub fn of(data: &Bound<'_, PyAny>, offsets: &[u8]) -> PyResult<Cells> {
        let buffer = PyBuffer::<u8>::get(data)?;
        let (offsets, _) = offsets.as_chunks();
        let mut ends: Vec<usize> =
            offsets.iter().map(|&offset| i64::from_ne_bytes(offset) as usize).collect();
        let is_in_order = ends.is_sorted() && ends.first() == Some(&0);
        if !is_in_order || *ends.last().unwrap_or(&0) > buffer.len_bytes() {
            return Err(PyValueError::new_err("offsets go up from 0 to the end of the buffer"));
        }
        ends.remove(0);
        Ok(Cells { buffer, ends })
    }

    /// Returns where each cell ends.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Returns the buffer.
    pub fn bytes(&self) -> &[u8] {
        content(&self.buffer)
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let bytes = self.bytes();
        (0..self.ends.len()).map(move |k| {
            let start = if k == 0 { 0 } else { self.ends[k - 1] };
            bytes.get(start..self.ends[k]).unwrap_or_default()
        })
    }
}

/// Returns each cell as bytes.
#[pyfunction]
pub fn split_bytes<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    offsets: &[u8],
) -> PyResult<Bound<'py, PyList>> {
    let cells = Cells::of(data, offsets)?;
    let objects: Vec<Bound<'py, PyBytes>> =
        cells.iter().map(|cell| object::bytes(py, cell)).collect::<PyResult<_>>()?;
    PyList::new(py, objects)
}

/// Returns each cell as text; None if one of them is not.
#[pyfunction]
pub fn split_texts<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    offsets: &[u8],
) -> PyResult<Option<Bound<'py, PyList>>> {
    let cells = Cells::of(data, offsets)?;
    let mut texts: Vec<Bound<'py, PyString>> = Vec::with_capacity(cells.iter().len());
    for cell in cells.iter() {
        let Ok(text) = std::str::from_utf8(cell) else { return Ok(None) };
        texts.push(object::text(py, text)?);
    }
    PyList::new(py, texts).map(Some)
}

/// The type, the shape and the elements of arrays that are alike, one after the other.
type Stack<'py> = (String, Vec<u64>, Bound<'py, PyMemoryView>);

/// Returns arrays of one type and shape; None if they differ, have no elements, or one of
/// them is not an array.
#[pyfunction]
pub fn stack_arrays<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    offsets: &[u8],
) -> PyResult<Option<Stack<'py>>> {
    let cells = Cells::of(data, offsets)?;
    let Some(first) = cells.iter().next() else { return Ok(None) };
    let Ok(array) = Array::decode(first) else { return Ok(None) };
    let (head, elements) = first.split_at(first.len() - array.elements.len());
    if elements.is_empty() {
        return Ok(None);
    }
    if !cells.iter().all(|cell| cell.len() == first.len() && cell.starts_with(head)) {
        return Ok(None);
    }
    let len = array.elements.len() * cells.iter().len();
    let mut stacked = SPARES.take(len)?;
    py.detach(|| {
        let mut rest = &mut stacked[..];
        for cell in cells.iter() {
            let elements = &cell[head.len()..];
            let place = rest.split_off_mut(..elements.len()).expect("sized for all");
            place.copy_from_slice(elements);
        }
    });
    let elements = view(py, stacked, len)?;
    Ok(Some((array.kind.to_owned(), array.shape, elements)))
}

/// Pixels, and height, width and colours of each picture.
type Pixels<'py> = (Bound<'py, PyMemoryView>, Vec<(u32, u32, u8)>);

/// Returns the pixels of pictures one after the other.
#[pyfunction]
pub fn decode_pictures<'py>(
    py: Python<'py>,
    kind: &str,
    data: &Bound<'py, PyAny>,
    offsets: &[u8],
) -> PyResult<Pixels<'py>> {
    threads::settle(py)?;
    let kind = kind_of(kind)?;
    let cells = Cells::of(data, offsets)?;
    let shapes: Vec<Shape> = cells
        .iter()
        .map(|cell| picture::measure(kind, cell).map_err(PyValueError::new_err))
        .collect::<PyResult<_>>()?;
    let mut growth = Growth::default();
    for (cell, shape) in cells.iter().zip(&shapes) {
        growth.add(cell.len() as u64, shape.num_bytes()).map_err(PyValueError::new_err)?;
    }
    let len = shapes.iter().map(|shape| shape.num_bytes()).sum::<u64>() as usize;
    let mut pixels = SPARES.take(len)?;
    let refused = py.detach(|| {
        let mut rest = &mut pixels[..];
        let pictures = cells.iter().zip(&shapes).map(|(cell, &shape)| {
            let len = shape.num_bytes() as usize;
            (cell, shape, rest.split_off_mut(..len).expect("sized for all"))
        });
        picture::decode_many(kind, pictures.collect())
    });
    if let Some((_, why)) = refused.into_iter().min_by_key(|&(k, _)| k) {
        return Err(PyValueError::new_err(why));
    }
    let shapes = shapes.iter().map(|shape| (shape.height, shape.width, shape.colours));
    Ok((view(py, pixels, len)?, shapes.collect()))
}

/// Returns the format of pictures with this name.
pub fn kind_of(name: &str) -> PyResult<Kind> {
    match name {
        "jpg" => Ok(Kind::Jpeg),
        "png" => Ok(Kind::Png),
        other => Err(PyValueError::new_err(format!("unknown kind of picture {other:?}"))),
    }
}

/// Returns the bytes of a buffer; none if they are not in one piece.
pub fn content(buffer: &PyBuffer<u8>) -> &[u8] {
    if buffer.len_bytes() == 0 || !buffer.is_c_contiguous() {
        return &[];
    }
    // SAFETY: the buffer is held for as long as it is borrowed, contiguous, and not empty; it
    // was made for these values, and nothing writes to it while they are decoded.
    unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
}

/// Lends memory to Python that goes back to the spares.
pub fn view(py: Python<'_>, bytes: Vec<u8>, len: usize) -> PyResult<Bound<'_, PyMemoryView>> {
    let buffer = Bound::new(py, buffer::PyBuffer::new(bytes, len, &SPARES))?;
    PyMemoryView::from(&buffer)
}
