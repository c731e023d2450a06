//! Values of variable length in HDF5 files: a reference in the row, an object in a heap.
//!
//! HDF5's file format specification calls the heap "global heap". With offsets and lengths of
//! eight bytes, all integers little-endian:
//!
//! | reference | bytes |
//! | --- | --- |
//! | number of elements | 4 |
//! | address of the collection that has the object | 8 |
//! | index of the object in it | 4 |
//!
//! | collection | bytes |
//! | --- | --- |
//! | `GCOL`, version 1, three zeros | 8 |
//! | size of the collection | 8 |
//! | objects: index 2, references 2, zero 4, size 8, then the bytes, padded to eight | any |
//!
//! Index 0 is the free space at the end. There are no checksums.

use std::ops::Range;

use super::fields::{u32_at, u64_at};
use super::{Violation, bail};

/// Bytes of a reference.
pub const REFERENCE_LEN: u64 = 16;

/// Bytes in front of the objects of a collection.
pub const COLLECTION_HEAD: u64 = 16;

/// Bytes that a collection has at least.
pub const COLLECTION_MIN: u64 = 4096;

const OBJECT_HEAD: u64 = 16;

/// Objects of a collection, at most: they are counted by two bytes.
const OBJECTS_MAX: usize = 1 << 16;

/// Where a value of variable length is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Number of its elements; the rest says nothing if it is 0.
    pub len: u32,
    /// Where its collection begins.
    pub address: u64,
    /// Which object of it.
    pub index: u32,
}

impl Reference {
    /// Reads a reference of [`REFERENCE_LEN`] bytes.
    pub fn decode(bytes: &[u8]) -> Reference {
        Reference { len: u32_at(bytes, 0), address: u64_at(bytes, 4), index: u32_at(bytes, 12) }
    }
}

/// Reads how long a collection is from its first [`COLLECTION_HEAD`] bytes; the file has
/// `room` bytes from there on.
pub fn collection_len(head: &[u8], room: u64) -> Result<u64, Violation> {
    if head.len() < COLLECTION_HEAD as usize || !head.starts_with(b"GCOL\x01") {
        bail!("a value points to a place without a heap");
    }
    let len = u64_at(head, 8);
    if len < COLLECTION_MIN || len > room {
        bail!("a heap declares {len} bytes");
    }
    Ok(len)
}

/// Where the objects of a collection are.
#[derive(Debug, Default)]
pub struct Objects {
    /// Start, as a multiple of eight from the beginning of the collection, and length of each,
    /// by their indices; 0 is the start of none.
    places: Vec<(u32, u32)>,
    seen: usize,
}

impl Objects {
    /// Takes in the objects in a window on a collection of `len` bytes, which begins with an
    /// object at `start`. Returns where the next object is, if the window ends before the
    /// collection does. Objects after an invalid one are left out.
    pub fn scan(&mut self, window: &[u8], start: u64, len: u64) -> Option<u64> {
        let mut at = start;
        while len.saturating_sub(at) >= OBJECT_HEAD && self.seen < OBJECTS_MAX {
            let place = (at - start) as usize;
            let Some(head) = window.get(place..place.saturating_add(OBJECT_HEAD as usize)) else {
                return Some(at);
            };
            let (index, size) = ((u32_at(head, 0) & 0xffff) as usize, u64_at(head, 8));
            let data = at + OBJECT_HEAD;
            if index == 0 || size > len - data {
                return None;
            }
            if self.places.len() <= index {
                self.places.resize(index + 1, (0, 0));
            }
            if let Ok(place) = u32::try_from(data / 8) {
                self.places[index] = (place, u32::try_from(size).unwrap_or(u32::MAX));
            }
            self.seen += 1;
            at = data + size.next_multiple_of(8);
        }
        None
    }

    /// Returns where the first `len` bytes of an object are, from the beginning of the
    /// collection.
    pub fn find(&self, index: u32, len: u64) -> Result<Range<u64>, Violation> {
        match self.places.get(index as usize) {
            Some(&(start @ 1.., size)) if size == u32::MAX || u64::from(size) >= len => {
                let start = u64::from(start) * 8;
                Ok(start..start + len)
            }
            Some(&(1.., size)) => Err(Violation::new(format!(
                "object {index} of the heap has {size} bytes, the value in it {len}"
            ))),
            _ => Err(Violation::new(format!("the heap has no object {index}"))),
        }
    }

    /// Bytes of memory that this takes.
    pub fn memory(&self) -> usize {
        self.places.capacity() * size_of::<(u32, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(objects: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = b"GCOL\x01\0\0\0".to_vec();
        bytes.extend(4096_u64.to_le_bytes());
        for (index, data) in objects {
            bytes.extend(index.to_le_bytes());
            bytes.extend([1, 0, 0, 0, 0, 0]);
            bytes.extend((data.len() as u64).to_le_bytes());
            bytes.extend(*data);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes.resize(4096, 0);
        bytes
    }

    #[test]
    fn objects_are_found_by_their_index() {
        let heap = collection(&[(1, b"one"), (2, b""), (9, b"nine nine")]);
        assert_eq!(collection_len(&heap, 4096), Ok(4096));
        let mut objects = Objects::default();
        assert_eq!(objects.scan(&heap[16..], 16, 4096), None);
        assert_eq!(objects.find(1, 3), Ok(32..35));
        assert_eq!(objects.find(2, 0), Ok(56..56));
        assert_eq!(objects.find(9, 4), Ok(72..76));
        for (index, len) in [(0, 0), (1, 4), (3, 0), (10, 0), (u32::MAX, 0)] {
            assert!(objects.find(index, len).is_err(), "{index} {len}");
        }
    }

    #[test]
    fn a_scan_continues_after_a_window() {
        let heap = collection(&[(1, b"one"), (2, b"two")]);
        let mut objects = Objects::default();
        assert_eq!(objects.scan(&heap[16..45], 16, 4096), Some(40));
        assert!(objects.find(1, 3).is_ok() && objects.find(2, 3).is_err());
        assert_eq!(objects.scan(&heap[40..], 40, 4096), None);
        assert_eq!(objects.find(2, 3), Ok(56..59));
    }

    #[test]
    fn lies_of_a_heap_are_noticed() {
        assert!(collection_len(b"GCOL\x02\0\0\0\0\x10\0\0\0\0\0\0", 9999).is_err());
        assert!(collection_len(b"GCOL\x01\0\0\0\x08\0\0\0\0\0\0\0", 9999).is_err());
        assert!(collection_len(b"GCOL\x01\0\0\0\0\x10\0\0\0\0\0\0", 4095).is_err());
        assert!(collection_len(b"GCOL\x01", 9999).is_err());
        let mut heap = collection(&[(1, b"one"), (2, b"two"), (3, b"three")]);
        heap[48..56].copy_from_slice(&u64::MAX.to_le_bytes());
        let mut objects = Objects::default();
        assert_eq!(objects.scan(&heap[16..], 16, 4096), None);
        assert!(objects.find(1, 3).is_ok() && objects.find(2, 3).is_err());
    }

    #[test]
    fn references_are_read() {
        let bytes = [3, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0];
        assert_eq!(Reference::decode(&bytes), Reference { len: 3, address: 4096, index: 7 });
    }
}
