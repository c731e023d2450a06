//! How ArrayRecord files are written.

use crate::compression::block::Settings;
use crate::error::{Error, Result};
use crate::format::riegeli::Compression;

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
    /// Returns how the parts of chunks are compressed.
    pub(super) fn compression(&self) -> Compression {
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
