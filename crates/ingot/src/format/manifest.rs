//! The list of files in the manifest of a data set.
//!
//! Python reads the rest of a manifest; the list may have a hundred thousand entries.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Violation;

/// One file of a data set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Its name in the directory.
    pub name: String,
    /// Number of its rows.
    pub rows: u64,
    /// Its size.
    pub nbytes: u64,
    /// The id in its header, in hexadecimal digits; earlier manifests had none.
    pub id: Option<String>,
}

/// A manifest: its list of files, and the rest of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The files, in order.
    pub shards: Vec<Shard>,
    /// The manifest without files, as JSON.
    pub head: String,
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    version: &'a RawValue,
    #[serde(borrow)]
    spec: &'a RawValue,
    shards: Vec<Shard>,
    #[serde(borrow)]
    metadata: &'a RawValue,
    #[serde(borrow)]
    runs: Option<&'a RawValue>,
    #[serde(borrow)]
    build: Option<&'a RawValue>,
}

impl Manifest {
    /// Reads the list of files. What it refuses may still be a manifest, with names that are
    /// unusual: this is for those that are plain.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, Violation> {
        let stored: Stored<'_> =
            serde_json::from_slice(bytes).map_err(|error| Violation::new(error.to_string()))?;
        let mut names = HashSet::with_capacity(stored.shards.len());
        for shard in &stored.shards {
            check(shard)?;
            if !names.insert(shard.name.as_str()) {
                return Err(Violation::new(format!("it lists {} twice", shard.name)));
            }
        }
        let members = [
            ("version", Some(stored.version)),
            ("spec", Some(stored.spec)),
            ("metadata", Some(stored.metadata)),
            ("runs", stored.runs),
            ("build", stored.build),
        ];
        let members = members
            .iter()
            .filter_map(|(name, value)| Some(format!("{name:?}: {}", value.as_ref()?.get())));
        let head = format!("{{{}, \"shards\": []}}", members.collect::<Vec<_>>().join(", "));
        Ok(Manifest { shards: stored.shards, head })
    }
}

fn check(shard: &Shard) -> Result<(), Violation> {
    let Shard { name, rows, nbytes, id } = shard;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/\\".contains(&byte));
    if !is_plain || name.is_empty() || name == "." || name == ".." {
        return Err(Violation::new(format!("{name:?} is not a plain name of a file")));
    }
    let is_id = |id: &String| {
        id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if !id.as_ref().is_none_or(is_id) || (rows | nbytes) >> 63 != 0 {
        return Err(Violation::new(format!("{name}: rows, bytes or id are not valid")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(shards: &str) -> Result<Manifest, Violation> {
        let text = format!(
            r#"{{"version": 1, "spec": {{"a": "int"}}, "shards": [{shards}], "metadata": {{}},
                "later": [1]}}"#
        );
        Manifest::decode(text.as_bytes())
    }

    #[test]
    fn the_list_and_the_rest_come_apart() {
        let id = "0123456789abcdef0123456789abcdef";
        let text = format!(r#"{{"name": "a.ingot", "rows": 3, "nbytes": 9, "id": "{id}"}}"#);
        let found = manifest(&text).unwrap();
        let shard =
            Shard { name: "a.ingot".to_owned(), rows: 3, nbytes: 9, id: Some(id.to_owned()) };
        assert_eq!(found.shards, [shard]);
        let head = r#"{"version": 1, "spec": {"a": "int"}, "metadata": {}, "shards": []}"#;
        assert_eq!(found.head, head);
    }

    #[test]
    fn what_is_not_plain_is_refused() {
        let refused = [
            r#"{"name": "a/b", "rows": 1, "nbytes": 1}"#,
            r#"{"name": "..", "rows": 1, "nbytes": 1}"#,
            r#"{"name": "", "rows": 1, "nbytes": 1}"#,
            r#"{"name": "a", "rows": -1, "nbytes": 1}"#,
            r#"{"name": "a", "rows": 1.0, "nbytes": 1}"#,
            r#"{"name": "a", "rows": 9223372036854775808, "nbytes": 1}"#,
            r#"{"name": "a", "rows": 1, "nbytes": 1, "id": "AB"}"#,
            r#"{"name": "a", "rows": 1, "nbytes": 1, "more": 1}"#,
            r#"{"name": "a", "rows": 1, "rows": 1, "nbytes": 1}"#,
            r#"{"name": "a", "rows": 1, "nbytes": 1}, {"name": "a", "rows": 1, "nbytes": 1}"#,
        ];
        for shards in refused {
            assert!(manifest(shards).is_err(), "{shards}");
        }
        assert!(Manifest::decode(b"{}").is_err());
        assert!(Manifest::decode(b"\xff").is_err());
    }
}
