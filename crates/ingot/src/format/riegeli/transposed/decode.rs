//! Transposed chunks to records.

use super::super::Group;
use super::super::chunk::Chunk;
use super::super::coding::{Coding, zeros};
use super::layout::Layout;
use super::machine::Machine;
use crate::format::varint;
use crate::format::{Violation, bail};

/// Bytes of a layout for each state that a chunk can have.
const STATE_MAX: usize = 16;

/// Transitions for each state that a chunk can have, some of which only lead to others.
const TRANSITIONS_MAX: usize = 8;

/// The same for each byte that is stored, for chunks that need more of them.
const REPETITION_MAX: usize = 256;

/// Decodes all records of a chunk. Takes time and memory in proportion to what is stored
/// and to what the header says of the records.
pub fn decode(chunk: &Chunk<'_>) -> Result<Group, Violation> {
    let limits = Limits::of(chunk)?;
    let (&letter, mut rest) =
        chunk.data.split_first().ok_or_else(|| Violation::new("a chunk without data"))?;
    let coding = Coding::of(letter)?;
    let layout_len = varint::take_len(&mut rest)?;
    let layout = take(&mut rest, layout_len)?;
    let layout = coding.decode(layout, limits.states.saturating_mul(STATE_MAX))?;
    let layout = Layout::decode(&layout, limits.states)?;
    let values = Values::decode(coding, &layout, limits.values(), &mut rest)?;
    let transitions = coding.decode(rest, limits.transitions(rest.len()))?;
    Machine::new(&layout, values.split(&layout)?, limits.records, limits.bytes)?.run(&transitions)
}

/// How much there can be of each thing in a chunk with such records.
struct Limits {
    records: usize,
    bytes: usize,
    /// A state for each byte, one for each record, and as many that lead to others.
    states: usize,
}

impl Limits {
    fn of(chunk: &Chunk<'_>) -> Result<Limits, Violation> {
        let fit = |value: u64| {
            usize::try_from(value)
                .map_err(|_| Violation::new(format!("a chunk with {value} bytes or records")))
        };
        let (records, bytes) = (fit(chunk.header.records)?, fit(chunk.header.decoded_len)?);
        let states = bytes.saturating_add(records).saturating_add(1).saturating_mul(2);
        Ok(Limits { records, bytes, states })
    }

    /// Bytes of all values: those of the records, and the lengths of opaque ones.
    fn values(&self) -> usize {
        self.bytes.saturating_add(self.records.saturating_mul(varint::LEN_MAX))
    }

    /// Transitions in this many stored bytes.
    fn transitions(&self, stored: usize) -> usize {
        let usual = self.states.saturating_mul(TRANSITIONS_MAX);
        usual.max(stored.saturating_mul(REPETITION_MAX))
    }
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Violation> {
    let (taken, behind) =
        rest.split_at_checked(len).ok_or_else(|| Violation::new("a chunk is truncated"))?;
    *rest = behind;
    Ok(taken)
}

/// The decoded buckets, one after the other.
struct Values {
    bytes: Vec<u8>,
    /// Where each bucket ends.
    ends: Vec<usize>,
}

impl Values {
    /// Takes the buckets of a layout from the front of `rest`.
    fn decode(
        coding: Coding,
        layout: &Layout,
        most: usize,
        rest: &mut &[u8],
    ) -> Result<Values, Violation> {
        let mut parts = Vec::with_capacity(layout.buckets.len());
        let mut ends = Vec::with_capacity(layout.buckets.len());
        let mut total = 0_usize;
        for &len in &layout.buckets {
            let part = take(rest, len)?;
            let decoded = coding.decoded_len(part)?;
            total = total.saturating_add(decoded);
            parts.push((part, decoded));
            ends.push(total);
        }
        if total > most {
            bail!("{total} bytes of values, at most {most} are allowed");
        }
        let mut bytes = zeros(total)?;
        let mut free = &mut bytes[..];
        for (part, len) in parts {
            let (value, behind) = free.split_at_mut(len);
            coding.decode_into(part, value)?;
            free = behind;
        }
        Ok(Values { bytes, ends })
    }

    /// Returns the buffers, none of which reaches from one bucket into another.
    fn split(&self, layout: &Layout) -> Result<Vec<&[u8]>, Violation> {
        let mut ends = self.ends.iter().peekable();
        let mut buffers = Vec::with_capacity(layout.buffers.len());
        let mut rest = &self.bytes[..];
        for &len in &layout.buffers {
            let at = self.bytes.len() - rest.len();
            while ends.next_if(|&&end| end <= at).is_some() {}
            if len > ends.peek().map_or(0, |&&end| end - at) {
                bail!("a buffer that reaches beyond its bucket");
            }
            buffers.push(take(&mut rest, len)?);
        }
        if rest.is_empty() {
            Ok(buffers)
        } else {
            Err(Violation::new("a bucket with more than its buffers"))
        }
    }
}
