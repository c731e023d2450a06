//! Writes the pickle of a tree as the C pickler of CPython does.

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;

use super::opcode::*;
use super::{Folder, Name, Node};

/// Entries that go into a folder with one opcode.
const BATCH: usize = 1000;

/// A frame ends once it has this many bytes. A text of as many stands between frames.
const FRAME_BYTES: usize = 64 << 10;

/// A frame of fewer bytes goes without its head.
const FRAME_BYTES_MIN: usize = 4;

/// The opcode of a frame and the place for its length.
const FRAME_HEAD: [u8; 9] = [FRAME, 0, 0, 0, 0, 0, 0, 0, 0];

/// Where the class is in the memo, behind its module and its name.
const CLASS_PLACE: u32 = 2;

/// Returns a pickle of protocol 4 with `magic` in front.
pub fn dump(magic: &[u8], root: &Folder) -> Vec<u8> {
    let out = Frames { bytes: [magic, &[PROTO, 4]].concat(), start: None };
    let mut pickler = Pickler { out, memo_len: 0, known: HashMap::new() };
    let mut open = vec![pickler.begin(root)];
    while let Some(level) = open.last_mut() {
        if level.left == 0 && !pickler.next_batch(level) {
            open.pop();
            continue;
        }
        level.left -= 1;
        match level.entries.next() {
            Some((name, Node::File(record))) => {
                pickler.name(name);
                pickler.number(*record);
            }
            Some((name, Node::Folder(folder))) => {
                pickler.name(name);
                open.push(pickler.begin(folder));
            }
            None => {}
        }
    }
    pickler.out.write(&[STOP]);
    pickler.out.end_frame();
    pickler.out.bytes
}

/// A folder that is being written.
struct Level<'a> {
    entries: slice::Iter<'a, (Name, Node)>,
    /// Entries of the batch that are still to come.
    left: usize,
    /// What ends the batch.
    end: &'static [u8],
}

/// What makes two names one object in Python.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'a> {
    /// There is only one string of each of the first 256 characters.
    Character(&'a [u8]),
    Address(*const u8),
}

struct Pickler<'a> {
    out: Frames,
    memo_len: u64,
    /// Where in the memo the names are that may come again.
    known: HashMap<Identity<'a>, u32>,
}

impl<'a> Pickler<'a> {
    fn begin(&mut self, folder: &'a Folder) -> Level<'a> {
        if self.memo_len == 0 {
            self.text(CLASS.0);
            self.text(CLASS.1);
            self.out.write(&[STACK_GLOBAL]);
            self.memoize();
        } else {
            self.recall(CLASS_PLACE);
        }
        self.out.boundary();
        self.out.write(&[EMPTY_TUPLE, REDUCE]);
        self.memoize();
        Level { entries: folder.entries.iter(), left: 0, end: &[] }
    }

    /// Ends a batch and begins the next, if there are entries for one.
    fn next_batch(&mut self, level: &mut Level<'_>) -> bool {
        self.out.write(level.end);
        level.left = level.entries.len().min(BATCH);
        level.end = if level.left == 1 { &[SETITEM] } else { &[SETITEMS] };
        if level.left > 1 {
            self.out.write(&[MARK]);
        }
        level.left > 0
    }

    fn name(&mut self, name: &'a Name) {
        let identity = match &name[..] {
            [_] | [0xc2 | 0xc3, _] => Identity::Character(name),
            _ if Arc::strong_count(name) > 1 => Identity::Address(name.as_ptr()),
            _ => return self.text(name),
        };
        if let Some(&place) = self.known.get(&identity) {
            return self.recall(place);
        }
        if let Ok(place) = u32::try_from(self.memo_len) {
            self.known.insert(identity, place);
        }
        self.text(name);
    }

    fn text(&mut self, text: &[u8]) {
        self.out.boundary();
        let (opcode, width) = match text.len() {
            0..=0xff => (SHORT_BINUNICODE, 1),
            0x100..=0xffff_ffff => (BINUNICODE, 4),
            _ => (BINUNICODE8, 8),
        };
        let mut head = vec![opcode];
        head.extend(&(text.len() as u64).to_le_bytes()[..width]);
        if text.len() < FRAME_BYTES {
            self.out.write(&head);
            self.out.write(text);
        } else {
            self.out.end_frame();
            self.out.bytes.extend(head);
            self.out.bytes.extend_from_slice(text);
        }
        self.memoize();
    }

    fn number(&mut self, number: u64) {
        self.out.boundary();
        let num_bits = u64::BITS - number.leading_zeros();
        let head = match num_bits {
            0..=8 => [BININT1, 1],
            9..=16 => [BININT2, 2],
            17..=31 => [BININT, 4],
            _ => [LONG1, (num_bits / 8 + 1) as u8],
        };
        let len = usize::from(head[1]);
        let bytes = u128::from(number).to_le_bytes();
        self.out.write(if head[0] == LONG1 { &head } else { &head[..1] });
        self.out.write(&bytes[..len]);
    }

    fn memoize(&mut self) {
        self.out.write(&[MEMOIZE]);
        self.memo_len += 1;
    }

    fn recall(&mut self, place: u32) {
        self.out.boundary();
        match u8::try_from(place) {
            Ok(place) => self.out.write(&[BINGET, place]),
            Err(_) => {
                self.out.write(&[LONG_BINGET]);
                self.out.write(&place.to_le_bytes());
            }
        }
    }
}

/// Bytes in frames.
struct Frames {
    bytes: Vec<u8>,
    /// Where the frame begins that is open.
    start: Option<usize>,
}

impl Frames {
    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.start.is_none() {
            self.start = Some(self.bytes.len());
            self.bytes.extend(FRAME_HEAD);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Ends a frame that is long enough. The pickler does so before each object.
    fn boundary(&mut self) {
        let begun = |start: usize| self.bytes.len() - start - FRAME_HEAD.len();
        if self.start.is_some_and(|start| begun(start) >= FRAME_BYTES) {
            self.end_frame();
        }
    }

    fn end_frame(&mut self) {
        let Some(start) = self.start.take() else { return };
        let data = start + FRAME_HEAD.len();
        let len = self.bytes.len() - data;
        if len < FRAME_BYTES_MIN {
            self.bytes.drain(start..data);
        } else {
            self.bytes[start + 1..data].copy_from_slice(&(len as u64).to_le_bytes());
        }
    }
}
