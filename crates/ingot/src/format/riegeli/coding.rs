//! Parts of a chunk, compressed or not.

use crate::compression::block::{self, Compressor, Method, Settings};
use crate::format::varint;
use crate::format::{Violation, bail};

/// What the parts of a chunk are compressed with; the first byte of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coding(Option<Method>);

impl Coding {
    /// Returns the coding with this letter.
    pub fn of(letter: u8) -> Result<Coding, Violation> {
        match letter {
            0 => Ok(Coding(None)),
            b'b' => Ok(Coding(Some(Method::Brotli))),
            b'z' => Ok(Coding(Some(Method::Zstd))),
            b's' => Ok(Coding(Some(Method::Snappy))),
            _ => Err(Violation::new(format!("unknown compression type {letter}"))),
        }
    }

    /// Splits the length in front from a part; what follows is its stored form.
    fn open(self, part: &[u8]) -> Result<(usize, &[u8]), Violation> {
        let Some(method) = self.0 else { return Ok((part.len(), part)) };
        let mut rest = part;
        let len = varint::take_len(&mut rest)?;
        if len > method.expansion(rest.len()) {
            bail!("{len} bytes from {} compressed ones", rest.len());
        }
        Ok((len, rest))
    }

    /// Returns how long a part is when it is decoded.
    pub fn decoded_len(self, part: &[u8]) -> Result<usize, Violation> {
        self.open(part).map(|(len, _)| len)
    }

    /// Decodes a part, which must be as long as `value`.
    pub fn decode_into(self, part: &[u8], value: &mut [u8]) -> Result<(), Violation> {
        let (len, stored) = self.open(part)?;
        if len != value.len() {
            bail!("a part of {len} bytes, expected {}", value.len());
        }
        match self.0 {
            None => {
                value.copy_from_slice(stored);
                Ok(())
            }
            Some(method) => block::decompress(method, stored, value).map_err(Violation),
        }
    }

    /// Decodes a part of at most `most` bytes.
    pub fn decode(self, part: &[u8], most: usize) -> Result<Vec<u8>, Violation> {
        let len = self.decoded_len(part)?;
        if len > most {
            bail!("a part of {len} bytes, at most {most} are allowed");
        }
        let mut value = zeros(len)?;
        self.decode_into(part, &mut value)?;
        Ok(value)
    }
}

/// Returns `len` zeros, if there is memory for them.
pub fn zeros(len: usize) -> Result<Vec<u8>, Violation> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(len)
        .map_err(|_| Violation::new(format!("no memory for {len} bytes")))?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// How a writer compresses the parts of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// As these settings say.
    Blocks(Settings),
}

impl Compression {
    /// Returns the first byte of a chunk's data.
    pub fn letter(self) -> u8 {
        match self {
            Compression::None => 0,
            Compression::Blocks(Settings::Brotli { .. }) => b'b',
            Compression::Blocks(Settings::Zstd { .. }) => b'z',
            Compression::Blocks(Settings::Snappy) => b's',
        }
    }
}

/// Compresses the parts of chunks on one thread.
pub struct Encoder {
    compression: Compression,
    compressor: Option<Compressor>,
}

impl Encoder {
    /// Returns an encoder.
    pub fn new(compression: Compression) -> Encoder {
        let compressor = match compression {
            Compression::None => None,
            Compression::Blocks(settings) => Some(Compressor::new(settings)),
        };
        Encoder { compression, compressor }
    }

    /// Returns how parts are compressed.
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Appends the stored form of a part.
    pub fn encode(&mut self, part: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        match &mut self.compressor {
            None => {
                out.extend_from_slice(part);
                Ok(())
            }
            Some(compressor) => {
                varint::put(out, part.len() as u64);
                compressor.compress(part, out).map_err(Violation)
            }
        }
    }
}
