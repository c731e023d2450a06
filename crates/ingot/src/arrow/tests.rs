use std::ptr;
use std::sync::Arc;

use super::make::{Column, Stored, table};
use super::take::{Taken, take};
use super::*;

/// Where a refusal is that is about no row.
const NOWHERE: usize = usize::MAX >> 1;

fn kind(name: &str, format: &str, children: Vec<Kind>) -> Kind {
    Kind {
        name: name.to_owned(),
        format: format.to_owned(),
        flags: 2,
        metadata: Vec::new(),
        children,
        dictionary: None,
    }
}

fn list(format: &str, inner: Kind) -> Kind {
    kind("x", format, vec![inner])
}

fn plain(format: &str) -> Kind {
    kind("x", format, Vec::new())
}

fn layout(cell: Cell, repeat: Repeat) -> Layout {
    Layout { cell, repeat }
}

fn stored(values: &[&[u8]]) -> Stored {
    let data = values.concat();
    Stored { data: Data::Own(data), offsets: ends(values), counts: None, present: None }
}

fn ends(values: &[&[u8]]) -> Vec<i64> {
    (0..=values.len()).map(|count| values[..count].concat().len() as i64).collect()
}

/// Makes a struct with one column, named x.
fn made(kind: Kind, layout: &Layout, stored: Stored, rows: usize) -> (Kind, Node) {
    let kind = self::kind("", "+s", vec![kind]);
    let node = table(&kind, vec![Column::Stored(layout.clone(), stored)], rows).unwrap();
    (kind, node)
}

fn taken(kind: &Kind, node: &Node, layout: &Layout, is_optional: bool) -> Result<Taken, Refusal> {
    take(Part { kind, node }, &["x".to_owned()], layout, is_optional, None, true)
}

/// Takes the only column, whose array is as given, and returns why that is refused.
fn refusal(kind: Kind, node: Node, layout: &Layout) -> (String, usize) {
    let len = node.len;
    let kind = self::kind("", "+s", vec![kind]);
    let Refusal(message, place) =
        taken(&kind, &Node::new(len, vec![None], vec![node]), layout, false).unwrap_err();
    (message, place)
}

fn words(values: &[i32]) -> Option<Data> {
    Some(Data::Own(values.iter().flat_map(|value| value.to_ne_bytes()).collect()))
}

/// Returns the array as another library would get it.
fn lent(kind: &Kind, node: Node) -> (Kind, Node) {
    let schema = ArrowSchema::of(kind).unwrap();
    let array = ArrowArray::of(&node);
    drop(node);
    let kind = schema.kind().unwrap();
    let node = Node::foreign(array, &kind).unwrap();
    (kind, node)
}

#[test]
fn text_comes_back_from_every_type_of_text() {
    let values: [&[u8]; 4] =
        ["short".as_bytes(), b"", "more than twelve bytes, ü".as_bytes(), b"z"];
    let text = layout(Cell::Text, Repeat::One);
    for format in ["u", "U", "vu"] {
        let (kind, node) = made(plain(format), &text, stored(&values), 4);
        let (kind, node) = lent(&kind, node);
        let found = taken(&kind, &node, &text, false).unwrap();
        assert_eq!(found.data, values.concat(), "{format}");
        assert_eq!(found.offsets, Some(ends(&values)), "{format}");
        let found = taken(&kind, &node.slice(1, 2), &text, false).unwrap();
        assert_eq!(found.data, values[1..3].concat(), "{format}");
        assert_eq!(found.offsets, Some(ends(&values[1..3])), "{format}");
    }
}

#[test]
fn missing_values_stay_missing() {
    let bytes = layout(Cell::Bytes, Repeat::One);
    let present = vec![false, true, false, true];
    for format in ["z", "Z", "vz", "w:2"] {
        let values: [&[u8]; 4] = [b"", b"ab", b"", b"cd"];
        let given = Stored { present: Some(present.clone()), ..stored(&values) };
        let (kind, node) = made(plain(format), &bytes, given, 4);
        let (kind, node) = lent(&kind, node);
        let found = taken(&kind, &node, &bytes, true).unwrap();
        assert_eq!(found.data, b"abcd", "{format}");
        assert_eq!(found.offsets, Some(ends(&values)), "{format}");
        assert_eq!(found.present, Some(vec![0, 1, 0, 1]), "{format}");
        let Refusal(message, row) = taken(&kind, &node, &bytes, false).unwrap_err();
        assert_eq!((message.contains("is null"), row), (true, 0), "{format}");
    }
}

#[test]
fn numbers_come_back_from_lists_of_every_kind() {
    let number = Number::Signed(2);
    let values: [&[u8]; 2] = [&[1, 0, 2, 0, 3, 0, 4, 0], &[5, 0, 6, 0, 7, 0, 8, 0]];
    let shaped = layout(Cell::Numbers(number, vec![2, 2]), Repeat::One);
    let fixed = list("+w:2", list("+w:2", plain("s")));
    let flat = list("+w:4", plain("s"));
    for kind in [fixed, flat, list("+l", list("+L", plain("s")))] {
        let (kind, node) = made(kind, &shaped, stored(&values), 2);
        let (kind, node) = lent(&kind, node);
        let found = taken(&kind, &node, &shaped, false).unwrap();
        assert_eq!((found.data, found.offsets), (values.concat(), Some(ends(&values))));
    }
    let run = layout(Cell::Numbers(number, Vec::new()), Repeat::Run);
    let (kind, node) = made(list("+l", plain("s")), &run, stored(&values), 2);
    let found = taken(&kind, &node, &run, false).unwrap();
    assert_eq!((found.data, found.offsets), (values.concat(), Some(ends(&values))));
}

#[test]
fn truths_and_numbers_come_back() {
    let truths = layout(Cell::Numbers(Number::Bool, Vec::new()), Repeat::One);
    let values: [&[u8]; 9] = [&[1], &[0], &[1], &[1], &[0], &[0], &[0], &[1], &[1]];
    let (kind, node) = made(plain("b"), &truths, stored(&values), 9);
    let found = taken(&kind, &node.slice(1, 8), &truths, false).unwrap();
    assert_eq!((found.data, found.offsets), (values[1..].concat(), None));
}

#[test]
fn arrays_and_sequences_come_back() {
    let mut array = b"\x03<i2\x02".to_vec();
    array.extend([2_u64, 1].iter().flat_map(|length| length.to_le_bytes()));
    array.extend([7, 0, 8, 0]);
    let values: [&[u8]; 2] = [&array, &array];
    let any = layout(Cell::Array, Repeat::One);
    let (kind, node) = made(list("+l", list("+l", plain("s"))), &any, stored(&values), 2);
    let found = taken(&kind, &node, &any, false).unwrap();
    assert_eq!((found.data, found.offsets), (values.concat(), Some(ends(&values))));

    let values: [&[u8]; 3] = [b"a", b"bc", b"def"];
    let many = layout(Cell::Text, Repeat::Many);
    let given = Stored { counts: Some(vec![2, 0, 1]), ..stored(&values) };
    let (kind, node) = made(list("+l", plain("u")), &many, given, 3);
    let found = taken(&kind, &node, &many, false).unwrap();
    assert_eq!((found.data, found.offsets), (values.concat(), Some(ends(&values))));
    assert_eq!(found.counts, Some(vec![2, 0, 1]));
}

#[test]
fn shared_memory_lives_until_the_last_struct_is_released() {
    let block = Arc::new(b"__abc".to_vec());
    let data = Data::Shared(block.clone(), 2, 3);
    let given = Stored { data, ..stored(&[b"abc"]) };
    let bytes = layout(Cell::Bytes, Repeat::One);
    let (kind, node) = made(plain("z"), &bytes, given, 1);
    assert_eq!(taken(&kind, &node, &bytes, false).unwrap().data, b"abc");
    let array = ArrowArray::of(&node);
    drop(node);
    assert_eq!(Arc::strong_count(&block), 2);
    drop(array);
    assert_eq!(Arc::strong_count(&block), 1);
}

#[test]
fn a_schema_describes_the_whole_type() {
    let mut inner = plain("i");
    inner.dictionary = Some(Box::new(plain("u")));
    let mut outer = kind("outer", "+s", vec![inner, list("+w:3", plain("f"))]);
    outer.metadata = vec![(b"key".to_vec(), b"value".to_vec()), (Vec::new(), vec![0, 255])];
    assert_eq!(ArrowSchema::of(&outer).unwrap().kind().unwrap(), outer);
    assert!(ArrowSchema::of(&kind("a\0b", "i", Vec::new())).is_none());
}

#[test]
fn released_and_endless_structs_are_refused() {
    let why = ArrowSchema::empty().kind().unwrap_err();
    assert_eq!(why, "the Arrow schema was released already");
    let deep = (0..70).fold(plain("i"), |inner, _| list("+l", inner));
    let why = ArrowSchema::of(&deep).unwrap().kind().unwrap_err();
    assert_eq!(why, "the Arrow schema is nested more than 64 levels deep");
    let why = Node::foreign(ArrowArray::empty(), &plain("i")).err();
    assert_eq!(why.as_deref(), Some("the Arrow array was released already"));
}

#[test]
fn structs_that_contradict_themselves_or_their_schema_are_refused() {
    let one = || ArrowArray::of(&Node::new(1, vec![None, words(&[7])], Vec::new()));
    let why = |array: ArrowArray, kind: &Kind| Node::foreign(array, kind).err().unwrap();
    let with = |change: fn(&mut ArrowArray)| {
        let mut array = one();
        change(&mut array);
        why(array, &plain("i"))
    };
    assert_eq!(with(|one| one.length = -1), "an Arrow array has a length of -1");
    assert_eq!(with(|one| one.offset = -3), "an Arrow array has a length of -3");
    assert_eq!(
        with(|one| one.length = i64::MAX),
        format!("an Arrow array has a length of {}", i64::MAX)
    );
    assert_eq!(with(|one| one.n_buffers = 1), "an Arrow array of type \"i\" has 1 buffers");
    assert_eq!(with(|one| one.n_children = -1), "a negative number of children");
    assert_eq!(
        with(|one| (one.n_children, one.children) = (2, ptr::null_mut())),
        "2 children, but no pointer to them"
    );
    let expected = "an Arrow array has 0 children, its schema 1";
    assert_eq!(why(one(), &list("+l", plain("i"))), expected);
    let mut coded = plain("i");
    coded.dictionary = Some(Box::new(plain("u")));
    assert_eq!(why(one(), &coded), "an Arrow array has a child that is null");
}

#[test]
fn arrays_without_the_memory_of_their_values_are_refused() {
    let numbers = layout(Cell::Numbers(Number::Signed(4), Vec::new()), Repeat::One);
    let node = Node::new(3, vec![None, None], Vec::new());
    let expected = ("an Arrow array of 3 values lacks a buffer".to_owned(), 0);
    assert_eq!(refusal(plain("i"), node, &numbers), expected);

    let outer = kind("", "+s", vec![plain("i")]);
    let node = Node::new(2, vec![None, words(&[1, 2])], Vec::new());
    let node = Node::new(3, vec![None], vec![node]);
    let Refusal(message, _) = taken(&outer, &node, &numbers, false).unwrap_err();
    assert_eq!(message, "an Arrow array has 2 values, but 3 are used");

    let run = layout(Cell::Numbers(Number::Signed(4), Vec::new()), Repeat::Run);
    let inner = Node::new(2, vec![None, words(&[1, 2])], Vec::new());
    let node = Node::new(1, vec![None, words(&[0, 9])], vec![inner]);
    let expected = ("an Arrow array has 2 values, but 9 are used".to_owned(), 0);
    assert_eq!(refusal(list("+l", plain("i")), node, &run), expected);
}

#[test]
fn malformed_values_are_refused() {
    let text = layout(Cell::Text, Repeat::One);
    let data = || Some(Data::Own(b"ab\xffd".to_vec()));
    let node = Node::new(2, vec![None, words(&[3, 1, 2]), data()], Vec::new());
    let expected = ("offsets of value 0 go down".to_owned(), 0);
    assert_eq!(refusal(plain("u"), node, &text), expected);
    let node = Node::new(2, vec![None, words(&[-1, 1, 2]), data()], Vec::new());
    assert_eq!(refusal(plain("u"), node, &text), expected);
    let node = Node::new(2, vec![None, words(&[0, 2, 4]), data()], Vec::new());
    assert_eq!(refusal(plain("u"), node, &text), ("the text is not UTF-8".to_owned(), 1));

    let sizes = Some(Data::Own(4_i64.to_ne_bytes().to_vec()));
    let node = Node::new(1, vec![None, words(&[13, 0, 0, 0]), data(), sizes], Vec::new());
    let expected = ("value 0 is not a valid view".to_owned(), 0);
    assert_eq!(refusal(plain("vu"), node, &text), expected);

    let mut coded = plain("i");
    coded.dictionary = Some(Box::new(plain("u")));
    let mut node = Node::new(2, vec![None, words(&[0, 5])], Vec::new());
    let values = Node::new(1, vec![None, words(&[0, 2]), data()], Vec::new());
    node.dictionary = Some(Arc::new(values));
    assert_eq!(refusal(coded, node, &text), ("index 5 of a dictionary of 1".to_owned(), 1));

    let numbers = layout(Cell::Numbers(Number::Signed(4), Vec::new()), Repeat::Run);
    let some = Some(Data::Own(vec![0b011]));
    let inner = Node::new(3, vec![some, words(&[1, 2, 3])], Vec::new());
    let node = Node::new(2, vec![None, words(&[0, 1, 3])], vec![inner]);
    let (message, row) = refusal(list("+l", plain("i")), node, &numbers);
    assert_eq!((message.contains("an element of the list is null"), row), (true, 1));
}

#[test]
fn stored_values_that_do_not_fit_are_refused() {
    let outer = kind("", "+s", vec![plain("i")]);
    let numbers = layout(Cell::Numbers(Number::Signed(4), Vec::new()), Repeat::One);
    let why = |layout: &Layout, stored: Stored, rows: usize| {
        let Refusal(message, row) =
            table(&outer, vec![Column::Stored(layout.clone(), stored)], rows).err().unwrap();
        (message, row)
    };
    let expected = ("field 'x': it does not have 4 bytes".to_owned(), 1);
    assert_eq!(why(&numbers, stored(&[&[0; 4], &[0; 3]]), 2), expected);
    let expected = ("field 'x' has 1 values for 2 rows".to_owned(), NOWHERE);
    assert_eq!(why(&numbers, stored(&[&[0; 4]]), 2), expected);
    let expected = "field 'x': stored values cannot be a column of type \"i\"".to_owned();
    let text = layout(Cell::Text, Repeat::One);
    assert_eq!(why(&text, stored(&[b"a"]), 1), (expected.clone(), NOWHERE));
    let beyond = Stored { offsets: vec![0, 8], ..stored(&[&[0; 4]]) };
    assert_eq!(why(&numbers, beyond, 1), (expected, NOWHERE));
}
