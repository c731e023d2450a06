//! The footer: how many records there are, and where each data chunk is.

use super::SIGNATURE_LEN;
use crate::format::protobuf::{Fields, Wire, put_bytes, put_number};
use crate::format::riegeli::{Group, block};
use crate::format::{Violation, bail};

const VERSION: u64 = 1;

/// What a footer says about a data chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Where it begins.
    pub offset: u64,
    /// Bytes of its records.
    pub decoded_len: u64,
    /// Number of its records.
    pub records: u64,
}

/// What a writer puts into the footer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// Number of records in the file.
    pub records: u64,
    /// The data chunks.
    pub entries: Vec<Entry>,
}

impl Footer {
    /// Returns the records of the footer chunk.
    pub fn encode(&self, options: &str) -> Group {
        let mut about = Vec::new();
        put_number(&mut about, 1, VERSION);
        put_number(&mut about, 2, self.entries.len() as u64);
        put_number(&mut about, 3, self.records);
        put_bytes(&mut about, 4, options.as_bytes());
        let mut message = Vec::new();
        put_bytes(&mut message, 1, &about);
        let mut group = Group::default();
        group.push(&message);
        for entry in &self.entries {
            message.clear();
            put_number(&mut message, 1, entry.offset);
            put_number(&mut message, 2, entry.decoded_len);
            put_number(&mut message, 3, entry.records);
            group.push(&message);
        }
        group
    }
}

/// Where the data chunks of a file are and which records they have.
#[derive(Debug)]
pub struct Index {
    /// Where each data chunk begins; the last one is where the footer does.
    starts: Vec<u64>,
    /// Bytes of the records of each, or `UNKNOWN`.
    decoded: Vec<u64>,
    rows: Rows,
    records: u64,
    options: Option<String>,
}

const UNKNOWN: u64 = u64::MAX;

/// Which rows are in which chunk.
#[derive(Debug)]
enum Rows {
    /// The number that all chunks but the last have.
    Same(u64),
    /// Number of the row behind the last of each chunk.
    Ends(Vec<u64>),
}

impl Index {
    /// Reads the records of a footer chunk that begins at `footer`.
    pub fn decode(group: &Group, footer: u64) -> Result<Index, Violation> {
        if group.is_empty() {
            bail!("the footer is empty");
        }
        let about = About::decode(group.record(0))?;
        if about.records > footer {
            // A chunk takes at least one byte for each record.
            bail!("the footer declares {} records, more than the file has bytes", about.records);
        }
        let chunks = group.len() - 1;
        if about.chunks != chunks as u64 {
            bail!("the footer declares {} chunks, but lists {chunks}", about.chunks);
        }
        let (mut starts, mut decoded) = (Vec::with_capacity(group.len()), Vec::new());
        let mut counts = Vec::with_capacity(chunks);
        let mut least = SIGNATURE_LEN as u64;
        for k in 1..group.len() {
            let (offset, decoded_len, records) = decode_entry(group.record(k))?;
            if offset < least || offset >= footer || !block::is_boundary(offset) {
                bail!(
                    "the footer says that data chunk {} begins at {offset}, which is impossible",
                    k - 1
                );
            }
            least = offset + 1;
            starts.push(offset);
            decoded.push(decoded_len.unwrap_or(UNKNOWN));
            counts.push(records);
        }
        starts.push(footer);
        let rows = Rows::of(&counts, about.records)?;
        let options = about.options.map(str::to_owned);
        Ok(Index { starts, decoded, rows, records: about.records, options })
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Number of data chunks.
    pub fn chunks(&self) -> usize {
        self.decoded.len()
    }

    /// Returns the options that the writer was given; old files do not have them.
    pub fn options(&self) -> Option<&str> {
        self.options.as_deref()
    }

    /// Returns how many records all chunks but the last have, if they have the same number.
    pub fn group_size(&self) -> Option<u64> {
        match self.rows {
            Rows::Same(size) => Some(size),
            Rows::Ends(_) => None,
        }
    }

    /// Returns the chunk of record `row`, which must exist, and its number there.
    #[inline]
    pub fn place(&self, row: u64) -> (usize, u64) {
        match &self.rows {
            Rows::Same(1) => (row as usize, 0),
            Rows::Same(size) => ((row / size) as usize, row % size),
            Rows::Ends(ends) => {
                let chunk = ends.partition_point(|&end| end <= row);
                (chunk, row - chunk.checked_sub(1).map_or(0, |before| ends[before]))
            }
        }
    }

    /// Returns the rows of a chunk.
    #[inline]
    pub fn rows(&self, chunk: usize) -> std::ops::Range<u64> {
        match &self.rows {
            Rows::Same(size) => {
                let start = chunk as u64 * size;
                start..self.records.min(start.saturating_add(*size))
            }
            Rows::Ends(ends) => chunk.checked_sub(1).map_or(0, |before| ends[before])..ends[chunk],
        }
    }

    /// Returns where a chunk begins, and where the next one does.
    #[inline]
    pub fn range(&self, chunk: usize) -> std::ops::Range<u64> {
        self.starts[chunk]..self.starts[chunk + 1]
    }

    /// Returns the chunk that begins at `offset`.
    pub fn chunk_at(&self, offset: u64) -> Option<usize> {
        self.starts[..self.chunks()].binary_search(&offset).ok()
    }

    /// Returns how many bytes the records of a chunk have, if the footer tells.
    #[inline]
    pub fn decoded_len(&self, chunk: usize) -> Option<u64> {
        Some(self.decoded[chunk]).filter(|&len| len != UNKNOWN)
    }
}

impl Rows {
    fn of(counts: &[Option<u64>], records: u64) -> Result<Rows, Violation> {
        let wrong = || {
            Violation::new(format!(
                "the chunks of the footer do not add up to the {records} records that it declares"
            ))
        };
        let Some(&first) = counts.first() else {
            return if records == 0 { Ok(Rows::Same(1)) } else { Err(wrong()) };
        };
        let size = first.ok_or_else(|| {
            Violation::new("the footer does not say how many records the first chunk has")
        })?;
        let before = (counts.len() as u64 - 1).checked_mul(size).ok_or_else(wrong)?;
        let last = records.checked_sub(before).filter(|&last| 0 < last && last <= size);
        let rest = &counts[..counts.len() - 1];
        let is_same = rest.iter().all(|&count| count.is_none_or(|count| count == size))
            && counts.last().is_none_or(|&count| count.is_none() || count == last);
        if is_same && last.is_some() {
            return Ok(Rows::Same(size));
        }
        let mut ends = Vec::with_capacity(counts.len());
        let mut end = 0_u64;
        for count in counts {
            end = end.checked_add(count.ok_or_else(wrong)?).ok_or_else(wrong)?;
            ends.push(end);
        }
        if end == records { Ok(Rows::Ends(ends)) } else { Err(wrong()) }
    }
}

/// What the first message of a footer says about the file.
struct About<'a> {
    chunks: u64,
    records: u64,
    options: Option<&'a str>,
}

impl<'a> About<'a> {
    fn decode(message: &'a [u8]) -> Result<About<'a>, Violation> {
        let mut inner = None;
        for field in Fields::of(message) {
            if let (1, Wire::Bytes(bytes)) = field? {
                inner = Some(bytes);
            }
        }
        let inner = inner.ok_or_else(|| Violation::new("the footer does not describe the file"))?;
        let mut about = About { chunks: 0, records: 0, options: None };
        let mut version = 0;
        for field in Fields::of(inner) {
            match field? {
                (1, Wire::Varint(number)) => version = number,
                (2, Wire::Varint(number)) => about.chunks = number,
                (3, Wire::Varint(number)) => about.records = number,
                (4, Wire::Bytes(bytes)) => about.options = std::str::from_utf8(bytes).ok(),
                _ => {}
            }
        }
        if version != VERSION {
            bail!("unsupported ArrayRecord version {version} (this release reads {VERSION})");
        }
        Ok(about)
    }
}

fn decode_entry(message: &[u8]) -> Result<(u64, Option<u64>, Option<u64>), Violation> {
    let (mut offset, mut decoded, mut records) = (None, None, None);
    for field in Fields::of(message) {
        match field? {
            (1, Wire::Varint(number)) => offset = Some(number),
            (2, Wire::Varint(number)) => decoded = Some(number),
            (3, Wire::Varint(number)) => records = Some(number),
            _ => {}
        }
    }
    let offset =
        offset.ok_or_else(|| Violation::new("the footer does not say where a chunk begins"))?;
    Ok((offset, decoded, records))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(counts: &[u64], records: u64) -> Result<Index, Violation> {
        let entries = counts
            .iter()
            .enumerate()
            .map(|(k, &records)| Entry { offset: 64 + 100 * k as u64, decoded_len: 7, records })
            .collect();
        Index::decode(&Footer { records, entries }.encode("group_size:3"), 60_000)
    }

    #[test]
    fn rows_are_found_in_chunks_of_the_same_size() {
        let index = index(&[3, 3, 2], 8).unwrap();
        assert_eq!(index.group_size(), Some(3));
        assert_eq!((index.records(), index.chunks()), (8, 3));
        assert_eq!(index.options(), Some("group_size:3"));
        assert_eq!((index.place(0), index.place(5), index.place(7)), ((0, 0), (1, 2), (2, 1)));
        assert_eq!((index.rows(1), index.rows(2)), (3..6, 6..8));
        assert_eq!((index.range(0), index.range(2)), (64..164, 264..60_000));
    }

    #[test]
    fn rows_are_found_in_chunks_of_any_size() {
        let index = index(&[3, 0, 5, 1], 9).unwrap();
        assert_eq!(index.group_size(), None);
        assert_eq!((index.place(2), index.place(3), index.place(8)), ((0, 2), (2, 0), (3, 0)));
        assert_eq!((index.rows(1), index.rows(2)), (3..3, 3..8));
    }

    #[test]
    fn counts_that_do_not_add_up_are_rejected() {
        for (counts, records) in [
            (&[3_u64, 3, 2][..], 9),
            (&[3, 3, 2], 7),
            (&[], 1),
            (&[0], 1),
            (&[u64::MAX, u64::MAX], 5),
            (&[1 << 63, 1 << 63], 0),
            (&[100_000], 100_000),
        ] {
            assert!(index(counts, records).is_err(), "{counts:?} {records}");
        }
        assert_eq!(index(&[], 0).unwrap().records(), 0);
    }
}
