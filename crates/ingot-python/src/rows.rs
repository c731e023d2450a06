//! `ingot._core.Rows`: rows of several fields.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwapOption;
use ingot::Error;
use ingot::format::ingot::{Field, FieldKind, Schema};
use ingot::records::indexed::{Admit, Input, Request, open};
use ingot::records::{
    Array, Ask, Compressed, Container, Found, Mode, Npy, Rows, Sequence, fetch_found, hex,
    layout_of,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList};

use crate::buffer::{self, Packed, Spares};
use crate::damage::{self, DamageTuple};
use crate::error::raised;
use crate::indices::{row_of, rows_of};
use crate::listing::PyListing;
use crate::object;
use crate::reader::{Figures, figures_of};
use crate::row::{Elements, PyRowPlan};
use crate::signals::{reported, watched};
use crate::threads;

/// A field as Python has it: name, kind, width of a column, type.
pub type FieldTuple = (String, String, Option<u32>, Option<String>);

/// Returns the schema of fields.
pub fn schema_of(fields: Vec<FieldTuple>) -> PyResult<Schema> {
    let fields = fields
        .into_iter()
        .map(|(name, kind, width, type_name)| {
            let kind = match kind.as_str() {
                "cell" => FieldKind::Cell,
                "sequence" => FieldKind::Sequence,
                "column" => FieldKind::Column,
                other => {
                    return Err(PyValueError::new_err(format!("unknown kind of field {other:?}")));
                }
            };
            Ok(Field { name, kind, width, type_name })
        })
        .collect::<PyResult<Vec<Field>>>()?;
    Schema::new(fields).map_err(|why| PyValueError::new_err(why.to_string()))
}

/// A file, and the arrays in it: for each its name, its offset, its size and its CRC-32.
type ArrayFile = (PathBuf, Vec<(String, u64, u64, Option<u32>)>);

/// A file, how it is compressed as a whole, and how many bytes it decompresses to.
type StoredFile = (PathBuf, Option<String>, Option<u64>);

fn input_of((path, compression, bytes): StoredFile) -> Input {
    let packed = compression.map(|compression| Compressed { compression, bytes });
    Input { location: path.as_path().into(), storage: None, packed }
}

/// Calls `admit` with the number of a file, and iterates over what it returns. What is raised is
/// kept in `refused`.
fn admitted(
    admit: &Py<PyAny>,
    file: usize,
    go_on: &dyn Fn() -> ingot::Result<()>,
    refused: &Mutex<Option<PyErr>>,
) -> ingot::Result<()> {
    let refuse = |error| {
        *refused.lock().expect("no panics under this lock") = Some(error);
        Error::Stopped
    };
    let steps =
        Python::attach(|py| admit.bind(py).call1((file,))?.try_iter().map(|steps| steps.unbind()));
    let steps = steps.map_err(refuse)?;
    loop {
        go_on()?;
        let step = Python::attach(|py| {
            let step = steps.bind(py).clone().next();
            step.transpose().map(|step| step.is_some())
        });
        if !step.map_err(refuse)? {
            return Ok(());
        }
    }
}

#[pyclass(frozen, subclass, name = "Rows", module = "ingot._core")]
pub struct PyRows {
    paths: Vec<PathBuf>,
    rows: ArcSwapOption<Rows>,
    spares: Arc<Spares>,
}

impl PyRows {
    fn over(paths: Vec<PathBuf>, rows: Rows) -> PyRows {
        PyRows { paths, rows: ArcSwapOption::from_pointee(rows), spares: Arc::default() }
    }

    /// Returns a number for each of some rows, as uint64 bytes.
    fn numbers<'py>(
        &self,
        indices: &Bound<'py, PyAny>,
        find: impl FnOnce(&Rows, &[u64]) -> ingot::Result<Vec<u64>> + Send,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let (py, rows) = (indices.py(), self.rows()?);
        let asked = rows_of(rows.files(), indices)?;
        let found = py.detach(|| find(&rows, &asked)).map_err(raised)?;
        object::byte_array(py, &object::words(found))
    }

    fn rows(&self) -> PyResult<Arc<Rows>> {
        let current = self.rows.load_full();
        let Some(rows) = current else {
            let path = self.paths[0].display().to_string();
            return Err(raised(Error::Closed { path, what: "data set" }));
        };
        if rows.files().generation() == ingot::process::generation() {
            return Ok(rows);
        }
        let rows = Arc::new(rows.after_fork());
        self.rows.store(Some(Arc::clone(&rows)));
        Ok(rows)
    }
}

#[pymethods]
impl PyRows {
    #[new]
    fn new(py: Python<'_>, paths: Vec<PathBuf>, partial: bool) -> PyResult<Self> {
        let mode = if partial { Mode::Partial } else { Mode::Whole };
        let rows = watched(py, |watch| Rows::open(&paths, mode, watch))?;
        Ok(PyRows::over(paths, rows))
    }

    /// Takes files of a folder, which are opened when they are needed. Without fields, all have
    /// those of the first one.
    #[staticmethod]
    #[pyo3(signature = (folder, listing, fields=None))]
    fn listed(
        py: Python<'_>,
        folder: PathBuf,
        listing: &Bound<'_, PyListing>,
        fields: Option<Vec<FieldTuple>>,
    ) -> PyResult<Self> {
        let files = listing.get().listed(&folder)?;
        let schema = fields.map(schema_of).transpose()?;
        let rows = py.detach(|| Rows::listed(files, schema)).map_err(raised)?;
        Ok(PyRows::over(vec![folder], rows))
    }

    /// Opens files of another format by their indexes, which are built if need be: for each file
    /// how it is compressed as a whole, and how many bytes it decompresses to, if that is known.
    /// None if no fields are given and the records have none. `progress` is called with the
    /// bytes done and their total. `admit` is called with the number of a file before anything
    /// is made of it, and what it returns is iterated over.
    #[staticmethod]
    fn indexed(
        py: Python<'_>,
        files: Vec<StoredFile>,
        layout: &str,
        fields: Option<Vec<FieldTuple>>,
        folder: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
        admit: Option<Py<PyAny>>,
    ) -> PyResult<Option<Self>> {
        threads::settle(py)?;
        let fields = fields.map(schema_of).transpose()?.map(|schema| schema.fields().to_vec());
        let paths: Vec<PathBuf> = files.iter().map(|(path, ..)| path.clone()).collect();
        let layout = layout_of(layout).map_err(|error| match (error, paths.first()) {
            (Error::Invalid(reason), Some(path)) => {
                raised(Error::format(path.display().to_string(), reason))
            }
            (error, _) => raised(error),
        })?;
        let inputs: Vec<Input> = files.into_iter().map(input_of).collect();
        let refused = Mutex::new(None);
        let asked = admit.map(|admit| {
            let refused = &refused;
            move |file: usize, go_on: &dyn Fn() -> ingot::Result<()>| {
                admitted(&admit, file, go_on, refused)
            }
        });
        let admit = asked.as_ref().map(|asked| asked as &Admit<'_>);
        let request = Request { layout, fields, folder, admit };
        let rows = reported(py, progress, |report| {
            let Some(found) = open(&inputs, &request, report)? else { return Ok(None) };
            let files: Sequence = found.into_iter().collect();
            Rows::of(Arc::new(files)).map(Some)
        });
        if let Some(error) = refused.lock().expect("no panics under this lock").take() {
            return Err(error);
        }
        Ok(rows?.map(|rows| PyRows::over(paths, rows)))
    }

    /// Opens arrays in files: for each file, the name, the offset, the size and the CRC-32 of
    /// each `.npy` file in it, where that is known. Rows are along the first axis. `folder` is for
    /// the notes about files that were verified.
    #[staticmethod]
    fn arrays(py: Python<'_>, files: Vec<ArrayFile>, folder: Option<PathBuf>) -> PyResult<Self> {
        let paths: Vec<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
        let rows = watched(py, |watch| {
            let opened = files.into_iter().map(|(path, arrays)| {
                let array = |(name, start, len, crc)| Array { name, start, len, crc };
                let arrays = arrays.into_iter().map(array);
                let opened = Npy::open_path(&path, arrays.collect(), folder.as_deref(), watch)?;
                Ok(Arc::new(opened) as Arc<dyn Container>)
            });
            let opened: ingot::Result<Vec<_>> = opened.collect();
            Rows::of(Arc::new(opened?.into_iter().collect()))
        })?;
        Ok(PyRows::over(paths, rows))
    }

    /// Opens the files that are not open yet.
    fn open_files(&self, py: Python<'_>) -> PyResult<()> {
        let rows = self.rows()?;
        py.detach(|| rows.files().open_files().map(|_| ())).map_err(raised)
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.rows()?.num_rows() as usize)
    }

    /// Returns name, kind, width and type of each field.
    fn fields(&self) -> PyResult<Vec<FieldTuple>> {
        let rows = self.rows()?;
        let fields = rows.schema().fields().iter().map(|field| {
            let kind = match field.kind {
                FieldKind::Cell => "cell",
                FieldKind::Sequence => "sequence",
                FieldKind::Column => "column",
            };
            (field.name.clone(), kind.to_owned(), field.width, field.type_name.clone())
        });
        Ok(fields.collect())
    }

    /// Returns the metadata of the first file as JSON.
    fn metadata_json(&self) -> PyResult<String> {
        Ok(self.rows()?.files().open_file(0).map_err(raised)?.metadata().to_owned())
    }

    /// Returns the bytes that identify each file, as hexadecimal digits.
    fn ids(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let rows = self.rows()?;
        let ids = py.detach(|| rows.files().fingerprints()).map_err(raised)?;
        Ok(ids.iter().map(|id| hex(id)).collect())
    }

    /// Returns the number of rows of each file.
    fn row_counts(&self) -> PyResult<Vec<u64>> {
        let rows = self.rows()?;
        Ok(rows.files().row_counts().collect())
    }

    /// Returns the fields of `ingot.Stats`.
    fn figures(&self, py: Python<'_>) -> PyResult<Figures> {
        let rows = self.rows()?;
        py.detach(|| rows.files().stats()).map(figures_of).map_err(raised)
    }

    /// Reads a row as a plan says; `elements` are those wanted of each field, if not all.
    fn read_row<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
        plan: &Bound<'py, PyRowPlan>,
        elements: Option<Vec<Elements>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rows = self.rows()?;
        let row = row_of(rows.files(), index)?;
        plan.get().read(py, &rows, row, elements)
    }

    /// Returns how many elements a sequence has in each row, as uint64 bytes.
    fn count<'py>(
        &self,
        indices: &Bound<'py, PyAny>,
        field: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        self.numbers(indices, |rows, numbers| rows.count(numbers, field))
    }

    /// Returns how many bytes a field of kind cell has in each row, as uint64 bytes.
    fn sizes<'py>(
        &self,
        indices: &Bound<'py, PyAny>,
        field: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        self.numbers(indices, |rows, numbers| rows.sizes(numbers, field))
    }

    /// Returns the values of a column in rows from `start` to `stop`.
    fn column<'py>(
        &self,
        py: Python<'py>,
        field: usize,
        start: u64,
        stop: u64,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let rows = self.rows()?;
        let values = py.detach(|| rows.column(field, start..stop)).map_err(raised)?;
        object::byte_array(py, &values)
    }

    /// Returns the values of a column in any rows.
    fn values<'py>(
        &self,
        indices: &Bound<'py, PyAny>,
        field: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let (py, rows) = (indices.py(), self.rows()?);
        let numbers = rows_of(rows.files(), indices)?;
        let values = py.detach(|| rows.values(&numbers, field)).map_err(raised)?;
        object::byte_array(py, &values)
    }

    /// Verifies the files; returns the rows checked and the damage found.
    fn check(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(u64, Vec<DamageTuple>)> {
        damage::check(py, self.rows()?.files(), progress)
    }

    /// Close the files. A second call does nothing.
    fn close(&self) {
        self.rows.store(None);
    }

    /// Whether the data set was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.rows.load().is_none()
    }
}

/// What is wanted of a data set: which rows, and of each field, by its place, which elements of
/// each row: all, or those from a start to a stop by a step.
type Plan<'py> = (Bound<'py, PyRows>, Bound<'py, PyAny>, Vec<AskTuple>);

type AskTuple = (usize, Option<Vec<(u64, u64, NonZeroUsize)>>);

/// Reads what several plans ask for in one go; returns the values of each field of each plan.
#[pyfunction]
pub fn read_plans<'py>(py: Python<'py>, plans: Vec<Plan<'py>>) -> PyResult<Vec<Vec<Packed<'py>>>> {
    threads::settle(py)?;
    let Some(spares) = plans.first().map(|(first, ..)| Arc::clone(&first.get().spares)) else {
        return Ok(Vec::new());
    };
    let mut asked: Vec<(Arc<Rows>, Vec<u64>, Vec<Ask>)> = Vec::with_capacity(plans.len());
    for (native, indices, fields) in plans {
        let rows = native.get().rows()?;
        let numbers = rows_of(rows.files(), &indices)?;
        if fields.iter().flat_map(|(_, ranges)| ranges).any(|all| all.len() != numbers.len()) {
            return Err(PyValueError::new_err("expected a range for each row"));
        }
        let asks = fields.into_iter().map(|(field, elements)| Ask { field, elements });
        asked.push((rows, numbers, asks.collect()));
    }
    let read = || -> ingot::Result<_> {
        let found =
            asked.iter().map(|(rows, numbers, asks)| Ok((&**rows, rows.find(numbers, asks)?)));
        let parts: Vec<(&Rows, Vec<Found>)> = found.collect::<ingot::Result<_>>()?;
        let buffers = fetch_found(&parts, |len| spares.find(len))?;
        Ok((parts.into_iter().map(|(_, found)| found).collect::<Vec<_>>(), buffers))
    };
    let (found, buffers) = py.detach(read).map_err(raised)?;
    let parts = found.into_iter().zip(buffers);
    parts
        .map(|(found, buffers)| {
            let fields = found.into_iter().zip(buffers);
            fields.map(|(one, buffer)| buffer::pack(py, one, buffer, &spares)).collect()
        })
        .collect()
}

/// Returns whether a file is an Ingot file whose rows have fields.
#[pyfunction]
pub fn has_fields(py: Python<'_>, path: PathBuf) -> bool {
    py.detach(|| ingot::records::path::has_fields(&path))
}

/// A value of a row on its way to the writer.
pub enum Given<'py> {
    Cell(Bound<'py, PyBytes>),
    Sequence(Vec<Bound<'py, PyBytes>>),
}

impl<'py> Given<'py> {
    /// Takes bytes, or a list of them.
    pub fn of(value: &Bound<'py, PyAny>) -> PyResult<Given<'py>> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Given::Cell(bytes.clone()));
        }
        let elements = value.cast::<PyList>()?.iter();
        let elements = elements.map(|element| Ok(element.cast::<PyBytes>()?.clone()));
        elements.collect::<PyResult<_>>().map(Given::Sequence)
    }
}
