//! Records taken apart: the values of each field in a buffer, and the way through the
//! states that puts them together again.

use std::collections::HashMap;
use std::ops::Range;

use super::super::Group;
use super::state::{INLINE, tag, wire_type};
use super::wire::{Field, is_message};
use crate::format::Violation;
use crate::format::varint;

/// Submessages that are this deep stay bytes.
const DEPTH_MAX: usize = 100;

/// Greatest varint that is a part of its state.
const INLINE_MAX: u8 = 3;

/// What the values in a buffer are. Buffers of one kind stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Varint,
    Fixed32,
    Fixed64,
    Bytes,
    Opaque,
    /// Lengths of the opaque records.
    OpaqueLen,
}

/// The values of a field, the last first.
#[derive(Debug)]
pub struct Buffer {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

/// A state before its place in the machine is known.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub tag: u32,
    /// Of a varint.
    pub subtype: Option<u8>,
    pub buffer: Option<usize>,
}

/// A field within a certain message, or a message.
#[derive(Debug, Default)]
struct Node {
    buffer: Option<usize>,
    /// By tag and subtype.
    steps: Vec<(u32, Option<u8>, u32)>,
}

/// Records taken apart.
#[derive(Debug, Default)]
pub struct Columns {
    pub buffers: Vec<Buffer>,
    pub steps: Vec<Step>,
    /// Numbers of the steps, as the machine is to take them.
    pub path: Vec<u32>,
    nodes: Vec<Node>,
    /// Nodes by the message they are in and their tag.
    children: HashMap<(usize, u32), usize>,
    opaque_lens: Vec<u8>,
    /// Steps of one record from its beginning to its end, each with its value.
    events: Vec<(u32, Range<usize>)>,
}

const ROOT: usize = 0;

impl Columns {
    /// Takes records apart.
    pub fn of(group: &Group) -> Result<Columns, Violation> {
        let mut columns = Columns { nodes: vec![Node::default()], ..Columns::default() };
        for k in (0..group.len()).rev() {
            columns.add(group.record(k))?;
        }
        if !columns.opaque_lens.is_empty() {
            let bytes = std::mem::take(&mut columns.opaque_lens);
            columns.buffers.push(Buffer { kind: Kind::OpaqueLen, bytes });
        }
        columns.sort_buffers();
        Ok(columns)
    }

    fn add(&mut self, record: &[u8]) -> Result<(), Violation> {
        let mut events = std::mem::take(&mut self.events);
        if is_message(record) {
            events.push((self.step(ROOT, tag::RECORD_START, None, None), 0..0));
            self.walk(record, 0..record.len(), ROOT, 0, &mut events);
        } else {
            let len = u32::try_from(record.len()).map_err(|_| {
                Violation::new(format!(
                    "a record of {} bytes is too long for a transposed chunk",
                    record.len()
                ))
            })?;
            varint::put(&mut self.opaque_lens, len.into());
            let step = self.step(ROOT, tag::OPAQUE, None, Some(Kind::Opaque));
            events.push((step, 0..record.len()));
        }
        for (step, value) in events.drain(..).rev() {
            self.path.push(step);
            let Step { subtype, buffer, .. } = self.steps[step as usize];
            let Some(buffer) = buffer else { continue };
            let bytes = &mut self.buffers[buffer].bytes;
            match subtype {
                Some(_) => bytes.extend(record[value].iter().map(|byte| byte & 0x7f)),
                None => bytes.extend_from_slice(&record[value]),
            }
        }
        self.events = events;
        Ok(())
    }

    /// Notes the steps of a message, which is a part of a record.
    fn walk(
        &mut self,
        record: &[u8],
        message: Range<usize>,
        parent: usize,
        depth: usize,
        events: &mut Vec<(u32, Range<usize>)>,
    ) {
        let bytes = &record[..message.end];
        let mut at = message.start;
        let (mut parent, mut groups) = (parent, Vec::new());
        while at < message.end {
            let Field { tag, value, content } =
                Field::read(bytes, at).expect("it was found to be a message");
            at = value.end;
            let node = self.child(parent, tag);
            let (subtype, kind) = match tag % 8 {
                wire_type::VARINT if bytes[value.start] <= INLINE_MAX => {
                    (Some(INLINE + bytes[value.start]), None)
                }
                wire_type::VARINT => (Some(value.len() as u8 - 1), Some(Kind::Varint)),
                wire_type::FIXED32 => (None, Some(Kind::Fixed32)),
                wire_type::FIXED64 => (None, Some(Kind::Fixed64)),
                wire_type::BYTES
                    if !content.is_empty()
                        && depth < DEPTH_MAX
                        && is_message(&bytes[content.clone()]) =>
                {
                    events.push((self.step(node, tag::MESSAGE_START, None, None), 0..0));
                    self.walk(record, content, node, depth + 1, events);
                    let end = tag - wire_type::BYTES + tag::MESSAGE_END;
                    events.push((self.step(node, end, None, None), 0..0));
                    continue;
                }
                wire_type::BYTES => (None, Some(Kind::Bytes)),
                wire_type::GROUP_START => {
                    groups.push(parent);
                    parent = node;
                    (None, None)
                }
                _ => {
                    parent = groups.pop().expect("groups end where they began");
                    (None, None)
                }
            };
            events.push((self.step(node, tag, subtype, kind), value));
        }
    }

    fn child(&mut self, parent: usize, tag: u32) -> usize {
        let nodes = &mut self.nodes;
        *self.children.entry((parent, tag)).or_insert_with(|| {
            nodes.push(Node::default());
            nodes.len() - 1
        })
    }

    /// Returns the number of a step, which takes its values from a buffer if it has a kind.
    fn step(&mut self, node: usize, tag: u32, subtype: Option<u8>, kind: Option<Kind>) -> u32 {
        let Node { buffer, steps } = &mut self.nodes[node];
        let known = steps.iter().find(|step| (step.0, step.1) == (tag, subtype));
        if let Some(&(.., number)) = known {
            return number;
        }
        let buffers = &mut self.buffers;
        let buffer = kind.map(|kind| {
            *buffer.get_or_insert_with(|| {
                buffers.push(Buffer { kind, bytes: Vec::new() });
                buffers.len() - 1
            })
        });
        let number = self.steps.len() as u32;
        steps.push((tag, subtype, number));
        self.steps.push(Step { tag, subtype, buffer });
        number
    }

    /// Puts buffers of one kind together, and of these the small ones. The lengths of the
    /// opaque records come last.
    fn sort_buffers(&mut self) {
        let mut order: Vec<usize> = (0..self.buffers.len()).collect();
        order.sort_by_key(|&k| (self.buffers[k].kind, self.buffers[k].bytes.len()));
        let mut places = vec![0; order.len()];
        for (place, &k) in order.iter().enumerate() {
            places[k] = place;
        }
        for step in &mut self.steps {
            step.buffer = step.buffer.map(|k| places[k]);
        }
        self.buffers.sort_by_key(|buffer| (buffer.kind, buffer.bytes.len()));
    }
}
