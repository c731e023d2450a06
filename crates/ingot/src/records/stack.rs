//! The files of a shard as one: a file of rows, files of columns, and which rows are deleted.

use std::sync::Arc;

use super::container::{Container, Stats};
use super::deletes::{self, Deletes};
use super::listing::Listed;
use super::origins::{Fields, Origins};
use super::verification::{Damage, Verification};
use crate::error::Result;
use crate::pool::Pool;

/// A shard whose files are open. Files of columns have the rows of the file of rows, and a row has
/// the same number in all of them. Without the deleted ones, it has another: its *position*.
pub(super) struct Stack {
    rows: Arc<dyn Container>,
    layers: Option<Box<Layers>>,
}

/// What comes on top of a file of rows.
struct Layers {
    columns: Vec<Arc<dyn Container>>,
    /// Where the fields are, if not where the file of rows has them.
    origins: Option<Arc<Origins>>,
    deletes: Option<Arc<Deletes>>,
}

/// A file of a shard, just opened.
enum Opened {
    Stored(Arc<dyn Container>),
    Bitmap(Option<Deletes>),
}

impl From<Arc<dyn Container>> for Stack {
    fn from(rows: Arc<dyn Container>) -> Stack {
        Stack { rows, layers: None }
    }
}

impl Stack {
    /// Opens all files of shards at the same time, and checks them against the list and against
    /// the fields of the data set.
    pub fn open_all(shards: &[&Listed], fields: Option<&Fields>) -> Vec<Result<Stack>> {
        let tasks: Vec<(&Listed, usize)> = shards
            .iter()
            .flat_map(|&shard| (0..shard.num_files()).map(move |place| (shard, place)))
            .collect();
        let opened = Pool::blocking().map(tasks.len(), &|k| {
            let (shard, place) = tasks[k];
            if place < shard.num_stored() {
                shard.open(place).map(Opened::Stored)
            } else {
                shard.read_deleted().map(Opened::Bitmap)
            }
        });
        let mut opened = opened.into_iter();
        let each = shards.iter().map(|shard| {
            let own: Vec<_> = opened.by_ref().take(shard.num_files()).collect();
            Stack::of(shard, own.into_iter().collect::<Result<_>>()?, fields)
        });
        each.collect()
    }

    /// Makes a stack of the open files of a shard.
    fn of(shard: &Listed, opened: Vec<Opened>, fields: Option<&Fields>) -> Result<Stack> {
        let (mut files, mut deletes) = (Vec::with_capacity(opened.len()), None);
        for one in opened {
            match one {
                Opened::Stored(file) => files.push(file),
                Opened::Bitmap(bitmap) => deletes = bitmap.map(Arc::new),
            }
        }
        let origins = Origins::find(&files, fields)?.map(Arc::new);
        let columns = files.split_off(1);
        let rows = files.pop().expect("a shard has a file of rows");
        if let (Some(deletes), Some((listed, _))) = (&deletes, shard.deletes())
            && let Ok(own) = rows.fingerprint()?.try_into()
            && deletes.of != own
        {
            return Err(deletes::misfit(&listed.path.display().to_string(), deletes.of, own));
        }
        let is_plain = columns.is_empty() && origins.is_none() && deletes.is_none();
        let layers = (!is_plain).then(|| Box::new(Layers { columns, origins, deletes }));
        Ok(Stack { rows, layers })
    }

    /// Returns the file of rows.
    #[inline]
    pub fn rows(&self) -> &Arc<dyn Container> {
        &self.rows
    }

    /// Returns the files that values can be in, that of the rows first.
    pub fn files(&self) -> impl Iterator<Item = &Arc<dyn Container>> {
        let columns = self.layers.iter().flat_map(|layers| &layers.columns);
        std::iter::once(&self.rows).chain(columns)
    }

    /// Returns a file by its place among [`Stack::files`].
    #[inline]
    pub fn file(&self, place: usize) -> &Arc<dyn Container> {
        match (place, &self.layers) {
            (0, _) | (_, None) => &self.rows,
            (_, Some(layers)) => &layers.columns[place - 1],
        }
    }

    /// Returns the place of the file that field `field` of the data set is in, and the field's
    /// place there; none if it is missing in all rows, or does not exist.
    #[inline]
    pub fn origin(&self, field: usize) -> Option<(usize, usize)> {
        match self.layers.as_ref().and_then(|layers| layers.origins.as_ref()) {
            None => Some((0, field)),
            Some(origins) => origins.get(field),
        }
    }

    /// Returns which rows are live, if some are not.
    pub fn deletes(&self) -> Option<&Deletes> {
        self.layers.as_ref().and_then(|layers| layers.deletes.as_deref())
    }

    /// Number of rows that are not deleted.
    pub fn num_live(&self) -> u64 {
        self.deletes().map_or_else(|| self.rows.num_rows(), |deletes| deletes.live.len())
    }

    /// Returns the row at a position, which must exist.
    #[inline]
    pub fn row(&self, position: u64) -> u64 {
        match &self.layers {
            None => position,
            Some(_) => self.deletes().map_or(position, |deletes| deletes.live.select(position)),
        }
    }

    /// Returns the position of a row, or of the next one that is not deleted.
    pub fn position(&self, row: u64) -> u64 {
        self.deletes().map_or(row, |deletes| deletes.live.rank(row))
    }

    /// Returns the same files for the child of a fork.
    pub fn after_fork(&self) -> Stack {
        let layers = self.layers.as_ref().map(|layers| {
            Box::new(Layers {
                columns: layers.columns.iter().map(|file| file.after_fork()).collect(),
                origins: layers.origins.clone(),
                deletes: layers.deletes.clone(),
            })
        });
        Stack { rows: self.rows.after_fork(), layers }
    }

    /// Returns figures about all files together.
    pub fn stats(&self) -> Stats {
        let bitmap = self.deletes().map(|deletes| deletes.stats.clone());
        let each = self.files().map(|file| file.stats()).chain(bitmap);
        let all = each.reduce(|sum, next| sum.and(&next)).unwrap_or_default();
        Stats { rows: self.num_live(), ..all }
    }

    /// Checks every byte of all files; `first` rows are before those of the stack. `progress` is
    /// called with the rows done and may stop the work by returning an error.
    pub fn verify(
        &self,
        shard: Option<&Listed>,
        first: u64,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Verification> {
        let rows = self.num_live();
        let files = self.files().count() as u64;
        let mut found = Verification { rows, damaged: Vec::new() };
        for (done, file) in (0..).zip(self.files()) {
            let before = first + done * (rows / files);
            let one = file.verify(&mut |row| progress(before + self.position(row) / files))?;
            let damaged = one.damaged.into_iter().chain(cut_of(&**file));
            found.damaged.extend(damaged.map(|damage| self.renumbered(&**file, first, damage)));
        }
        if let Some((deleted, claim)) = shard.and_then(Listed::deletes) {
            found.damaged.extend(deletes::verify(&deleted.path.as_path().into(), &claim));
        }
        if self.layers.is_some() {
            progress(first + rows)?;
        }
        Ok(found)
    }

    /// Returns damage of a file with its row as the user counts it. Damage of deleted rows makes
    /// no row unreadable.
    fn renumbered(&self, file: &dyn Container, first: u64, damage: Damage) -> Damage {
        let Some(record) = damage.record else { return damage };
        let told = format!("{}: record {record}: ", file.source().name);
        let end = record + damage.records;
        let position = self.position(record);
        let records = self.position(end) - position;
        if records > 0 || self.deletes().is_none() {
            let number = first + position;
            let here = told.replace(&format!("record {record}: "), &format!("record {number}: "));
            let reason = damage.reason.replacen(&told, &here, 1);
            return Damage { record: Some(number), records, reason, ..damage };
        }
        let rows = match damage.records {
            0 | 1 => format!("row {record}"),
            _ => format!("rows {record} to {}", end - 1),
        };
        let why = damage.reason.strip_prefix(&told).unwrap_or(&damage.reason);
        let reason = format!("deleted {rows} of {}: {why}", file.source().name);
        Damage { record: None, records: 0, reason, ..damage }
    }
}

/// Returns the damage of a file that is shorter than it was when it was opened: the end of a
/// mapped page shows zeros then, or what was there before.
fn cut_of(file: &dyn Container) -> Option<Damage> {
    let source = file.source();
    let (size, expected) = (source.storage.size().ok()?, file.stats().file_bytes);
    let reason =
        || format!("{}: the file was truncated from {expected} to {size} bytes", source.name);
    (size < expected).then(|| Damage::elsewhere((size, reason())))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::format::ingot::{Field, FieldKind, Schema};
    use crate::records::sequence::Sequence;
    use crate::records::{
        Ask, Compression, Mode, Options, Reader, Rows, Value, Writer, fetch_found,
    };
    use crate::storage::{Delayed, Memory};

    /// Returns a file with a field of kind cell, over a storage that counts waits.
    fn slow_file(name: &str, clock: &Arc<AtomicU64>) -> Arc<dyn Container> {
        let (kind, memory) = (FieldKind::Cell, Memory::new());
        let field = Field { name: name.to_owned(), kind, width: None, type_name: None };
        let schema = Schema::new(vec![field]).unwrap();
        let options = Options { compression: Compression::None, ..Options::default() };
        let target = Box::new(memory.clone());
        let mut writer = Writer::create(target, name, schema, "{}", options).unwrap();
        for row in 0..100 {
            writer.append_row(&[Value::Cell(format!("{name} {row}").as_bytes())]).unwrap();
        }
        writer.close().unwrap();
        let storage = Delayed::new(memory, Duration::from_millis(100)).with_clock(clock);
        Arc::new(Reader::open(Arc::new(storage), name, Mode::Whole, &mut || Ok(())).unwrap())
    }

    #[test]
    fn a_batch_over_all_files_of_shards_waits_once() {
        let clock = Arc::new(AtomicU64::new(0));
        let fields: Vec<Field> = ["rows", "added", "more"]
            .map(|name| slow_file(name, &clock).table().unwrap().schema().fields()[0].clone())
            .into();
        let schema = Schema::new(fields).unwrap();
        let fields = Fields { schema: Arc::new(schema.clone()), is_exact: false };
        let stack = |_| {
            let files = ["rows", "added", "more"].map(|name| slow_file(name, &clock));
            let opened = files.map(Opened::Stored).into();
            let shard = Listed::plain("rows".into(), 100, None);
            Stack::of(&shard, opened, Some(&fields)).unwrap()
        };
        let files = Sequence::of((0..4).map(stack).collect());
        let rows = Rows::over(Arc::new(files), schema);
        let asks = [0, 1, 2].map(|field| Ask { field, elements: None });
        let numbers = [7, 399, 120, 250];
        let mut waits = Vec::new();
        // On a busy machine a thread may come too late to wait with the others.
        for _ in 0..3 {
            let rows = rows.after_fork();
            let before = clock.load(Ordering::SeqCst);
            let found = rows.find(&numbers, &asks).unwrap();
            let located = clock.load(Ordering::SeqCst);
            let values = fetch_found(&[(&rows, found)], |len| Some(vec![0; len])).unwrap();
            assert_eq!(values[0][1], b"added 7added 99added 20added 50");
            waits.push((located - before, clock.load(Ordering::SeqCst) - located));
        }
        let least = |waits: &mut dyn Iterator<Item = u64>| waits.min().unwrap();
        assert_eq!(least(&mut waits.iter().map(|wait| wait.0)), 1, "pages of all files: {waits:?}");
        assert_eq!(least(&mut waits.iter().map(|wait| wait.1)), 1, "cells of all files: {waits:?}");
    }
}
