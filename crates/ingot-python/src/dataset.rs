//! `ingot._core.Rows`: rows of several fields.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use ingot::Error;
use ingot::format::ingot::{Field, FieldKind, Schema};
use ingot::records::{Cell, Files, Mode, Rows, Wanted, check_growth};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList};

use crate::batch::{self, Packed, Spares};
use crate::bytes;
use crate::damage::{self, DamageTuple};
use crate::error::raised;
use crate::object;
use crate::rows::{row_of, rows_of};
use crate::signals::watched;
use crate::threads;

/// What is asked of a row: a field, and of a sequence from where to where and every which.
type Asked = (usize, Option<u64>, Option<u64>, Option<NonZeroUsize>);

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
                other => return Err(PyValueError::new_err(format!("no kind of field {other:?}"))),
            };
            Ok(Field { name, kind, width, type_name })
        })
        .collect::<PyResult<Vec<Field>>>()?;
    Schema::new(fields).map_err(|why| PyValueError::new_err(why.to_string()))
}

#[pyclass(frozen, subclass, name = "Rows", module = "ingot._core")]
pub struct PyRows {
    paths: Vec<PathBuf>,
    rows: RwLock<Option<Arc<Rows>>>,
    spares: Arc<Spares>,
}

impl PyRows {
    fn rows(&self) -> PyResult<Arc<Rows>> {
        let current = self.rows.read().expect("no panics under this lock").clone();
        let Some(rows) = current else {
            let path = self.paths[0].display().to_string();
            return Err(raised(Error::Closed { path, what: "data set" }));
        };
        if rows.files().generation() == ingot::process::generation() {
            return Ok(rows);
        }
        let rows = Arc::new(rows.after_fork().map_err(raised)?);
        *self.rows.write().expect("no panics under this lock") = Some(Arc::clone(&rows));
        Ok(rows)
    }
}

#[pymethods]
impl PyRows {
    #[new]
    fn new(py: Python<'_>, paths: Vec<PathBuf>, partial: bool) -> PyResult<Self> {
        let mode = if partial { Mode::Partial } else { Mode::Whole };
        let rows = watched(py, |watch| Rows::open(&paths, mode, watch))?;
        let rows = RwLock::new(Some(Arc::new(rows)));
        Ok(PyRows { paths, rows, spares: Arc::default() })
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
        Ok(self.rows()?.files().files()[0].metadata().to_owned())
    }

    /// Returns the bytes that tell each file from others, as hexadecimal digits.
    fn ids(&self) -> PyResult<Vec<String>> {
        let rows = self.rows()?;
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(rows.files().files().iter().map(|file| hex(file.fingerprint())).collect())
    }

    /// Returns the number of rows of each file.
    fn row_counts(&self) -> PyResult<Vec<u64>> {
        let rows = self.rows()?;
        Ok(rows.files().files().iter().map(|file| file.num_rows()).collect())
    }

    /// Returns the sizes of the files together.
    fn file_bytes(&self) -> PyResult<u64> {
        Ok(self.rows()?.files().stats().file_bytes)
    }

    /// Reads what is wanted of a row: for each (field, start, stop, step) its bytes, which of a
    /// sequence are a list of its elements.
    fn read_row<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
        wanted: Vec<Asked>,
    ) -> PyResult<Bound<'py, PyList>> {
        let rows = self.rows()?;
        let row = row_of(rows.files(), index)?;
        let parts: Vec<Part> = py
            .detach(|| {
                let parts = wanted.into_iter().map(|one| part_of(&rows, row, one));
                parts.collect::<ingot::Result<_>>()
            })
            .map_err(raised)?;
        let cells: Vec<Cell> = parts.iter().flat_map(Part::cells).copied().collect();
        let (objects, failed) = bytes::read_many(py, &*rows, cells.len(), |k| Ok(cells[k]))?;
        if let Some(error) = failed {
            return Err(raised(error));
        }
        let mut objects = objects.into_iter();
        let found = PyList::empty(py);
        for part in parts {
            match part {
                Part::Number(value) => found.append(object::bytes(py, &value)?)?,
                Part::Cell(_) => found.append(objects.next())?,
                Part::Elements(cells) => {
                    found.append(PyList::new(py, objects.by_ref().take(cells.len()))?)?;
                }
            }
        }
        Ok(found)
    }

    /// Reads fields of kind cell of many rows in one go, each into one buffer.
    fn read_cells<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        fields: Vec<usize>,
    ) -> PyResult<Vec<Packed<'py>>> {
        let rows = self.rows()?;
        let numbers = rows_of(rows.files(), indices)?;
        let located: Vec<Vec<Cell>> = py
            .detach(|| {
                fields
                    .iter()
                    .map(|&field| {
                        let mut cells = Vec::new();
                        rows.locate(&numbers, field, &mut cells).map(|()| cells)
                    })
                    .collect::<ingot::Result<_>>()
            })
            .map_err(raised)?;
        self.fetch(py, &rows, &located)
    }

    /// Reads a sequence of many rows in one go, all elements into one buffer, or of each row
    /// those from a start to a stop by a step; also returns how many of each row, as uint64
    /// bytes.
    fn read_elements<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        field: usize,
        ranges: Option<Vec<(u64, u64, NonZeroUsize)>>,
    ) -> PyResult<(Packed<'py>, Bound<'py, PyByteArray>)> {
        let rows = self.rows()?;
        let numbers = rows_of(rows.files(), indices)?;
        if ranges.as_ref().is_some_and(|ranges| ranges.len() != numbers.len()) {
            return Err(PyValueError::new_err("one range for each row"));
        }
        let (cells, counts) = py
            .detach(|| {
                rows.files().prepare(&numbers);
                let (mut cells, mut counts) = (Vec::new(), Vec::new());
                for (k, &row) in numbers.iter().enumerate() {
                    let range = ranges.as_ref().map(|ranges| ranges[k]);
                    let elements = range.map(|(start, stop, _)| start..stop);
                    let step = range.map_or(NonZeroUsize::MIN, |(_, _, step)| step);
                    let found = rows.locate_wanted(row, &Wanted { field, elements, step })?;
                    counts.extend_from_slice(&(found.len() as u64).to_ne_bytes());
                    cells.extend(found);
                }
                Ok((cells, counts))
            })
            .map_err(raised)?;
        let packed = self.fetch(py, &rows, &[cells])?.pop().expect("one list of cells");
        Ok((packed, object::byte_array(py, &counts)?))
    }

    /// Returns how many elements a sequence has in each row, as uint64 bytes.
    fn count<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        field: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let rows = self.rows()?;
        let numbers = rows_of(rows.files(), indices)?;
        let counts = py.detach(|| rows.count(&numbers, field)).map_err(raised)?;
        let counts: Vec<u8> = counts.iter().flat_map(|count| count.to_ne_bytes()).collect();
        object::byte_array(py, &counts)
    }

    /// Returns how many bytes a field of kind cell has in each row, as uint64 bytes.
    fn sizes<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        field: usize,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let rows = self.rows()?;
        let numbers = rows_of(rows.files(), indices)?;
        let mut cells = Vec::new();
        py.detach(|| rows.locate(&numbers, field, &mut cells)).map_err(raised)?;
        let sizes: Vec<u8> = cells.iter().flat_map(|cell| cell.raw.to_ne_bytes()).collect();
        object::byte_array(py, &sizes)
    }

    /// Returns the values of a column in many rows, or in all.
    fn column<'py>(
        &self,
        py: Python<'py>,
        field: usize,
        indices: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyByteArray>> {
        let rows = self.rows()?;
        let values = match indices {
            None => py.detach(|| rows.column(field)),
            Some(indices) => {
                let numbers = rows_of(rows.files(), indices)?;
                py.detach(|| rows.values(&numbers, field))
            }
        };
        object::byte_array(py, &values.map_err(raised)?)
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
        self.rows.write().expect("no panics under this lock").take();
    }

    /// Whether the data set was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.rows.read().expect("no panics under this lock").is_none()
    }
}

impl PyRows {
    /// Reads several lists of cells in one go, each into one buffer.
    fn fetch<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        located: &[Vec<Cell>],
    ) -> PyResult<Vec<Packed<'py>>> {
        threads::settle(py)?;
        check_growth(rows, located.iter().flatten()).map_err(raised)?;
        let lens = located.iter().map(|cells| cells.iter().map(|cell| cell.raw as usize).sum());
        let mut buffers: Vec<Vec<u8>> =
            lens.map(|len: usize| self.spares.take(len)).collect::<PyResult<_>>()?;
        py.detach(|| {
            let mut values: Vec<(Cell, &mut [u8])> = Vec::new();
            for (cells, buffer) in located.iter().zip(&mut buffers) {
                let mut rest = &mut buffer[..];
                values.extend(cells.iter().map(|cell| {
                    let len = cell.raw as usize;
                    (*cell, rest.split_off_mut(..len).expect("sized for all"))
                }));
            }
            // Cells of a row are neighbours in the file.
            values.sort_by_key(|(cell, _)| cell.row);
            let (cells, mut bufs): (Vec<Cell>, Vec<&mut [u8]>) = values.into_iter().unzip();
            rows.fetch(&cells, &mut bufs)
        })
        .map_err(raised)?;
        let each = located.iter().zip(buffers);
        each.map(|(cells, buffer)| {
            batch::pack(py, buffer, cells.iter().map(|cell| cell.raw), &self.spares)
        })
        .collect()
    }
}

/// What there is of a field in a row.
enum Part {
    Number(Vec<u8>),
    Cell(Cell),
    Elements(Vec<Cell>),
}

impl Part {
    fn cells(&self) -> &[Cell] {
        match self {
            Part::Number(_) => &[],
            Part::Cell(cell) => std::slice::from_ref(cell),
            Part::Elements(cells) => cells,
        }
    }
}

fn part_of(rows: &Rows, row: u64, (field, start, stop, step): Asked) -> ingot::Result<Part> {
    let kind = rows.schema().fields().get(field).map(|field| field.kind);
    if kind == Some(FieldKind::Column) {
        return rows.values(&[row], field).map(Part::Number);
    }
    let elements =
        (start.is_some() || stop.is_some()).then(|| start.unwrap_or(0)..stop.unwrap_or(u64::MAX));
    let step = step.unwrap_or(NonZeroUsize::MIN);
    let cells = rows.locate_wanted(row, &Wanted { field, elements, step })?;
    Ok(if kind == Some(FieldKind::Sequence) { Part::Elements(cells) } else { Part::Cell(cells[0]) })
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
