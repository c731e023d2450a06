//! The layout of a transposed chunk: its buckets, its buffers and its machine.
//!
//! | bytes | what |
//! | --- | --- |
//! | varint | number of buckets |
//! | varint | number of buffers |
//! | varints | stored length of each bucket |
//! | varints | length of each buffer |
//! | varint | number of states |
//! | varints | tag of each state |
//! | varints | next state of each, plus the number of states if it always follows |
//! | bytes | subtype of each state of a varint |
//! | varints | buffer of each state that has one |
//! | varint | the first state |

use super::state::{Action, State};
use crate::format::varint;
use crate::format::{Violation, bail};

/// A layout whose numbers fit together.
pub struct Layout {
    /// Stored length of each bucket.
    pub buckets: Vec<usize>,
    /// Length of each buffer.
    pub buffers: Vec<usize>,
    /// The machine.
    pub states: Vec<State>,
    /// Where it begins.
    pub first: usize,
}

impl Layout {
    /// Reads a layout with at most `most` states.
    pub fn decode(bytes: &[u8], most: usize) -> Result<Layout, Violation> {
        let mut rest = bytes;
        let num_buckets = take_count(&mut rest)?;
        let num_buffers = take_count(&mut rest)?;
        let buckets = take_each(&mut rest, num_buckets)?;
        let buffers = take_each(&mut rest, num_buffers)?;
        let count = take_count(&mut rest)?;
        if count > most {
            bail!("{count} states, at most {most} are allowed");
        }
        let mut states = Vec::with_capacity(count);
        for _ in 0..count {
            states.push(State::new(take_u32(&mut rest)?)?);
        }
        for state in &mut states {
            let next = varint::take_len(&mut rest)?;
            state.implicit = next >= count;
            state.next = below(if state.implicit { next - count } else { next }, count)?;
        }
        for state in states.iter_mut().filter(|state| matches!(state.action, Action::Varint(_))) {
            let (&subtype, behind) = rest.split_first().ok_or_else(cut_short)?;
            state.refine(subtype)?;
            rest = behind;
        }
        for state in states.iter_mut().filter(|state| state.has_buffer()) {
            state.buffer = below(varint::take_len(&mut rest)?, num_buffers)?;
        }
        let first = varint::take_len(&mut rest)?;
        below(first, count)?;
        if !rest.is_empty() {
            bail!("bytes after the layout of a chunk");
        }
        shorten(&mut states)?;
        Ok(Layout { buckets, buffers, states, first })
    }
}

fn cut_short() -> Violation {
    Violation::new("the layout of a chunk is truncated")
}

/// Takes the number of things that follow, each of at least one byte.
fn take_count(rest: &mut &[u8]) -> Result<usize, Violation> {
    let count = varint::take_len(rest)?;
    if count > rest.len() { Err(cut_short()) } else { Ok(count) }
}

fn take_each(rest: &mut &[u8], count: usize) -> Result<Vec<usize>, Violation> {
    if count > rest.len() {
        return Err(cut_short());
    }
    (0..count).map(|_| varint::take_len(rest)).collect()
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, Violation> {
    let value = varint::take(rest)?;
    u32::try_from(value).map_err(|_| Violation::new(format!("a tag of {value}")))
}

fn below(index: usize, count: usize) -> Result<u32, Violation> {
    match u32::try_from(index) {
        Ok(small) if index < count => Ok(small),
        _ => Err(Violation::new(format!("number {index} of {count}"))),
    }
}

/// Lets states that do nothing lead to their end at once, so that none but the first of
/// them in a row costs time. Rejects states that follow each other forever.
fn shorten(states: &mut [State]) -> Result<(), Violation> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let mut marks = vec![Mark::New; states.len()];
    let mut path = Vec::new();
    for start in 0..states.len() {
        let mut at = start;
        while states[at].implicit && marks[at] == Mark::New {
            marks[at] = Mark::OnPath;
            path.push(at);
            at = states[at].next as usize;
        }
        if marks[at] == Mark::OnPath {
            bail!("states that follow each other forever");
        }
        while let Some(at) = path.pop() {
            marks[at] = Mark::Done;
            let next = states[states[at].next as usize];
            if next.implicit && next.action == Action::Nothing {
                states[at].next = next.next;
            }
        }
    }
    Ok(())
}
