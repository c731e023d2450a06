//! The three structs of Arrow's C data interface, and arrays that own or borrow their memory.
//! <https://arrow.apache.org/docs/format/CDataInterface.html>
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::kind::Kind;
use crate::buffer::Block;

/// How deep types may be nested.
const DEPTH: usize = 64;

#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
pub struct ArrowArrayStream {
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub private_data: *mut c_void,
}

macro_rules! released_once {
    ($($name:ident),*) => {$(
        // SAFETY: the interface lets any thread use and release a struct, one at a time.
        unsafe impl Send for $name {}
        // SAFETY: shared references only read.
        unsafe impl Sync for $name {}

        impl $name {
            /// Returns a struct that is released.
            pub fn empty() -> $name {
                // SAFETY: null pointers, no functions and zeros are values of all fields.
                unsafe { std::mem::zeroed() }
            }

        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it was not released yet; the callback marks it as released.
                    unsafe { release(self) };
                }
            }
        }
    )*};
}

released_once!(ArrowSchema, ArrowArray, ArrowArrayStream);

impl ArrowArray {
    /// Returns whether there is nothing in it.
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

struct SchemaParts {
    _format: CString,
    _name: CString,
    _metadata: Vec<u8>,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

impl Drop for SchemaParts {
    fn drop(&mut self) {
        free(&self.children, self.dictionary);
    }
}

/// Drops structs; those that the consumer has moved elsewhere are marked as released.
fn free<T>(children: &[*mut T], dictionary: *mut T) {
    for &one in children.iter().chain([&dictionary]) {
        if !one.is_null() {
            // SAFETY: it was made by `Box::into_raw`, and belongs to its parent alone.
            drop(unsafe { Box::from_raw(one) });
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the consumer calls this once, with a struct that `ArrowSchema::of` has made.
    unsafe {
        (*schema).release = None;
        drop(Box::from_raw((*schema).private_data.cast::<SchemaParts>()));
    }
}

impl ArrowSchema {
    /// Describes a type; none if a name has a zero byte.
    pub fn of(kind: &Kind) -> Option<ArrowSchema> {
        let format = CString::new(kind.format.as_str()).ok()?;
        let name = CString::new(kind.name.as_str()).ok()?;
        let mut metadata = Vec::new();
        if !kind.metadata.is_empty() {
            metadata.extend((kind.metadata.len() as i32).to_ne_bytes());
            for part in kind.metadata.iter().flat_map(|(key, value)| [key, value]) {
                metadata.extend((part.len() as i32).to_ne_bytes());
                metadata.extend(part);
            }
        }
        let inside = |one: &Kind| Some(Box::new(ArrowSchema::of(one)?));
        let children: Vec<Box<ArrowSchema>> =
            kind.children.iter().map(inside).collect::<Option<_>>()?;
        let dictionary = match &kind.dictionary {
            Some(one) => Box::into_raw(inside(one)?),
            None => ptr::null_mut(),
        };
        let mut schema = ArrowSchema {
            format: format.as_ptr(),
            name: name.as_ptr(),
            metadata: if metadata.is_empty() { ptr::null() } else { metadata.as_ptr().cast() },
            flags: kind.flags,
            n_children: children.len() as i64,
            dictionary,
            children: ptr::null_mut(),
            release: Some(release_schema),
            private_data: ptr::null_mut(),
        };
        let mut parts = Box::new(SchemaParts {
            _format: format,
            _name: name,
            _metadata: metadata,
            children: children.into_iter().map(Box::into_raw).collect(),
            dictionary,
        });
        schema.children = parts.children.as_mut_ptr();
        schema.private_data = Box::into_raw(parts).cast();
        Some(schema)
    }

    /// Reads the description of a type.
    pub fn kind(&self) -> Result<Kind, String> {
        self.kind_at(0)
    }

    fn kind_at(&self, depth: usize) -> Result<Kind, String> {
        if self.release.is_none() || self.format.is_null() {
            return Err("the Arrow schema was released already".to_owned());
        }
        if depth > DEPTH {
            return Err(format!("the Arrow schema is nested more than {DEPTH} levels deep"));
        }
        let inside = |one: *const ArrowSchema| {
            // SAFETY: the producer keeps the structs inside for as long as the outer one.
            match unsafe { one.as_ref() } {
                Some(one) => one.kind_at(depth + 1),
                None => Err("the Arrow schema has a child that is null".to_owned()),
            }
        };
        let children = pointers(self.children.cast_const(), self.n_children)?;
        let dictionary =
            if self.dictionary.is_null() { None } else { Some(inside(self.dictionary)?.into()) };
        Ok(Kind {
            name: text(self.name)?,
            format: text(self.format)?,
            flags: self.flags,
            metadata: metadata_at(self.metadata),
            children: children.iter().map(|&one| inside(one)).collect::<Result<_, _>>()?,
            dictionary,
        })
    }
}

/// Returns an array of pointers.
fn pointers<'a, T>(first: *const *mut T, count: i64) -> Result<&'a [*mut T], String> {
    let count = usize::try_from(count).map_err(|_| "a negative number of children".to_owned())?;
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(format!("{count} children, but no pointer to them"));
    }
    // SAFETY: the producer says that there are so many, for as long as the struct.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

fn text(start: *const c_char) -> Result<String, String> {
    if start.is_null() {
        return Ok(String::new());
    }
    // SAFETY: the interface has texts end with a zero byte.
    let text = unsafe { CStr::from_ptr(start) };
    text.to_str().map(str::to_owned).map_err(|_| "a name in the Arrow schema is not UTF-8".into())
}

fn metadata_at(start: *const c_char) -> Vec<(Vec<u8>, Vec<u8>)> {
    if start.is_null() {
        return Vec::new();
    }
    let mut at = start.cast::<u8>();
    // SAFETY: the interface has a count, and before each text its length.
    let mut take = |len: usize| unsafe {
        let bytes = std::slice::from_raw_parts(at, len).to_vec();
        at = at.add(len);
        bytes
    };
    let length = |take: &mut dyn FnMut(usize) -> Vec<u8>| {
        let bytes: [u8; 4] = take(4).try_into().expect("four bytes");
        usize::try_from(i32::from_ne_bytes(bytes)).unwrap_or(0)
    };
    let count = length(&mut take);
    let mut each = || {
        let len = length(&mut take);
        take(len)
    };
    (0..count).map(|_| (each(), each())).collect()
}

/// Memory of an array.
pub enum Data {
    Own(Vec<u8>),
    Shared(Arc<Block>, usize, usize),
}

impl Data {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Data::Own(bytes) => bytes,
            Data::Shared(block, start, len) => &block.bytes()[*start..*start + *len],
        }
    }

    /// Returns the same bytes where values of a width may begin.
    pub fn aligned(self, width: usize) -> Data {
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
    pub len: usize,
    pub offset: usize,
    pub children: Vec<Arc<Node>>,
    pub dictionary: Option<Arc<Node>>,
    null_count: i64,
    buffers: Vec<*const u8>,
    owner: Arc<Owner>,
}

// SAFETY: the memory that the pointers lead to is owned and never written to.
unsafe impl Send for Node {}
// SAFETY: as above.
unsafe impl Sync for Node {}

/// Where a pointer of an empty buffer leads.
static NOTHING: [u64; 8] = [0; 8];

impl Node {
    /// Makes an array of `len` values; the first buffer, if any, says which are present.
    pub fn new(len: usize, buffers: Vec<Option<Data>>, children: Vec<Node>) -> Node {
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
    pub fn nulls(len: usize) -> Node {
        Node { null_count: len as i64, ..Node::new(len, Vec::new(), Vec::new()) }
    }

    /// Takes an array of another library.
    pub fn foreign(array: ArrowArray, kind: &Kind) -> Result<Node, String> {
        let array = Arc::new(array);
        Node::inside(&array, &Arc::new(Owner::Foreign(Arc::clone(&array))), kind)
    }

    fn inside(array: &ArrowArray, owner: &Arc<Owner>, kind: &Kind) -> Result<Node, String> {
        if array.release.is_none() {
            return Err("the Arrow array was released already".to_owned());
        }
        let size = |value: i64| {
            usize::try_from(value).map_err(|_| format!("an Arrow array has a length of {value}"))
        };
        let buffers = pointers(array.buffers.cast::<*mut c_void>(), array.n_buffers)?;
        if kind.num_buffers().is_some_and(|expected| expected > buffers.len()) {
            let found = buffers.len();
            return Err(format!("an Arrow array of type {:?} has {found} buffers", kind.format));
        }
        let below = pointers(array.children.cast_const(), array.n_children)?;
        if below.len() != kind.children.len() {
            let (found, expected) = (below.len(), kind.children.len());
            return Err(format!("an Arrow array has {found} children, its schema {expected}"));
        }
        let inside = |one: *mut ArrowArray, kind: &Kind| {
            // SAFETY: the producer keeps the structs inside for as long as the outer one.
            match unsafe { one.as_ref() } {
                Some(one) => Node::inside(one, owner, kind).map(Arc::new),
                None => Err("an Arrow array has a child that is null".to_owned()),
            }
        };
        let children = below.iter().zip(&kind.children);
        let dictionary = match &kind.dictionary {
            Some(kind) => Some(inside(array.dictionary, kind)?),
            None => None,
        };
        let found = Node {
            len: size(array.length)?,
            offset: size(array.offset)?,
            children: children.map(|(&one, kind)| inside(one, kind)).collect::<Result<_, _>>()?,
            dictionary,
            null_count: array.null_count,
            buffers: buffers.iter().map(|one| one.cast_const().cast()).collect(),
            owner: Arc::clone(owner),
        };
        if found.len.checked_add(found.offset).is_none_or(|end| end > isize::MAX as usize / 64) {
            return Err(format!("an Arrow array has a length of {}", found.len));
        }
        Ok(found)
    }

    /// Returns the values from `start` on, as many as `len`.
    pub fn slice(&self, start: usize, len: usize) -> Node {
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
    pub fn select(&self, chosen: &[usize]) -> Node {
        let mut found = self.slice(0, self.len);
        found.children = chosen.iter().map(|&one| Arc::clone(&self.children[one])).collect();
        found
    }

    /// Returns whether there may be nulls.
    pub fn may_be_null(&self) -> bool {
        self.null_count != 0 && self.buffers.first().is_some_and(|one| !one.is_null())
    }

    /// Returns whether the value at a position is not null.
    pub fn is_valid(&self, place: usize) -> bool {
        if !self.may_be_null() {
            return true;
        }
        let bit = self.offset + place;
        // SAFETY: the first buffer has a bit for each value.
        unsafe { *self.buffers[0].add(bit / 8) >> (bit % 8) & 1 == 1 }
    }

    /// Returns the beginning of a buffer.
    pub fn buffer(&self, number: usize, len: usize) -> Result<&[u8], String> {
        if len == 0 {
            return Ok(&[]);
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
    pub fn num_buffers(&self) -> usize {
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
