//! A file of rows as a sequence: read one, many or all, append, recover, verify.

mod arrayrecord;
mod bag;
mod bits;
mod cache;
mod container;
mod content;
mod csv;
pub mod deletes;
mod derived;
mod draft;
mod fetch;
mod ffrecord;
mod groups;
mod hdf5;
pub mod indexed;
mod ingot;
mod jsonlines;
mod layout;
mod listing;
mod litdata;
mod live;
mod locate;
mod mds;
mod npy;
mod numbering;
mod open;
mod origins;
mod publish;
mod read_ahead;
mod rows;
mod sequence;
mod shards;
mod source;
mod stack;
mod tar;
mod tfrecord;
mod together;
mod verification;

pub use arrayrecord::{ArCodec, ArOptions, ArWriter, ArrayRecord, write_arrayrecord};
pub use bag::{
    Bag, BagOptions, BagWriter, Existing, Packer, Packing, Placement, open_bag, packing_of,
    write_bag,
};
pub use cache::Pin;
pub use container::{Cell, Container, Form, Stats, Stored, Table};
pub use content::{content_of, hex, id_of, identity_of};
pub use draft::{Finish, RecordWriter, Spool};
pub use fetch::{Files, add_growth, check_growth};
pub use ffrecord::{FfRecord, FfWriter, write_ffrecord};
pub use hdf5::{Column, ColumnLayout, Hdf5, Share};
pub use indexed::Compressed;
pub use ingot::{
    Choice, Compression, Decision, Decisions, Options, Packed, Reader, Recovery, Value, Writer,
    append, path, recover,
};
pub use jsonlines::JsonLines;
pub use layout::layout_of;
pub use listing::{Columns, Deleted, Listed, Odd, find_odd};
pub use live::Live;
pub use locate::{Missing, find, prepare};
pub use npy::{Array, Npy};
pub use open::{FORMATS, Format, Mode, Opening, open};
pub use read_ahead::{ReadAhead, Window};
pub use rows::{Ask, Found, Rows};
pub use sequence::Sequence;
pub use source::{Source, Watch};
pub use tar::Tar;
pub use tfrecord::TfRecord;
pub use together::fetch_found;
pub use verification::{Damage, Verification};
