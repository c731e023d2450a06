//! Something that belongs to one process, used by one thread at a time.

use std::sync::Mutex;

use ingot::process;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A writer, and the process that has opened it.
pub struct Own<T: ?Sized> {
    generation: u64,
    inner: Mutex<T>,
}

impl<T> Own<T> {
    /// Takes what this process has opened.
    pub fn new(inner: T) -> Own<T> {
        Own { generation: process::generation(), inner: Mutex::new(inner) }
    }
}

impl<T: ?Sized + Send> Own<T> {
    /// Calls `call` while no other thread does. Fails in the child of a fork if a thread of the
    /// parent held it: that thread is not there to finish.
    pub fn with<R>(&self, py: Python<'_>, call: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        loop {
            match self.inner.try_lock() {
                Ok(mut inner) => return Ok(call(&mut inner)),
                Err(_) if self.generation != process::generation() => {
                    let message = "this writer belongs to the parent process";
                    return Err(PyValueError::new_err(message));
                }
                Err(_) => {
                    py.detach(|| drop(self.inner.lock().expect("no panics under this lock")));
                }
            }
        }
    }
}
