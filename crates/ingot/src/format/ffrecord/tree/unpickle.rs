//! Reads the pickle of a tree without running it.

use super::{Folder, MAGIC, Name, Node, check_name, make_room};
use crate::format::fields::Fields;
use crate::format::{Violation, bail};

// The opcodes of a pickle that the tree of a packed folder is made of.
const PROTO: u8 = 0x80;
const FRAME: u8 = 0x95;
const STOP: u8 = b'.';

const SHORT_BINUNICODE: u8 = 0x8c;
const BINUNICODE: u8 = b'X';
const BINUNICODE8: u8 = 0x8d;

const BININT1: u8 = b'K';
const BININT2: u8 = b'M';
const BININT: u8 = b'J';
const LONG1: u8 = 0x8a;

const GLOBAL: u8 = b'c';
const STACK_GLOBAL: u8 = 0x93;
const EMPTY_TUPLE: u8 = b')';
const REDUCE: u8 = b'R';
const EMPTY_DICT: u8 = b'}';

const MARK: u8 = b'(';
const SETITEM: u8 = b's';
const SETITEMS: u8 = b'u';

const MEMOIZE: u8 = 0x94;
const BINPUT: u8 = b'q';
const LONG_BINPUT: u8 = b'r';
const BINGET: u8 = b'h';
const LONG_BINGET: u8 = b'j';

/// The only class of a tree, by module and name.
const CLASS: (&[u8], &[u8]) = (b"collections", b"OrderedDict");

/// How many items may wait to be put into folders: Python leaves 2002 for each that is open.
const STACK_MAX: usize = 4 << 20;

/// What the opcodes push and pop.
enum Item {
    Mark,
    Text(Name),
    /// A file's record.
    Number(u64),
    /// `collections.OrderedDict`.
    Class,
    /// The empty tuple that the class is called with.
    Arguments,
    /// A folder that may get further entries.
    Folder(Vec<(Name, Node)>),
}

/// The memo of the opcodes. A folder cannot be taken from it twice, so that none is in two places
/// or in itself.
enum Memo {
    Text(Name),
    Class,
    Other,
}

struct Machine<'a> {
    rest: Fields<'a>,
    stack: Vec<Item>,
    memo: Vec<Memo>,
    num_files: u64,
}

/// Reads a tree whose files are in records below `num_files`.
pub fn load(pickle: &[u8], num_files: u64) -> Result<Folder, Violation> {
    let [PROTO, 2..=5, rest @ ..] = pickle else {
        bail!("not a pickle of protocol 2 to 5");
    };
    let rest = Fields(rest);
    let mut machine = Machine { rest, stack: Vec::new(), memo: Vec::new(), num_files };
    loop {
        let at = MAGIC.len() + pickle.len() - machine.rest.0.len();
        let Ok(opcode) = machine.byte() else {
            bail!("truncated at byte {at}");
        };
        let place = |Violation(why)| Violation(format!("opcode {opcode:#04x} at byte {at}: {why}"));
        if opcode == STOP {
            return machine.finish().map_err(place);
        }
        machine.step(opcode).map_err(place)?;
    }
}

impl Machine<'_> {
    fn step(&mut self, opcode: u8) -> Result<(), Violation> {
        match opcode {
            FRAME => self.frame(),
            SHORT_BINUNICODE => self.byte().and_then(|len| self.text(len.into())),
            BINUNICODE => self.rest.u32().and_then(|len| self.text(len.into())),
            BINUNICODE8 => self.rest.u64().and_then(|len| self.text(len)),
            BININT1 => self.number(1, false),
            BININT2 => self.number(2, false),
            BININT => self.number(4, true),
            LONG1 => self.byte().and_then(|len| self.number(len.into(), true)),
            GLOBAL => self.global(),
            STACK_GLOBAL => match (self.stack.pop(), self.stack.pop()) {
                (Some(Item::Text(name)), Some(Item::Text(module))) => self.class(&module, &name),
                _ => Err(Violation::new("expected a module and a name before it")),
            },
            EMPTY_TUPLE => self.push(Item::Arguments),
            REDUCE => match (self.stack.pop(), self.stack.pop()) {
                (Some(Item::Arguments), Some(Item::Class)) => self.push(Item::Folder(Vec::new())),
                _ => Err(Violation::new("expected a class and its arguments before it")),
            },
            EMPTY_DICT => self.push(Item::Folder(Vec::new())),
            MARK => self.push(Item::Mark),
            SETITEM => self.insert(self.stack.len().saturating_sub(2)),
            SETITEMS => match self.stack.iter().rposition(|item| matches!(item, Item::Mark)) {
                Some(mark) => {
                    self.stack.remove(mark);
                    self.insert(mark)
                }
                None => Err(Violation::new("expected a mark before it")),
            },
            MEMOIZE => self.remember(self.memo.len()),
            BINPUT => self.byte().and_then(|place| self.remember(place.into())),
            LONG_BINPUT => self.rest.u32().and_then(|place| self.remember(place as usize)),
            BINGET => self.byte().and_then(|place| self.recall(place.into())),
            LONG_BINGET => self.rest.u32().and_then(|place| self.recall(place as usize)),
            _ => Err(Violation::new("not allowed in the tree of a folder")),
        }
    }

    fn byte(&mut self) -> Result<u8, Violation> {
        self.rest.bytes(1).map(|bytes| bytes[0])
    }

    fn push(&mut self, item: Item) -> Result<(), Violation> {
        if self.stack.len() == STACK_MAX {
            bail!("more than {STACK_MAX} items are in no folder");
        }
        make_room(&mut self.stack, 1)?;
        self.stack.push(item);
        Ok(())
    }

    /// Frames only matter to readers of a stream.
    fn frame(&mut self) -> Result<(), Violation> {
        let (len, left) = (self.rest.u64()?, self.rest.0.len());
        if len > left as u64 {
            bail!("a frame of {len} bytes, {left} are left");
        }
        Ok(())
    }

    /// Takes a text, which is a name; so are those of the class.
    fn text(&mut self, len: u64) -> Result<(), Violation> {
        let text = self.rest.bytes(usize::try_from(len).unwrap_or(usize::MAX))?;
        check_name(text)?;
        self.push(Item::Text(text.into()))
    }

    /// Takes a little-endian number of `len` bytes, which is one of a file.
    fn number(&mut self, len: usize, signed: bool) -> Result<(), Violation> {
        let bytes = self.rest.bytes(len)?;
        let negative = signed && bytes.last().is_some_and(|&last| last >= 0x80);
        let (low, high) = bytes.split_at(len.min(8));
        let mut number = [0; 8];
        number[..low.len()].copy_from_slice(low);
        let number = u64::from_le_bytes(number);
        if negative || number >= self.num_files || high.iter().any(|&byte| byte != 0) {
            let files = self.num_files;
            bail!("not the number of one of the {files} files");
        }
        self.push(Item::Number(number))
    }

    fn global(&mut self) -> Result<(), Violation> {
        let mut lines = self.rest.0.splitn(3, |&byte| byte == b'\n');
        let (Some(module), Some(name), Some(rest)) = (lines.next(), lines.next(), lines.next())
        else {
            bail!("expected a module and a name, a line each");
        };
        self.rest.0 = rest;
        self.class(module, name)
    }

    fn class(&mut self, module: &[u8], name: &[u8]) -> Result<(), Violation> {
        if (module, name) != CLASS {
            bail!("a class other than collections.OrderedDict");
        }
        self.push(Item::Class)
    }

    /// Puts names and their nodes, which are on the stack from `start` on, into the
    /// folder below.
    fn insert(&mut self, start: usize) -> Result<(), Violation> {
        let below = start.checked_sub(1).and_then(|below| self.stack.get_mut(below));
        let Some(Item::Folder(entries)) = below else {
            bail!("expected a folder to put into");
        };
        let mut entries = std::mem::take(entries);
        let mut items = self.stack.drain(start..);
        make_room(&mut entries, items.len().div_ceil(2))?;
        while let Some(name) = items.next() {
            entries.push(match (name, items.next()) {
                (Item::Text(name), Some(Item::Number(record))) => (name, Node::File(record)),
                (Item::Text(name), Some(Item::Folder(entries))) => {
                    (name, Node::Folder(Folder::of_checked(entries)?))
                }
                _ => bail!("expected names with a file or folder each"),
            });
        }
        drop(items);
        self.stack[start - 1] = Item::Folder(entries);
        Ok(())
    }

    fn remember(&mut self, place: usize) -> Result<(), Violation> {
        if place != self.memo.len() {
            bail!("memo {place} is stored after {}", self.memo.len());
        }
        make_room(&mut self.memo, 1)?;
        self.memo.push(match self.stack.last() {
            Some(Item::Text(text)) => Memo::Text(Name::clone(text)),
            Some(Item::Class) => Memo::Class,
            Some(Item::Mark) | None => bail!("nothing to memoize"),
            Some(_) => Memo::Other,
        });
        Ok(())
    }

    fn recall(&mut self, place: usize) -> Result<(), Violation> {
        match self.memo.get(place) {
            Some(Memo::Text(text)) => self.push(Item::Text(Name::clone(text))),
            Some(Memo::Class) => self.push(Item::Class),
            Some(Memo::Other) => Err(Violation::new("a folder is used twice")),
            None => Err(Violation(format!("memo {place} does not exist"))),
        }
    }

    fn finish(&mut self) -> Result<Folder, Violation> {
        let left = self.rest.0.len();
        if left > 0 {
            bail!("{left} bytes follow the tree");
        }
        match (self.stack.pop(), self.stack.pop()) {
            (Some(Item::Folder(entries)), None) => Folder::of_checked(entries),
            _ => Err(Violation::new("expected a folder and nothing else before it")),
        }
    }
}
