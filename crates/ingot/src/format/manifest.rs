//! The list of files in the manifest of a data set, in the part of one of its writers, or in the
//! journal of a build.
//!
//! The list may have a hundred thousand entries. The other members are few, and Python knows
//! what they mean.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Unexpected, Visitor};
use serde_json::value::RawValue;

use super::{Violation, bail};

/// Most bytes in the name of a file.
const NAME_MAX: usize = 255;

/// Most files of added columns that one file of rows may have.
pub const COLUMNS_MAX: usize = 64;

/// A file of rows.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// Its name in the directory.
    pub name: String,
    /// Number of its rows, those that are deleted included.
    #[serde(deserialize_with = "number")]
    pub rows: u64,
    /// Its size.
    #[serde(deserialize_with = "number")]
    pub nbytes: u64,
    /// The id in its header, in hexadecimal digits; earlier manifests had none.
    #[serde(default)]
    pub id: Option<String>,
    /// Which of its rows are deleted.
    #[serde(skip)]
    pub deleted: Option<Deleted>,
    /// Files with values of added and replaced fields. The last one that has a field counts.
    #[serde(skip)]
    pub columns: Vec<Columns>,
}

/// The deleted rows of a file: a file with a bitmap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// The name of the bitmap.
    pub name: String,
    /// Its size.
    pub nbytes: u64,
    /// The id in its header.
    pub id: String,
    /// Number of deleted rows.
    pub count: u64,
}

/// Values of some fields for all rows of a file, in a file of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Its name.
    pub name: String,
    /// Its size.
    pub nbytes: u64,
    /// The id in its header.
    pub id: String,
    /// The fields.
    pub fields: Vec<String>,
}

impl Shard {
    /// Returns the names of all its files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let deleted = self.deleted.iter().map(|one| one.name.as_str());
        let columns = self.columns.iter().map(|one| one.name.as_str());
        std::iter::once(self.name.as_str()).chain(deleted).chain(columns)
    }

    /// Returns the size of all its files.
    pub fn num_bytes(&self) -> u64 {
        let deleted = self.deleted.iter().map(|one| one.nbytes);
        let columns = self.columns.iter().map(|one| one.nbytes);
        deleted.chain(columns).fold(self.nbytes, u64::saturating_add)
    }
}

/// A JSON object that lists files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The files, in order; or what is wrong with the list, which a later version may write in
    /// another way.
    pub shards: Result<Vec<Shard>, Violation>,
    /// The other members, as JSON.
    pub rest: String,
}

impl Manifest {
    /// Reads the list of files, and takes the other members as they are.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, Violation> {
        let (shards, rest) = match split::<Vec<Shard>>(bytes) {
            Ok((shards, rest)) => (check(&shards).map(|()| shards), rest),
            Err(why) => (Err(why), split::<&RawValue>(bytes)?.1),
        };
        Ok(Manifest { shards, rest })
    }
}

/// Returns the list of an object as `T`, and the other members as JSON.
fn split<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, String), Violation> {
    let members: Members<'_, T> = serde_json::from_slice(bytes).map_err(violation)?;
    let mut rest = String::from("{");
    for (key, value) in &members.others {
        let comma = if rest.len() > 1 { ", " } else { "" };
        rest.push_str(&format!("{comma}{key}: {value}"));
    }
    rest.push('}');
    Ok((members.shards, rest))
}

fn violation(error: serde_json::Error) -> Violation {
    Violation::new(error.to_string())
}

struct Members<'a, T> {
    shards: T,
    /// Keys and values as JSON.
    others: Vec<(String, &'a RawValue)>,
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Members<'a, T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct Object<T>(std::marker::PhantomData<T>);

        impl<'a, T: Deserialize<'a>> Visitor<'a> for Object<T> {
            type Value = Members<'a, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let (mut shards, mut others) = (None, Vec::new());
                while let Some(key) = map.next_key::<String>()? {
                    if key != "shards" {
                        let key = serde_json::to_string(&key).map_err(M::Error::custom)?;
                        others.push((key, map.next_value()?));
                    } else if shards.replace(map.next_value()?).is_some() {
                        return Err(M::Error::duplicate_field("shards"));
                    }
                }
                let shards = shards.ok_or_else(|| M::Error::missing_field("shards"))?;
                Ok(Members { shards, others })
            }
        }

        from.deserialize_map(Object(std::marker::PhantomData))
    }
}

/// Reads a number of rows or bytes.
fn number<'a, D: Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
    struct Number;

    impl Visitor<'_> for Number {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("rows and nbytes as numbers below 2^63")
        }

        fn visit_u64<E: serde::de::Error>(self, found: u64) -> Result<u64, E> {
            if found >> 63 == 0 {
                return Ok(found);
            }
            Err(E::invalid_value(Unexpected::Unsigned(found), &self))
        }
    }

    from.deserialize_u64(Number)
}

fn check(shards: &[Shard]) -> Result<(), Violation> {
    let mut names = HashSet::with_capacity(shards.len());
    for Shard { name, id, .. } in shards {
        if !is_name(name) {
            bail!("{name:?} is not the name of a file in this directory");
        }
        if let Some(id) = id
            && !is_id(id)
        {
            bail!("{name}: an id is 32 hexadecimal digits, not {id:?}");
        }
        if !names.insert(name.as_str()) {
            bail!("it lists {name} twice");
        }
    }
    Ok(())
}

fn is_name(name: &str) -> bool {
    let is_step = matches!(name, "" | "." | "..");
    !is_step && name.len() <= NAME_MAX && !name.contains('/') && is_printable(name)
}

/// Whether a terminal shows a text as it is.
fn is_printable(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if text.bytes().all(is_plain) {
        return true;
    }
    // Quotes and backslashes are escaped although they are shown.
    let text = text.replace(['\\', '\'', '"'], "_");
    text.escape_debug().eq(text.chars())
}

fn is_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    fn manifest(shards: &str) -> Manifest {
        let text = format!(
            r#"{{"version": 1, "spec": {{"a": "int"}}, "shards": {shards}, "metadata": {{}},
                "la\"ter": [1]}}"#
        );
        Manifest::decode(text.as_bytes()).unwrap()
    }

    fn shard(name: &str) -> String {
        format!(r#"{{"name": "{name}", "rows": 3, "nbytes": 9, "id": "{ID}"}}"#)
    }

    #[test]
    fn the_list_and_the_rest_come_apart() {
        let found = manifest(&format!("[{}]", shard("a.ingot")));
        let wanted = Shard {
            name: "a.ingot".to_owned(),
            rows: 3,
            nbytes: 9,
            id: Some(ID.to_owned()),
            deleted: None,
            columns: Vec::new(),
        };
        assert_eq!(found.shards, Ok(vec![wanted]));
        let rest = r#"{"version": 1, "spec": {"a": "int"}, "metadata": {}, "la\"ter": [1]}"#;
        assert_eq!(found.rest, rest);
    }

    #[test]
    fn names_may_have_letters_of_any_language() {
        for name in ["a b", "\u{e9}", "e\u{301}", "\u{65e5}", "it's", "..."] {
            assert!(manifest(&format!("[{}]", shard(name))).shards.is_ok(), "{name}");
        }
    }

    #[test]
    fn invalid_lists_are_rejected_and_the_rest_is_there() {
        let refused = [
            r#"[{"name": "a", "rows": -1, "nbytes": 1}]"#.to_owned(),
            r#"[{"name": "a", "rows": 1.0, "nbytes": 1}]"#.to_owned(),
            r#"[{"name": "a", "rows": 9223372036854775808, "nbytes": 1}]"#.to_owned(),
            r#"[{"name": "a", "rows": 1, "nbytes": 1, "id": "AB"}]"#.to_owned(),
            r#"[{"name": "a", "rows": 1, "nbytes": 1, "more": 1}]"#.to_owned(),
            r#"[{"name": "a", "rows": 1, "rows": 1, "nbytes": 1}]"#.to_owned(),
            format!("[{}, {}]", shard("a"), shard("a")),
            "3".to_owned(),
            "{}".to_owned(),
        ];
        let names = ["a/b", "..", ".", "", r"a\u0000b", r"a\nb", r"\u202eb", &"a".repeat(256)];
        let named = names.iter().map(|name| format!("[{}]", shard(name)));
        for shards in refused.into_iter().chain(named) {
            let found = manifest(&shards);
            assert!(found.shards.is_err(), "{shards}");
            assert!(found.rest.contains("\"version\": 1"), "{}", found.rest);
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        let texts: [&[u8]; 6] =
            [b"{}", b"\xff", b"[]", b"{", br#"{"shards": [], "shards": []}"#, b"null"];
        for text in texts {
            assert!(Manifest::decode(text).is_err(), "{text:?}");
        }
    }
}
