//! What distinguishes a file from others, and from its earlier states.

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a storage knows of the file that it reads, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Bytes of the file.
    pub size: u64,
    /// What else distinguishes it from others.
    pub tag: Tag,
}

/// What besides its size distinguishes a file from others, as far as its storage knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tag {
    /// Which file it is, whatever it holds.
    pub file: Option<FileId>,
    /// When its content was changed, as its owner says, in nanoseconds since 1970.
    pub mtime_ns: Option<i64>,
    /// When the file was changed, as the system says.
    pub ctime_ns: Option<i64>,
}

/// Which local file it is: the numbers of its device and inode, which may be reused, and its
/// creation time, where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
    created: Option<SystemTime>,
}

impl Identity {
    /// Returns the identity of a local file.
    pub fn of(metadata: &Metadata) -> Identity {
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
        let mtime = metadata.modified().ok().and_then(since);
        let tag = Tag {
            file: file_id(metadata),
            mtime_ns: mtime.and_then(|since| i64::try_from(since.as_nanos()).ok()),
            ctime_ns: changed_ns(metadata),
        };
        Identity { size: metadata.len(), tag }
    }

    /// Returns the identity of the file at `path`.
    pub fn at(path: &Path) -> io::Result<Identity> {
        std::fs::metadata(path).map(|found| Identity::of(&found))
    }

    /// Returns whether this is the same file with the same content, as far as its size and the time
    /// of its last change tell.
    pub fn is_unchanged(&self, before: &Identity) -> bool {
        let known = |one: &Identity| (one.size, one.tag.mtime_ns, one.tag.file.clone());
        known(self) == known(before)
    }
}

impl FileId {
    /// Returns which file is at `path`; a link is not followed.
    pub fn at(path: &Path) -> io::Result<Option<FileId>> {
        std::fs::symlink_metadata(path).map(|found| file_id(&found))
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.created.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let created = since.unwrap_or_default().as_nanos();
        write!(f, "{:x}-{:x}-{created:x}", self.device, self.inode)
    }
}

fn file_id(metadata: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    let (device, inode) = (metadata.dev(), metadata.ino());
    Some(FileId { device, inode, created: metadata.created().ok() })
}

fn changed_ns(metadata: &Metadata) -> Option<i64> {
    use std::os::unix::fs::MetadataExt;
    let time = metadata.ctime().checked_mul(1_000_000_000)?.checked_add(metadata.ctime_nsec())?;
    (time >= 0).then_some(time)
}
