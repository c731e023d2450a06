//! The three structs of Arrow's C data interface.
//! <https://arrow.apache.org/docs/format/CDataInterface.html>

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use super::kind::Kind;

/// How deep types may be nested.
const DEPTH: usize = 64;

/// Describes a type.
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

/// Lends the memory of an array.
#[repr(C)]
pub struct ArrowArray {
    pub(super) length: i64,
    pub(super) null_count: i64,
    pub(super) offset: i64,
    pub(super) n_buffers: i64,
    pub(super) n_children: i64,
    pub(super) buffers: *mut *const c_void,
    pub(super) children: *mut *mut ArrowArray,
    pub(super) dictionary: *mut ArrowArray,
    pub(super) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(super) private_data: *mut c_void,
}

/// Yields arrays of one type.
#[repr(C)]
pub struct ArrowArrayStream {
    /// Fills a schema; returns an error code, or 0.
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    /// Fills an array, which stays released at the end; returns an error code, or 0.
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    /// Describes the last error; the text lives until the next call.
    pub get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    /// Frees the stream; none once it is released.
    pub release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    /// Belongs to the producer.
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
pub(super) fn free<T>(children: &[*mut T], dictionary: *mut T) {
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
        let kind = self.kind_at(0)?;
        kind.check()?;
        Ok(kind)
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
        let children = pointers(self.children.cast_const(), self.n_children, "children")?;
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

/// Returns an array of pointers to what `noun` names.
pub(super) fn pointers<'a, T>(
    first: *const *mut T,
    count: i64,
    noun: &str,
) -> Result<&'a [*mut T], String> {
    if count < 0 {
        return Err(format!("a negative number of {noun}"));
    }
    let Some(count) = i32::try_from(count).ok().and_then(|count| usize::try_from(count).ok())
    else {
        return Err(format!("{count} {noun}, which is too many"));
    };
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(format!("{count} {noun}, but no pointer to them"));
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
