//! The `.ingot` container, as docs/format.md specifies it.

mod dictionary;
mod directory;
mod header;
mod page;
mod schema;
mod trailer;

pub use dictionary::Dictionary;
pub use directory::{DictionaryEntry, Directory, PageEntry};
pub use header::{HEADER_LEN, HEADER_MAX, Header, HeaderError, VERSION};
pub use page::{CellEntry, Encoding, PAGE_MAGIC, Page, PageBuilder};
pub use schema::{Field, FieldKind, Schema};
pub use trailer::{Block, BlockKind, TRAILER_LEN, TRAILER_MAGIC, Trailer};

/// A writer closes a page before it holds more cells than this, unless one row alone has more.
pub const PAGE_CELLS: u32 = 8192;

/// A writer closes a page once the cells it describes take this many bytes.
pub const PAGE_DATA: u64 = 64 << 20;

/// How large a compressed cell of `stored` bytes may say it is. A file that claims
/// more is refused before memory is asked for.
pub fn raw_limit(stored: u64) -> u64 {
    (64 << 20) + stored.saturating_mul(256)
}
