//! Files of a list, opened when they are needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::container::Container;
use super::content::hex;
use super::open::{Mode, open};
use crate::error::{Error, Result};
use crate::format::ingot::Schema;
use crate::format::manifest::Shard;
use crate::pool::Pool;

/// A file of a data set as its list describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Where it is.
    pub path: PathBuf,
    /// Number of its rows.
    pub rows: u64,
    /// Its id; old lists have none.
    pub id: Option<[u8; 16]>,
}

impl Listed {
    /// Opens the file, and checks it against the list and against the fields that all files
    /// must have.
    pub fn open(&self, schema: Option<&Schema>) -> Result<Arc<dyn Container>> {
        let file = open(&self.path.as_path().into(), Mode::Whole, true, &mut || Ok(()))?;
        let refused = |reason: String| Error::format(name(&self.path), reason);
        if file.num_rows() != self.rows {
            let (found, listed) = (file.num_rows(), self.rows);
            return Err(refused(format!(
                "the file has {found} rows, but the manifest says {listed}"
            )));
        }
        if let Some(id) = self.id
            && let own = file.fingerprint()?
            && own != id
        {
            let (own, id) = (hex(&own), hex(&id));
            let why = format!("another file is in its place: its id is {own}, not {id}");
            return Err(refused(why));
        }
        if let Some(schema) = schema
            && file.table().is_none_or(|table| table.schema() != schema)
        {
            return Err(refused("its fields differ from those of the other files".to_owned()));
        }
        Ok(file)
    }
}

/// A file whose size differs from the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Odd {
    /// Its place in the list.
    pub number: usize,
    /// Its size; none if the file does not exist.
    pub found: Option<u64>,
}

/// Compares the sizes of files in a folder with a list of names and sizes, and returns the
/// first one that differs. Looks up many at the same time.
pub fn find_odd(folder: &Path, shards: &[Shard]) -> Result<Option<Odd>> {
    let steps = shards.len().div_ceil(TOGETHER);
    let odd = Pool::blocking().map(steps, &|step| {
        let shards = shards.iter().enumerate().skip(step * TOGETHER).take(TOGETHER);
        shards
            .map(|(number, shard)| odd(number, shard, &folder.join(&shard.name)))
            .find_map(Result::transpose)
    });
    odd.into_iter().flatten().next().transpose()
}

fn odd(number: usize, shard: &Shard, path: &Path) -> Result<Option<Odd>> {
    match fs::metadata(path) {
        Ok(found) if found.len() == shard.nbytes => Ok(None),
        Ok(found) => Ok(Some(Odd { number, found: Some(found.len()) })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Some(Odd { number, found: None }))
        }
        Err(source) => Err(Error::storage(name(path), "open", source)),
    }
}

/// Files that one thread looks up at a time.
const TOGETHER: usize = 1024;

fn name(path: &Path) -> String {
    path.display().to_string()
}
