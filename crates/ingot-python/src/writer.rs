//! `ingot._core.Writer` and `recover`.

use std::path::PathBuf;
use std::sync::Arc;

use ingot::compression::Codec;
use ingot::format::ingot::{FieldKind, Schema};
use ingot::records::{
    Choice, Compression, Decision, Options, Packed, Recovery, Value, Writer, hex, path,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::cells::Cells;
use crate::damage::{DamageTuple, tuples};
use crate::error::raised;
use crate::own::Own;
use crate::record::PyRecordWriter;
use crate::rows::{FieldTuple, Given, schema_of};
use crate::signals::watched;
use crate::threads;

/// A buffer, the offsets of values in it, and how many of them each row has.
type PackedField<'py> = (Bound<'py, PyAny>, PyBackedBytes, Option<PyBackedBytes>);

/// How a field is compressed: its codec and dictionary, how often its values were tried, and
/// how many bytes of them.
type Encoding<B = PyBackedBytes> = (u8, B, u32, u64);

fn decision_of((codec, dictionary, tries, evidence): Encoding) -> PyResult<Decision> {
    let codec =
        Codec::of(codec).ok_or_else(|| PyValueError::new_err(format!("unknown codec {codec}")))?;
    let choice = Choice { codec, dictionary: dictionary.to_vec() };
    Ok(Decision { choice, tries, evidence })
}

#[pyclass(frozen, subclass, extends = PyRecordWriter, name = "Writer", module = "ingot._core")]
pub struct PyWriter {
    writer: Arc<Own<Writer>>,
}

fn options(compression: Option<&str>, level: i32, sync: bool) -> PyResult<Options> {
    let compression = match compression {
        None => Compression::None,
        Some("auto") => Compression::Auto,
        Some("zstd") => Compression::Zstd,
        Some("lz4") => Compression::Lz4,
        Some(other) => {
            return Err(PyValueError::new_err(format!(
                "compression is \"auto\", \"zstd\", \"lz4\" or None, not {other:?}"
            )));
        }
    };
    if !(1..=22).contains(&level) {
        return Err(PyValueError::new_err(format!("level is 1 to 22, not {level}")));
    }
    Ok(Options { compression, level, sync })
}

#[pymethods]
impl PyWriter {
    #[new]
    #[pyo3(signature = (path, mode, metadata, compression, level, sync, fields=None, encodings=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        metadata: &str,
        compression: Option<&str>,
        level: i32,
        sync: bool,
        fields: Option<Vec<FieldTuple>>,
        encodings: Option<Vec<Option<Encoding>>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        threads::settle(py)?;
        let options = options(compression, level, sync)?;
        let typed = fields.is_some();
        let schema = fields.map_or_else(|| Ok(Schema::records()), schema_of)?;
        let mut writer = watched(py, |watch| match mode {
            "append" => path::append(&path, options, watch).map(|(writer, _)| writer),
            "replace" => path::replace(&path, schema, metadata, options),
            _ => path::create(&path, schema, metadata, options),
        })?;
        if !typed && writer.schema().is_typed() {
            py.detach(|| writer.abandon());
            let message = format!(
                "{}: its rows have fields; ingot.DatasetWriter(path, spec, append=True) \
                 appends to it",
                path.display()
            );
            return Err(PyValueError::new_err(message));
        }
        if let Some(encodings) = encodings {
            let known = encodings.into_iter().map(|known| known.map(decision_of).transpose());
            let known = known.collect::<PyResult<_>>()?;
            writer.assume(known).map_err(raised)?;
        }
        let writer = Arc::new(Own::new(writer));
        let base = PyRecordWriter::new(Arc::<Own<Writer>>::clone(&writer));
        Ok(PyClassInitializer::from(base).add_subclass(PyWriter { writer }))
    }

    /// Adds a row: for each field its bytes, or a list of them for a sequence.
    fn append_row(&self, py: Python<'_>, values: Vec<Bound<'_, PyAny>>) -> PyResult<u64> {
        let given: Vec<Given<'_>> = values.iter().map(Given::of).collect::<PyResult<_>>()?;
        let elements: Vec<Vec<&[u8]>> = given
            .iter()
            .map(|given| match given {
                Given::Cell(_) => Vec::new(),
                Given::Sequence(elements) => elements.iter().map(|one| one.as_bytes()).collect(),
            })
            .collect();
        self.writer.with(py, |writer| {
            let fields = writer.schema().fields();
            if fields.len() != given.len() {
                return Err(PyValueError::new_err("a row has one value for each field"));
            }
            let row = fields.iter().zip(&given).zip(&elements).map(|((field, given), elements)| {
                match (field.kind, given) {
                    (FieldKind::Sequence, Given::Sequence(_)) => Ok(Value::Sequence(elements)),
                    (FieldKind::Cell, Given::Cell(bytes)) => Ok(Value::Cell(bytes.as_bytes())),
                    (FieldKind::Column, Given::Cell(bytes)) => Ok(Value::Column(bytes.as_bytes())),
                    _ => Err(PyValueError::new_err("a sequence is a list, other values are bytes")),
                }
            });
            let row: Vec<Value<'_>> = row.collect::<PyResult<_>>()?;
            let number = writer.push_row(&row).map_err(raised)?;
            if writer.is_full() {
                py.detach(|| writer.submit()).map_err(raised)?;
            }
            Ok(number)
        })?
    }

    /// Adds many rows: of each field a buffer with the values of all rows, their offsets as
    /// int64 bytes, and for a sequence how many each row has, as uint64 bytes.
    fn extend_packed(
        &self,
        py: Python<'_>,
        fields: Vec<PackedField<'_>>,
        count: usize,
    ) -> PyResult<()> {
        let cells: Vec<Cells> = fields
            .iter()
            .map(|(data, offsets, _)| Cells::of(data, offsets))
            .collect::<PyResult<_>>()?;
        let counts: Vec<Option<Vec<u64>>> = fields
            .iter()
            .map(|(_, _, counts)| {
                let counts = counts.as_ref()?.as_chunks().0;
                Some(counts.iter().map(|&count| u64::from_ne_bytes(count)).collect())
            })
            .collect();
        let packed: Vec<Packed<'_>> = cells
            .iter()
            .zip(&counts)
            .map(|(cells, counts)| Packed {
                bytes: cells.bytes(),
                ends: cells.ends(),
                counts: counts.as_deref(),
            })
            .collect();
        self.writer
            .with(py, |writer| py.detach(|| writer.extend_packed(&packed, count)))?
            .map_err(raised)
    }

    /// Commit all records so far: whatever happens later, they are in the file.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.with(py, |writer| py.detach(|| writer.flush()))?.map_err(raised)
    }

    /// Leave the file unfinished, with the records that are committed; return how many.
    fn abandon(&self, py: Python<'_>) -> PyResult<u64> {
        self.writer.with(py, |writer| {
            py.detach(|| writer.abandon());
            writer.num_committed()
        })
    }

    /// Returns how each field is compressed, where that is decided, for another writer to take
    /// over.
    fn encodings<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<Option<Encoding<Bound<'py, PyBytes>>>>> {
        let told = |Decision { choice, tries, evidence }: Decision| {
            (choice.codec.code(), PyBytes::new(py, &choice.dictionary), tries, evidence)
        };
        let known = self.writer.with(py, |writer| writer.decisions())?.map_err(raised)?;
        Ok(known.into_iter().map(|known| known.map(told)).collect())
    }

    /// The id in the header of the file, in hexadecimal digits.
    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<String> {
        self.writer.with(py, |writer| hex(&writer.id()))
    }

    /// The size of the rows that this writer was given, before compression.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.writer.with(py, |writer| writer.num_bytes())
    }

    /// How many records are committed, those in the file before this writer included.
    #[getter]
    fn num_committed(&self, py: Python<'_>) -> PyResult<u64> {
        self.writer.with(py, |writer| writer.num_committed())
    }
}

type Found = (u64, bool, u64, Vec<DamageTuple>);

/// Makes an unfinished file whole; returns rows, whether it was whole, bytes cut, damage.
#[pyfunction]
pub fn recover(py: Python<'_>, path: PathBuf, sync: bool) -> PyResult<Found> {
    let options = Options { sync, ..Options::default() };
    let found = watched(py, |watch| path::recover(&path, options, watch))?;
    let Recovery { rows, was_whole, cut_bytes, damaged } = found;
    Ok((rows, was_whole, cut_bytes, tuples(damaged)))
}
