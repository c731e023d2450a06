//! ArrayRecord files.

use std::path::PathBuf;

use ingot::records::{self, ArCodec, ArOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::record::PyRecordWriter;

/// Starts an ArrayRecord file.
#[pyfunction]
#[pyo3(signature = (path, *, group_size, codec, level, window_log, transpose, pad, sync))]
#[allow(clippy::too_many_arguments)]
pub fn write_arrayrecord(
    py: Python<'_>,
    path: PathBuf,
    group_size: u64,
    codec: &str,
    level: i32,
    window_log: Option<u32>,
    transpose: Option<u64>,
    pad: bool,
    sync: bool,
) -> PyResult<PyRecordWriter> {
    let codec = match codec {
        "none" => ArCodec::None,
        "brotli" => ArCodec::Brotli(u32::try_from(level).unwrap_or(u32::MAX), window_log),
        "zstd" => ArCodec::Zstd(level, window_log.unwrap_or(20)),
        "snappy" => ArCodec::Snappy,
        other => return Err(PyValueError::new_err(format!("unknown codec {other:?}"))),
    };
    let options = ArOptions { group_size, codec, transpose, pad_to_block: pad, sync };
    PyRecordWriter::open(py, || records::write_arrayrecord(&path, options))
}
