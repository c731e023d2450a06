//! Blocks as other systems compress them: whole, with what it takes to read them inside.

use brotli::enc::StandardAlloc;
use brotli::{Allocator, BrotliDecompressStream, BrotliResult, BrotliState};
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, compress_bound, get_error_name};

use super::{check_len, frame};

/// What a block is compressed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A brotli stream, also of the large-window kind.
    Brotli,
    /// A Zstandard frame.
    Zstd,
    /// A Snappy block without framing.
    Snappy,
}

impl Method {
    /// Returns the most bytes that `stored` bytes can decompress to.
    pub fn expansion(self, stored: usize) -> usize {
        // What the shortest piece of each kind can decode to: 16 MiB of brotli with a header
        // of 27 bits, a block of 128 KiB of zstd in 4 bytes, a copy of 64 bytes in 3.
        let (bytes, pieces) = match self {
            Method::Brotli => (1 << 24, stored.div_ceil(3)),
            Method::Zstd => (1 << 17, stored.div_ceil(4)),
            Method::Snappy => (64, stored.div_ceil(3)),
        };
        pieces.saturating_mul(bytes)
    }
}

/// Decompresses `stored` into exactly `value`.
pub fn decompress(method: Method, stored: &[u8], value: &mut [u8]) -> Result<(), String> {
    let expected = value.len();
    let found = match method {
        Method::Zstd => {
            return frame::decompress_into(None, stored, value)
                .map_err(|failure| failure.to_string());
        }
        Method::Brotli => unbrotli(stored, value).map_err(|error| format!("brotli: {error}"))?,
        Method::Snappy => {
            let outcome = snap::raw::Decoder::new().decompress(stored, value);
            outcome.map_err(|error| format!("snappy: {error}"))?
        }
    };
    check_len(found, expected).map_err(|failure| failure.to_string())
}

/// Decompresses a stream that ends where `stored` does; returns its length.
fn unbrotli(stored: &[u8], value: &mut [u8]) -> Result<usize, &'static str> {
    let memory = Bounded { cell_max: window_max(value.len()) };
    let mut state = BrotliState::new(memory, StandardAlloc::default(), StandardAlloc::default());
    state.set_initial_ring_buffer_size(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let (mut left, mut from) = (stored.len(), 0);
    let (mut room, mut to, mut len) = (value.len(), 0, 0);
    let outcome = BrotliDecompressStream(
        &mut left, &mut from, stored, &mut room, &mut to, value, &mut len, &mut state,
    );
    match outcome {
        BrotliResult::ResultSuccess if left == 0 => Ok(len),
        BrotliResult::ResultSuccess => Err("more bytes than the stream has"),
        BrotliResult::NeedsMoreInput => Err("the stream is truncated"),
        BrotliResult::NeedsMoreOutput => Err("the stream is longer than it should be"),
        BrotliResult::ResultFailure => Err("the stream is damaged or longer than it should be"),
    }
}

/// Memory for a decoder, which gets an empty cell where it asks for more than the value can
/// need. A stream may speak of a window of a gigabyte and decompress to ten bytes.
struct Bounded {
    cell_max: usize,
}

/// Bytes that a decoder may ask for at once: the value rounded up, or a context map.
fn window_max(value_len: usize) -> usize {
    value_len.max(1 << 16).next_power_of_two() + 1024
}

impl Allocator<u8> for Bounded {
    type AllocatedMemory = <StandardAlloc as Allocator<u8>>::AllocatedMemory;

    fn alloc_cell(&mut self, len: usize) -> Self::AllocatedMemory {
        let mut cell = Vec::new();
        if len <= self.cell_max && cell.try_reserve_exact(len).is_ok() {
            cell.resize(len, 0);
        }
        cell.into()
    }

    fn free_cell(&mut self, _: Self::AllocatedMemory) {}
}

/// How to compress blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// Brotli.
    Brotli {
        /// 0 to 11.
        level: u32,
        /// 10 to 30.
        window_log: u32,
    },
    /// Zstandard.
    Zstd {
        /// -131072 to 22.
        level: i32,
        /// 10 to 31.
        window_log: u32,
    },
    /// Snappy.
    Snappy,
}

/// Blocks shorter than this are compressed in one call, which puts their length into the frame.
const ONE_CALL: usize = 4096;

/// Compresses blocks on one thread.
pub enum Compressor {
    /// Brotli.
    Brotli(brotli::enc::BrotliEncoderParams),
    /// Zstandard.
    Zstd(CCtx<'static>),
    /// Snappy.
    Snappy(Box<snap::raw::Encoder>),
}

impl Compressor {
    /// Returns a compressor with these settings.
    pub fn new(settings: Settings) -> Self {
        match settings {
            Settings::Brotli { level, window_log } => {
                Compressor::Brotli(brotli::enc::BrotliEncoderParams {
                    quality: level as i32,
                    lgwin: window_log as i32,
                    large_window: window_log > 24,
                    ..Default::default()
                })
            }
            Settings::Zstd { level, window_log } => {
                let mut context = CCtx::create();
                let parameters =
                    [CParameter::CompressionLevel(level), CParameter::WindowLog(window_log)];
                for parameter in parameters {
                    context.set_parameter(parameter).expect("the settings are in range");
                }
                Compressor::Zstd(context)
            }
            Settings::Snappy => Compressor::Snappy(Box::new(snap::raw::Encoder::new())),
        }
    }

    /// Appends the compressed form of `value` to `out`.
    pub fn compress(&mut self, value: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let start = out.len();
        match self {
            Compressor::Brotli(params) => {
                brotli::BrotliCompress(&mut &*value, out, params)
                    .map_err(|error| format!("brotli: {error}"))?;
            }
            Compressor::Zstd(context) => {
                make_room(out, compress_bound(value.len()))?;
                let len = compress_zstd(context, value, &mut out[start..])
                    .map_err(|code| format!("zstd: {}", get_error_name(code)))?;
                out.truncate(start + len);
            }
            Compressor::Snappy(encoder) => {
                make_room(out, snap::raw::max_compress_len(value.len()))?;
                let len = encoder
                    .compress(value, &mut out[start..])
                    .map_err(|error| format!("snappy: {error}"))?;
                out.truncate(start + len);
            }
        }
        Ok(())
    }
}

/// Appends `more` zeros to `out`.
fn make_room(out: &mut Vec<u8>, more: usize) -> Result<(), String> {
    out.try_reserve(more).map_err(|_| frame::no_memory(more as u64))?;
    out.resize(out.len() + more, 0);
    Ok(())
}

fn compress_zstd(
    context: &mut CCtx<'static>,
    value: &[u8],
    out: &mut [u8],
) -> Result<usize, zstd::zstd_safe::ErrorCode> {
    if value.len() < ONE_CALL {
        return context.compress2(out, value);
    }
    let mut output = OutBuffer::around(out);
    let mut input = InBuffer::around(value);
    while input.pos() < value.len() {
        let more = ZSTD_EndDirective::ZSTD_e_continue;
        context.compress_stream2(&mut output, &mut input, more)?;
    }
    let end = ZSTD_EndDirective::ZSTD_e_end;
    while context.compress_stream2(&mut output, &mut InBuffer::around(b""), end)? > 0 {}
    Ok(output.pos())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Method, Settings); 5] = [
        (Method::Brotli, Settings::Brotli { level: 6, window_log: 22 }),
        (Method::Brotli, Settings::Brotli { level: 3, window_log: 27 }),
        (Method::Zstd, Settings::Zstd { level: 3, window_log: 20 }),
        (Method::Zstd, Settings::Zstd { level: -5, window_log: 31 }),
        (Method::Snappy, Settings::Snappy),
    ];

    #[test]
    fn values_round_trip() {
        let text = b"the same words again and again, ".repeat(20_000);
        for (method, settings) in ALL {
            let mut compressor = Compressor::new(settings);
            for len in [0, 1, 31, 4095, 4096, 4097, 100_000, text.len()] {
                let mut stored = b"kept".to_vec();
                compressor.compress(&text[..len], &mut stored).unwrap();
                let mut value = vec![1; len];
                decompress(method, &stored[4..], &mut value).unwrap();
                assert_eq!(value, &text[..len], "{settings:?} {len}");
            }
        }
    }

    #[test]
    fn a_length_that_does_not_fit_is_an_error() {
        for (method, settings) in ALL {
            let mut stored = Vec::new();
            Compressor::new(settings).compress(&[7; 1000], &mut stored).unwrap();
            for len in [0, 999, 1001, 4000] {
                assert!(decompress(method, &stored, &mut vec![0; len]).is_err(), "{settings:?}");
            }
            let cut = stored.len() - 1;
            assert!(decompress(method, &stored[..cut], &mut [0; 1000]).is_err(), "{settings:?}");
        }
    }

    #[test]
    fn windows_of_every_size_are_read() {
        let value = b"far back there is the same, ".repeat(300);
        for window_log in 10..=31 {
            let brotli = Settings::Brotli { level: 5, window_log: window_log.min(30) };
            let zstd = Settings::Zstd { level: 1, window_log };
            for (method, settings) in [(Method::Brotli, brotli), (Method::Zstd, zstd)] {
                let mut stored = Vec::new();
                Compressor::new(settings).compress(&value, &mut stored).unwrap();
                let mut found = vec![0; value.len()];
                decompress(method, &stored, &mut found).unwrap();
                assert!(found == value, "{settings:?}");
            }
        }
    }

    #[test]
    fn bytes_behind_the_end_are_an_error() {
        for (method, settings) in ALL {
            for len in [0, 1, 300, 70_000] {
                let mut stored = Vec::new();
                Compressor::new(settings).compress(&vec![7; len], &mut stored).unwrap();
                for more in [&b"\0"[..], b"\x03", b"garbage behind the end"] {
                    let longer = [&stored[..], more].concat();
                    let outcome = decompress(method, &longer, &mut vec![0; len]);
                    assert!(outcome.is_err(), "{settings:?} {len} {more:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_expands_more_than_is_possible() {
        for (method, settings) in ALL {
            for len in [0, 1, 1000, 1 << 20, 40 << 20] {
                let mut stored = Vec::new();
                Compressor::new(settings).compress(&vec![0; len], &mut stored).unwrap();
                assert!(method.expansion(stored.len()) >= len, "{settings:?} {len}");
            }
        }
        assert_eq!(Method::Snappy.expansion(usize::MAX), usize::MAX);
    }
}
