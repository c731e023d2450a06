//! Capsules with the structs of Arrow's C data interface, and streams of batches.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::{Arc, Mutex};

use ingot::arrow::{ArrowArray, ArrowArrayStream, ArrowSchema, Kind, Node};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyStopIteration, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::conversion::{kind_of, tuple_of};
use super::{PyArrowArray, malformed};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";
const EIO: c_int = 5;
const EINVAL: c_int = 22;

pub fn schema_capsule<'py>(py: Python<'py>, kind: &Kind) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = ArrowSchema::of(kind).ok_or_else(|| {
        PyTypeError::new_err("a name with a zero byte cannot be that of a column")
    })?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

pub fn array_capsule<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowArray::of(node), ARRAY)
}

/// Moves a struct out of a capsule.
///
/// # Safety
///
/// The capsules of this name hold structs of this type.
unsafe fn moved<T>(given: &Bound<'_, PyAny>, name: &CStr, empty: T) -> PyResult<T> {
    let capsule = given.cast::<PyCapsule>().map_err(PyErr::from)?;
    let place = capsule.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: the capsule keeps the struct, which the interface lets consumers move away.
    Ok(unsafe { ptr::replace(place.as_ptr(), empty) })
}

pub fn schema_in(given: &Bound<'_, PyAny>) -> PyResult<ArrowSchema> {
    // SAFETY: the name is that of schemas.
    unsafe { moved(given, SCHEMA, ArrowSchema::empty()) }
}

/// Returns the type in a capsule, which keeps its schema.
pub fn kind_in(capsule: &Bound<'_, PyCapsule>) -> PyResult<Kind> {
    let place = capsule.pointer_checked(Some(SCHEMA))?.cast::<ArrowSchema>();
    // SAFETY: the capsule of this name holds a schema for as long as it is borrowed.
    unsafe { place.as_ref() }.kind().map_err(malformed)
}

pub fn array_in(given: &Bound<'_, PyAny>) -> PyResult<ArrowArray> {
    // SAFETY: the name is that of arrays.
    unsafe { moved(given, ARRAY, ArrowArray::empty()) }
}

/// Reads the batches of any object with `__arrow_c_stream__`.
#[pyclass(frozen, name = "ArrowReader", module = "ingot._core")]
pub struct PyArrowReader {
    kind: Arc<Kind>,
    /// The stream, and how many rows were read.
    stream: Mutex<(ArrowArrayStream, usize)>,
}

#[pymethods]
impl PyArrowReader {
    #[new]
    fn new(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let capsule = given.call_method0("__arrow_c_stream__")?;
        // SAFETY: the name is that of streams.
        let mut stream = unsafe { moved(&capsule, STREAM, ArrowArrayStream::empty()) }?;
        let mut schema = ArrowSchema::empty();
        let Some(get) = stream.get_schema.filter(|_| stream.release.is_some()) else {
            return Err(malformed("the stream was read already".to_owned()));
        };
        let whole = Whole(&mut stream);
        // SAFETY: the stream is not released; the callback fills the schema, or fails.
        let code = py.detach(|| unsafe { get(whole.get(), &mut schema) });
        if code != 0 {
            return Err(malformed(failure(&mut stream)));
        }
        let kind = schema.kind().map_err(malformed)?;
        Ok(PyArrowReader { kind: Arc::new(kind), stream: Mutex::new((stream, 0)) })
    }

    /// The type of the batches, as a tuple.
    #[getter]
    fn kind<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tuple_of(py, &self.kind)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyArrowArray>> {
        let found = py.detach(|| {
            let Ok(mut locked) = self.stream.try_lock() else {
                return Err("another thread reads the stream".to_owned());
            };
            let (stream, row) = &mut *locked;
            let Some(get) = stream.get_next else { return Err("the stream is closed".to_owned()) };
            let mut array = ArrowArray::empty();
            // SAFETY: the stream is not released; the callback fills the array, or fails.
            if unsafe { get(stream, &mut array) } != 0 {
                return Err(failure(stream));
            }
            if array.is_released() {
                return Ok(None);
            }
            let node = Node::foreign(array, &self.kind)
                .map_err(|why| format!("the batch that begins at row {row}: {why}"))?;
            *row = row.saturating_add(node.num_values());
            Ok(Some(node))
        });
        let node = found.map_err(malformed)?;
        let kind = &self.kind;
        Ok(node.map(|node| PyArrowArray { kind: Arc::clone(kind), node: Arc::new(node) }))
    }
}

/// A stream that one thread uses at a time.
struct Whole<'a>(&'a mut ArrowArrayStream);

impl Whole<'_> {
    fn get(self) -> *mut ArrowArrayStream {
        self.0
    }
}

fn failure(stream: &mut ArrowArrayStream) -> String {
    // SAFETY: the stream is not released; the text lives until the next call.
    let text = stream.get_last_error.map(|get| unsafe { get(stream) });
    match text.filter(|text| !text.is_null()) {
        // SAFETY: the text ends with a zero byte.
        Some(text) => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        None => "the stream failed and does not say why".to_owned(),
    }
}

/// What a stream of ours reads from.
struct Source {
    kind: Kind,
    batches: Option<Py<PyAny>>,
    /// What reading it has failed with; the stream fails with that from then on.
    failure: Option<(c_int, String)>,
    error: CString,
}

impl Drop for Source {
    fn drop(&mut self) {
        // Without an interpreter, its objects cannot be dropped; they are gone with it.
        let mut batches = std::mem::ManuallyDrop::new(self.batches.take());
        Python::try_attach(|_| drop(batches.take()));
    }
}

/// Returns a capsule with a stream of the arrays that an iterator yields.
#[pyfunction]
pub fn arrow_stream<'py>(
    kind: &Bound<'py, PyAny>,
    batches: Py<PyAny>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let source = Source {
        kind: kind_of(kind)?,
        batches: Some(batches),
        failure: None,
        error: CString::default(),
    };
    let stream = ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(Box::new(source)).cast(),
    };
    PyCapsule::new_with_value(kind.py(), stream, STREAM)
}

/// Returns what a stream of ours reads from.
///
/// # Safety
///
/// The stream was made by `arrow_stream`, and was not released.
unsafe fn source<'a>(stream: *mut ArrowArrayStream) -> &'a mut Source {
    // SAFETY: as the caller promises; consumers make one call at a time.
    unsafe { &mut *(*stream).private_data.cast::<Source>() }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the consumer passes a stream of ours, and room for a schema.
    let source = unsafe { source(stream) };
    match ArrowSchema::of(&source.kind) {
        Some(schema) => {
            // SAFETY: as above; what was there is no schema, and is not dropped.
            unsafe { ptr::write(out, schema) };
            0
        }
        None => {
            source.error = c"a name with a zero byte cannot be that of a column".to_owned();
            EINVAL
        }
    }
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the consumer passes a stream of ours, and room for an array.
    let source = unsafe { source(stream) };
    let read = Python::try_attach(|py| next_of(py, source));
    let gone = || Err((EIO, "the Python interpreter has ended".to_owned()));
    match read.unwrap_or_else(gone) {
        Ok(array) => {
            // SAFETY: as above; what was there is no array, and is not dropped.
            unsafe { ptr::write(out, array) };
            0
        }
        Err((code, message)) => {
            source.error = CString::new(message.replace('\0', " ")).unwrap_or_default();
            code
        }
    }
}

fn next_of(py: Python<'_>, source: &mut Source) -> Result<ArrowArray, (c_int, String)> {
    let Some(batches) = &source.batches else {
        return source.failure.clone().map_or_else(|| Ok(ArrowArray::empty()), Err);
    };
    let found = batches
        .bind(py)
        .call_method0("__next__")
        .and_then(|batch| Ok(ArrowArray::of(&batch.cast::<PyArrowArray>()?.get().node)));
    found.or_else(|error| {
        source.batches = None;
        if error.is_instance_of::<PyStopIteration>(py) {
            return Ok(ArrowArray::empty());
        }
        let code = if error.is_instance_of::<PyOSError>(py) { EIO } else { EINVAL };
        let name = error.get_type(py).name().map_or_else(|_| String::new(), |one| one.to_string());
        let failure = (code, format!("{name}: {}", error.value(py)));
        source.failure = Some(failure.clone());
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            // The consumer makes an ordinary error of it, so the interpreter raises it again.
            // SAFETY: any thread may ask for a call.
            unsafe { ffi::Py_AddPendingCall(Some(interrupt), ptr::null_mut()) };
        }
        Err(failure)
    })
}

/// Interrupts the main thread as soon as it runs code of Python. `PyErr_SetInterrupt` would
/// interrupt the report of the consumer's error too, which is lost then.
extern "C" fn interrupt(_: *mut c_void) -> c_int {
    // SAFETY: the interpreter calls this while it is attached; without a frame, it is ending.
    unsafe {
        if ffi::PyEval_GetFrame().is_null() {
            return 0;
        }
        ffi::PyErr_SetNone(ffi::PyExc_KeyboardInterrupt);
    }
    -1
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the consumer passes a stream of ours.
    let source = unsafe { source(stream) };
    if source.error.is_empty() { ptr::null() } else { source.error.as_ptr() }
}

unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
    // SAFETY: the consumer calls this once, with a stream of ours.
    unsafe {
        (*stream).release = None;
        drop(Box::from_raw((*stream).private_data.cast::<Source>()));
    }
}
