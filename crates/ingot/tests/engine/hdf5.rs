//! Rows of HDF5 files: blocks, heaps, and layouts and heaps that lie.

use std::sync::Arc;

use ingot::records::{Column, ColumnLayout, Hdf5};
use ingot::storage::{Failure, Faulty, Memory};
use ingot::{Error, Result};
use proptest::prelude::*;

const NAME: &str = "sample.h5";

fn file(bytes: &[u8]) -> Hdf5 {
    Hdf5::new(Arc::new(Memory::from(bytes.to_vec())), NAME).unwrap()
}

/// Reads the values of rows of one column.
fn read(file: &Hdf5, column: &Column, rows: &[u64]) -> Result<Vec<Vec<u8>>> {
    let shares = file.plan(&[column], rows)?;
    let lens: Vec<usize> = shares[0].lens().map(|len| len as usize).collect();
    let mut bytes = vec![0xee; lens.iter().sum()];
    file.fill(&shares, &mut [&mut bytes])?;
    let mut rest = &bytes[..];
    Ok(lens.iter().map(|&len| rest.split_off(..len).unwrap().to_vec()).collect())
}

fn fixed(rows: u64, item: u64, shape: &[u64], block: &[u64], offsets: Vec<u64>) -> ColumnLayout {
    ColumnLayout {
        rows,
        item,
        varies: false,
        shape: shape.to_vec(),
        block: block.to_vec(),
        offsets,
    }
}

/// Returns the index in C order of a place, or `None` outside of the shape.
fn index(place: &[u64], shape: &[u64]) -> Option<u64> {
    place.iter().zip(shape).try_fold(0, |sum, (&at, &len)| (at < len).then_some(sum * len + at))
}

fn places(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![Vec::new()], |all, &len| {
        all.iter().flat_map(|one| (0..len).map(|at| [&one[..], &[at]].concat())).collect()
    })
}

/// Lays out an array of `rows` and `shape` in blocks that stand in the file in another order.
fn blocks(rows: u64, shape: &[u64], block: &[u64], item: u64) -> (Vec<u8>, Vec<u64>, Vec<u8>) {
    let whole = [&[rows], shape].concat();
    let count = whole.iter().product::<u64>();
    let array: Vec<u8> = (0..count * item).map(|k| (k * 7 % 251) as u8).collect();
    let grid: Vec<u64> = whole.iter().zip(block).map(|(a, b)| a.div_ceil(*b)).collect();
    let size = block.iter().product::<u64>() * item;
    let total = grid.iter().product::<u64>();
    let mut bytes = vec![0xff; (16 + total * size) as usize];
    let mut offsets = Vec::new();
    for (number, corner) in places(&grid).into_iter().enumerate() {
        let start = 16 + (total - 1 - number as u64) * size;
        offsets.push(start);
        for (k, inside) in places(block).into_iter().enumerate() {
            let place: Vec<u64> =
                corner.iter().zip(block).zip(&inside).map(|((c, b), i)| c * b + i).collect();
            if let Some(from) = index(&place, &whole) {
                let from = (from * item) as usize;
                let to = (start + k as u64 * item) as usize;
                bytes[to..to + item as usize].copy_from_slice(&array[from..from + item as usize]);
            }
        }
    }
    (bytes, offsets, array)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_come_out_of_blocks_of_any_shape(
        rows in 1_u64..9,
        axes in prop::collection::vec((1_u64..6, 1_u64..8), 0..4),
        down in 1_u64..9,
        item in 1_u64..9,
        picked in prop::collection::vec(0_u64..1000, 0..12),
    ) {
        let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
        let block: Vec<u64> = [down].into_iter().chain(axes.iter().map(|axis| axis.1)).collect();
        let (bytes, offsets, array) = blocks(rows, &shape, &block, item);
        let file = file(&bytes);
        let column = file.column(fixed(rows, item, &shape, &block, offsets)).unwrap();
        let picked: Vec<u64> = picked.iter().map(|row| row % rows).collect();
        let len = (shape.iter().product::<u64>() * item) as usize;
        let expected: Vec<Vec<u8>> =
            picked.iter().map(|&row| array[row as usize * len..][..len].to_vec()).collect();
        prop_assert_eq!(read(&file, &column, &picked).unwrap(), expected);
    }

    #[test]
    fn inconsistent_layouts_are_errors(
        rows in 0_u64..1 << 40,
        item in 0_u64..1 << 40,
        varies: bool,
        shape in prop::collection::vec(any::<u64>(), 0..3),
        block in prop::collection::vec(any::<u64>(), 0..4),
        offsets in prop::collection::vec(0_u64..300, 0..4),
    ) {
        let file = file(&[0; 256]);
        if let Ok(column) = file.column(ColumnLayout { rows, item, varies, shape, block, offsets }) {
            prop_assert!(read(&file, &column, &[0]).is_err() || rows > 0);
        }
    }
}

/// A heap with objects by their indices, and where its bytes are in the file.
fn heap(objects: &[(u16, &[u8])], size: u64) -> Vec<u8> {
    let mut bytes = b"GCOL\x01\0\0\0".to_vec();
    bytes.extend(size.to_le_bytes());
    for (index, data) in objects {
        bytes.extend(index.to_le_bytes());
        bytes.extend([1, 0, 0, 0, 0, 0]);
        bytes.extend((data.len() as u64).to_le_bytes());
        bytes.extend(*data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes.resize(size as usize, 0);
    bytes
}

fn reference(len: u32, address: u64, index: u32) -> Vec<u8> {
    [&len.to_le_bytes()[..], &address.to_le_bytes(), &index.to_le_bytes()].concat()
}

fn varying(rows: u64, item: u64) -> ColumnLayout {
    ColumnLayout { rows, item, varies: true, shape: vec![], block: vec![rows], offsets: vec![0] }
}

/// A file of references to values of 4 bytes each element: two heaps, the second one large.
fn varied() -> (Vec<u8>, Vec<Vec<u8>>) {
    let large: Vec<u8> = (0..200_000_u32).map(|k| k as u8).collect();
    let heaps = [
        heap(&[(1, b"abcdefgh"), (2, b""), (3, b"ijkl")], 4096),
        heap(&[(1, b"mnop"), (2, &large), (7, b"qrst")], 204_800),
    ];
    let references = [
        reference(2, 128, 1),
        reference(0, u64::MAX, 9),
        reference(1, 128, 3),
        reference(50_000, 4224, 2),
        reference(1, 4224, 7),
        reference(1, 128, 1),
    ];
    let values = [b"abcdefgh", &b""[..], b"ijkl", &large, b"qrst", b"abcd"];
    let mut bytes = references.concat();
    bytes.resize(128, 0);
    bytes.extend(heaps.concat());
    (bytes, values.map(<[u8]>::to_vec).to_vec())
}

#[test]
fn values_come_out_of_heaps() {
    let (bytes, values) = varied();
    let file = file(&bytes);
    let column = file.column(varying(6, 4)).unwrap();
    let rows = [5, 3, 0, 1, 4, 2, 3];
    let expected: Vec<Vec<u8>> =
        rows.iter().map(|&row: &u64| values[row as usize].clone()).collect();
    assert_eq!(read(&file, &column, &rows).unwrap(), expected);
    assert_eq!(read(&file, &column, &rows).unwrap(), expected, "from heaps that are known");
    assert!(matches!(read(&file, &column, &[6]), Err(Error::Index { index: 6, rows: 6, .. })));
}

#[test]
fn columns_of_a_batch_are_read_together() {
    let (mut bytes, values) = varied();
    let start = bytes.len() as u64;
    bytes.extend(0_u8..24);
    let file = file(&bytes);
    let numbers_column = file.column(fixed(6, 4, &[], &[6], vec![start])).unwrap();
    let texts_column = file.column(varying(6, 4)).unwrap();
    let rows = [2, 0];
    let shares = file.plan(&[&numbers_column, &texts_column], &rows).unwrap();
    let (mut numbers, mut texts) = ([0; 8], [0; 12]);
    file.fill(&shares, &mut [&mut numbers, &mut texts]).unwrap();
    assert_eq!(numbers, [8, 9, 10, 11, 0, 1, 2, 3]);
    assert_eq!(texts[..], [&values[2][..], &values[0]].concat());
}

#[test]
fn inconsistent_heaps_are_errors_of_their_rows() {
    let (whole, values) = varied();
    let lies: [(usize, &[u8]); 9] = [
        (0, &[3, 0, 0, 0]),             // row 0: more elements than the object
        (4, &u64::MAX.to_le_bytes()),   // row 0: no such address
        (4, &100_u64.to_le_bytes()),    // row 0: no heap there
        (12, &[9, 0, 0, 0]),            // row 0: no such object
        (12, &[0, 0, 0, 0]),            // row 0: the free space
        (128, b"LOCG"),                 // the first heap: no heap
        (136, &u64::MAX.to_le_bytes()), // the first heap: longer than the file
        (136, &64_u64.to_le_bytes()),   // the first heap: too short
        (152, &u64::MAX.to_le_bytes()), // its first object: longer than it
    ];
    for (at, lie) in lies {
        let mut bytes = whole.clone();
        bytes[at..at + lie.len()].copy_from_slice(lie);
        let file = file(&bytes);
        let column = file.column(varying(6, 4)).unwrap();
        for row in [0, 3] {
            let found = read(&file, &column, &[row]);
            match found {
                Ok(found) => assert_eq!((found, row), (vec![values[3].clone()], 3), "{at}"),
                Err(Error::Corrupt { path, record, .. }) => {
                    assert_eq!((path.as_str(), record, row), (NAME, Some(0), 0), "{at}");
                }
                Err(error) => panic!("{at}: {error}"),
            }
        }
    }
}

#[test]
fn a_truncation_at_any_length_is_reported() {
    let (bytes, values) = varied();
    for len in (0..bytes.len()).step_by(509) {
        let file = file(&bytes[..len]);
        let Ok(column) = file.column(varying(6, 4)) else {
            assert!(len < 96);
            continue;
        };
        for row in 0..6 {
            match read(&file, &column, &[row]) {
                Ok(found) => assert_eq!(found, [values[row as usize].clone()], "{len} {row}"),
                Err(Error::Corrupt { record, .. }) => assert_eq!(record, Some(row), "{len}"),
                Err(error) => panic!("{len} {row}: {error}"),
            }
        }
    }
}

#[test]
fn a_read_that_fails_is_an_error_with_its_record() {
    let (bytes, _) = varied();
    for nth in 0..4 {
        let storage = Faulty::new(Memory::from(bytes.clone())).fail_read(nth, Failure::Errno(5));
        let file = Hdf5::new(Arc::new(storage), NAME).unwrap();
        let column = file.column(varying(6, 4)).unwrap();
        let error = read(&file, &column, &[0]).unwrap_err();
        assert!(matches!(error, Error::Storage { record: Some(0), .. }), "{nth}: {error}");
    }
}

#[test]
fn a_file_that_is_changed_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample.h5");
    std::fs::write(&path, [1, 2, 3, 4]).unwrap();
    let file = Hdf5::open(&path).unwrap();
    let column = file.column(fixed(4, 1, &[], &[4], vec![0])).unwrap();
    assert_eq!(read(&file, &column, &[2, 1]).unwrap(), [vec![3], vec![2]]);
    std::fs::write(&path, [1, 2, 3, 4, 5]).unwrap();
    assert!(matches!(read(&file, &column, &[2]), Err(Error::Format { .. })));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(read(&file, &column, &[2]), Err(Error::Format { .. })));
}
