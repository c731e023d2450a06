//! The header: what the file is and what its rows look like.

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::schema::{Field, Schema};
use crate::format::checksum::{self, FileId, Seed};
use crate::format::fields::Fields;
use crate::format::{Violation, bail};

/// First bytes of every file: a byte that no text begins with, the name, and a
/// line end that a text-mode copy would mangle.
const MAGIC: [u8; 8] = *b"\x89INGOT\r\n";

/// Major and minor version that this code writes.
pub const VERSION: (u16, u16) = (1, 0);

/// Bytes of the header before its JSON.
pub const HEADER_LEN: usize = 40;

/// Most bytes the JSON of a header may have.
pub const HEADER_MAX: usize = 16 << 20;

/// The header of a file.
#[derive(Debug, Clone)]
pub struct Header {
    /// The random id that seeds every checksum.
    pub id: FileId,
    /// The fields of a row.
    pub schema: Schema,
    /// The user's metadata, a JSON object.
    pub metadata: String,
    /// The header as it stands in the file.
    pub bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Json {
    fields: Vec<Field>,
    metadata: Box<RawValue>,
}

/// Why bytes are not a header this code can use.
#[derive(Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The file is of another kind.
    Foreign,
    /// The file is of a later major version.
    Version(u16),
    /// The header is damaged.
    Damaged(Violation),
}

impl From<Violation> for HeaderError {
    fn from(violation: Violation) -> Self {
        HeaderError::Damaged(violation)
    }
}

impl Header {
    /// Returns the header of a new file. `metadata` is the text of a JSON object.
    pub fn new(id: FileId, schema: Schema, metadata: &str) -> Result<Self, Violation> {
        check_metadata(metadata)?;
        let json = Json {
            fields: schema.fields().to_vec(),
            metadata: RawValue::from_string(metadata.to_owned())
                .map_err(|error| Violation::new(format!("metadata is not JSON: {error}")))?,
        };
        let json = serde_json::to_vec(&json).expect("strings and numbers serialise");
        if json.len() > HEADER_MAX {
            bail!(
                "schema and metadata take {} bytes, at most {HEADER_MAX} are allowed",
                json.len()
            );
        }
        let mut bytes = Vec::with_capacity(HEADER_LEN + json.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.0.to_le_bytes());
        bytes.extend_from_slice(&VERSION.1.to_le_bytes());
        bytes.extend_from_slice(&0_u32.to_le_bytes());
        bytes.extend_from_slice(&id);
        bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
        let crc = checksum::unseeded(&[&bytes[..], &json[..]].concat());
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&json);
        Ok(Header { id, schema, metadata: metadata.to_owned(), bytes })
    }

    /// Whether a file that ends after `bytes` could be one whose header was being written.
    pub fn is_prefix(bytes: &[u8]) -> bool {
        let len = bytes.len().min(MAGIC.len());
        bytes[..len] == MAGIC[..len]
    }

    /// Reads the fixed part and returns how long the whole header is.
    pub fn measure(fixed: &[u8]) -> Result<usize, HeaderError> {
        let mut fields = Fields(fixed);
        if fields.bytes(8).ok() != Some(&MAGIC[..]) {
            return Err(HeaderError::Foreign);
        }
        let major = fields.u16()?;
        if major != VERSION.0 {
            return Err(HeaderError::Version(major));
        }
        let _minor = fields.u16()?;
        fields.zeros(4)?;
        let _id = fields.bytes(16)?;
        let json_len = fields.u32()? as usize;
        let _crc = fields.u32()?;
        if json_len > HEADER_MAX {
            return Err(Violation::new(format!(
                "header declares {json_len} bytes of JSON, at most {HEADER_MAX} are allowed"
            ))
            .into());
        }
        Ok(HEADER_LEN + json_len)
    }

    /// Reads a whole header from exactly its bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let len = Self::measure(bytes)?;
        if bytes.len() != len {
            return Err(Violation::new(format!(
                "header has {len} bytes, the file has {} for it",
                bytes.len()
            ))
            .into());
        }
        let (fixed, json) = bytes.split_at(HEADER_LEN);
        let stored = u32::from_le_bytes(fixed[36..40].try_into().expect("four bytes"));
        let found = checksum::unseeded(&[&fixed[..36], json].concat());
        if stored != found {
            return Err(checksum::mismatch(stored, found).into());
        }
        let id: FileId = fixed[16..32].try_into().expect("sixteen bytes");
        let json: Json = serde_json::from_slice(json)
            .map_err(|error| Violation::new(format!("header JSON: {error}")))?;
        let metadata = json.metadata.get().to_owned();
        check_metadata(&metadata)?;
        let schema = Schema::new(json.fields)?;
        Ok(Header { id, schema, metadata, bytes: bytes.to_vec() })
    }

    /// Returns the seed of the file's checksums.
    pub fn seed(&self) -> Seed {
        Seed::new(&self.id)
    }
}

/// Metadata is a JSON object of bounded depth (the parser's limit of 128).
fn check_metadata(text: &str) -> Result<(), Violation> {
    if !text.trim_start().starts_with('{') {
        bail!("metadata is not a JSON object");
    }
    serde_json::from_str::<Parsed>(text)
        .map(drop)
        .map_err(|error| Violation::new(format!("metadata is not JSON: {error}")))
}

/// JSON that was parsed and not kept: a tree of values would take many times its length.
struct Parsed;

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Parsed)
    }
}

impl<'de> Visitor<'de> for Parsed {
    type Value = Parsed;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Parsed, E> {
        Ok(Parsed)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Parsed, E> {
        Ok(Parsed)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Parsed, E> {
        Ok(Parsed)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Parsed, E> {
        Ok(Parsed)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Parsed, E> {
        Ok(Parsed)
    }

    fn visit_str<E>(self, _: &str) -> Result<Parsed, E> {
        Ok(Parsed)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Parsed, A::Error> {
        while values.next_element::<Parsed>()?.is_some() {}
        Ok(Parsed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Parsed, A::Error> {
        while values.next_entry::<Parsed, Parsed>()?.is_some() {}
        Ok(Parsed)
    }
}
