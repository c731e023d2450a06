//! The few protocol buffers of ArrayRecord: numbers and bytes by field.

use crate::format::riegeli::varint;
use crate::format::{Violation, bail};

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// Bytes: text or a message.
    Bytes(&'a [u8]),
    /// Of a kind that no message here has; it may be skipped.
    Other,
}

/// Reads the fields of a message one by one.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Violation> {
        let (head, rest) = self
            .0
            .split_at_checked(len)
            .ok_or_else(|| Violation::new("a field of a message is truncated"))?;
        self.0 = rest;
        Ok(head)
    }

    /// Returns the number of the next field and its value.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, Violation> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = varint::take(&mut self.0)?;
        let value = match tag & 7 {
            0 => Value::Number(varint::take(&mut self.0)?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let len = varint::take_len(&mut self.0)?;
                Value::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            kind => bail!("a field of the unknown kind {kind}"),
        };
        Ok(Some((tag >> 3, value)))
    }
}

/// Appends a field with a number, also if it is 0.
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
