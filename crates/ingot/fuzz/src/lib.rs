//! What the fuzz targets share: a limit on memory, chunks and files to damage, and all that
//! can be done to a file.

#[path = "../../tests/support/allocator.rs"]
mod allocator;
mod chunks;
mod exercise;
mod samples;

pub use chunks::{CHUNK_MEMORY, chunk_of, compression, records_of};
pub use exercise::exercise;
pub use samples::{Sample, samples};

/// The id of all files that are made here.
pub const ID: [u8; 16] = *b"0123456789abcdef";

/// Runs `run`, which may hold no more than `limit` bytes at any time.
pub fn bounded<T>(limit: usize, run: impl FnOnce() -> T) -> T {
    let (outcome, peak) = allocator::peak_of(run);
    assert!(peak <= limit, "held {peak} bytes, {limit} are allowed");
    outcome
}

/// Returns schemas of several shapes.
pub fn schemas() -> Vec<ingot::format::ingot::Schema> {
    use ingot::format::ingot::{Field, FieldKind, Schema};
    let shape = |kinds: &[(FieldKind, Option<u32>)]| {
        let field = |(k, &(kind, width)): (usize, &(FieldKind, Option<u32>))| Field {
            name: k.to_string(),
            kind,
            width,
            type_name: None,
        };
        Schema::new(kinds.iter().enumerate().map(field).collect()).unwrap()
    };
    let (cell, sequence) = ((FieldKind::Cell, None), (FieldKind::Sequence, None));
    let column = |width| (FieldKind::Column, Some(width));
    vec![
        Schema::records(),
        shape(&[column(4), cell, sequence, column(3), cell]),
        shape(&[sequence, sequence]),
        shape(&[column(1)]),
    ]
}
