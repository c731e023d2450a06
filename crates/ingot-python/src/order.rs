//! `ingot._core.Order`: which row is at which position.

use ingot::error::counted;
use ingot::order::{Lengths, Level, Long, Order, Picks};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

use crate::error::raised;
use crate::object;

#[pyclass(frozen, name = "Order", module = "ingot._core")]
pub struct PyOrder(Order);

/// Groups, or rows: where each group begins, how many maps an item has, their numbers and keys.
type PyLevel<'py> =
    (Bound<'py, PyByteArray>, usize, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

/// Sources, rows, epochs, starts and stops of rows, and the levels from groups to rows.
type PyTold<'py> = ([Bound<'py, PyByteArray>; 5], Vec<PyLevel<'py>>);

#[pymethods]
impl PyOrder {
    /// Takes the rows of a source, all of them or those in a table.
    #[new]
    #[pyo3(signature = (num_rows, table=None))]
    fn new(py: Python<'_>, num_rows: u64, table: Option<PyBuffer<i64>>) -> PyResult<Self> {
        match table {
            None => made(Order::of(num_rows)),
            Some(table) => {
                let rows: Vec<u64> = table.to_vec(py)?.into_iter().map(|row| row as u64).collect();
                match rows.iter().find(|&&row| row >= num_rows) {
                    None => made(Order::table(rows)),
                    Some(&row) => Err(PyValueError::new_err(format!(
                        "row {} is not in a source of {}",
                        row as i64,
                        counted(num_rows, "row")
                    ))),
                }
            }
        }
    }

    /// The number of positions; None if there is no end.
    #[getter]
    fn length(&self) -> Option<u64> {
        self.0.len()
    }

    /// How often groups are made: 0 if each position is one row.
    #[getter]
    fn num_groups(&self) -> usize {
        self.0.num_groups()
    }

    fn shuffle(&self, seed: u64) -> PyResult<Self> {
        made(self.0.shuffle(seed))
    }

    fn repeat(&self, times: Option<u64>) -> PyResult<Self> {
        made(self.0.repeat(times))
    }

    fn slice(&self, start: u64, step: i64, length: Option<u64>) -> PyResult<Self> {
        made(self.0.slice(start, step, length))
    }

    #[staticmethod]
    fn concat(orders: Vec<PyRef<'_, PyOrder>>) -> PyResult<Self> {
        made(Order::concat(all(&orders)))
    }

    #[staticmethod]
    fn interleave(orders: Vec<PyRef<'_, PyOrder>>) -> PyResult<Self> {
        made(Order::interleave(all(&orders)))
    }

    /// Mixes orders by integer weights, from the positions in the schedule on.
    #[staticmethod]
    fn mix(orders: Vec<PyRef<'_, PyOrder>>, schedule: Vec<(u64, Vec<u64>)>) -> PyResult<Self> {
        made(Order::mix(all(&orders), &schedule))
    }

    fn map(&self, seed: u64) -> PyResult<Self> {
        made(self.0.map(seed))
    }

    fn batch(&self, size: u64, drop_last: bool) -> PyResult<Self> {
        made(self.0.batch(size, drop_last))
    }

    fn window(
        &self,
        py: Python<'_>,
        lengths: Vec<PyBuffer<i64>>,
        length: u64,
        stride: u64,
        partial: bool,
    ) -> PyResult<Self> {
        let lengths = lengths_of(py, &lengths)?;
        made(py.detach(|| self.0.window(lengths, length, stride, partial)))
    }

    fn pack(
        &self,
        py: Python<'_>,
        lengths: Vec<PyBuffer<i64>>,
        max_length: u64,
        long: &str,
    ) -> PyResult<Self> {
        let lengths = lengths_of(py, &lengths)?;
        let long = match long {
            "error" => Long::Refuse,
            "cut" => Long::Cut,
            "drop" => Long::Drop,
            other => {
                let reason = format!("long is \"error\", \"cut\" or \"drop\", not {other:?}");
                return Err(PyValueError::new_err(reason));
            }
        };
        made(py.detach(|| self.0.pack(lengths, max_length, long)))
    }

    /// Returns which rows the positions from `start` to `stop` are.
    fn rows<'py>(&self, py: Python<'py>, start: u64, stop: u64) -> PyResult<PyTold<'py>> {
        told(py, &py.detach(|| self.0.rows(start, stop)).map_err(raised)?)
    }

    /// Returns which rows some positions are.
    fn rows_at<'py>(&self, py: Python<'py>, positions: PyBuffer<i64>) -> PyResult<PyTold<'py>> {
        let positions: Vec<u64> =
            positions.to_vec(py)?.into_iter().map(|position| position as u64).collect();
        told(py, &py.detach(|| self.0.rows_at(&positions)).map_err(raised)?)
    }
}

fn made(order: ingot::Result<Order>) -> PyResult<PyOrder> {
    order.map(PyOrder).map_err(raised)
}

fn all(orders: &[PyRef<'_, PyOrder>]) -> Vec<Order> {
    orders.iter().map(|order| order.0.clone()).collect()
}

fn lengths_of(py: Python<'_>, sources: &[PyBuffer<i64>]) -> PyResult<Lengths> {
    let sources = sources.iter().enumerate().map(|(source, lengths)| {
        let lengths = lengths.to_vec(py)?.into_iter().enumerate();
        let checked = lengths.map(|(row, length)| {
            u64::try_from(length).map_err(|_| {
                let reason = format!("the length of row {row} of source {source} is {length}");
                PyValueError::new_err(reason)
            })
        });
        checked.collect()
    });
    sources.collect::<PyResult<Vec<Vec<u64>>>>().map(Lengths::new)
}

fn told<'py>(py: Python<'py>, rows: &Picks) -> PyResult<PyTold<'py>> {
    let rows_of = [
        numbers(py, &rows.sources, i32::to_ne_bytes)?,
        numbers(py, &rows.rows, i64::to_ne_bytes)?,
        numbers(py, &rows.epochs, i64::to_ne_bytes)?,
        numbers(py, &rows.starts, i64::to_ne_bytes)?,
        numbers(py, &rows.stops, i64::to_ne_bytes)?,
    ];
    let level = |level: &Level| {
        Ok((
            numbers(py, &level.offsets, i64::to_ne_bytes)?,
            level.width,
            numbers(py, &level.maps, i32::to_ne_bytes)?,
            numbers(py, &level.keys, u64::to_ne_bytes)?,
        ))
    };
    let levels = rows.levels.iter().map(level).collect::<PyResult<_>>()?;
    Ok((rows_of, levels))
}

/// Returns numbers as the bytes of an array.
fn numbers<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    numbers: &[T],
    bytes: fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyByteArray>> {
    object::byte_array_with(py, numbers.len() * N, |room| {
        for (place, &number) in room.as_chunks_mut::<N>().0.iter_mut().zip(numbers) {
            *place = bytes(number);
        }
    })
}
