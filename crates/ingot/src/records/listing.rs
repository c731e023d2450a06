//! Files that somebody has listed, opened when they are needed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fs, io};

use super::container::Container;
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
    /// Opens the file, and holds it against the list and against the fields that all files
    /// must have.
    pub fn open(&self, schema: Option<&Schema>) -> Result<Arc<dyn Container>> {
        let file = open(&self.path.as_path().into(), Mode::Whole, true, &mut || Ok(()))?;
        let refused = |reason: String| Error::Format { path: name(&self.path), reason };
        if file.num_rows() != self.rows {
            let (found, listed) = (file.num_rows(), self.rows);
            let why = format!("the file has {found} rows, but the manifest says {listed}");
            return Err(refused(why));
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

/// A file of a list whose size is another one than the list says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Odd {
    /// Its place in the list.
    pub number: usize,
    /// Its size; none if there is no such file.
    pub found: Option<u64>,
}

/// Compares the sizes of files in a folder with a list of names and sizes, and returns the
/// first one that differs. Asks for many at the same time.
pub fn find_odd(folder: &Path, shards: &[Shard]) -> Result<Option<Odd>> {
    let odd: Mutex<Option<Result<Odd>>> = Mutex::new(None);
    let steps = shards.len().div_ceil(TOGETHER);
    Pool::blocking().run(steps, &|step| {
        for (number, shard) in shards.iter().enumerate().skip(step * TOGETHER).take(TOGETHER) {
            let path = folder.join(&shard.name);
            let found = match fs::metadata(&path) {
                Ok(found) if found.len() == shard.nbytes => continue,
                Ok(found) => Ok(Odd { number, found: Some(found.len()) }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Ok(Odd { number, found: None })
                }
                Err(source) => {
                    let path = name(&path);
                    Err(Error::Storage { path, record: None, offset: 0, action: "open", source })
                }
            };
            let mut first = odd.lock().expect("no panics under this lock");
            let is_first = match &*first {
                Some(Ok(before)) => before.number > number,
                Some(Err(_)) => false,
                None => true,
            };
            if is_first {
                *first = Some(found);
            }
            return;
        }
    });
    odd.into_inner().expect("no panics under this lock").transpose()
}

/// Files that one thread asks for.
const TOGETHER: usize = 1024;

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
