//! Files of every version of the format that was ever released, and what is in them.
//!
//! The files are in `tests/data`, one directory for each version (`v1`), with a manifest of
//! their rows. They are never made anew. To add one, describe it in [`golden`], run
//! this test once with `INGOT_ADD_GOLDEN=1`, which makes those that do not exist, and
//! commit the result.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

use ingot::format::checksum::FileId;
use ingot::format::ingot::{FieldKind, Schema, VERSION};
use ingot::records::{self, Compression, Mode, Options, Writer, find};
use ingot::storage::Memory;
use serde::{Deserialize, Serialize};
use support::{
    Item, NAME, Row, append_rows, column_of, fields_rows, fields_schema, open, options, read_rows,
    record_rows, recover, shared, similar_rows, without_columns,
};

/// What is in a golden file, in hexadecimal.
#[derive(Serialize, Deserialize)]
struct Described {
    id: String,
    metadata: String,
    /// Kind and width of each field.
    fields: Vec<(FieldKind, Option<u32>)>,
    closed: bool,
    rows: Vec<Vec<HexItem>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HexItem {
    Cell(String),
    Sequence(Vec<String>),
    Column(String),
}

type Manifest = BTreeMap<String, Described>;

/// How a golden file is made.
struct Golden {
    name: &'static str,
    schema: Schema,
    metadata: &'static str,
    options: Options,
    /// Rows that are flushed, or closed if the file is.
    runs: Vec<Vec<Row>>,
    ending: Ending,
}

#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Closed,
    /// Closed behind each run, and opened again for the next.
    ClosedEachTime,
    /// The last run is written, but not committed.
    Torn,
}

const ID: FileId = *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";

fn golden() -> Vec<Golden> {
    let records = record_rows(&[
        b"first".to_vec(),
        Vec::new(),
        vec![0; 40],
        (0..=255).collect(),
        b"\x89IngEnd\nIPAG".to_vec(),
    ]);
    let none = options(Compression::None);
    let file = |name, options, runs: Vec<Vec<Row>>, ending| Golden {
        name,
        schema: Schema::records(),
        metadata: "{}",
        options,
        runs,
        ending,
    };
    let similar = similar_rows(0..130);
    let few = similar_rows(200..208);
    vec![
        file("empty.ingot", none, vec![], Ending::Closed),
        Golden {
            metadata: "{\"origin\": \"a golden file\", \"numbers\": [1, 2.5, null]}",
            ..file("records.ingot", none, vec![records.clone()], Ending::Closed)
        },
        file(
            "zstd_dictionary.ingot",
            options(Compression::Zstd),
            vec![similar[..120].to_vec(), similar[120..].to_vec()],
            Ending::Closed,
        ),
        file("lz4.ingot", options(Compression::Lz4), vec![few.clone()], Ending::Closed),
        Golden {
            schema: fields_schema(),
            ..file(
                "fields.ingot",
                none,
                vec![fields_rows(5, 31), fields_rows(4, 32)],
                Ending::Closed,
            )
        },
        file(
            "appended.ingot",
            none,
            vec![records.clone(), few.clone(), records.clone()],
            Ending::ClosedEachTime,
        ),
        file("unfinished.ingot", none, vec![records.clone(), few, records], Ending::Torn),
    ]
}

impl Golden {
    fn rows(&self) -> Vec<Row> {
        let committed = self.runs.len() - usize::from(self.ending == Ending::Torn);
        self.runs[..committed].concat()
    }

    fn write(&self) -> Vec<u8> {
        let storage = Memory::new();
        let mut writer = Writer::create_with_id(
            Box::new(storage.clone()),
            NAME,
            self.schema.clone(),
            self.metadata,
            self.options,
            ID,
        )
        .unwrap();
        for (k, run) in self.runs.iter().enumerate() {
            if k > 0 && self.ending == Ending::ClosedEachTime {
                writer.close().unwrap();
                let target = Box::new(storage.clone());
                writer =
                    records::append(&shared(&storage), target, NAME, self.options, &mut || Ok(()))
                        .unwrap()
                        .0;
            }
            append_rows(&mut writer, run);
            if self.ending == Ending::Torn && k + 1 == self.runs.len() {
                writer.submit().unwrap();
                writer.abandon();
                return storage.bytes();
            }
            writer.flush().unwrap();
        }
        writer.close().unwrap();
        storage.bytes()
    }

    fn describe(&self) -> Described {
        let item = |item: &Item| match item {
            Item::Cell(bytes) => HexItem::Cell(hex(bytes)),
            Item::Sequence(elements) => {
                HexItem::Sequence(elements.iter().map(|element| hex(element)).collect())
            }
            Item::Column(bytes) => HexItem::Column(hex(bytes)),
        };
        Described {
            id: hex(&ID),
            metadata: self.metadata.to_owned(),
            fields: self.schema.fields().iter().map(|field| (field.kind, field.width)).collect(),
            closed: self.ending != Ending::Torn,
            rows: self.rows().iter().map(|row| row.iter().map(item).collect()).collect(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

fn rows_of(described: &Described) -> Vec<Row> {
    let item = |item: &HexItem| match item {
        HexItem::Cell(bytes) => Item::Cell(unhex(bytes)),
        HexItem::Sequence(elements) => {
            Item::Sequence(elements.iter().map(|element| unhex(element)).collect())
        }
        HexItem::Column(bytes) => Item::Column(unhex(bytes)),
    };
    described.rows.iter().map(|row| row.iter().map(item).collect()).collect()
}

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data")
}

fn versions() -> Vec<PathBuf> {
    let mut versions: Vec<PathBuf> =
        fs::read_dir(data()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_version = |name: &str| name.strip_prefix('v').is_some_and(|n| n.parse::<u16>().is_ok());
    versions.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_version));
    versions.sort();
    versions
}

fn current() -> PathBuf {
    data().join(format!("v{}", VERSION.0))
}

fn manifest(version: &Path) -> Manifest {
    let text = fs::read_to_string(version.join("manifest.json")).unwrap_or("{}".to_owned());
    serde_json::from_str(&text).unwrap()
}

/// Makes the golden files of this version that do not exist yet, if asked to.
fn add_missing() {
    static ONCE: Once = Once::new();
    if std::env::var_os("INGOT_ADD_GOLDEN").is_some() {
        ONCE.call_once(add);
    }
}

fn add() {
    fs::create_dir_all(current()).unwrap();
    let mut manifest = manifest(&current());
    for golden in golden().iter().filter(|golden| !current().join(golden.name).exists()) {
        fs::write(current().join(golden.name), golden.write()).unwrap();
        manifest.insert(golden.name.to_owned(), golden.describe());
    }
    let text = serde_json::to_string_pretty(&manifest).unwrap() + "\n";
    fs::write(current().join("manifest.json"), text).unwrap();
}

#[test]
fn files_of_every_version_hold_what_was_written() {
    add_missing();
    let versions = versions();
    assert!(versions.contains(&current()), "this version has golden files: {versions:?}");
    for version in versions {
        let manifest = manifest(&version);
        assert!(manifest.len() >= 7, "{}", version.display());
        for (name, described) in &manifest {
            let storage = Memory::from(fs::read(version.join(name)).unwrap());
            check(name, described, &storage);
        }
    }
}

fn check(name: &str, described: &Described, storage: &Memory) {
    let rows = rows_of(described);
    assert_eq!(open(storage, Mode::Whole).is_ok(), described.closed, "{name}");
    let reader = open(storage, Mode::Partial).unwrap();
    assert_eq!(reader.num_rows(), rows.len() as u64, "{name}");
    assert_eq!(hex(&reader.header().id), described.id, "{name}");
    assert_eq!(reader.header().metadata, described.metadata, "{name}");
    let fields = reader.schema().fields().iter().map(|field| (field.kind, field.width));
    assert!(fields.eq(described.fields.iter().copied()), "{name}");
    for (found, expected) in read_rows(&reader).into_iter().zip(&rows) {
        assert_eq!(found.unwrap(), without_columns(expected), "{name}");
    }
    for (field, _) in reader.schema().of_kind(FieldKind::Column) {
        assert_eq!(reader.column(field).unwrap(), column_of(&rows, field), "{name}");
    }
    assert_eq!(reader.verify(&mut |_| Ok(())).unwrap().damaged, [], "{name}");
    let recovery = recover(storage).unwrap();
    assert_eq!((recovery.rows, recovery.was_whole), (rows.len() as u64, described.closed));
}

#[test]
fn the_same_rows_give_the_same_bytes_as_ever() {
    add_missing();
    for golden in golden() {
        if golden.options.compression == Compression::None {
            let kept = fs::read(current().join(golden.name)).unwrap();
            assert!(golden.write() == kept, "{} is written otherwise", golden.name);
        }
    }
}

#[test]
fn compressed_golden_files_use_what_they_are_named_after() {
    add_missing();
    for (name, wanted) in [("zstd_dictionary.ingot", (1, true)), ("lz4.ingot", (2, false))] {
        let storage = Memory::from(fs::read(current().join(name)).unwrap());
        let reader = open(&storage, Mode::Whole).unwrap();
        let cells: Vec<_> = (0..reader.num_rows()).map(|row| find(&reader, row).unwrap()).collect();
        let used = cells.iter().any(|cell| {
            cell.raw != cell.stored && (cell.codec.code(), cell.dictionary != 0) == wanted
        });
        assert!(used, "{name}");
    }
}
