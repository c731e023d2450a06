//! Arrays in reference-counted memory: of the engine, or of another library.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use super::ffi::{ArrowArray, free, pointers};
use super::kind::{Kind, named};
use super::part::integer;

/// Memory of an array.
pub enum Data {
    /// Memory of its own.
    Own(Vec<u8>),
    /// Part of a block that others use too: where it begins, and its length.
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>, usize, usize),
}

impl Data {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Data::Own(bytes) => bytes,
            Data::Shared(block, start, len) => &(**block).as_ref()[*start..*start + *len],
        }
    }

    /// Returns the same bytes where values of a width may begin.
    pub(super) fn aligned(self, width: usize) -> Data {
        if self.bytes().as_ptr().addr().is_multiple_of(width.clamp(1, 8)) {
            return self;
        }
        Data::Own(self.bytes().to_vec()) // Allocations begin at multiples of 16.
    }
}

enum Owner {
    Own(#[allow(dead_code, reason = "the pointers lead here")] Vec<Option<Data>>),
    Foreign(#[allow(dead_code, reason = "the pointers lead here")] Arc<ArrowArray>),
}

/// An array: made here, or taken from another library.
pub struct Node {
    pub(super) len: usize,
    pub(super) offset: usize,
    pub(super) children: Vec<Arc<Node>>,
    pub(super) dictionary: Option<Arc<Node>>,
    null_count: i64,
    buffers: Vec<*const u8>,
    owner: Arc<Owner>,
}

// SAFETY: the memory that the pointers lead to is owned and never written to.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

/// More bytes than the addresses of a process reach.
const MEMORY: usize = 1 << 48;

/// Where a pointer of an empty buffer leads.
static NOTHING: [u64; 8] = [0; 8];

impl Node {
    /// Makes an array of `len` values; the first buffer, if any, says which are present.
    pub(super) fn new(len: usize, buffers: Vec<Option<Data>>, children: Vec<Node>) -> Node {
        let at = |one: &Option<Data>| match one {
            None => ptr::null(),
            Some(data) if data.bytes().is_empty() => NOTHING.as_ptr().cast(),
            Some(data) => data.bytes().as_ptr(),
        };
        let null_count = if matches!(buffers.first(), Some(Some(_))) { -1 } else { 0 };
        Node {
            len,
            offset: 0,
            children: children.into_iter().map(Arc::new).collect(),
            dictionary: None,
            null_count,
            buffers: buffers.iter().map(at).collect(),
            owner: Arc::new(Owner::Own(buffers)),
        }
    }

    /// Makes `len` nulls of the type that has nothing else.
    pub(super) fn nulls(len: usize) -> Node {
        Node { null_count: len as i64, ..Node::new(len, Vec::new(), Vec::new()) }
    }

    /// Takes an array of another library, whose buffers are as long as the type demands.
    pub fn foreign(array: ArrowArray, kind: &Kind) -> Result<Node, String> {
        let array = Arc::new(array);
        Node::inside(&array, &Arc::new(Owner::Foreign(Arc::clone(&array))), kind, "")
    }

    fn inside(
        array: &ArrowArray,
        owner: &Arc<Owner>,
        kind: &Kind,
        above: &str,
    ) -> Result<Node, String> {
        let path = kind.path(above);
        let (mut found, below) =
            Node::alone(array, owner, kind).map_err(|why| named(&path, &why))?;
        let inside = |one: *mut ArrowArray, kind: &Kind| {
            // SAFETY: the producer keeps the structs inside for as long as the outer one.
            match unsafe { one.as_ref() } {
                Some(one) => Node::inside(one, owner, kind, &path).map(Arc::new),
                None => Err(named(&path, "an Arrow array has a child that is null")),
            }
        };
        if let Some(kind) = &kind.dictionary {
            found.dictionary = Some(inside(array.dictionary, kind)?);
        }
        let children = below.iter().zip(&kind.children);
        found.children =
            children.map(|(&one, kind)| inside(one, kind)).collect::<Result<_, _>>()?;
        found.check_children(kind).map_err(|why| named(&path, &why))?;
        Ok(found)
    }

    /// Takes an array without those inside, and returns where they are.
    fn alone<'a>(
        array: &'a ArrowArray,
        owner: &Arc<Owner>,
        kind: &Kind,
    ) -> Result<(Node, &'a [*mut ArrowArray]), String> {
        if array.release.is_none() {
            return Err("the Arrow array was released already".to_owned());
        }
        let size = |value: i64| {
            usize::try_from(value).map_err(|_| format!("an Arrow array has a length of {value}"))
        };
        let buffers = pointers(array.buffers.cast::<*mut c_void>(), array.n_buffers, "buffers")?;
        if kind.num_buffers().is_some_and(|expected| expected > buffers.len()) {
            let found = buffers.len();
            return Err(format!("an Arrow array of type {:?} has {found} buffers", kind.format));
        }
        let below = pointers(array.children.cast_const(), array.n_children, "children")?;
        if below.len() != kind.children.len() {
            let (found, expected) = (below.len(), kind.children.len());
            return Err(format!("an Arrow array has {found} children, its schema {expected}"));
        }
        let mut places: Vec<*const u8> = Vec::new();
        if places.try_reserve_exact(buffers.len()).is_err() {
            return Err(format!("an Arrow array has {} buffers", buffers.len()));
        }
        places.extend(buffers.iter().map(|one| one.cast_const().cast::<u8>()));
        let found = Node {
            len: size(array.length)?,
            offset: size(array.offset)?,
            children: Vec::new(),
            dictionary: None,
            null_count: array.null_count,
            buffers: places,
            owner: Arc::clone(owner),
        };
        let is_possible = |end: usize| {
            let bytes = end.checked_mul(kind.memory_width());
            end <= isize::MAX as usize / 64 && bytes.is_some_and(|bytes| bytes <= MEMORY)
        };
        if !found.len.checked_add(found.offset).is_some_and(is_possible) {
            return Err(format!("an Arrow array has a length of {}", found.len));
        }
        Ok((found, below))
    }

    /// Refuses arrays inside that are shorter than the values need.
    fn check_children(&self, kind: &Kind) -> Result<(), String> {
        let end = self.offset + self.len;
        let needed = match kind.format.as_str() {
            "+s" => end,
            "+l" | "+L" | "+m" if self.len > 0 => self.span(kind.memory_width(), 0, self.len)?.1,
            _ => kind.list_size().map_or(0, |size| end.saturating_mul(size)),
        };
        match self.children.iter().find(|one| one.len < needed) {
            Some(one) => {
                Err(format!("an Arrow array has {} values, but {needed} are used", one.len))
            }
            None => Ok(()),
        }
    }

    /// Returns where `len` texts or lists begin and end, by the offsets in the second buffer.
    pub(super) fn span(
        &self,
        width: usize,
        start: usize,
        len: usize,
    ) -> Result<(usize, usize), String> {
        let first = self.offset + start;
        let ends = self.buffer(1, (first + len + 1) * width)?;
        let end = |place: usize| integer(&ends[place * width..(place + 1) * width], true);
        match (usize::try_from(end(first)), usize::try_from(end(first + len))) {
            (Ok(start), Ok(stop)) if start <= stop => Ok((start, stop)),
            _ => Err("the offsets go down".to_owned()),
        }
    }

    /// Returns the number of values.
    pub fn num_values(&self) -> usize {
        self.len
    }

    /// Returns the position in the memory where the values begin.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the values from `start` on, as many as `len`.
    ///
    /// # Panics
    ///
    /// If the array does not have them.
    pub fn slice(&self, start: usize, len: usize) -> Node {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.len), "a slice of an array");
        Node {
            len,
            offset: self.offset + start,
            children: self.children.clone(),
            dictionary: self.dictionary.clone(),
            null_count: if self.null_count == 0 { 0 } else { -1 },
            buffers: self.buffers.clone(),
            owner: Arc::clone(&self.owner),
        }
    }

    /// Returns a struct with some of its parts.
    ///
    /// # Panics
    ///
    /// If the struct does not have them.
    pub fn select(&self, chosen: &[usize]) -> Node {
        let mut found = self.slice(0, self.len);
        found.children = chosen.iter().map(|&one| Arc::clone(&self.children[one])).collect();
        found
    }

    /// Returns whether there may be nulls.
    pub(super) fn may_be_null(&self) -> bool {
        self.null_count != 0 && self.buffers.first().is_some_and(|one| !one.is_null())
    }

    /// Returns whether the value at a position is not null.
    pub(super) fn is_valid(&self, place: usize) -> bool {
        if !self.may_be_null() {
            return true;
        }
        let bit = self.offset + place;
        // SAFETY: the first buffer has a bit for each value.
        unsafe { *self.buffers[0].add(bit / 8) >> (bit % 8) & 1 == 1 }
    }

    /// Returns the beginning of a buffer.
    pub(super) fn buffer(&self, number: usize, len: usize) -> Result<&[u8], String> {
        if len == 0 {
            return Ok(&[]);
        }
        if len > MEMORY {
            return Err(format!("an Arrow array needs a buffer of {len} bytes"));
        }
        match self.buffers.get(number) {
            // SAFETY: the format gives the buffer at least this length, or the array is not
            // what the producer says. The memory lives as long as the owner.
            Some(start) if !start.is_null() => {
                Ok(unsafe { std::slice::from_raw_parts(*start, len) })
            }
            _ => Err(format!("an Arrow array of {} values lacks a buffer", self.len)),
        }
    }

    /// Returns the number of buffers.
    pub(super) fn num_buffers(&self) -> usize {
        self.buffers.len()
    }
}

struct ArrayParts {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
    _owner: Arc<Owner>,
}

impl Drop for ArrayParts {
    fn drop(&mut self) {
        free(&self.children, self.dictionary);
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: the consumer calls this once, with a struct that `ArrowArray::of` has made.
    unsafe {
        (*array).release = None;
        drop(Box::from_raw((*array).private_data.cast::<ArrayParts>()));
    }
}

impl ArrowArray {
    /// Lends an array; it lives until the struct is released.
    pub fn of(node: &Node) -> ArrowArray {
        let inside = |one: &Arc<Node>| Box::into_raw(Box::new(ArrowArray::of(one)));
        let mut parts = Box::new(ArrayParts {
            buffers: node.buffers.iter().map(|one| one.cast()).collect(),
            children: node.children.iter().map(inside).collect(),
            dictionary: node.dictionary.as_ref().map_or(ptr::null_mut(), inside),
            _owner: Arc::clone(&node.owner),
        });
        ArrowArray {
            length: node.len as i64,
            null_count: node.null_count,
            offset: node.offset as i64,
            n_buffers: parts.buffers.len() as i64,
            n_children: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: parts.dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }
}
