//! Writes the pickle of a tree as the C pickler of CPython does.

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;

use super::opcode::*;
use super::{Folder, Name, Node};

/// Entries that go into a folder with one opcode.
const BATCH: usize = 1000;

/// A frame ends before the first object behind this many bytes.
const FRAME_BYTES: usize = 64 << 10;

/// Where the class is in the memo, behind its module and its name.
const CLASS_PLACE: u32 = 2;

/// Returns a pickle of protocol 4 with `magic` in front.
pub fn dump(magic: &[u8], root: &Folder) -> Vec<u8> {
    let bytes = [magic, &[PROTO, 4]].concat();
    let mut pickler = Pickler { bytes, frame: 0, memo_len: 0, known: HashMap::new() };
    pickler.begin_frame();
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
    pickler.write(&[STOP]);
    pickler.end_frame();
    pickler.bytes
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
    bytes: Vec<u8>,
    /// Where the frame begins, behind its length.
    frame: usize,
    memo_len: u64,
    /// Where in the memo the names are that may come again.
    known: HashMap<Identity<'a>, u32>,
}

impl<'a> Pickler<'a> {
    fn begin(&mut self, folder: &'a Folder) -> Level<'a> {
        if self.memo_len == 0 {
            self.text(CLASS.0);
            self.text(CLASS.1);
            self.write(&[STACK_GLOBAL]);
            self.memoize();
        } else {
            self.recall(CLASS_PLACE);
        }
        self.next_object();
        self.write(&[EMPTY_TUPLE, REDUCE]);
        self.memoize();
        Level { entries: folder.entries.iter(), left: 0, end: &[] }
    }

    /// Ends a batch and begins the next, if there are entries for one.
    fn next_batch(&mut self, level: &mut Level<'_>) -> bool {
        self.write(level.end);
        level.left = level.entries.len().min(BATCH);
        level.end = if level.left == 1 { &[SETITEM] } else { &[SETITEMS] };
        if level.left > 1 {
            self.write(&[MARK]);
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

    /// Writes a text, which is no longer than a name.
    fn text(&mut self, text: &[u8]) {
        self.next_object();
        let len = (text.len() as u32).to_le_bytes();
        if text.len() <= 0xff {
            self.write(&[SHORT_BINUNICODE, len[0]]);
        } else {
            self.write(&[BINUNICODE]);
            self.write(&len);
        }
        self.write(text);
        self.memoize();
    }

    fn number(&mut self, number: u64) {
        self.next_object();
        let bytes = u128::from(number).to_le_bytes();
        let num_bits = u64::BITS - number.leading_zeros();
        let (head, len): (&[u8], usize) = match num_bits {
            0..=8 => (&[BININT1], 1),
            9..=16 => (&[BININT2], 2),
            17..=31 => (&[BININT], 4),
            // One bit is that of the sign.
            32..=39 => (&[LONG1, 5], 5),
            40..=47 => (&[LONG1, 6], 6),
            48..=55 => (&[LONG1, 7], 7),
            56..=63 => (&[LONG1, 8], 8),
            _ => (&[LONG1, 9], 9),
        };
        self.write(head);
        self.write(&bytes[..len]);
    }

    fn memoize(&mut self) {
        self.write(&[MEMOIZE]);
        self.memo_len += 1;
    }

    fn recall(&mut self, place: u32) {
        self.next_object();
        match u8::try_from(place) {
            Ok(place) => self.write(&[BINGET, place]),
            Err(_) => {
                self.write(&[LONG_BINGET]);
                self.write(&place.to_le_bytes());
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Begins another frame if this one is long enough, as the pickler does at each object.
    fn next_object(&mut self) {
        if self.bytes.len() - self.frame >= FRAME_BYTES {
            self.end_frame();
            self.begin_frame();
        }
    }

    fn begin_frame(&mut self) {
        self.write(&[FRAME]);
        self.write(&[0; 8]);
        self.frame = self.bytes.len();
    }

    fn end_frame(&mut self) {
        let len = (self.bytes.len() - self.frame) as u64;
        self.bytes[self.frame - 8..self.frame].copy_from_slice(&len.to_le_bytes());
    }
}
