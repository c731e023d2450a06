//! Rows as lines of JSON or CSV.

use ingot::format::foreign::number::Number;
use ingot::format::lines::{Column, Kind, Style, encode};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cells::Cells;
use crate::object;

/// What comes before a value; what it is; the shape of an array; the values and their offsets;
/// for a sequence the number of values in each row, as uint64; and whether each row has one.
type Given<'py> =
    (String, String, Vec<usize>, Bound<'py, PyAny>, Vec<u8>, Option<Vec<u8>>, Vec<u8>);

/// A column with the buffers that it stands in.
struct Held {
    before: String,
    kind: Kind,
    cells: Cells,
    firsts: Option<Vec<usize>>,
    present: Vec<u8>,
}

impl Held {
    fn of(given: Given<'_>, count: usize) -> PyResult<Held> {
        let (before, kind, shape, data, offsets, counts, present) = given;
        let cells = Cells::of(&data, &offsets)?;
        let firsts = counts.map(|counts| firsts_of(&counts));
        let last = firsts.as_ref().map_or(Some(count), |firsts| firsts.last().copied());
        let is_sound = firsts.as_ref().is_none_or(|firsts| firsts.len() == count + 1)
            && last == Some(cells.ends().len())
            && cells.ends().last().is_none_or(|&end| end <= cells.bytes().len())
            && (present.is_empty() || present.len() == count);
        if !is_sound {
            return Err(PyValueError::new_err("rows do not fit values"));
        }
        Ok(Held { before, kind: kind_of(&kind, shape)?, cells, firsts, present })
    }

    fn column(&self) -> Column<'_> {
        Column {
            before: &self.before,
            kind: self.kind.clone(),
            data: self.cells.bytes(),
            ends: self.cells.ends(),
            firsts: self.firsts.as_deref(),
            present: &self.present,
        }
    }
}

fn firsts_of(counts: &[u8]) -> Vec<usize> {
    let counts = counts.as_chunks().0.iter().map(|&one| u64::from_ne_bytes(one) as usize);
    let sums = counts.scan(0_usize, |sum, one| {
        *sum = sum.saturating_add(one);
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

fn kind_of(name: &str, shape: Vec<usize>) -> PyResult<Kind> {
    let number = Number::of_name(name.trim_end_matches("[]"));
    match (name, number) {
        ("array", _) => Ok(Kind::Array),
        ("json", _) => Ok(Kind::Json),
        ("text", _) => Ok(Kind::Text),
        (_, Some(number)) if name.ends_with("[]") => Ok(Kind::Run(number)),
        (_, Some(number)) => Ok(Kind::Numbers(number, shape)),
        _ => Err(PyValueError::new_err(format!("unknown kind of value: {name}"))),
    }
}

/// Returns a line for each row, in the style "json" or "csv"; `after` ends a line. If a line
/// cannot hold a value, returns its row, its column and the reason instead.
#[pyfunction]
pub fn encode_lines<'py>(
    py: Python<'py>,
    columns: Vec<Given<'py>>,
    count: usize,
    after: &str,
    style: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let style = if style == "csv" { Style::Csv } else { Style::Json };
    let held: Vec<Held> =
        columns.into_iter().map(|one| Held::of(one, count)).collect::<PyResult<_>>()?;
    let columns: Vec<Column<'_>> = held.iter().map(Held::column).collect();
    match py.detach(|| encode(&columns, count, after, style)) {
        Ok(lines) => Ok(object::bytes(py, lines.as_bytes())?.into_any()),
        Err(refused) => {
            Ok((refused.row, refused.column, refused.why).into_pyobject(py)?.into_any())
        }
    }
}
