//! Arrays that tell their own type and shape: format.md, "Data sets".

use super::{Violation, bail};

/// An array as a cell holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array<'a> {
    /// The type of the elements, as numpy writes it.
    pub kind: &'a str,
    /// The length of each dimension.
    pub shape: Vec<u64>,
    /// The elements, in C order.
    pub elements: &'a [u8],
}

impl<'a> Array<'a> {
    /// Reads a cell.
    pub fn decode(cell: &'a [u8]) -> Result<Array<'a>, Violation> {
        let cut = || Violation::new("an array is truncated");
        let (&len, rest) = cell.split_first().ok_or_else(cut)?;
        let (kind, rest) = rest.split_at_checked(len.into()).ok_or_else(cut)?;
        let (kind, width) = known(kind)?;
        let (&dimensions, rest) = rest.split_first().ok_or_else(cut)?;
        let (shape, elements) =
            rest.split_at_checked(8 * usize::from(dimensions)).ok_or_else(cut)?;
        let shape: Vec<u64> =
            shape.as_chunks().0.iter().map(|&length| u64::from_le_bytes(length)).collect();
        let bytes = if shape.contains(&0) {
            Some(0)
        } else {
            shape.iter().try_fold(width, |bytes, &length| bytes.checked_mul(length))
        };
        if bytes != Some(elements.len() as u64) {
            let len = elements.len();
            bail!("an array of shape {shape:?} does not have {len} bytes");
        }
        Ok(Array { kind, shape, elements })
    }
}

/// Returns the name of a type, and the bytes of an element.
fn known(kind: &[u8]) -> Result<(&str, u64), Violation> {
    let width = match kind {
        b"|b1" | b"|i1" | b"|u1" => 1,
        b"<i2" | b"<u2" | b"<f2" => 2,
        b"<i4" | b"<u4" | b"<f4" => 4,
        b"<i8" | b"<u8" | b"<f8" | b"<c8" => 8,
        b"<c16" => 16,
        _ => {
            bail!("an array of the unknown type {}", kind.escape_ascii());
        }
    };
    Ok((std::str::from_utf8(kind).expect("names are ASCII"), width))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(kind: &[u8], shape: &[u64], elements: &[u8]) -> Vec<u8> {
        let mut cell = vec![kind.len() as u8];
        cell.extend_from_slice(kind);
        cell.push(shape.len() as u8);
        cell.extend(shape.iter().flat_map(|length| length.to_le_bytes()));
        cell.extend_from_slice(elements);
        cell
    }

    #[test]
    fn a_cell_tells_type_shape_and_elements() {
        let bytes = cell(b"<f4", &[2, 1], &[7; 8]);
        let array = Array::decode(&bytes).unwrap();
        assert_eq!(array, Array { kind: "<f4", shape: vec![2, 1], elements: &[7; 8] });
        assert_eq!(Array::decode(&cell(b"|u1", &[], &[1])).unwrap().shape, Vec::<u64>::new());
        let empty = cell(b"<c16", &[u64::MAX, 0, u64::MAX], &[]);
        assert!(Array::decode(&empty).unwrap().elements.is_empty());
    }

    #[test]
    fn every_truncation_and_inconsistency_is_rejected() {
        let bytes = cell(b"<i2", &[3], &[0; 6]);
        for len in 0..bytes.len() {
            assert!(Array::decode(&bytes[..len]).is_err(), "{len}");
        }
        for (kind, shape) in [
            (&b"<i2"[..], &[4_u64][..]),
            (b"<i2", &[u64::MAX, 2]),
            (b"<i2", &[1 << 63, 2]),
            (b">i2", &[3]),
            (b"|O8", &[3]),
            (b"", &[3]),
            (b"\xff\xfe\xfd", &[3]),
        ] {
            assert!(Array::decode(&cell(kind, shape, &[0; 6])).is_err(), "{kind:?} {shape:?}");
        }
    }
}
