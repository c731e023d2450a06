//! Writing ArrayRecord files.

use std::sync::Mutex;

use crate::compression::block::Settings;
use crate::error::{Error, Result};
use crate::format::arrayrecord::footer::Entry;
use crate::format::arrayrecord::{Footer, postscript, signature};
use crate::format::riegeli::chunk::{self, Header};
use crate::format::riegeli::{Compression, Encoder, simple, transposed};
use crate::format::{Group, Violation};
use crate::pool::Pool;
use crate::storage::Append;

/// Records are encoded when so many bytes of them are there.
const BATCH_BYTES: usize = 4 << 20;

/// Or so many records.
const BATCH_RECORDS: usize = 16 << 10;

/// Groups that a thread takes at a time have about this many bytes.
const SHARE_BYTES: usize = 64 << 10;

/// How to write a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Records in a chunk.
    pub group_size: u64,
    /// How chunks are compressed.
    pub codec: Codec,
    /// Whether protocol buffers are split by their fields, and how many bytes of fields are
    /// compressed together.
    pub transpose: Option<u64>,
    /// Whether each chunk begins a block.
    pub pad_to_block: bool,
    /// Whether the file is on the device when it is closed.
    pub sync: bool,
}

/// What chunks are compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Nothing.
    None,
    /// Brotli, by its level and the logarithm of its window.
    Brotli(u32, Option<u32>),
    /// Zstandard, by its level and the logarithm of its window.
    Zstd(i32, u32),
    /// Snappy.
    Snappy,
}

const BROTLI_WINDOW_LOG: u32 = 22;

impl Options {
    fn compression(&self) -> Compression {
        match self.codec {
            Codec::None => Compression::None,
            Codec::Brotli(level, window_log) => Compression::Blocks(Settings::Brotli {
                level,
                window_log: window_log.unwrap_or(BROTLI_WINDOW_LOG),
            }),
            Codec::Zstd(level, window_log) => {
                Compression::Blocks(Settings::Zstd { level, window_log })
            }
            Codec::Snappy => Compression::Blocks(Settings::Snappy),
        }
    }

    /// Checks that every number is one that readers take.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Invalid(what));
        if !(1..=i32::MAX as u64).contains(&self.group_size) {
            return wrong(format!("group_size is {}, not 1 to {}", self.group_size, i32::MAX));
        }
        if self.transpose == Some(0) {
            return wrong("transpose_bucket_size is 0, not at least 1".to_owned());
        }
        let (level, levels, window, windows) = match self.codec {
            Codec::None | Codec::Snappy => return Ok(()),
            Codec::Brotli(level, window) => {
                (i64::from(level), 0..=11, window.unwrap_or(BROTLI_WINDOW_LOG), 10..=30)
            }
            Codec::Zstd(level, window) => (i64::from(level), -131_072..=22, window, 10..=31),
        };
        if !levels.contains(&level) {
            return wrong(format!("level is {level}, not {} to {}", levels.start(), levels.end()));
        }
        if !windows.contains(&window) {
            let (least, most) = (windows.start(), windows.end());
            return wrong(format!("window_log is {window}, not {least} to {most}"));
        }
        Ok(())
    }

    /// Returns the options as the footer has them.
    pub fn text(&self) -> String {
        let bucket = self
            .transpose
            .map_or_else(String::new, |bucket| format!(",transpose_bucket_size:{bucket}"));
        let codec = match self.codec {
            Codec::None => "uncompressed".to_owned(),
            Codec::Brotli(level, None) => format!("brotli:{level}"),
            Codec::Brotli(level, Some(window)) => format!("brotli:{level},window_log:{window}"),
            Codec::Zstd(level, window) => format!("zstd:{level},window_log:{window}"),
            Codec::Snappy => "snappy".to_owned(),
        };
        format!(
            "group_size:{},transpose:{},pad_to_block_boundary:{}{bucket},{codec},max_parallelism:1",
            self.group_size,
            self.transpose.is_some(),
            self.pad_to_block,
        )
    }
}

/// What happens when writing ends: whether the file is whole.
type Finish = Box<dyn FnOnce(bool) -> Result<()> + Send>;

/// Writes an ArrayRecord file. Records are encoded in batches, on all cores.
pub struct ArWriter {
    file: Box<dyn Append>,
    name: String,
    options: Options,
    footer: Footer,
    /// Where the next chunk begins.
    position: u64,
    /// Records that are not encoded yet.
    pending: Group,
    /// Bytes that are not appended yet.
    out: Vec<u8>,
    failed: Option<Error>,
    /// Is there until the writer is closed.
    finish: Option<Finish>,
}

impl ArWriter {
    /// Begins a file; `finish` is called when it is closed or abandoned.
    pub fn new(
        file: Box<dyn Append>,
        name: &str,
        options: Options,
        finish: Finish,
    ) -> Result<ArWriter> {
        options.check()?;
        let out = signature();
        Ok(ArWriter {
            file,
            name: name.to_owned(),
            options,
            footer: Footer::default(),
            position: out.len() as u64,
            pending: Group::default(),
            out,
            failed: None,
            finish: Some(finish),
        })
    }

    /// Returns what errors call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of records so far.
    pub fn len(&self) -> u64 {
        self.footer.records + self.pending.len() as u64
    }

    /// Whether there are no records yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the writer was closed or abandoned.
    pub fn is_closed(&self) -> bool {
        self.finish.is_none()
    }

    /// Returns whether the next record is only copied, not encoded.
    pub fn is_cheap(&self, len: usize) -> bool {
        !self.is_full(self.pending.bytes.len() + len, self.pending.len() + 1)
    }

    fn is_full(&self, bytes: usize, records: usize) -> bool {
        (bytes >= BATCH_BYTES || records >= BATCH_RECORDS)
            && records as u64 >= self.options.group_size
    }

    /// Adds a record; returns its number.
    pub fn push(&mut self, record: &[u8]) -> Result<u64> {
        self.check_open()?;
        let number = self.len();
        self.pending.bytes.try_reserve(record.len()).map_err(|_| Error::Memory {
            path: self.name.clone(),
            record: Some(number),
            bytes: record.len() as u64,
        })?;
        self.pending.push(record);
        if self.is_full(self.pending.bytes.len(), self.pending.len()) {
            let done = self.encode_pending(false);
            self.remember(done)?;
        }
        Ok(number)
    }

    fn check_open(&self) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.again());
        }
        if self.is_closed() {
            return Err(Error::Closed { path: self.name.clone(), what: "writer" });
        }
        Ok(())
    }

    /// After an error the file cannot go on.
    fn remember(&mut self, outcome: Result<()>) -> Result<()> {
        outcome.inspect_err(|error| self.failed = Some(error.again()))
    }

    /// Encodes the groups that are whole; with `last` also what is left.
    fn encode_pending(&mut self, last: bool) -> Result<()> {
        let size = usize::try_from(self.options.group_size).unwrap_or(usize::MAX);
        let pending = std::mem::take(&mut self.pending);
        let whole = if last { pending.len() } else { pending.len() / size * size };
        let groups: Vec<std::ops::Range<usize>> = (0..whole)
            .step_by(size)
            .map(|from| from..whole.min(from.saturating_add(size)))
            .collect();
        let encoded = encode(&pending, &groups, &self.options)
            .map_err(|why| Error::Invalid(format!("{}: {why}", self.name)))?;
        for (group, (header, data)) in groups.iter().zip(&encoded) {
            let records = group.len() as u64;
            let decoded_len = header.decoded_len;
            self.footer.entries.push(Entry { offset: self.position, decoded_len, records });
            self.footer.records += records;
            self.put(header, data)?;
            if self.options.pad_to_block {
                self.position = chunk::pad(&mut self.out, self.position);
            }
        }
        self.append()?;
        let mut left = pending;
        if whole == left.len() {
            left.clear();
        } else {
            let rest: Vec<&[u8]> = (whole..left.len()).map(|k| left.record(k)).collect();
            let mut next = Group::default();
            rest.into_iter().for_each(|record| next.push(record));
            left = next;
        }
        self.pending = left;
        Ok(())
    }

    fn put(&mut self, header: &Header, data: &[u8]) -> Result<()> {
        self.position = chunk::append(&mut self.out, self.position, header, data);
        if self.out.len() >= BATCH_BYTES { self.append() } else { Ok(()) }
    }

    fn append(&mut self) -> Result<()> {
        let outcome = self.file.append(&self.out);
        self.out.clear();
        outcome.map_err(|source| self.storage_error("write", source))
    }

    fn storage_error(&self, action: &'static str, source: std::io::Error) -> Error {
        let (path, offset) = (self.name.clone(), self.position);
        Error::Storage { path, record: None, offset, action, source }
    }

    /// Writes what is left and the index, and lets the file appear. A second call does nothing.
    pub fn close(&mut self) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        self.check_open()?;
        let outcome = self.write_end();
        let whole = outcome.is_ok();
        self.remember(outcome)?;
        self.finish.take().map_or(Ok(()), |finish| finish(whole))
    }

    fn write_end(&mut self) -> Result<()> {
        self.encode_pending(true)?;
        let footer = self.position;
        let listed = self.footer.encode(&self.options.text());
        self.put_simple(&listed, self.options.compression())?;
        self.position = chunk::pad(&mut self.out, self.position);
        self.put_simple(&postscript::encode(footer), Compression::None)?;
        self.position = chunk::pad(&mut self.out, self.position);
        self.append()?;
        if self.options.sync {
            self.file.sync().map_err(|source| self.storage_error("sync", source))?;
        }
        Ok(())
    }

    fn put_simple(&mut self, group: &Group, compression: Compression) -> Result<()> {
        let mut data = Vec::new();
        let header = simple::encode(group, &mut Encoder::new(compression), &mut data)
            .map_err(|why| Error::Invalid(format!("{}: {why}", self.name)))?;
        self.put(&header, &data)
    }

    /// Gives the file up: nothing appears under its name. A second call does nothing.
    pub fn abandon(&mut self) -> Result<()> {
        self.finish.take().map_or(Ok(()), |finish| finish(false))
    }
}

impl Drop for ArWriter {
    fn drop(&mut self) {
        let _ = self.abandon();
    }
}

type Encoded = (Header, Vec<u8>);

/// Encodes groups of records on several threads.
fn encode(
    records: &Group,
    groups: &[std::ops::Range<usize>],
    options: &Options,
) -> Result<Vec<Encoded>, Violation> {
    let mean = records.bytes.len() / groups.len().max(1) + 1;
    let shares: Vec<&[std::ops::Range<usize>]> =
        groups.chunks((SHARE_BYTES / mean).max(1)).collect();
    let results: Vec<Mutex<Result<Vec<Encoded>, Violation>>> =
        shares.iter().map(|_| Mutex::new(Ok(Vec::new()))).collect();
    Pool::compute().run(shares.len(), &|k| {
        let done = encode_share(records, shares[k], options);
        *results[k].lock().expect("no panics under this lock") = done;
    });
    let mut encoded = Vec::with_capacity(groups.len());
    for result in results {
        encoded.extend(result.into_inner().expect("no panics under this lock")?);
    }
    Ok(encoded)
}

fn encode_share(
    records: &Group,
    groups: &[std::ops::Range<usize>],
    options: &Options,
) -> Result<Vec<Encoded>, Violation> {
    let mut encoder = Encoder::new(options.compression());
    let mut encoded = Vec::with_capacity(groups.len());
    for group in groups {
        let group = records.slice(group.clone());
        let mut data = Vec::new();
        let header = match options.transpose {
            Some(bucket) => transposed::encode(&group, &mut encoder, bucket, &mut data)?,
            None => simple::encode(&group, &mut encoder, &mut data)?,
        };
        encoded.push((header, data));
    }
    Ok(encoded)
}
