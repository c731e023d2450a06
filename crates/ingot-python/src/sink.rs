//! `ingot._core.Sink`: a file that HDF5 writes to by calling methods of an object.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use ingot::process;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::cells::content;
use crate::object;

const FROM_START: i32 = 0;
const FROM_HERE: i32 = 1;

/// A file with a place in it. A failure is remembered, and HDF5 is told that all is well: an
/// error that one of its callbacks reports may crash it later.
///
/// No code of Python runs in a method, so no handler of a signal does that could raise.
#[pyclass(subclass, name = "Sink", module = "ingot._core")]
pub struct PySink {
    file: Option<File>,
    generation: u64,
    place: u64,
    error: Option<io::Error>,
}

impl PySink {
    /// Calls `work` with the file and the place; none if that fails. There is no file in the
    /// child of a fork.
    fn attempt<T>(&mut self, work: impl FnOnce(&File, u64) -> io::Result<T>) -> Option<T> {
        let file = self.file.as_ref().filter(|_| self.generation == process::generation())?;
        let done = work(file, self.place);
        done.map_err(|error| self.error.get_or_insert(error)).ok()
    }

    /// Reads as many bytes as there are, and moves past them. On failure they are zeros.
    fn fill(&mut self, bytes: &mut [u8]) -> usize {
        let count = self.attempt(|file, place| read_some(file, bytes, place));
        let count = count.unwrap_or_else(|| {
            bytes.fill(0);
            bytes.len()
        });
        self.place += count as u64;
        count
    }
}

#[pymethods]
impl PySink {
    /// Opens a file that is there.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let opened = || File::options().read(true).write(true).open(path);
        let file = process::without_fork(opened)?;
        Ok(PySink { file: Some(file), generation: process::generation(), place: 0, error: None })
    }

    /// Closes the file: later calls read and write nothing.
    fn detach(&mut self) {
        self.file = None;
    }

    /// The number and the text of the first error, if there was one.
    #[getter]
    fn failure(&self) -> Option<(i32, String)> {
        self.error.as_ref().map(|error| (error.raw_os_error().unwrap_or(0), error.to_string()))
    }

    /// Goes to a place.
    #[pyo3(signature = (offset, whence=FROM_START))]
    fn seek(&mut self, offset: i64, whence: i32) -> u64 {
        let start = match whence {
            FROM_START => 0,
            FROM_HERE => self.place,
            _ => self.attempt(|file, _| Ok(file.metadata()?.len())).unwrap_or(0),
        };
        self.place = start.saturating_add_signed(offset);
        self.place
    }

    /// Returns the place.
    fn tell(&self) -> u64 {
        self.place
    }

    /// Returns bytes that were written.
    fn read<'py>(&mut self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let left = self.attempt(|file, place| Ok(file.metadata()?.len().saturating_sub(place)));
        let mut bytes = vec![0; size.min(left.unwrap_or(0) as usize)];
        let count = self.fill(&mut bytes);
        object::bytes(py, &bytes[..count])
    }

    /// Reads bytes that were written, as many as there are; zeros if that fails.
    fn readinto(&mut self, py: Python<'_>, buffer: PyBuffer<u8>) -> PyResult<usize> {
        let mut bytes = vec![0; buffer.len_bytes()];
        let count = self.fill(&mut bytes);
        buffer.copy_from_slice(py, &bytes)?;
        Ok(count)
    }

    /// Writes bytes, unless something has failed before.
    fn write(&mut self, data: PyBuffer<u8>) -> usize {
        let bytes = content(&data);
        if self.error.is_none() {
            self.attempt(|file, place| write_all(file, bytes, place));
        }
        self.place += bytes.len() as u64;
        bytes.len()
    }

    /// Sets the length.
    #[pyo3(signature = (size=None))]
    fn truncate(&mut self, size: Option<u64>) -> u64 {
        let size = size.unwrap_or(self.place);
        self.attempt(|file, _| file.set_len(size));
        size
    }

    /// Does nothing: all is written already.
    fn flush(&self) {}

    /// Waits until the device has the bytes.
    fn sync(&mut self, py: Python<'_>) {
        py.detach(|| self.attempt(|file, _| file.sync_all()));
    }
}

/// Reads as many bytes as there are.
fn read_some(file: &File, bytes: &mut [u8], place: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], place + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn write_all(file: &File, mut bytes: &[u8], mut place: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, place) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                place += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
