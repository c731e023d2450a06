//! The opcodes of a pickle that the tree of a packed folder is made of.

pub const PROTO: u8 = 0x80;
pub const FRAME: u8 = 0x95;
pub const STOP: u8 = b'.';

pub const SHORT_BINUNICODE: u8 = 0x8c;
pub const BINUNICODE: u8 = b'X';
pub const BINUNICODE8: u8 = 0x8d;

pub const BININT1: u8 = b'K';
pub const BININT2: u8 = b'M';
pub const BININT: u8 = b'J';
pub const LONG1: u8 = 0x8a;

pub const GLOBAL: u8 = b'c';
pub const STACK_GLOBAL: u8 = 0x93;
pub const EMPTY_TUPLE: u8 = b')';
pub const REDUCE: u8 = b'R';
pub const EMPTY_DICT: u8 = b'}';

pub const MARK: u8 = b'(';
pub const SETITEM: u8 = b's';
pub const SETITEMS: u8 = b'u';

pub const MEMOIZE: u8 = 0x94;
pub const BINPUT: u8 = b'q';
pub const LONG_BINPUT: u8 = b'r';
pub const BINGET: u8 = b'h';
pub const LONG_BINGET: u8 = b'j';

/// The only class of a tree, by module and name.
pub const CLASS: (&[u8], &[u8]) = (b"collections", b"OrderedDict");
