//! Files of a list, opened when they are needed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::container::Container;
use super::content::hex;
use super::deletes::{self, Claim, Deletes};
use super::open::{Mode, open};
use crate::error::{Error, Result};
use crate::format::checksum::FileId;
use crate::format::ingot::{Field, Schema};
use crate::format::manifest::{COLUMNS_MAX, Shard};
use crate::pool::Pool;

/// A shard of a data set as its list describes it: a file of rows, which of them are deleted,
/// and files with the values of added and replaced fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where the file of rows is.
    pub path: PathBuf,
    /// Number of its rows, those that are deleted included.
    pub rows: u64,
    /// Its id; old lists have none.
    pub id: Option<FileId>,
    /// Which rows are deleted.
    pub deleted: Option<Deleted>,
    /// Files of columns. The last one that has a field counts, before the file of rows.
    pub columns: Vec<Columns>,
}

/// The file with the bitmap of the deleted rows of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// Where it is.
    pub path: PathBuf,
    /// Its id.
    pub id: FileId,
    /// Number of deleted rows.
    pub count: u64,
}

/// A file with the values of some fields, for all rows of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Where it is.
    pub path: PathBuf,
    /// Its id.
    pub id: FileId,
    /// The names of its fields, without the columns that say whether there is a value.
    pub fields: Vec<String>,
}

impl Listed {
    /// Returns a file of rows alone.
    pub fn plain(path: PathBuf, rows: u64, id: Option<FileId>) -> Listed {
        Listed { path, rows, id, deleted: None, columns: Vec::new() }
    }

    /// Checks the numbers.
    pub(super) fn check(&self) -> Result<()> {
        let count = self.deleted.as_ref().map_or(0, |deleted| deleted.count);
        if count > self.rows {
            let why = format!("{count} of {} rows are deleted", self.rows);
            return Err(Error::format(name(&self.path), why));
        }
        if self.columns.len() > COLUMNS_MAX {
            let why = format!("it has more than {COLUMNS_MAX} files of columns");
            return Err(Error::format(name(&self.path), why));
        }
        Ok(())
    }

    /// Number of rows that are not deleted.
    pub(super) fn num_live(&self) -> u64 {
        self.rows - self.deleted.as_ref().map_or(0, |deleted| deleted.count)
    }

    /// Number of files that values can be in.
    pub(super) fn num_stored(&self) -> usize {
        1 + self.columns.len()
    }

    /// Number of all files.
    pub(super) fn num_files(&self) -> usize {
        self.num_stored() + usize::from(self.deleted.is_some())
    }

    /// Opens a file that values can be in, by its place, and checks it against the list.
    pub(super) fn open(&self, place: usize) -> Result<Arc<dyn Container>> {
        let Some(columns) = place.checked_sub(1).map(|place| &self.columns[place]) else {
            return opened(&self.path, self.rows, self.id);
        };
        let file = opened(&columns.path, self.rows, Some(columns.id))?;
        let found = file.table().map(|table| own(table.schema())).unwrap_or_default();
        let listed: HashSet<&str> = columns.fields.iter().map(String::as_str).collect();
        if let Some(other) = found.symmetric_difference(&listed).min() {
            let which = if found.contains(other) { "only the file" } else { "only the manifest" };
            let why = format!("{which} has the field {other:?}");
            return Err(Error::format(name(&columns.path), why));
        }
        Ok(file)
    }

    /// Reads which rows are deleted.
    pub(super) fn read_deleted(&self) -> Result<Option<Deletes>> {
        let Some((deleted, claim)) = self.deletes() else { return Ok(None) };
        deletes::read(&deleted.path.as_path().into(), &claim).map(Some)
    }

    /// Returns where the bitmap is, if some rows are deleted, and what it must say.
    pub(super) fn deletes(&self) -> Option<(&Deleted, Claim)> {
        let deleted = self.deleted.as_ref()?;
        let claim = Claim { id: deleted.id, of: self.id, rows: self.rows, count: deleted.count };
        Some((deleted, claim))
    }

    /// Returns the ids of the files besides that of the rows.
    pub(super) fn other_ids(&self) -> impl Iterator<Item = FileId> {
        let deleted = self.deleted.iter().map(|one| one.id);
        deleted.chain(self.columns.iter().map(|one| one.id))
    }
}

/// Opens a file, and checks it against the list.
fn opened(path: &Path, rows: u64, id: Option<FileId>) -> Result<Arc<dyn Container>> {
    let file = open(&path.into(), Mode::Whole, true, &mut || Ok(()))?;
    let refused = |reason: String| Error::format(name(path), reason);
    if file.num_rows() != rows {
        let found = file.num_rows();
        return Err(refused(format!("the file has {found} rows, but the manifest says {rows}")));
    }
    if let Some(id) = id
        && let own = file.fingerprint()?
        && own != id
    {
        let (own, id) = (hex(&own), hex(&id));
        let why = format!("another file is in its place: its id is {own}, not {id}");
        return Err(refused(why));
    }
    Ok(file)
}

/// Returns the names of the fields, without those of the columns that say whether there is a
/// value.
fn own(schema: &Schema) -> HashSet<&str> {
    let names: HashSet<&str> = schema.fields().iter().map(|field| field.name.as_str()).collect();
    let is_own = |field: &&Field| !field.optional().is_some_and(|name| names.contains(name));
    schema.fields().iter().filter(is_own).map(|field| field.name.as_str()).collect()
}

/// A file whose size differs from the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Odd {
    /// The place of its shard in the list.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// The size that is listed.
    pub listed: u64,
    /// Its size; none if the file does not exist.
    pub found: Option<u64>,
}

/// Compares the sizes of files in a folder with a list of shards, and returns the first one that
/// differs. Looks up many at the same time.
pub fn find_odd(folder: &Path, shards: &[Shard]) -> Result<Option<Odd>> {
    let steps = shards.len().div_ceil(TOGETHER);
    let odd = Pool::blocking().map(steps, &|step| {
        let shards = shards.iter().enumerate().skip(step * TOGETHER).take(TOGETHER);
        let files = shards.flat_map(|(number, shard)| {
            files_of(shard).map(move |(name, nbytes)| (number, name, nbytes))
        });
        files
            .map(|(number, name, nbytes)| odd(number, name, nbytes, &folder.join(name)))
            .find_map(Result::transpose)
    });
    odd.into_iter().flatten().next().transpose()
}

/// Returns the names and sizes of the files of a shard.
fn files_of(shard: &Shard) -> impl Iterator<Item = (&str, u64)> {
    let deleted = shard.deleted.iter().map(|one| (one.name.as_str(), one.nbytes));
    let columns = shard.columns.iter().map(|one| (one.name.as_str(), one.nbytes));
    std::iter::once((shard.name.as_str(), shard.nbytes)).chain(deleted).chain(columns)
}

fn odd(number: usize, file: &str, listed: u64, path: &Path) -> Result<Option<Odd>> {
    let found = match fs::metadata(path) {
        Ok(found) if found.len() == listed => return Ok(None),
        Ok(found) => Some(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(Error::storage(name(path), "open", source)),
    };
    Ok(Some(Odd { number, name: file.to_owned(), listed, found }))
}

/// Shards whose files one thread looks up at a time.
const TOGETHER: usize = 1024;

fn name(path: &Path) -> String {
    path.display().to_string()
}
