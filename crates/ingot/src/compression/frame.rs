//! Zstandard frames that stand alone, as other systems write one for each record.

use std::cell::RefCell;

use zstd::zstd_safe::{
    CCtx, CParameter, DCtx, FrameFormat, InBuffer, OutBuffer, compress_bound, get_error_name,
    get_frame_content_size,
};

use super::block::Method;
use super::{CONTEXT, Dictionary, Failure, check_len, decompress_zstd, with_context, zstd_failure};
use crate::limit::Growth;

/// Bytes at the front of a frame that hold the length of its content.
pub const HEAD_LEN: usize = 18;

/// How much a buffer grows at a time, when that is not known.
const STEP: usize = 256 << 10;

thread_local! {
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Returns how long the content of a frame of `stored` bytes is that begins with `head`, if it
/// says so.
pub fn content_len(head: &[u8], stored: usize) -> Result<Option<u64>, String> {
    let len = get_frame_content_size(head).map_err(|_| "not a zstd frame".to_owned())?;
    match len {
        Some(len) if len > Method::Zstd.expansion(stored) as u64 => {
            Err(format!("a zstd frame of {stored} bytes cannot hold the {len} that it declares"))
        }
        len => Ok(len),
    }
}

fn failed(code: zstd::zstd_safe::ErrorCode) -> String {
    format!("zstd: {}", get_error_name(code))
}

fn undecoded(bytes: usize) -> impl Fn(zstd::zstd_safe::ErrorCode) -> Failure {
    move |code| zstd_failure(code, bytes)
}

/// Decompresses a frame into exactly `value`.
pub fn decompress_into(
    dictionary: Option<&Dictionary>,
    stored: &[u8],
    value: &mut [u8],
) -> Result<(), Failure> {
    let expected = value.len();
    let found = with_context(&DECOMPRESSOR, FrameFormat::One, |context| {
        decompress_zstd(context, dictionary, stored, value)
    })?;
    check_len(found, expected)
}

/// Decompresses a frame of any length.
pub fn decompress(dictionary: Option<&Dictionary>, stored: &[u8]) -> Result<Vec<u8>, Failure> {
    if let Some(len) = content_len(stored, stored.len())? {
        check_growth(stored.len(), len)?;
        let mut value = Vec::new();
        let room = usize::try_from(len).map_err(|_| Failure::Memory(len))?;
        value.try_reserve_exact(room).map_err(|_| Failure::Memory(len))?;
        value.resize(room, 0);
        decompress_into(dictionary, stored, &mut value)?;
        return Ok(value);
    }
    let mut context = DCtx::try_create().ok_or(Failure::Memory(CONTEXT))?;
    if let Some(dictionary) = dictionary {
        context.ref_ddict(&dictionary.0).map_err(undecoded(0))?;
    }
    stream(&mut context, stored)
}

pub(super) fn no_memory(len: u64) -> String {
    format!("no memory for {len} bytes")
}

fn check_growth(stored: usize, decoded: u64) -> Result<(), Failure> {
    Growth::default().add(stored as u64, decoded).map_err(Failure::Limit)
}

fn stream(context: &mut DCtx<'_>, stored: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut value: Vec<u8> = Vec::new();
    let mut input = InBuffer::around(stored);
    loop {
        let len = value.len();
        check_growth(stored.len(), len as u64)?;
        value.try_reserve(STEP).map_err(|_| Failure::Memory(len as u64))?;
        value.resize(len + STEP, 0);
        let mut output = OutBuffer::around(&mut value[len..]);
        let left = context.decompress_stream(&mut output, &mut input).map_err(undecoded(len))?;
        let written = output.pos();
        value.truncate(len + written);
        if left == 0 && input.pos() == stored.len() {
            return Ok(value);
        }
        if written == 0 && input.pos() == stored.len() {
            return Err("zstd: the frame is truncated".to_owned().into());
        }
    }
}

/// Compresses records to frames on one thread.
pub struct Compressor(CCtx<'static>);

impl Compressor {
    /// Returns a compressor.
    pub fn new(level: i32, dictionary: &[u8]) -> Result<Compressor, String> {
        let mut context = CCtx::create();
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
        if !dictionary.is_empty() {
            context.load_dictionary(dictionary).map_err(failed)?;
        }
        Ok(Compressor(context))
    }

    /// Appends the frame of `value` to `out`.
    pub fn compress(&mut self, value: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let (start, bound) = (out.len(), compress_bound(value.len()));
        out.try_reserve(bound).map_err(|_| no_memory(bound as u64))?;
        out.resize(start + bound, 0);
        let len = self.0.compress2(&mut out[start..], value).map_err(failed)?;
        out.truncate(start + len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip_with_and_without_a_dictionary() {
        let value = b"the same words again and again".repeat(30_000);
        for dictionary in [&b""[..], b"words and the same again"] {
            let mut stored = Vec::new();
            Compressor::new(3, dictionary).unwrap().compress(&value, &mut stored).unwrap();
            let dictionary = (!dictionary.is_empty()).then(|| Dictionary::new(dictionary).unwrap());
            let head = &stored[..HEAD_LEN.min(stored.len())];
            assert_eq!(content_len(head, stored.len()), Ok(Some(value.len() as u64)));
            assert!(content_len(head, 8).is_err());
            assert_eq!(decompress(dictionary.as_ref(), &stored).unwrap(), value);
            let mut short = vec![0; value.len() - 1];
            assert!(decompress_into(dictionary.as_ref(), &stored, &mut short).is_err());
            assert!(decompress(dictionary.as_ref(), &stored[..stored.len() - 1]).is_err());
        }
        assert!(content_len(b"no frame", 8).is_err());
    }

    #[test]
    fn frames_without_a_length_round_trip() {
        let value = b"the same words again and again".repeat(30_000);
        let stored = zstd::stream::encode_all(&value[..], 3).unwrap();
        assert_eq!(content_len(&stored, stored.len()), Ok(None));
        assert_eq!(decompress(None, &stored).unwrap(), value);
        assert!(decompress(None, &stored[..stored.len() / 2]).is_err());
        assert_eq!(decompress(None, &stored).unwrap(), value);
    }
}
