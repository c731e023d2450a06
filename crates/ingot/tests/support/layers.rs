//! Shards with deleted rows and files of columns, and the rows that they have.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ingot::format::checksum::FileId;
use ingot::format::ingot::{Field, FieldKind, Schema};
use ingot::records::{
    Ask, Columns, Compression, Deleted, Found, Listed, Options, Rows, deletes, fetch_found, path,
};

use super::{Item, Random, append_row};

/// The fields of all data sets here: their names, kinds and widths, and whether they are optional.
pub const FIELDS: [(&str, FieldKind, Option<u32>, bool); 6] = [
    ("number", FieldKind::Column, Some(4), false),
    ("text", FieldKind::Cell, None, false),
    ("parts", FieldKind::Sequence, None, false),
    ("maybe text", FieldKind::Cell, None, true),
    ("maybe number", FieldKind::Column, Some(8), true),
    ("maybe parts", FieldKind::Sequence, None, true),
];

/// The value of each field, in the order of [`FIELDS`]; none if it is missing.
pub type Values = Vec<Option<Item>>;

/// Which of the fields a file has: a bit for each.
pub type Mask = u32;

pub const ALL: Mask = (1 << FIELDS.len()) - 1;

/// Those that are not optional.
pub const REQUIRED: Mask = 0b111;

/// Returns the numbers of the fields of a mask.
pub fn chosen(mask: Mask) -> impl Iterator<Item = usize> + Clone {
    (0..FIELDS.len()).filter(move |field| mask >> field & 1 == 1)
}

/// Returns the schema of a file or a data set with some of the fields: optional ones have a
/// column more.
pub fn schema_of(mask: Mask) -> Schema {
    let field = |k: usize| {
        let (name, kind, width, is_optional) = FIELDS[k];
        let type_name = Some(format!("{kind:?}{}", if is_optional { "?" } else { "" }));
        Field { name: name.to_owned(), kind, width, type_name }
    };
    let flag = |k: usize| Field {
        name: format!("{}?", FIELDS[k].0),
        kind: FieldKind::Column,
        width: Some(1),
        type_name: Some("present".to_owned()),
    };
    let flags = chosen(mask).filter(|&k| FIELDS[k].3).map(flag);
    Schema::new(chosen(mask).map(field).chain(flags).collect()).unwrap()
}

/// Returns what is stored of a value that is missing.
pub fn nothing(field: usize) -> Item {
    match FIELDS[field] {
        (_, FieldKind::Cell, ..) => Item::Cell(Vec::new()),
        (_, FieldKind::Sequence, ..) => Item::Sequence(Vec::new()),
        (_, FieldKind::Column, width, _) => Item::Column(vec![0; width.unwrap() as usize]),
    }
}

fn value(field: usize, random: &mut Random) -> Option<Item> {
    let (_, kind, width, is_optional) = FIELDS[field];
    if is_optional && random.below(3) == 0 {
        return None;
    }
    let cell = |random: &mut Random| match random.below(4) {
        0 => Vec::new(),
        1 => vec![random.next() as u8; random.below(3000)],
        _ => {
            let len = random.below(40);
            random.bytes(len)
        }
    };
    Some(match kind {
        FieldKind::Cell => Item::Cell(cell(random)),
        FieldKind::Column => Item::Column(random.bytes(width.unwrap() as usize)),
        FieldKind::Sequence => {
            let len = random.below(4);
            Item::Sequence((0..len).map(|_| cell(random)).collect())
        }
    })
}

/// Returns `count` rows of random values.
pub fn random_values(count: usize, random: &mut Random) -> Vec<Values> {
    let row = |random: &mut Random| (0..FIELDS.len()).map(|field| value(field, random)).collect();
    (0..count).map(|_| row(random)).collect()
}

/// Writes some fields of rows to a file, in pages of `page` rows, and returns its id.
pub fn write_file(
    path: &Path,
    mask: Mask,
    rows: &[Values],
    compression: Compression,
    page: usize,
) -> FileId {
    let options = Options { compression, sync: false, ..Options::default() };
    let mut writer = path::create(path, schema_of(mask), "{}", options).unwrap();
    for (number, row) in rows.iter().enumerate() {
        let stored = chosen(mask).map(|k| row[k].clone().unwrap_or_else(|| nothing(k)));
        let flags = chosen(mask).filter(|&k| FIELDS[k].3);
        let flags = flags.map(|k| Item::Column(vec![u8::from(row[k].is_some())]));
        append_row(&mut writer, &stored.chain(flags).collect()).unwrap();
        if number % page == page - 1 {
            writer.flush().unwrap();
        }
    }
    writer.close().unwrap();
    writer.id()
}

/// Returns the bitmap of rows that are not live.
pub fn bitmap_of(live: &[bool]) -> Vec<u8> {
    let mut bitmap = vec![0; live.len().div_ceil(8)];
    for row in (0..live.len()).filter(|&row| !live[row]) {
        bitmap[row / 8] |= 1 << (row % 8);
    }
    bitmap
}

/// Makes a shard, and its rows.
pub struct Shard {
    pub listed: Listed,
    /// All rows, with those that are deleted.
    pub rows: Vec<Values>,
    pub live: Vec<bool>,
}

impl Shard {
    /// Writes a file of `count` rows that has some of the fields.
    pub fn new(path: PathBuf, mask: Mask, count: usize, random: &mut Random) -> Shard {
        let mut rows = random_values(count, random);
        let compression = [Compression::None, Compression::Lz4, Compression::Auto];
        let (compression, page) = (compression[random.below(3)], 1 + random.below(20));
        let id = write_file(&path, mask, &rows, compression, page);
        for row in &mut rows {
            chosen(ALL & !mask).for_each(|field| row[field] = None);
        }
        let listed = Listed::plain(path, count as u64, Some(id));
        Shard { listed, rows, live: vec![true; count] }
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.listed.path.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// Adds a file with new values of some fields.
    pub fn add_columns(&mut self, mask: Mask, random: &mut Random) {
        let rows = random_values(self.rows.len(), random);
        let path = self.beside(&format!(".{}", self.listed.columns.len()));
        let compression = [Compression::None, Compression::Zstd][random.below(2)];
        let id = write_file(&path, mask, &rows, compression, 1 + random.below(30));
        for (row, new) in self.rows.iter_mut().zip(rows) {
            chosen(mask).for_each(|field| row[field] = new[field].clone());
        }
        let fields = chosen(mask).map(|field| FIELDS[field].0.to_owned()).collect();
        self.listed.columns.push(Columns { path, id, fields });
    }

    /// Deletes all rows that are not `live`.
    pub fn delete(&mut self, live: Vec<bool>) {
        let path = self.beside(".deletes");
        let (of, rows) = (self.listed.id.unwrap(), live.len() as u64);
        let bitmap = bitmap_of(&live);
        let (id, nbytes) = deletes::create(&path, of, rows, &bitmap, false).unwrap();
        assert_eq!(nbytes, path.metadata().unwrap().len());
        let count = live.iter().filter(|live| !**live).count() as u64;
        self.listed.deleted = Some(Deleted { path, id, count });
        self.live = live;
    }

    /// Returns the rows that are left.
    pub fn live_rows(&self) -> impl Iterator<Item = &Values> {
        self.rows.iter().zip(&self.live).filter(|(_, live)| **live).map(|(row, _)| row)
    }

    /// Returns a shard with anything on top of it, or nothing.
    pub fn random(path: PathBuf, random: &mut Random) -> Shard {
        let columns: Vec<Mask> =
            (0..random.below(4)).map(|_| 1 + random.below(ALL as usize) as Mask).collect();
        let added = columns.iter().fold(0, |all, mask| all | mask);
        let mask = random.below(ALL as usize + 1) as Mask | (REQUIRED & !added);
        let count = [0, 1, 9, 40, 64, 150][random.below(6)];
        let mut shard = Shard::new(path, if mask == 0 { 1 } else { mask }, count, random);
        columns.into_iter().for_each(|mask| shard.add_columns(mask, random));
        let kept = [None, None, Some(100), Some(50), Some(90), Some(0)][random.below(6)];
        if let Some(percent) = kept {
            shard.delete((0..count).map(|_| random.below(100) < percent).collect());
        }
        shard
    }
}

/// Reads fields of rows: of each field that is asked for, the value of each row.
pub fn read(rows: &Rows, numbers: &[u64], asks: &[Ask]) -> ingot::Result<Vec<Vec<Item>>> {
    let found = rows.find(numbers, asks)?;
    let counts: Vec<Option<Vec<u64>>> = found
        .iter()
        .map(|one| match one {
            Found::Elements(_, counts) => Some(counts.clone()),
            _ => None,
        })
        .collect();
    let lens: Vec<Vec<usize>> = found
        .iter()
        .map(|one| one.cells().iter().map(|cell| cell.raw as usize).collect())
        .collect();
    let columns: Vec<Option<Vec<u8>>> = found
        .iter()
        .map(|one| match one {
            Found::Numbers(values) => Some(values.clone()),
            _ => None,
        })
        .collect();
    let buffers = fetch_found(&[(rows, found)], |len| Some(vec![0; len]))?.remove(0);
    let mut items = Vec::new();
    for (k, ask) in asks.iter().enumerate() {
        let mut rest = &buffers[k][..];
        let mut lens = lens[k].iter();
        let mut next = || rest.split_off(..*lens.next().unwrap()).unwrap().to_vec();
        items.push(match (&columns[k], &counts[k]) {
            (Some(values), _) => {
                let width = rows.schema().fields()[ask.field].width.unwrap() as usize;
                values.chunks(width).map(|value| Item::Column(value.to_vec())).collect()
            }
            (_, Some(counts)) => counts
                .iter()
                .map(|&count| Item::Sequence((0..count).map(|_| next()).collect()))
                .collect(),
            _ => numbers.iter().map(|_| Item::Cell(next())).collect(),
        });
    }
    Ok(items)
}

/// A start, stop and step that may reach past the end of a sequence.
pub fn random_range(random: &mut Random) -> (u64, u64, NonZeroUsize) {
    let start = random.below(4) as u64;
    (start, start + random.below(5) as u64, NonZeroUsize::new(1 + random.below(3)).unwrap())
}

/// Returns the part of a sequence that a range selects.
pub fn cut(item: &Item, (start, stop, step): (u64, u64, NonZeroUsize)) -> Item {
    let Item::Sequence(elements) = item else { return item.clone() };
    let within: Range<usize> =
        elements.len().min(start as usize)..elements.len().min(stop.max(start) as usize);
    Item::Sequence(elements[within].iter().step_by(step.get()).cloned().collect())
}
