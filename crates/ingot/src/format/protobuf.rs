//! The wire format of protocol buffers: the fields of a message.

use super::{Violation, bail, varint};

/// The value of a field, as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire<'a> {
    /// A number of up to 64 bits.
    Varint(u64),
    /// Four bytes.
    Fixed32([u8; 4]),
    /// Eight bytes.
    Fixed64([u8; 8]),
    /// Any bytes: text, a message, a run of numbers.
    Bytes(&'a [u8]),
}

/// The fields of a message, in order. Ends after the first error.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Returns the fields of a message.
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    fn take(&mut self) -> Result<(u32, Wire<'a>), Violation> {
        let tag = varint::take(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number > 0);
        let number = number.ok_or_else(|| Violation::new("a field has an invalid number"))?;
        let wire = match tag & 7 {
            0 => Wire::Varint(varint::take(&mut self.rest)?),
            1 => Wire::Fixed64(self.fixed()?),
            2 => {
                let len = varint::take_len(&mut self.rest)?;
                let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(cut)?;
                self.rest = rest;
                Wire::Bytes(bytes)
            }
            5 => Wire::Fixed32(self.fixed()?),
            other => bail!("a field has the unknown wire type {other}"),
        };
        Ok((number, wire))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Violation> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(cut)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

fn cut() -> Violation {
    Violation::new("a message is truncated")
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Wire<'a>), Violation>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let taken = self.take();
        if taken.is_err() {
            self.rest = &[];
        }
        Some(taken)
    }
}

/// Appends a field with a number, even if it is 0.
pub fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint::put(out, field << 3);
    varint::put(out, value);
}

/// Appends a field with bytes.
pub fn put_bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint::put(out, field << 3 | 2);
    varint::put(out, value.len() as u64);
    out.extend_from_slice(value);
}
