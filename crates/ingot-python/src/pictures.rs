//! Batches of values made of compressed pictures.

use ingot::picture::{Choices, Crop, Kind, Recipe, Refusal, Shape, Spread, Table, make_many};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::cells::{self, SPARES, kind_of};
use crate::threads;

/// What becomes of every picture of a field.
#[pyclass(frozen, name = "Pictures", module = "ingot._core")]
pub struct PyPictures {
    recipe: Recipe,
}

/// The values of pictures one after the other, and which were rejected and why.
type Made<'py> = (Bound<'py, PyMemoryView>, Vec<(usize, Refusal)>);

#[pymethods]
impl PyPictures {
    #[new]
    #[pyo3(signature = (size, crop, resize, scale, ratio, flip, colours, is_planar, table, width))]
    #[expect(clippy::too_many_arguments, reason = "one class of the package calls it")]
    fn new(
        size: (u32, u32),
        crop: &str,
        resize: Option<u32>,
        scale: (f64, f64),
        ratio: (f64, f64),
        flip: f64,
        colours: u8,
        is_planar: bool,
        table: Vec<u8>,
        width: usize,
    ) -> PyResult<Self> {
        let crop = match crop {
            "whole" => Crop::Whole,
            "center" => Crop::Center,
            "random" => Crop::Random,
            "resized" => Crop::Resized(Spread::new(scale, ratio)),
            other => return Err(PyValueError::new_err(format!("unknown crop {other:?}"))),
        };
        let choices = Choices::new(size, crop, resize, flip).map_err(PyValueError::new_err)?;
        let table = Table::new(table, width, colours).ok_or_else(|| {
            PyValueError::new_err("expected a value for each byte of each colour")
        })?;
        Ok(PyPictures { recipe: Recipe { choices, colours, is_planar, table } })
    }

    /// Returns the values of files, each with its key.
    fn make<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        files: Vec<PyBuffer<u8>>,
        keys: Vec<u64>,
    ) -> PyResult<Made<'py>> {
        threads::settle(py)?;
        let kind: Kind = kind_of(kind)?;
        if files.len() != keys.len() {
            return Err(PyValueError::new_err("expected a key for each picture"));
        }
        let len = self.len_of(files.len())?;
        let mut values = SPARES.take(len)?;
        let files: Vec<&[u8]> = files.iter().map(cells::content).collect();
        let refused =
            py.detach(|| make_many(&self.recipe, kind, &files, &keys, &mut values[..len]));
        Ok((cells::view(py, values, len)?, refused))
    }

    /// Returns the values of the pixels of a picture, of this height, width and colours.
    fn make_of_pixels<'py>(
        &self,
        py: Python<'py>,
        pixels: PyBuffer<u8>,
        shape: (u32, u32, u8),
        key: u64,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let (height, width, colours) = shape;
        let shape = Shape { height, width, colours };
        let content = cells::content(&pixels);
        let is_whole = content.len() as u64 == shape.num_bytes() && !content.is_empty();
        if !(1..=4).contains(&colours) || !is_whole {
            return Err(PyValueError::new_err("expected the pixels of a picture"));
        }
        let len = self.len_of(1)?;
        let mut values = SPARES.take(len)?;
        py.detach(|| self.recipe.make_of_pixels(content, shape, key, &mut values[..len]))
            .map_err(PyValueError::new_err)?;
        cells::view(py, values, len)
    }
}

impl PyPictures {
    fn len_of(&self, count: usize) -> PyResult<usize> {
        let len = self.recipe.num_bytes().checked_mul(count);
        len.ok_or_else(|| PyValueError::new_err("the values do not fit into the memory"))
    }
}
