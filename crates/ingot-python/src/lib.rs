//! The Python binding of the Ingot engine: converts arguments, releases the GIL, calls.

mod allocator;
mod arrayrecord;
mod arrow;
mod bag;
mod buffer;
mod bytes;
mod cells;
mod damage;
mod deletes;
mod error;
mod example;
mod exchange;
mod ffrecord;
mod formats;
mod hdf5;
mod identity;
mod indices;
mod limit;
mod lines;
mod listing;
mod object;
mod order;
mod own;
mod parquet;
mod pictures;
mod reader;
mod record;
mod region;
mod row;
mod rows;
mod signals;
mod sink;
mod stream;
mod tar;
mod threads;
mod writer;

use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: allocator::Reserving = allocator::Reserving;

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // What is computed once is computed here, with the GIL: a fork in the middle of it would
    // leave the child waiting for a thread that it does not have.
    ingot::process::generation();
    ingot::limit::max_decoded_bytes();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arrow::PyArrowArray>()?;
    module.add_class::<arrow::PyArrowReader>()?;
    module.add_class::<buffer::PyBuffer>()?;
    module.add_class::<reader::PyReader>()?;
    module.add_class::<region::PyRegion>()?;
    module.add_class::<rows::PyRows>()?;
    module.add_class::<row::PyRowPlan>()?;
    module.add_class::<listing::PyListing>()?;
    module.add_class::<hdf5::PyColumn>()?;
    module.add_class::<hdf5::PyHdf5>()?;
    module.add_class::<order::PyOrder>()?;
    module.add_class::<pictures::PyPictures>()?;
    module.add_class::<sink::PySink>()?;
    module.add_class::<stream::PyStream>()?;
    module.add_class::<record::PyRecordWriter>()?;
    module.add_class::<writer::PyWriter>()?;
    module.add_function(wrap_pyfunction!(arrayrecord::write_arrayrecord, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::arrow_fits, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::arrow_kind, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::arrow_schema, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::arrow_stream, module)?)?;
    module.add_function(wrap_pyfunction!(arrow::common_array, module)?)?;
    module.add_function(wrap_pyfunction!(bag::write_bag, module)?)?;
    module.add_function(wrap_pyfunction!(cells::decode_pictures, module)?)?;
    module.add_function(wrap_pyfunction!(cells::split_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(cells::split_texts, module)?)?;
    module.add_function(wrap_pyfunction!(cells::stack_arrays, module)?)?;
    module.add_function(wrap_pyfunction!(identity::contents, module)?)?;
    module.add_function(wrap_pyfunction!(deletes::read_deletes, module)?)?;
    module.add_function(wrap_pyfunction!(deletes::write_deletes, module)?)?;
    module.add_function(wrap_pyfunction!(rows::has_fields, module)?)?;
    module.add_function(wrap_pyfunction!(identity::identity, module)?)?;
    module.add_function(wrap_pyfunction!(rows::read_plans, module)?)?;
    module.add_function(wrap_pyfunction!(example::encode_examples, module)?)?;
    module.add_function(wrap_pyfunction!(exchange::exchange, module)?)?;
    module.add_function(wrap_pyfunction!(example::frame_records, module)?)?;
    module.add_function(wrap_pyfunction!(lines::encode_lines, module)?)?;
    module.add_function(wrap_pyfunction!(tar::archive_files, module)?)?;
    module.add_function(wrap_pyfunction!(ffrecord::decode_tree, module)?)?;
    module.add_function(wrap_pyfunction!(ffrecord::write_ffrecord, module)?)?;
    module.add_function(wrap_pyfunction!(formats::formats, module)?)?;
    module.add_function(wrap_pyfunction!(limit::max_decoded_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(limit::set_max_decoded_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(parquet::parquet_footer, module)?)?;
    module.add_function(wrap_pyfunction!(threads::set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(threads::threads, module)?)?;
    module.add_function(wrap_pyfunction!(writer::recover, module)?)?;
    Ok(())
}
