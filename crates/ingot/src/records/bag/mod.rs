//! Bags: the files of Bagz and Granular.

mod limits;
mod packer;
mod path;
mod reader;
mod writer;

use std::sync::Arc;

use super::container::Container;
use super::open::{Format, Opening};
use super::source::Watch;
use crate::error::Result;
use crate::storage::Location;

pub use packer::Packer;
pub use path::{Existing, open_bag, packing_of, write_bag};
pub use reader::{Bag, BagOptions, Packing};
pub use writer::{BagWriter, Placement};

/// Bags, which have neither a signature nor checksums.
pub static FORMAT: Format = Format {
    name: "bag",
    title: "a bag of Bagz or Granular",
    suffixes: &[".bag", ".bagz"],
    is_checked: false,
    begins: |_| false,
    open,
};

/// Opens a bag as its name and the files beside it say that it is.
fn open(
    Opening { location, storage, .. }: Opening<'_>,
    _watch: &mut Watch<'_>,
) -> Result<Arc<dyn Container>> {
    Ok(Arc::new(match location {
        Location::Path(path) => path::open_named_bag(path)?,
        Location::Url(url) => Bag::open(storage, None, url, BagOptions::default())?,
    }))
}
