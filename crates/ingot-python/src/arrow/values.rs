//! Arrays of Arrow as objects of Python, for values that are nested.

use ingot::arrow::{Number, Part, Places, Refusal, integer, texts};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::conversion::refused;
use crate::object;

/// Returns the value at a position: times are numbers, and decimals text.
pub fn value<'py>(py: Python<'py>, part: Part<'_>, place: usize) -> PyResult<Bound<'py, PyAny>> {
    let at = Places::Range(place, 1);
    if !part.is_valid(place) {
        return Ok(py.None().into_bound(py));
    }
    if part.kind.dictionary.is_some() {
        let (inner, found, present) = part.decoded(&at, None).map_err(refused)?;
        return match found.iter().next() {
            Some(place) if present.is_none_or(|all| all[0]) => value(py, inner, place),
            _ => Ok(py.None().into_bound(py)),
        };
    }
    if let Some(number) = part.kind.number() {
        return number_of(py, number, &part.numbers(number, &at).map_err(refused)?);
    }
    match part.kind.format.as_str() {
        "+s" => {
            let dict = PyDict::new(py);
            for (number, kind) in part.kind.children.iter().enumerate() {
                let inner = part.inside(number, part.node.offset() + place).map_err(refused)?;
                dict.set_item(
                    object::text(py, &kind.name)?,
                    value(py, inner, part.node.offset() + place)?,
                )?;
            }
            Ok(dict.into_any())
        }
        "+m" => {
            let list = PyList::empty(py);
            for (start, stop) in part.elements(&at).map_err(refused)? {
                for place in start..stop {
                    let entry = value(py, part.inside(0, place).map_err(refused)?, place)?;
                    let entry = entry.cast_into::<PyDict>()?.values();
                    list.append(PyTuple::new(py, entry)?)?;
                }
            }
            Ok(list.into_any())
        }
        format
            if format.starts_with("+l") || format.starts_with("+L") || format.starts_with("+w") =>
        {
            let list = PyList::empty(py);
            for (start, stop) in part.elements(&at).map_err(refused)? {
                for place in start..stop {
                    list.append(value(py, part.inside(0, place).map_err(refused)?, place)?)?;
                }
            }
            Ok(list.into_any())
        }
        format => {
            let (data, _) = texts(part, &at).map_err(refused)?;
            let is_text = matches!(format, "u" | "U" | "vu") || format.starts_with("d:");
            match std::str::from_utf8(&data) {
                Ok(text) if is_text => Ok(object::text(py, text)?.into_any()),
                Err(_) if is_text => Err(refused(Refusal::at("the text is not UTF-8", 0))),
                _ => Ok(object::bytes(py, &data)?.into_any()),
            }
        }
    }
}

fn number_of<'py>(py: Python<'py>, number: Number, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let wide = |bytes: &[u8]| <[u8; 8]>::try_from(bytes).unwrap_or_default();
    match number {
        Number::Bool => (bytes[0] != 0).into_bound_py_any(py),
        Number::Signed(_) => integer(bytes, true).into_bound_py_any(py),
        Number::Unsigned(8) => u64::from_le_bytes(wide(bytes)).into_bound_py_any(py),
        Number::Unsigned(_) => integer(bytes, false).into_bound_py_any(py),
        Number::Float(2) => half(integer(bytes, false) as u16).into_bound_py_any(py),
        Number::Float(4) => {
            let single = f32::from_bits(integer(bytes, false) as u32);
            f64::from(single).into_bound_py_any(py)
        }
        Number::Float(_) => f64::from_le_bytes(wide(bytes)).into_bound_py_any(py),
    }
}

/// Returns the value of a float of 16 bits.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match bits >> 10 & 31 {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2_f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}
