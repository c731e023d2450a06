//! The footer of Parquet files.

use ingot::Error;
use ingot::format::parquet::Footer;
use pyo3::prelude::*;

use crate::error::raised;

/// Rows and the size of the largest column of each group; path of each column, whether there may
/// be nulls, whether the size of its text is known, its values and its crowd.
type FooterTuple = (Vec<(i64, i64)>, Vec<(Vec<String>, bool, bool, i64, i64)>);

/// Returns what the footer of a Parquet file says. `path` and `offset` are for errors.
#[pyfunction]
pub fn parquet_footer(
    py: Python<'_>,
    footer: &[u8],
    path: &str,
    offset: u64,
) -> PyResult<FooterTuple> {
    let footer = py.detach(|| Footer::decode(footer)).map_err(|why| {
        let (path, reason) = (path.to_owned(), why.to_string());
        raised(Error::Corrupt { path, record: None, offset, reason })
    })?;
    let groups = footer.groups.iter().map(|one| (one.rows, one.largest)).collect();
    let columns = footer.columns.into_iter();
    let columns =
        columns.map(|one| (one.path, one.has_nulls, one.is_told, one.values, one.crowd)).collect();
    Ok((groups, columns))
}
