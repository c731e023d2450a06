use std::sync::Arc;

use super::Node::File;
use super::*;

/// What a tree begins with that Python writes: the class, and the root.
const ROOT: &[u8] = b"\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94";

fn named<T: AsRef<[u8]>>(entries: impl IntoIterator<Item = (T, Node)>) -> Folder {
    let entries = entries.into_iter().map(|(name, node)| (Name::from(name.as_ref()), node));
    Folder::new(entries.collect()).unwrap()
}

fn folder<const N: usize>(entries: [(&str, Node); N]) -> Node {
    Node::Folder(named(entries))
}

fn nested(folders: usize) -> Result<Folder, Violation> {
    let mut tree = Folder::new(Vec::new())?;
    for _ in 1..folders {
        tree = Folder::new(vec![(Name::from(*b"in"), Node::Folder(tree))])?;
    }
    Ok(tree)
}

/// Returns the record of a pickle of protocol 4 in one frame.
fn framed(opcodes: &[u8]) -> Vec<u8> {
    let len = (opcodes.len() as u64).to_le_bytes();
    [MAGIC, &b"\x80\x04\x95"[..], &len, opcodes].concat()
}

/// Returns a record without frames that goes on behind [`ROOT`].
fn behind_root(opcodes: &[u8]) -> Vec<u8> {
    [MAGIC, &b"\x80\x04"[..], ROOT, opcodes].concat()
}

/// Trees, and what CPython 3.8 to 3.13 write behind [`ROOT`] for them.
fn examples() -> [(Folder, &'static [u8]); 4] {
    let sub = folder([("deep", folder([("y", File(2))])), ("x", File(3))]);
    [
        (named([("", File(0)); 0]), b"."),
        (
            named([
                ("A.txt", File(0)),
                ("b.txt", File(1)),
                ("emptydir", folder([])),
                ("sub", sub),
                ("sub.txt", File(4)),
            ]),
            b"(\x8c\x05A.txt\x94K\x00\x8c\x05b.txt\x94K\x01\x8c\x08emptydir\x94h\x02)R\x94\
            \x8c\x03sub\x94h\x02)R\x94(\x8c\x04deep\x94h\x02)R\x94\x8c\x01y\x94K\x02s\
            \x8c\x01x\x94K\x03u\x8c\x07sub.txt\x94K\x04u.",
        ),
        (
            named([
                ("x", folder([("a", File(0)), ("\u{e9}", File(1)), ("ab", File(2))])),
                ("y", folder([("a", File(3)), ("\u{e9}", File(4)), ("ab", File(5))])),
            ]),
            b"(\x8c\x01x\x94h\x02)R\x94(\
            \x8c\x01a\x94K\x00\x8c\x02\xc3\xa9\x94K\x01\x8c\x02ab\x94K\x02u\
            \x8c\x01y\x94h\x02)R\x94(h\x06K\x03h\x07K\x04\x8c\x02ab\x94K\x05uu.",
        ),
        (
            named([
                ("a", File(0)),
                ("b", File(255)),
                ("c", File(256)),
                ("d", File(65_535)),
                ("e", File(65_536)),
                ("f", File((1 << 31) - 1)),
                ("g", File(1 << 31)),
                ("h", File((1 << 39) - 1)),
                ("i", File(1 << 39)),
                ("j", File(u64::MAX - 1)),
            ]),
            b"(\x8c\x01a\x94K\x00\x8c\x01b\x94K\xff\x8c\x01c\x94M\0\x01\x8c\x01d\x94M\xff\xff\
            \x8c\x01e\x94J\0\0\x01\0\x8c\x01f\x94J\xff\xff\xff\x7f\
            \x8c\x01g\x94\x8a\x05\0\0\0\x80\0\x8c\x01h\x94\x8a\x05\xff\xff\xff\xff\x7f\
            \x8c\x01i\x94\x8a\x06\0\0\0\0\x80\0\
            \x8c\x01j\x94\x8a\x09\xfe\xff\xff\xff\xff\xff\xff\xff\0u.",
        ),
    ]
}

#[test]
fn trees_are_read_as_python_writes_them() {
    for (tree, opcodes) in examples() {
        assert_eq!(decode(&framed(&[ROOT, opcodes].concat()), u64::MAX), Ok(tree));
    }
}

#[test]
fn a_name_that_is_shared_stays_shared() {
    let python = b"(\x8c\x01p\x94h\x02)R\x94\x8c\x06shared\x94K\x00s\
        \x8c\x01q\x94h\x02)R\x94h\x06K\x01su.";
    let tree = decode(&framed(&[ROOT, python].concat()), 2).unwrap();
    let names: Vec<Name> = tree
        .entries()
        .map(|(_, node)| match node {
            Node::Folder(folder) => Name::clone(folder.entries().next().unwrap().0),
            File(_) => panic!("a folder was written"),
        })
        .collect();
    assert!(Arc::ptr_eq(&names[0], &names[1]));
}

#[test]
fn older_protocols_and_plain_dicts_are_read() {
    let tree = named([("a", File(0)), ("d", folder([])), ("b", File(1))]);
    let protocol2 = b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(\
        X\x01\0\0\0aq\x02K\x00X\x01\0\0\0dq\x03h\x00)Rr\x04\0\0\0X\x01\0\0\0bq\x05K\x01u.";
    let dict = b"\x80\x03}q\x00(X\x01\0\0\0aq\x01J\0\0\0\0X\x01\0\0\0dq\x02}q\x03u\
        \x8d\x01\0\0\0\0\0\0\0b\x8a\x01\x01s.";
    for pickle in [&protocol2[..], dict] {
        assert_eq!(decode(&[MAGIC, pickle].concat(), 2).as_ref(), Ok(&tree));
    }
}

#[test]
fn entries_keep_their_order() {
    let tree = named([("b", File(0)), ("c", folder([])), ("a", File(1))]);
    let names: Vec<&[u8]> = tree.entries().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, [b"b", b"c", b"a"]);
}

#[test]
fn impossible_file_names_are_rejected() {
    let bad: [&[u8]; 8] = [b"", b".", b"..", b"a/b", b"/", b"a\0", b"\xff", b"\xed\xa0"];
    for name in bad {
        assert!(Folder::new(vec![(Name::from(name), File(0))]).is_err(), "{name:?}");
        let len = [0x8c, name.len() as u8];
        let record = behind_root(&[&len, name, b"\x94K\x00s."].concat());
        assert!(decode(&record, 1).is_err(), "{name:?}");
    }
    for name in ["...", ".a", "a\\b", "\u{10ffff}", " "] {
        assert!(Folder::new(vec![(Name::from(name.as_bytes()), File(0))]).is_ok(), "{name}");
    }
}

#[test]
fn overlong_names_are_rejected() {
    for (len, fits) in [(NAME_BYTES_MAX, true), (NAME_BYTES_MAX + 1, false)] {
        let name = vec![b'n'; len];
        let opcodes = [b"X", &(len as u32).to_le_bytes()[..], &name, b"\x94K\x00s."].concat();
        assert_eq!(Folder::new(vec![(Name::from(name), File(0))]).is_ok(), fits);
        assert_eq!(decode(&behind_root(&opcodes), 1).is_ok(), fits);
    }
}

#[test]
fn overlong_paths_are_rejected() {
    for (top, fits) in [(1023, true), (1024, false)] {
        let mut tree = named([(vec![b'f'; 1024], File(0))]);
        for _ in 0..10 {
            tree = named([(vec![b'd'; 1023], Node::Folder(tree))]);
        }
        let root = Folder::new(vec![(Name::from(vec![b'd'; top]), Node::Folder(tree))]);
        assert_eq!(root.is_ok(), fits);
    }
}

#[test]
fn a_duplicate_name_is_rejected() {
    let twice =
        [&b"(\x8c\x02ab\x94K\x00\x8c\x02ab\x94K\x01u."[..], b"\x8c\x01a\x94K\x00sh\x04K\x00s."];
    for opcodes in twice {
        let Violation(why) = decode(&behind_root(opcodes), 2).unwrap_err();
        assert!(why.contains("occurs twice"), "{why}");
    }
}

#[test]
fn anything_but_a_tree_is_rejected() {
    let item = b"\x8c\x01a\x94K\x00s";
    let cases: &[(&str, &[u8], &str)] = &[
        ("a class that runs a program", b"cos\nsystem\n.", "other than collections.OrderedDict"),
        ("the same from the stack", b"\x8c\x02os\x8c\x06system\x93.", "other than"),
        ("another class of the module", b"\x8c\x0bcollections\x8c\x05deque\x93.", "other than"),
        ("a class without a name", b"\x93.", "expected a module"),
        ("half a class", b"ccollections\nOrderedDict", "a line each"),
        ("a class that is not called", b"h\x02.", "nothing else"),
        ("a call of a folder", b")R.", "expected a class"),
        ("a call with a folder", b"h\x02}R.", "expected a class"),
        ("a folder in itself", b"\x8c\x01a\x94h\x03s.", "used twice"),
        ("a folder in two", b"(\x8c\x01a\x94}\x94\x8c\x01b\x94h\x05u.", "used twice"),
        ("a folder for a name", b"}K\x00s.", "expected names"),
        ("a name for a file", b"\x8c\x01a\x94h\x04s.", "expected names"),
        ("an odd batch", b"(\x8c\x01a\x94u.", "expected names"),
        ("a batch without a mark", b"\x8c\x01a\x94K\x00u.", "expected a mark"),
        ("a mark in an entry", b"\x8c\x01a\x94(s.", "expected names"),
        ("an entry of nothing", b"s.", "expected a folder"),
        ("a file that is not there", b"\x8c\x01a\x94K\x01s.", "one of the 1 files"),
        ("a negative file", b"\x8c\x01a\x94J\xff\xff\xff\xffs.", "one of the 1 files"),
        ("a long negative file", b"\x8c\x01a\x94\x8a\x01\x80s.", "one of the 1 files"),
        ("a file of 72 bits", b"\x8c\x01a\x94\x8a\x09\0\0\0\0\0\0\0\0\x01s.", "one of the 1"),
        ("a memo that is not there", b"h\x04.", "memo 4 does not exist"),
        ("a far memo that is not there", b"j\xff\xff\xff\xff.", "memo 4294967295 does not exist"),
        ("a memo far away", b"r\xff\xff\xff\xff.", "memo 4294967295"),
        ("a memo once more", b"q\x00.", "memo 0"),
        ("a memo of a mark", b"(\x94.", "nothing to memoize"),
        ("two folders", b"}.", "nothing else"),
        ("bytes behind", b"..", "1 bytes follow"),
        ("a frame beyond the end", b"\x95\x02\0\0\0\0\0\0\0.", "a frame of 2 bytes"),
        ("a name beyond the end", b"\x8c\x02a", "1 bytes, expected 2"),
        ("a name of all bytes", b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff", "bytes, expected"),
        ("half a number", b"J\0", "1 bytes, expected 4"),
        ("a second protocol", b"\x80\x04.", "not allowed"),
        ("a list", b"].", "not allowed"),
        ("an object", b"h\x02)\x81.", "opcode 0x81 at byte 47: not allowed"),
        ("a persistent id", b"Pid\n.", "not allowed"),
        ("a state", b"}b.", "not allowed"),
        ("no end", b"", "truncated at byte 44"),
    ];
    for (what, opcodes, expected) in cases {
        let Violation(why) = decode(&behind_root(opcodes), 1).unwrap_err();
        assert!(why.contains(expected), "{what}: {why}");
    }
    assert!(decode(&behind_root(&[item, &b"."[..]].concat()), 1).is_ok());
    for record in [&b""[..], MAGIC, b"piouhjgbr\x80\x01}.", b"piouhjgbr\x80\x06}.", b"\x80\x04}."] {
        assert!(decode(record, 1).is_err(), "{}", record.escape_ascii());
    }
}

#[test]
fn more_items_than_a_tree_leaves_waiting_are_rejected() {
    for flood in [&b"("[..], b"}", b")", b"h\x00", b"h\x02"] {
        let Violation(why) = decode(&behind_root(&flood.repeat(5 << 20)), 1).unwrap_err();
        assert!(why.contains("more than 4194304 items"), "{why}");
    }
}

#[test]
fn a_tree_truncated_anywhere_is_rejected() {
    for (_, opcodes) in examples() {
        let record = framed(&[ROOT, opcodes].concat());
        for len in 0..record.len() {
            assert!(decode(&record[..len], u64::MAX).is_err(), "{len}");
        }
    }
}

#[test]
fn the_deepest_tree_takes_little_stack_and_a_deeper_one_is_rejected() {
    let work = || {
        let record = |folders| {
            let (down, up) = (b"\x8c\x02in}".repeat(folders - 1), b"s".repeat(folders - 1));
            behind_root(&[down, up, b".".to_vec()].concat())
        };
        let deepest = nested(DEPTH_MAX).unwrap();
        assert!(decode(&record(DEPTH_MAX), 0).unwrap() == deepest.clone());
        assert!(nested(DEPTH_MAX + 1).is_err());
        for folders in [DEPTH_MAX + 1, 100 * DEPTH_MAX] {
            let Violation(why) = decode(&record(folders), 0).unwrap_err();
            assert!(why.contains("nested more than 1000 deep"), "{why}");
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}
