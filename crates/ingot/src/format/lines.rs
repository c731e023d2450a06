//! Rows as lines of text: JSON objects, or the fields of CSV.

use std::fmt::Write;

use serde_json::value::RawValue;

use super::array::Array;
use super::foreign::number::Number;

/// How a line writes its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// JSON: every value that is not NaN or infinite; a missing one is `null`.
    Json,
    /// CSV: numbers, and text in quotes; a missing one is empty.
    Csv,
}

/// What a stored value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Numbers in an array of this shape; without dimensions, one number.
    Numbers(Number, Vec<usize>),
    /// Any number of numbers.
    Run(Number),
    /// An array that tells its type and its shape.
    Array,
    /// UTF-8.
    Text,
    /// A value of JSON.
    Json,
}

/// The values of a field in many rows, as they are stored.
#[derive(Debug, Clone)]
pub struct Column<'a> {
    /// What a line has before the value: separators, and the name in JSON.
    pub before: &'a str,
    /// What a value is.
    pub kind: Kind,
    /// The values, concatenated.
    pub data: &'a [u8],
    /// Where each value ends in `data`.
    pub ends: &'a [usize],
    /// For a sequence, the number of the first value of each row, and behind the last one.
    pub firsts: Option<&'a [usize]>,
    /// For each row whether it has a value; empty if all have.
    pub present: &'a [u8],
}

/// A value that a line cannot hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its row, counted from the first of the batch.
    pub row: usize,
    /// The place of its column.
    pub column: usize,
    /// Why.
    pub why: String,
}

/// Returns a line for each of `count` rows. `after` ends a line.
pub fn encode(
    columns: &[Column<'_>],
    count: usize,
    after: &str,
    style: Style,
) -> Result<String, Refused> {
    let mut out = String::new();
    for row in 0..count {
        let start = out.len();
        for (place, column) in columns.iter().enumerate() {
            out.push_str(column.before);
            let put = column.put(&mut out, row, style);
            put.map_err(|why| Refused { row, column: place, why })?;
        }
        if style == Style::Csv && out.len() == start {
            let why = "it is missing, and the line of a CSV file without any value is not a row";
            return Err(Refused { row, column: 0, why: why.to_owned() });
        }
        out.push_str(after);
    }
    Ok(out)
}

impl Column<'_> {
    fn put(&self, out: &mut String, row: usize, style: Style) -> Result<(), String> {
        if self.present.get(row) == Some(&0) {
            out.push_str(if style == Style::Json { "null" } else { "" });
            return Ok(());
        }
        let Some(firsts) = self.firsts else { return self.put_cell(out, row, style) };
        out.push('[');
        for cell in firsts[row]..firsts[row + 1] {
            if cell > firsts[row] {
                out.push(',');
            }
            self.put_cell(out, cell, style)?;
        }
        out.push(']');
        Ok(())
    }

    fn put_cell(&self, out: &mut String, cell: usize, style: Style) -> Result<(), String> {
        let start = if cell == 0 { 0 } else { self.ends[cell - 1] };
        let bytes = &self.data[start..self.ends[cell]];
        match &self.kind {
            Kind::Numbers(number, shape) => {
                let num = shape.iter().try_fold(1_usize, |num, &length| num.checked_mul(length));
                let len = num.and_then(|num| num.checked_mul(number.width()));
                if len != Some(bytes.len()) {
                    return Err(format!("{} bytes do not fit its type", bytes.len()));
                }
                check_empty(shape)?;
                put_numbers(out, *number, shape, bytes, style)
            }
            Kind::Run(number) => {
                let num = bytes.len() / number.width();
                if num * number.width() != bytes.len() {
                    return Err(format!("{} bytes do not fit its type", bytes.len()));
                }
                put_numbers(out, *number, &[num], bytes, style)
            }
            Kind::Array => put_array(out, bytes, style),
            Kind::Text => put_text(out, bytes, style),
            Kind::Json => put_json(out, bytes),
        }
    }
}

fn put_array(out: &mut String, cell: &[u8], style: Style) -> Result<(), String> {
    let array = Array::decode(cell).map_err(|why| why.0)?;
    let number = Number::of_array_name(array.kind);
    let number = number.ok_or_else(|| format!("JSON has no numbers of the type {}", array.kind))?;
    let shape: Option<Vec<usize>> =
        array.shape.iter().map(|&length| usize::try_from(length).ok()).collect();
    let shape = shape.ok_or_else(|| too_large(&array.shape))?;
    check_empty(&shape)?;
    put_numbers(out, number, &shape, array.elements, style)
}

/// At most two to this power empty lists are written for an array without elements.
const EMPTY_BITS: u32 = 20;

/// Refuses an array without elements that claims many lists before a length that is zero.
fn check_empty(shape: &[usize]) -> Result<(), String> {
    let before = shape.iter().take_while(|&&length| length > 0);
    let bits = before.fold(0, |bits: u32, &length| bits + length.ilog2() + 1);
    let is_large = shape.contains(&0) && bits > EMPTY_BITS;
    if is_large { Err(too_large(shape)) } else { Ok(()) }
}

#[cold]
fn too_large(shape: &[impl std::fmt::Debug]) -> String {
    format!("its shape {shape:?} is too large")
}

fn put_numbers(
    out: &mut String,
    number: Number,
    shape: &[usize],
    bytes: &[u8],
    style: Style,
) -> Result<(), String> {
    let Some((&length, inner)) = shape.split_first() else {
        return put_number(out, number, bytes, style);
    };
    let step = bytes.len().checked_div(length).unwrap_or(0);
    out.push('[');
    for k in 0..length {
        if k > 0 {
            out.push(',');
        }
        put_numbers(out, number, inner, &bytes[k * step..(k + 1) * step], style)?;
    }
    out.push(']');
    Ok(())
}

fn put_number(out: &mut String, number: Number, bytes: &[u8], style: Style) -> Result<(), String> {
    let mut wide = [0_u8; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    let written = match number {
        Number::Bool => write!(out, "{}", bits != 0),
        Number::Uint(_) => write!(out, "{bits}"),
        Number::Int(width) => {
            let unused = 64 - 8 * u32::from(width);
            write!(out, "{}", (bits << unused).cast_signed() >> unused)
        }
        Number::Float(width) => {
            let value = match width {
                2 => of_half(bits as u16),
                4 => f64::from(f32::from_bits(bits as u32)),
                _ => f64::from_bits(bits),
            };
            if !value.is_finite() && style == Style::Json {
                let name = if value.is_nan() { "NaN" } else { "infinity" };
                return Err(format!("JSON has no {name}"));
            }
            // The shortest digits that are this number, so readers of float64 get it back.
            write!(out, "{value:?}")
        }
    };
    written.expect("memory takes all that is written");
    Ok(())
}

/// Returns a number of 16 bits.
fn of_half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (power, fraction) = (i32::from((bits >> 10) & 0x1f), f64::from(bits & 0x3ff));
    sign * match power {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2_f64.powi(power - 25),
    }
}

fn put_text(out: &mut String, bytes: &[u8], style: Style) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    out.push('"');
    let mut start = 0;
    for (k, &byte) in bytes.iter().enumerate() {
        let is_escaped = match style {
            Style::Json => byte < b' ' || byte == b'"' || byte == b'\\',
            Style::Csv => byte == b'"',
        };
        if is_escaped {
            out.push_str(&text[start..k]);
            put_escaped(out, byte, style);
            start = k + 1;
        }
    }
    out.push_str(&text[start..]);
    out.push('"');
    Ok(())
}

fn put_escaped(out: &mut String, byte: u8, style: Style) {
    match (style, byte) {
        (Style::Csv, _) => out.push_str("\"\""),
        (_, b'"') => out.push_str("\\\""),
        (_, b'\\') => out.push_str("\\\\"),
        (_, b'\n') => out.push_str("\\n"),
        (_, b'\r') => out.push_str("\\r"),
        (_, b'\t') => out.push_str("\\t"),
        _ => write!(out, "\\u{byte:04x}").expect("memory takes all that is written"),
    }
}

fn put_json(out: &mut String, bytes: &[u8]) -> Result<(), String> {
    let value: &RawValue =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    // Only white space may be a line break: in text it has an escape.
    for (k, part) in value.get().split(['\n', '\r']).enumerate() {
        out.push_str(if k == 0 { "" } else { " " });
        out.push_str(part);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: Kind, data: &[u8], style: Style) -> Result<String, String> {
        let ends = [data.len()];
        let column = Column { before: "", kind, data, ends: &ends, firsts: None, present: &[] };
        encode(&[column], 1, "", style).map_err(|refused| refused.why)
    }

    #[test]
    fn numbers_are_exact() {
        let float = |value: f64| {
            line(Kind::Numbers(Number::Float(8), vec![]), &value.to_le_bytes(), Style::Json)
        };
        for value in [0.1, -0.0, 1e300, 5e-324, 1e16, 123_456_789.0, f64::MAX] {
            let text = float(value).unwrap();
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
            assert!(text.contains(['.', 'e']), "{text}");
        }
        let single = Kind::Numbers(Number::Float(4), vec![]);
        let text = line(single, &0.1_f32.to_le_bytes(), Style::Json).unwrap();
        assert_eq!(text.parse::<f64>().unwrap(), f64::from(0.1_f32));
        let int = Kind::Numbers(Number::Int(8), vec![]);
        let text = line(int, &i64::MIN.to_le_bytes(), Style::Json).unwrap();
        assert_eq!(text, "-9223372036854775808");
        let small = Kind::Numbers(Number::Int(2), vec![]);
        assert_eq!(line(small, &(-3_i16).to_le_bytes(), Style::Csv).unwrap(), "-3");
        let wide = Kind::Numbers(Number::Uint(8), vec![]);
        assert_eq!(line(wide, &[255; 8], Style::Csv).unwrap(), "18446744073709551615");
    }

    #[test]
    fn halves_are_those_of_ieee_754() {
        for (bits, value) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2_f64.powi(-24)),
            (0x0400, 2_f64.powi(-14)),
            (0x3555, 0.333_251_953_125),
            (0x7c00, f64::INFINITY),
        ] {
            assert_eq!(of_half(bits), value, "{bits:#x}");
        }
        assert!(of_half(0x7e00).is_nan());
    }

    #[test]
    fn arrays_are_lists_of_lists() {
        let kind = Kind::Numbers(Number::Uint(1), vec![2, 3]);
        assert_eq!(line(kind, &[1, 2, 3, 4, 5, 6], Style::Json).unwrap(), "[[1,2,3],[4,5,6]]");
        assert_eq!(line(Kind::Run(Number::Bool), &[0, 1], Style::Json).unwrap(), "[false,true]");
        let kind = Kind::Numbers(Number::Uint(1), vec![2, 0]);
        assert_eq!(line(kind, &[], Style::Json).unwrap(), "[[],[]]");
        assert!(line(Kind::Run(Number::Int(8)), &[0; 7], Style::Json).is_err());
        assert!(
            line(Kind::Numbers(Number::Int(8), vec![usize::MAX, 2]), &[], Style::Json).is_err()
        );
    }

    #[test]
    fn an_array_that_claims_many_empty_lists_is_rejected() {
        let mut cell = b"\x03|u1\x02".to_vec();
        cell.extend(u64::MAX.to_le_bytes());
        cell.extend(0_u64.to_le_bytes());
        assert!(line(Kind::Array, &cell, Style::Json).unwrap_err().contains("too large"));
        let kind = Kind::Numbers(Number::Uint(1), vec![1 << 40, 0]);
        assert!(line(kind, &[], Style::Json).unwrap_err().contains("too large"));
    }

    #[test]
    fn values_that_json_lacks_are_rejected() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let kind = Kind::Numbers(Number::Float(8), vec![]);
            let why = line(kind.clone(), &value.to_le_bytes(), Style::Json).unwrap_err();
            assert!(why.contains("JSON has no"), "{why}");
            let text = line(kind, &value.to_le_bytes(), Style::Csv).unwrap();
            assert_eq!(text.parse::<f64>().unwrap().is_nan(), value.is_nan());
        }
        assert!(line(Kind::Json, b"{\"a\": NaN}", Style::Json).is_err());
        assert!(line(Kind::Text, b"\xff", Style::Json).is_err());
    }

    #[test]
    fn text_stays_on_its_line_or_in_its_quotes() {
        assert_eq!(line(Kind::Text, b"a\n\"", Style::Json).unwrap(), r#""a\n\"""#);
        assert_eq!(line(Kind::Text, b"a,\"\"b\n", Style::Csv).unwrap(), "\"a,\"\"\"\"b\n\"");
        assert_eq!(
            line(Kind::Text, b"\\\x01\t\x7f", Style::Json).unwrap(),
            "\"\\\\\\u0001\\t\x7f\""
        );
        assert_eq!(line(Kind::Json, b" [1,\n 2] ", Style::Json).unwrap(), "[1,  2]");
    }
}
