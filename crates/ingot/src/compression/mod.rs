//! Codecs: bytes of a cell to fewer bytes and back.

pub mod block;
pub mod frame;

use std::cell::RefCell;
use std::thread::LocalKey;

use zstd::zstd_safe::{CCtx, CParameter, DCtx, DDict, DParameter, FrameFormat, get_error_name};

/// How the stored bytes of a compressed cell are to be read. The numbers are those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// As they are.
    None,
    /// A Zstandard frame without its magic number, checksum, content size and dictionary id.
    Zstd,
    /// An LZ4 block.
    Lz4,
}

impl Codec {
    /// Returns the codec's number in a file.
    pub fn code(self) -> u8 {
        match self {
            Codec::None => 0,
            Codec::Zstd => 1,
            Codec::Lz4 => 2,
        }
    }

    /// Returns the codec with this number.
    pub fn of(code: u8) -> Option<Codec> {
        [Codec::None, Codec::Zstd, Codec::Lz4].into_iter().find(|codec| codec.code() == code)
    }
}

/// Why bytes could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// They are damaged.
    #[error("{0}")]
    Damaged(String),
    /// There is no memory for that many bytes.
    #[error("out of memory for {0} bytes")]
    Memory(u64),
    /// They would grow more than is allowed; see [`crate::limit`].
    #[error("{0}")]
    Limit(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure::Damaged(why)
    }
}

/// Returns why zstd has failed, by its own words.
fn zstd_failure(code: zstd::zstd_safe::ErrorCode, bytes: usize) -> Failure {
    match get_error_name(code) {
        "Allocation error : not enough memory" => Failure::Memory(bytes as u64),
        name => Failure::Damaged(format!("zstd: {name}")),
    }
}

/// A dictionary made ready for decompression; shared by all threads.
pub struct Dictionary(DDict<'static>);

impl Dictionary {
    /// Digests the bytes of a dictionary.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        DDict::try_create(bytes).map(Dictionary)
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dictionary")
    }
}

thread_local! {
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Bytes that a context of zstd takes, about.
const CONTEXT: u64 = 160 << 10;

/// Calls `work` with the context of this thread, which is created on first use.
fn with_context<T>(
    kept: &'static LocalKey<RefCell<Option<DCtx<'static>>>>,
    format: FrameFormat,
    work: impl FnOnce(&mut DCtx<'static>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    kept.with_borrow_mut(|kept| {
        if let Some(context) = kept {
            return work(context);
        }
        let mut context = DCtx::try_create().ok_or(Failure::Memory(CONTEXT))?;
        context
            .set_parameter(DParameter::Format(format))
            .expect("a fresh context takes its format");
        work(kept.insert(context))
    })
}

/// Decompresses `stored` into exactly `value`. Never writes or allocates more than that.
pub fn decompress(
    codec: Codec,
    dictionary: Option<&Dictionary>,
    stored: &[u8],
    value: &mut [u8],
) -> Result<(), Failure> {
    let expected = value.len();
    let found = match codec {
        Codec::None => {
            return Err("cell is shorter than its value but not compressed".to_owned().into());
        }
        Codec::Zstd => with_context(&DECOMPRESSOR, FrameFormat::Magicless, |context| {
            decompress_zstd(context, dictionary, stored, value)
        })?,
        Codec::Lz4 => lz4_flex::block::decompress_into(stored, value)
            .map_err(|error| format!("lz4: {error}"))?,
    };
    check_len(found, expected)
}

fn decompress_zstd(
    context: &mut DCtx<'_>,
    dictionary: Option<&Dictionary>,
    stored: &[u8],
    value: &mut [u8],
) -> Result<usize, Failure> {
    let expected = value.len();
    let found = match dictionary {
        Some(dictionary) => context.decompress_using_ddict(value, stored, &dictionary.0),
        None => context.decompress(value, stored),
    };
    found.map_err(|code| zstd_failure(code, expected))
}

fn check_len(found: usize, expected: usize) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(format!("decompressed to {found} bytes, expected {expected}").into())
}

/// Compresses cells of one field on one thread.
pub struct Compressor {
    codec: Codec,
    context: Option<CCtx<'static>>,
}

impl Compressor {
    /// Returns a compressor; `dictionary` and `level` are for zstd alone.
    pub fn new(codec: Codec, level: i32, dictionary: &[u8]) -> Self {
        let context = (codec == Codec::Zstd).then(|| {
            let mut context = CCtx::create();
            for parameter in [
                CParameter::CompressionLevel(level),
                CParameter::Format(FrameFormat::Magicless),
                CParameter::ContentSizeFlag(false),
                CParameter::ChecksumFlag(false),
                CParameter::DictIdFlag(false),
            ] {
                context.set_parameter(parameter).expect("a fresh context takes its parameters");
            }
            if !dictionary.is_empty() {
                context.load_dictionary(dictionary).expect("a trained dictionary loads");
            }
            context
        });
        Compressor { codec, context }
    }

    /// Appends the compressed form of `value` to `out` and returns its length, or appends
    /// nothing and returns `None` if it would not be shorter or there is no memory for it.
    pub fn compress(&mut self, value: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let start = out.len();
        let room = match self.codec {
            Codec::None => return None,
            Codec::Zstd => zstd::zstd_safe::compress_bound(value.len()),
            Codec::Lz4 => lz4_flex::block::get_maximum_output_size(value.len()),
        };
        out.try_reserve(room).ok()?;
        out.resize(start + room, 0);
        let len = match &mut self.context {
            Some(context) => context.compress2(&mut out[start..], value).ok(),
            None => lz4_flex::block::compress_into(value, &mut out[start..]).ok(),
        };
        let len = len.filter(|&len| len < value.len());
        out.truncate(start + len.unwrap_or(0));
        len
    }
}

/// Trains a zstd dictionary of at most `bytes_max` bytes on samples that stand one
/// after the other. `None` if they are too few or too different.
pub fn train(samples: &[u8], sizes: &[usize], bytes_max: usize) -> Option<Vec<u8>> {
    let (mut rest, mut long, mut long_sizes) = (samples, Vec::new(), Vec::new());
    for &size in sizes {
        let sample = rest.split_off(..size)?;
        if size >= SAMPLE_MIN {
            long.extend_from_slice(sample);
            long_sizes.push(size);
        }
    }
    if long_sizes.len() < SAMPLES_MIN {
        return None;
    }
    let mut dictionary = Vec::with_capacity(bytes_max);
    zstd::zstd_safe::train_from_buffer(&mut dictionary, &long, &long_sizes).ok()?;
    Some(dictionary)
}

/// Shorter samples teach nothing, and zstd reads past the end of its memory if there are only
/// such among those that it learns from.
const SAMPLE_MIN: usize = 8;

/// With fewer samples there is nothing to learn.
const SAMPLES_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_round_trip_from_every_codec() {
        let value = b"the same words again and again and again".repeat(20);
        for codec in [Codec::Zstd, Codec::Lz4] {
            let mut stored = Vec::new();
            let len = Compressor::new(codec, 3, b"").compress(&value, &mut stored);
            assert_eq!(len, Some(stored.len()));
            let mut found = vec![0; value.len()];
            decompress(codec, None, &stored, &mut found).unwrap();
            assert_eq!(found, value);
        }
    }

    #[test]
    fn samples_that_are_empty_or_short_teach_nothing() {
        for (samples, sizes) in [
            (&b"abcdefgh"[..], [&[0; 100][..], &[8]].concat()),
            (b"", vec![0; 100]),
            (&[7; 700], vec![7; 100]),
            (b"", Vec::new()),
        ] {
            assert_eq!(train(samples, &sizes, 1024), None);
        }
    }

    #[test]
    fn a_length_that_does_not_fit_is_an_error() {
        let value = vec![7; 1000];
        for codec in [Codec::Zstd, Codec::Lz4] {
            let mut stored = Vec::new();
            Compressor::new(codec, 3, b"").compress(&value, &mut stored).unwrap();
            for len in [0, 999, 1001, 4000] {
                assert!(decompress(codec, None, &stored, &mut vec![0; len]).is_err());
            }
        }
    }

    #[test]
    fn values_that_do_not_shrink_are_stored_as_is() {
        let mut out = b"kept".to_vec();
        for codec in [Codec::Zstd, Codec::Lz4] {
            assert_eq!(Compressor::new(codec, 3, b"").compress(b"", &mut out), None);
            assert_eq!(Compressor::new(codec, 3, b"").compress(b"ab", &mut out), None);
        }
        assert_eq!(out, b"kept");
    }

    #[test]
    fn a_dictionary_is_needed_again_to_read() {
        let samples: Vec<String> = (0..2000)
            .map(|k| format!("{{\"user\": {k}, \"city\": \"Lisbon\", \"score\": {}}}", k * 7))
            .collect();
        let sizes: Vec<usize> = samples.iter().map(String::len).collect();
        let bytes = train(samples.concat().as_bytes(), &sizes, 4096).unwrap();
        let dictionary = Dictionary::new(&bytes).unwrap();
        let value = samples[77].as_bytes();
        let mut stored = Vec::new();
        let len = Compressor::new(Codec::Zstd, 3, &bytes).compress(value, &mut stored).unwrap();
        assert!(len * 2 < value.len());
        let mut found = vec![0; value.len()];
        decompress(Codec::Zstd, Some(&dictionary), &stored, &mut found).unwrap();
        assert_eq!(found, value);
        assert!(decompress(Codec::Zstd, None, &stored, &mut found).is_err() || found != value);
    }
}
