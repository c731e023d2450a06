//! The tree of a packed folder.
