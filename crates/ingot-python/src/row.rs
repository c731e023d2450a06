//! `ingot._core.RowPlan`: how one row becomes a dict.

use std::num::NonZeroUsize;

use ingot::limit::max_decoded_bytes;
use ingot::records::{Ask, Found, Rows};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::bytes;
use crate::error::raised;
use crate::object;

/// From where to where and every which element of a sequence.
pub type Elements = (Option<u64>, Option<u64>, Option<NonZeroUsize>);

/// A field as Python has it: its name, its place, the place of the column that says whether it
/// is there, what it is made of, and the function that decodes its stored value.
type StepTuple = (Py<PyString>, usize, Option<usize>, String, Py<PyAny>);

/// Most bytes of memory that a character of a text takes.
const LETTER: u64 = 4;

/// What a stored value is, if this module makes the object of it.
#[derive(Clone, Copy)]
enum Made {
    Bytes,
    Text,
    Int,
    Float,
    Bool,
    ByDecoder,
}

struct Step {
    name: Py<PyString>,
    /// Which of the flags of a row says whether there is a value.
    flag: Option<usize>,
    made: Made,
    decode: Py<PyAny>,
}

/// The fields of a row that are read, and what becomes of their values.
#[pyclass(frozen, name = "RowPlan", module = "ingot._core")]
pub struct PyRowPlan {
    steps: Vec<Step>,
    /// The field of each step, then those of the flags.
    asks: Vec<Ask>,
    undecodable: Py<PyAny>,
}

#[pymethods]
impl PyRowPlan {
    /// `undecodable` gets the name of a field, the row and what its decoder raised, and returns
    /// what is raised instead.
    #[new]
    fn new(steps: Vec<StepTuple>, undecodable: Py<PyAny>) -> PyResult<Self> {
        let whole = |field| Ask { field, elements: None };
        let mut asks: Vec<Ask> = steps.iter().map(|step| whole(step.1)).collect();
        let mut made_steps = Vec::with_capacity(steps.len());
        let mut flags = 0..;
        for (name, _, flag, made, decode) in steps {
            let made = match made.as_str() {
                "bytes" => Made::Bytes,
                "utf8" => Made::Text,
                "int" => Made::Int,
                "float" => Made::Float,
                "bool" => Made::Bool,
                "other" => Made::ByDecoder,
                _ => return Err(PyValueError::new_err(format!("unknown kind of value: {made}"))),
            };
            asks.extend(flag.map(whole));
            let flag = flag.and_then(|_| flags.next());
            made_steps.push(Step { name, flag, made, decode });
        }
        Ok(PyRowPlan { steps: made_steps, asks, undecodable })
    }
}

impl PyRowPlan {
    /// Reads a row; `elements` are those wanted of each field, if not all.
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        row: u64,
        elements: Option<Vec<Elements>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let found = match elements {
            None => py.detach(|| rows.find(&[row], &self.asks)),
            Some(elements) => py.detach(|| rows.find(&[row], &self.cut(&elements))),
        };
        let parts = found.map_err(raised)?;
        let cells: Vec<_> = parts.iter().flat_map(Found::cells).copied().collect();
        let mut objects = bytes::read_row(py, rows.files(), &cells)?.into_iter();
        let (parts, flags) = parts.split_at(self.steps.len());
        let is_missing =
            |flag: usize| matches!(&flags[flag], Found::Numbers(value) if value[..] == [0]);
        let found = PyDict::new(py);
        for (step, part) in self.steps.iter().zip(parts) {
            let own = objects.by_ref().take(part.cells().len());
            let value = if step.flag.is_some_and(is_missing) {
                own.for_each(drop);
                py.None().into_bound(py)
            } else {
                step.value(py, part, own).map_err(|error| self.refused(py, step, row, error))?
            };
            found.set_item(&step.name, value)?;
        }
        Ok(found)
    }

    fn cut(&self, elements: &[Elements]) -> Vec<Ask> {
        let mut asks = self.asks.clone();
        for (ask, &(start, stop, step)) in asks.iter_mut().zip(elements) {
            let (start, stop) = (start.unwrap_or(0), stop.unwrap_or(u64::MAX));
            ask.elements = Some(vec![(start, stop, step.unwrap_or(NonZeroUsize::MIN))]);
        }
        asks
    }

    /// Returns what is raised in place of what a decoder raised.
    #[cold]
    fn refused(&self, py: Python<'_>, step: &Step, row: u64, error: PyErr) -> PyErr {
        let is_refusal =
            error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOSError>(py);
        if !is_refusal {
            return error;
        }
        match self.undecodable.call1(py, (&step.name, row, error.value(py))) {
            Ok(other) => {
                let other = PyErr::from_value(other.into_bound(py));
                other.set_cause(py, Some(error));
                other
            }
            Err(other) => other,
        }
    }
}

impl Step {
    /// Makes the object of a value; whatever is not plain is left to the decoder.
    fn value<'py>(
        &self,
        py: Python<'py>,
        part: &Found,
        mut objects: impl Iterator<Item = Bound<'py, PyBytes>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let stored = match part {
            Found::Numbers(value) => match self.number(py, value)? {
                Some(number) => return Ok(number),
                None => object::bytes(py, value)?.into_any(),
            },
            Found::Cells(_) => {
                let bytes = objects.next().expect("an object for each cell");
                match self.made {
                    Made::Bytes => return Ok(bytes.into_any()),
                    Made::Text => {
                        if let Some(text) = plain_text(py, bytes.as_bytes())? {
                            return Ok(text.into_any());
                        }
                    }
                    _ => (),
                }
                bytes.into_any()
            }
            Found::Elements(..) => PyList::new(py, objects.collect::<Vec<_>>())?.into_any(),
        };
        self.decode.bind(py).call1((stored,))
    }

    fn number<'py>(&self, py: Python<'py>, value: &[u8]) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(match (self.made, value, value.try_into()) {
            (Made::Int, _, Ok(eight)) => {
                Some(i64::from_le_bytes(eight).into_pyobject(py)?.into_any())
            }
            (Made::Float, _, Ok(eight)) => {
                Some(f64::from_le_bytes(eight).into_pyobject(py)?.into_any())
            }
            (Made::Bool, &[one], _) => Some((one != 0).into_pyobject(py)?.to_owned().into_any()),
            _ => None,
        })
    }
}

/// Returns a text that cannot take more memory than is allowed.
fn plain_text<'py>(py: Python<'py>, content: &[u8]) -> PyResult<Option<Bound<'py, PyString>>> {
    if content.len() as u64 * LETTER > max_decoded_bytes() {
        return Ok(None);
    }
    std::str::from_utf8(content).ok().map(|content| object::text(py, content)).transpose()
}
