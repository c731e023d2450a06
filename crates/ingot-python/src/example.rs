//! Rows and records as the frames of a TFRecord file.

use ingot::format::example::{FRAME_LEN, Feature, Kind, put_example, put_frame};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::cells::Cells;
use crate::object;

type Given<'py> = (String, String, Bound<'py, PyAny>, Vec<u8>, Vec<u8>, Vec<u8>);

/// A feature with the buffers that it stands in.
struct Held {
    name: String,
    kind: Kind,
    cells: Cells,
    firsts: Vec<usize>,
    present: Vec<u8>,
}

impl Held {
    /// Takes the offsets of the values as int64 bytes, and for each row the number of its first
    /// value, and for the last row also that after its last.
    fn of(given: Given<'_>, count: usize) -> PyResult<Held> {
        let (name, kind, data, offsets, firsts, present) = given;
        let kind = match kind.as_str() {
            "bytes" => Kind::Bytes,
            "float" => Kind::Float,
            "int" => Kind::Int,
            _ => return Err(PyValueError::new_err(format!("unknown kind of feature: {kind}"))),
        };
        let cells = Cells::of(&data, &offsets)?;
        let (numbers, _) = firsts.as_chunks();
        let numbers = numbers.iter().map(|&one| i64::from_ne_bytes(one) as usize);
        let firsts: Vec<usize> = match kind {
            Kind::Bytes => numbers.collect(),
            _ => numbers.map(|one| start_of(cells.ends(), one)).collect(),
        };
        let end = if kind == Kind::Bytes { cells.ends().len() } else { cells.bytes().len() };
        let is_sound = firsts.len() == count + 1
            && firsts.is_sorted()
            && firsts[count] <= end
            && (present.is_empty() || present.len() == count);
        if !is_sound {
            return Err(PyValueError::new_err(format!("feature {name}: rows do not fit values")));
        }
        Ok(Held { name, kind, cells, firsts, present })
    }

    fn feature(&self) -> Feature<'_> {
        Feature {
            name: &self.name,
            kind: self.kind,
            data: self.cells.bytes(),
            firsts: &self.firsts,
            ends: self.cells.ends(),
            present: &self.present,
        }
    }
}

fn start_of(ends: &[usize], number: usize) -> usize {
    if number == 0 { 0 } else { ends.get(number - 1).copied().unwrap_or(usize::MAX) }
}

/// Returns rows as `tf.train.Example` messages in frames.
///
/// A feature is its name; "bytes", "float" or "int"; its values; their offsets; for each row the
/// number of its first value; and whether it has one.
#[pyfunction]
pub fn encode_examples<'py>(
    py: Python<'py>,
    features: Vec<Given<'py>>,
    count: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let held: Vec<Held> =
        features.into_iter().map(|one| Held::of(one, count)).collect::<PyResult<_>>()?;
    let features: Vec<Feature<'_>> = held.iter().map(Held::feature).collect();
    let framed = py.detach(|| {
        let (mut out, mut record) = (Vec::new(), Vec::new());
        for row in 0..count {
            record.clear();
            put_example(&mut record, &features, row);
            put_frame(&mut out, &record);
        }
        out
    });
    object::bytes(py, &framed)
}

/// Returns records in frames.
#[pyfunction]
pub fn frame_records<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    offsets: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let cells = Cells::of(data, offsets)?;
    let (bytes, ends) = (cells.bytes(), cells.ends());
    let framed = py.detach(|| {
        let mut out = Vec::with_capacity(bytes.len() + ends.len() * FRAME_LEN);
        let mut start = 0;
        for &end in ends {
            put_frame(&mut out, &bytes[start..end]);
            start = end;
        }
        out
    });
    object::bytes(py, &framed)
}
