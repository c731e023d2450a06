//! The machine that puts records together, from the end of the last to the beginning of
//! the first.

use super::super::Group;
use super::backward::Backward;
use super::layout::Layout;
use super::state::{Action, State};
use crate::format::varint;
use crate::format::{Violation, bail};

/// What is there between two steps.
pub struct Machine<'a> {
    layout: &'a Layout,
    /// What is left of each buffer.
    buffers: Vec<&'a [u8]>,
    out: Backward,
    /// Submessages that have ended: the state that said so, and the bytes behind the end.
    open: Vec<(usize, usize)>,
    /// Number of records that the chunk says.
    records: usize,
    /// Bytes from the beginning of each record to the end of the last.
    lens: Vec<usize>,
    /// The length of a submessage, while it is put.
    scratch: Vec<u8>,
}

impl<'a> Machine<'a> {
    /// Returns a machine for this many records of this many bytes in all.
    pub fn new(
        layout: &'a Layout,
        buffers: Vec<&'a [u8]>,
        records: usize,
        bytes: usize,
    ) -> Result<Machine<'a>, Violation> {
        let out = Backward::new(buffers.iter().map(|buffer| buffer.len()).sum(), bytes)?;
        let (open, lens, scratch) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Machine { layout, buffers, out, open, records, lens, scratch })
    }

    /// Returns the records that come out along the transitions. Each step leaves a byte, a
    /// record or a submessage, or takes a transition, and none of them are without end.
    pub fn run(mut self, transitions: &[u8]) -> Result<Group, Violation> {
        let states = &self.layout.states[..];
        let mut transitions = transitions.iter();
        let (mut at, mut repeat) = (self.layout.first, 0);
        loop {
            let state = &states[at];
            self.step(at, state)?;
            at = state.next as usize;
            if state.implicit {
                continue;
            }
            if repeat > 0 {
                repeat -= 1;
                continue;
            }
            let Some(&transition) = transitions.next() else { break };
            at += usize::from(transition >> 2);
            repeat = transition & 3;
            if at >= states.len() {
                let count = states.len();
                bail!("a transition to state {at} of {count}");
            }
        }
        self.finish()
    }

    #[inline]
    fn step(&mut self, at: usize, state: &State) -> Result<(), Violation> {
        let buffer = state.buffer as usize;
        match state.action {
            Action::Nothing => return Ok(()),
            Action::Literal => {}
            Action::Varint(len) => {
                let len = usize::from(len);
                let stored = take(&mut self.buffers[buffer], len)?;
                let mut value = [0x80; varint::LEN_MAX];
                for (byte, stored) in value.iter_mut().zip(stored) {
                    *byte |= stored;
                }
                value[len - 1] = stored[len - 1];
                self.out.put(&value[..len])?;
            }
            Action::Fixed(len) => self.out.put(take(&mut self.buffers[buffer], len.into())?)?,
            Action::Bytes => {
                let buffer = &mut self.buffers[buffer];
                let mut content = *buffer;
                let len = varint::take_len(&mut content)?;
                let whole = (buffer.len() - content.len()).saturating_add(len);
                self.out.put(take(buffer, whole)?)?;
            }
            Action::MessageEnd => return self.end_message(at),
            Action::MessageStart => return self.start_message(),
            Action::Opaque => {
                let lens = self.buffers.last_mut().expect("the state has a buffer");
                let len = varint::take_len(lens)?;
                self.out.put(take(&mut self.buffers[buffer], len)?)?;
                return self.start_record();
            }
            Action::RecordStart => return self.start_record(),
        }
        self.out.put(state.literal())
    }

    fn end_message(&mut self, at: usize) -> Result<(), Violation> {
        // Each of them is going to take a tag and a length.
        if self.open.len() >= self.out.room() / 2 {
            bail!("more submessages than the records have room for");
        }
        self.open.push((at, self.out.len()));
        Ok(())
    }

    fn start_message(&mut self) -> Result<(), Violation> {
        let (end, behind) =
            self.open.pop().ok_or_else(|| Violation::new("a submessage that does not end"))?;
        self.scratch.clear();
        varint::put(&mut self.scratch, (self.out.len() - behind) as u64);
        self.out.put(&self.scratch)?;
        self.out.put(self.layout.states[end].literal())
    }

    fn start_record(&mut self) -> Result<(), Violation> {
        if !self.open.is_empty() {
            bail!("a submessage that does not begin");
        }
        if self.lens.len() == self.records {
            bail!("more than {} records", self.records);
        }
        self.lens.push(self.out.len());
        Ok(())
    }

    fn finish(mut self) -> Result<Group, Violation> {
        if self.lens.len() != self.records {
            bail!("{} records, the chunk says {}", self.lens.len(), self.records);
        }
        let last = self.lens.pop();
        if last.unwrap_or(0) != self.out.len() {
            bail!("a record that does not begin");
        }
        let bytes = self.out.finish()?;
        let ends = self.lens.iter().rev().map(|len| bytes.len() - len);
        let ends = ends.chain(last.map(|_| bytes.len())).collect();
        Ok(Group { bytes, ends })
    }
}

#[inline]
fn take<'a>(buffer: &mut &'a [u8], len: usize) -> Result<&'a [u8], Violation> {
    let (taken, behind) = buffer
        .split_at_checked(len)
        .ok_or_else(|| Violation::new("a buffer with fewer values than fields"))?;
    *buffer = behind;
    Ok(taken)
}
