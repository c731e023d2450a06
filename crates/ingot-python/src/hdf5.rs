//! `ingot._core.Hdf5File`: rows of HDF5 files, from where they lie.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use ingot::Error;
use ingot::records::{Column, ColumnLayout, Hdf5};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::buffer::{self, Spares};
use crate::error::raised;
use crate::threads;

/// A column of a file that is open.
#[pyclass(frozen, name = "Hdf5Column", module = "ingot._core")]
pub struct PyColumn(Column);

#[pyclass(frozen, name = "Hdf5File", module = "ingot._core")]
pub struct PyHdf5 {
    path: PathBuf,
    file: RwLock<Option<Arc<Hdf5>>>,
    spares: Arc<Spares>,
}

impl PyHdf5 {
    fn file(&self) -> PyResult<Arc<Hdf5>> {
        let Some(file) = self.file.read().expect("no panics under this lock").clone() else {
            let path = self.path.display().to_string();
            return Err(raised(Error::Closed { path, what: "data set" }));
        };
        if file.generation() == ingot::process::generation() {
            return Ok(file);
        }
        let file = Arc::new(file.reopened());
        *self.file.write().expect("no panics under this lock") = Some(Arc::clone(&file));
        Ok(file)
    }
}

#[pymethods]
impl PyHdf5 {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = py.detach(|| Hdf5::open(&path)).map_err(raised)?;
        Ok(PyHdf5 { path, file: RwLock::new(Some(Arc::new(file))), spares: Arc::default() })
    }

    /// Returns a column: its rows, the bytes of an element, whether values vary in length, the
    /// shape of a row, that of a block, and where each block begins, as uint64 bytes.
    fn column(
        &self,
        rows: u64,
        item: u64,
        varies: bool,
        shape: Vec<u64>,
        block: Vec<u64>,
        offsets: &[u8],
    ) -> PyResult<PyColumn> {
        let (offsets, _) = offsets.as_chunks();
        let offsets = offsets.iter().map(|&offset| u64::from_ne_bytes(offset)).collect();
        let layout = ColumnLayout { rows, item, varies, shape, block, offsets };
        self.file()?.column(layout).map(PyColumn).map_err(raised)
    }

    /// Reads columns of rows, which are int64, in one go, each into one buffer.
    fn read<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<PyRef<'py, PyColumn>>,
        rows: PyBuffer<i64>,
    ) -> PyResult<Vec<(Bound<'py, PyMemoryView>, Bound<'py, PyBytes>)>> {
        threads::settle(py)?;
        let file = self.file()?;
        let rows: Vec<u64> = rows.to_vec(py)?.into_iter().map(|row| row as u64).collect();
        let columns: Vec<&Column> = columns.iter().map(|column| &column.0).collect();
        let shares = py.detach(|| file.plan(&columns, &rows)).map_err(raised)?;
        let lens = shares.iter().map(|share| share.lens().sum::<u64>() as usize);
        let mut buffers: Vec<Vec<u8>> =
            lens.clone().map(|len| self.spares.take(len)).collect::<PyResult<_>>()?;
        py.detach(|| {
            let bufs = buffers.iter_mut().zip(lens).map(|(buffer, len)| &mut buffer[..len]);
            file.fill(&shares, &mut bufs.collect::<Vec<_>>())
        })
        .map_err(raised)?;
        let each = shares.iter().zip(buffers);
        each.map(|(share, buffer)| buffer::pack_values(py, buffer, share.lens(), &self.spares))
            .collect()
    }

    /// Close the file. A second call does nothing.
    fn close(&self) {
        self.file.write().expect("no panics under this lock").take();
    }
}
