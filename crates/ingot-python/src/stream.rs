//! `ingot._core.Stream`: records along a stream of indices, read ahead.

use std::ops::Range;
use std::sync::Arc;

use ingot::records::{ReadAhead, Sequence, Window};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use crate::bytes;
use crate::error::raised;
use crate::indices::row_of;
use crate::object;
use crate::threads;

#[pyclass(name = "Stream", module = "ingot._core")]
pub struct PyStream {
    reader: Arc<Sequence>,
    indices: Indices,
    ahead: ReadAhead,
    /// Records that are ready, the next one last.
    ready: Vec<Py<PyBytes>>,
    /// Raised once the records before it were handed out.
    error: Option<PyErr>,
}

enum Indices {
    All(Range<u64>),
    Some(Py<PyIterator>),
    Done,
}

impl PyStream {
    pub fn new(reader: Arc<Sequence>, indices: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let indices = match indices {
            None => Indices::All(0..reader.num_rows()),
            Some(indices) => Indices::Some(indices.try_iter()?.unbind()),
        };
        let ahead = ReadAhead::new(Arc::clone(&reader));
        Ok(PyStream { reader, indices, ahead, ready: Vec::new(), error: None })
    }

    /// In the child of a fork: restarts the windows, since the threads that were
    /// reading them are the parent's.
    fn follow_fork(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.reader.generation() == ingot::process::generation() {
            return Ok(());
        }
        self.reader = Arc::new(self.reader.after_fork());
        let rows = self.ahead.drain();
        self.ahead = ReadAhead::new(Arc::clone(&self.reader));
        py.detach(|| self.ahead.push(&rows)).map_err(raised)
    }

    /// Takes the next rows from the indices. A bad index ends the stream after the good ones.
    fn take(&mut self, py: Python<'_>, count: usize) -> Vec<u64> {
        match &mut self.indices {
            Indices::Done => Vec::new(),
            Indices::All(rows) => rows.by_ref().take(count).collect(),
            Indices::Some(indices) => {
                let mut taken = Vec::with_capacity(count);
                let mut indices = indices.bind(py).clone();
                while taken.len() < count {
                    let next = indices.next().map(|index| row_of(&self.reader, &index?));
                    match next {
                        Some(Ok(row)) => taken.push(row),
                        other => {
                            self.error = other.and_then(Result::err);
                            self.indices = Indices::Done;
                            break;
                        }
                    }
                }
                taken
            }
        }
    }

    fn top_up(&mut self, py: Python<'_>) {
        loop {
            let wanted = self.ahead.wanted();
            let rows = if wanted > 0 { self.take(py, wanted) } else { Vec::new() };
            if rows.is_empty() {
                return;
            }
            let (reader, ahead) = (&self.reader, &mut self.ahead);
            let pushed = py.detach(|| {
                ahead.push(&rows).or_else(|error| {
                    // An index page is damaged: the rows before it are still good.
                    let good = rows.iter().take_while(|&&row| reader.locate(row).is_ok());
                    ahead.push(&rows[..good.count()])?;
                    Err(error)
                })
            });
            if let Err(error) = pushed {
                self.error = Some(raised(error));
                self.indices = Indices::Done;
                return;
            }
        }
    }

    /// Turns a window into bytes objects; a bad record ends the stream after the good ones.
    fn load(&mut self, py: Python<'_>, window: Window) -> PyResult<()> {
        let cells = window.cells.clone();
        // What could not be read as a whole is read again one by one, to find the first bad one.
        let read = py.detach(|| window.values().unwrap_or(None));
        let (objects, failed) = match read {
            Some(values) => {
                let mut rest = &values[..];
                let cut = |cell: &ingot::records::Cell| {
                    object::bytes(py, rest.split_off(..cell.raw as usize).expect("as read"))
                };
                (cells.iter().map(cut).collect::<PyResult<_>>()?, None)
            }
            None => bytes::read_many(py, &*self.reader, cells.len(), |k| Ok(cells[k]))?,
        };
        self.ready = objects.into_iter().map(Bound::unbind).collect();
        if let Some(error) = failed {
            self.error = Some(raised(error));
            self.indices = Indices::Done;
            self.ahead.drain();
        }
        self.ready.reverse();
        Ok(())
    }
}

#[pymethods]
impl PyStream {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyBytes>>> {
        while self.ready.is_empty() {
            py.check_signals()?; // A loop in C, such as `list(reader)`, never does.
            threads::settle(py)?;
            self.follow_fork(py)?;
            self.top_up(py);
            match self.ahead.pop() {
                Some(window) => self.load(py, window)?,
                None => return self.error.take().map_or(Ok(None), Err),
            }
        }
        Ok(self.ready.pop())
    }
}
