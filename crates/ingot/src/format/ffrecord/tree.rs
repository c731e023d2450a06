//! The tree of a packed folder: which record is which file.
//!
//! A packed folder is an FFRecord file whose last record is [`MAGIC`] and a Python pickle of
//! nested `collections.OrderedDict`s from names to record numbers or further dicts. Nothing
//! here executes a pickle: anything that is not part of a tree of names is rejected.

#[cfg(test)]
mod tests;
mod unpickle;

use std::sync::Arc;

use super::{Violation, bail};

/// What the record of a tree begins with.
pub const MAGIC: &[u8; 9] = b"piouhjgbr";

/// Maximum depth of nested folders, the root included.
pub const DEPTH_MAX: usize = 1000;

/// How long a name may be. File systems have 255 bytes at most; each takes three here if it
/// is not text.
pub const NAME_BYTES_MAX: usize = 1024;

/// How long a path from the root may be. File systems take 4096 bytes at most, each of which
/// may be three here.
pub const PATH_BYTES_MAX: usize = 3 * 4096;

/// One name in a folder, not a path: UTF-8 that may contain encoded surrogates, which Python uses
/// for the bytes of a name that are not text. Names that the pickle shares are clones.
pub type Name = Arc<[u8]>;

/// What a name refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A file: the record that holds its bytes.
    File(u64),
    /// A folder.
    Folder(Folder),
}

/// Files and folders by their names, in the order of the tree. At most [`DEPTH_MAX`] deep,
/// so that walking it may recurse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    entries: Vec<(Name, Node)>,
    depth: usize,
    /// Bytes of the longest path to an entry, at any depth.
    path_bytes: usize,
}

impl Folder {
    /// Returns a folder of these entries, which stay in this order. Rejects names that occur
    /// twice, that are not text, that no file can have, or that lead elsewhere.
    #[cfg(test)]
    fn new(entries: Vec<(Name, Node)>) -> Result<Folder, Violation> {
        for (name, _) in &entries {
            check_name(name)?;
        }
        Folder::of_checked(entries)
    }

    /// Returns a folder of these entries, whose names were checked.
    fn of_checked(entries: Vec<(Name, Node)>) -> Result<Folder, Violation> {
        let mut sorted = Vec::new();
        make_room(&mut sorted, entries.len())?;
        sorted.extend(0..entries.len());
        sorted.sort_by_key(|&k: &usize| &entries[k].0);
        let name = |k: usize| &entries[sorted[k]].0;
        if let Some(twice) = (1..sorted.len()).find(|&k| name(k - 1) == name(k)) {
            bail!("the name {} occurs twice", shown(name(twice)));
        }
        let depths = entries.iter().map(|(_, node)| match node {
            Node::File(_) => 0,
            Node::Folder(folder) => folder.depth,
        });
        let depth = 1 + depths.max().unwrap_or(0);
        if depth > DEPTH_MAX {
            bail!("folders are nested more than {DEPTH_MAX} deep");
        }
        let paths = entries.iter().map(|(name, node)| match node {
            Node::File(_) => name.len(),
            Node::Folder(folder) => name.len() + 1 + folder.path_bytes,
        });
        let path_bytes = paths.max().unwrap_or(0);
        if path_bytes > PATH_BYTES_MAX {
            bail!("a path is longer than {PATH_BYTES_MAX} bytes");
        }
        Ok(Folder { entries, depth, path_bytes })
    }

    /// Returns names and their nodes, in the order of the tree.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&Name, &Node)> {
        self.entries.iter().map(|(name, node)| (name, node))
    }
}

/// Reads the tree of a packed folder of `num_files` files from its record. Accepts what Python
/// writes for such a tree in protocols 2 to 5, and plain dicts. Takes memory in proportion to the
/// record.
pub fn decode(record: &[u8], num_files: u64) -> Result<Folder, Violation> {
    let Some(pickle) = record.strip_prefix(MAGIC) else {
        bail!("the record is not the tree of a packed folder");
    };
    unpickle::load(pickle, num_files)
}

fn check_name(name: &[u8]) -> Result<(), Violation> {
    let reserved = matches!(name, b"" | b"." | b"..") || name.len() > NAME_BYTES_MAX;
    if reserved || name.iter().any(|byte| matches!(byte, b'/' | 0)) || !is_text(name) {
        bail!("no file can be named {}", shown(name));
    }
    Ok(())
}

/// Makes room for more entries, or fails if memory runs out.
fn make_room<T>(items: &mut Vec<T>, more: usize) -> Result<(), Violation> {
    items
        .try_reserve(more)
        .map_err(|_| Violation(format!("out of memory for {} entries", items.len() + more)))
}

/// Whether bytes are UTF-8, in which surrogates may stand as if they were characters.
fn is_text(mut bytes: &[u8]) -> bool {
    while let Err(error) = std::str::from_utf8(bytes) {
        let [0xed, 0xa0..=0xbf, 0x80..=0xbf, rest @ ..] = &bytes[error.valid_up_to()..] else {
            return false;
        };
        bytes = rest;
    }
    true
}

/// Returns a name for an error, which a long one shall not fill.
fn shown(name: &[u8]) -> String {
    let (start, dots) = name.split_at_checked(80).map_or((name, ""), |(start, _)| (start, "..."));
    format!("'{}{dots}'", start.escape_ascii())
}
