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

fn nameless(format: &str) -> Kind {
    kind("", format, Vec::new())
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

/// Returns why values are refused, and their row.
fn told<T>(result: Result<T, Refusal>) -> (String, usize) {
    match result.err() {
        Some(Refusal::Value(message, row)) => (message, row),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// Takes the only column, whose array is as given, and returns why that is refused.
fn refusal(kind: Kind, node: Node, layout: &Layout) -> (String, usize) {
    let len = node.len;
    let kind = self::kind("", "+s", vec![kind]);
    told(taken(&kind, &Node::new(len, vec![None], vec![node]), layout, false))
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
        let (message, row) = told(taken(&kind, &node, &bytes, false));
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
    let why = Node::foreign(ArrowArray::empty(), &nameless("i")).err();
    assert_eq!(why.as_deref(), Some("the Arrow array was released already"));
}

#[test]
fn structs_that_contradict_themselves_or_their_schema_are_refused() {
    let one = || ArrowArray::of(&Node::new(1, vec![None, words(&[7])], Vec::new()));
    let why = |array: ArrowArray, kind: &Kind| Node::foreign(array, kind).err().unwrap();
    let with = |change: fn(&mut ArrowArray)| {
        let mut array = one();
        change(&mut array);
        why(array, &nameless("i"))
    };
    assert_eq!(with(|one| one.length = -1), "an Arrow array has a length of -1");
    assert_eq!(with(|one| one.offset = -3), "an Arrow array has a length of -3");
    assert_eq!(
        with(|one| one.length = i64::MAX),
        format!("an Arrow array has a length of {}", i64::MAX)
    );
    assert_eq!(
        with(|one| one.length = 1 << 50),
        format!("an Arrow array has a length of {}", 1_u64 << 50)
    );
    assert_eq!(with(|one| one.n_buffers = 1), "an Arrow array of type \"i\" has 1 buffers");
    assert_eq!(with(|one| one.n_children = -1), "a negative number of children");
    assert_eq!(with(|one| one.n_buffers = -1), "a negative number of buffers");
    assert_eq!(with(|one| one.n_buffers = 1 << 40), "1099511627776 buffers, which is too many");
    assert_eq!(
        with(|one| (one.n_children, one.children) = (2, ptr::null_mut())),
        "2 children, but no pointer to them"
    );
    let expected = "an Arrow array has 0 children, its schema 1";
    assert_eq!(why(one(), &kind("", "+l", vec![plain("i")])), expected);
    let mut coded = nameless("i");
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
    let (message, _) = told(taken(&outer, &node, &numbers, false));
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
    let expected = ("the offsets go down".to_owned(), 0);
    assert_eq!(refusal(plain("u"), node, &text), expected);
    let node = Node::new(2, vec![None, words(&[-1, 1, 2]), data()], Vec::new());
    assert_eq!(refusal(plain("u"), node, &text), expected);
    let node = Node::new(2, vec![None, words(&[0, 2, 4]), data()], Vec::new());
    assert_eq!(refusal(plain("u"), node, &text), ("the text is not UTF-8".to_owned(), 1));

    let sizes = Some(Data::Own(4_i64.to_ne_bytes().to_vec()));
    let node = Node::new(1, vec![None, words(&[13, 0, 0, 0]), data(), sizes], Vec::new());
    let expected = ("the view is not valid".to_owned(), 0);
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
        told(table(&outer, vec![Column::Stored(layout.clone(), stored)], rows))
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

#[test]
fn types_that_break_the_interface_are_refused_by_column() {
    let why = |inner: Kind| {
        let outer = kind("", "+s", vec![Kind { name: "c".to_owned(), ..inner }]);
        ArrowSchema::of(&outer).unwrap().kind().unwrap_err()
    };
    for format in ["", "ts", "tsq", "tsq:", "tss", "tD", "tDq", "tdx", "d:5,2,0", "d:5,2,7", "d:5"]
    {
        assert_eq!(why(plain(format)), format!("column 'c': Arrow has no type {format:?}"));
    }
    for format in ["d:5,2,9223372036854775800", "d:5,9223372036854775807", "w:-1", "+w:", "+w:x"] {
        assert_eq!(why(plain(format)), format!("column 'c': Arrow has no type {format:?}"));
    }
    for (format, children) in [("+l", 0), ("+L", 0), ("+w:6", 0), ("+m", 0), ("+l", 2), ("+m", 2)] {
        let found = why(kind("x", format, vec![plain("i"); children]));
        let expected = format!("type {format:?} must have 1 types inside, but has {children}");
        assert_eq!(found, format!("column 'c': {expected}"));
    }
    assert!(why(list("i", plain("i"))).ends_with("must have 0 types inside, but has 1"));
    let expected = "column 'c': the entries of a map must be structs of key and value";
    assert_eq!(why(list("+m", plain("i"))), expected);
    assert_eq!(why(list("+m", list("+s", plain("i")))), expected);
    assert!(why(list("+l", plain("tsq"))).starts_with("column 'c.x': "));
    for format in ["f", "b", "u", "tdD"] {
        let coded = Kind { dictionary: Some(Box::new(plain("u"))), ..plain(format) };
        let expected = format!("column 'c': the indices of a dictionary have type {format:?}");
        assert_eq!(why(coded), expected);
    }
}

#[test]
fn arrays_inside_that_are_too_short_are_refused_by_column() {
    let why = |column: Kind, node: Node, len: usize| {
        let outer = kind("", "+s", vec![column]);
        let array = ArrowArray::of(&Node::new(len, vec![None], vec![node]));
        Node::foreign(array, &outer).err().unwrap()
    };
    let two = || Node::new(2, vec![None, words(&[0, 1, 2]), words(&[0])], Vec::new());
    assert_eq!(why(plain("u"), two(), 9), "an Arrow array has 2 values, but 9 are used");
    let expected = "column 'x': an Arrow array has 2 values, but 9 are used";
    let inner = Node::new(9, vec![None], vec![two()]);
    assert_eq!(why(list("+s", plain("u")), inner, 9), expected);
    let inner = Node::new(3, vec![None], vec![two()]);
    assert_eq!(why(list("+w:3", plain("u")), inner, 3), expected);
    let inner = Node::new(1, vec![None, words(&[0, 9])], vec![two()]);
    assert_eq!(why(list("+l", plain("u")), inner, 1), expected);
    let inner = Node::new(1, vec![None, words(&[9, -9])], vec![two()]);
    assert_eq!(why(list("+l", plain("u")), inner, 1), "column 'x': the offsets go down");
    let huge = format!("+w:{}", usize::MAX);
    let inner = Node::new(1, vec![None], vec![two()]);
    assert!(why(list(&huge, plain("u")), inner, 1).contains("has 2 values, but"));
}

#[test]
fn lengths_that_no_memory_holds_are_refused_without_an_abort() {
    let len = 1 << 50;
    let path = ["x".to_owned()];
    for (format, expected) in [("n", (true, false)), ("w:0", (false, true))] {
        let outer = kind("", "+s", vec![plain(format)]);
        let inner = match format {
            "n" => Node::nulls(len),
            _ => Node::new(len, vec![None, None], Vec::new()),
        };
        let node = Node::new(len, vec![None], vec![inner]);
        let part = Part { kind: &outer, node: &node };
        assert_eq!(part.nulls_and_values(&path).unwrap(), expected);
        assert!(part.num_bytes().is_ok());
        let bytes = layout(Cell::Bytes, Repeat::One);
        let refused = taken(&outer, &node, &bytes, true).unwrap_err();
        assert!(matches!(refused, Refusal::Memory(_)), "{refused:?}");
    }
}

#[test]
fn nulls_are_found_in_structs_and_dictionaries() {
    let some = |bits: u8| Some(Data::Own(vec![bits]));
    let coded = Kind { dictionary: Some(Box::new(plain("i"))), ..plain("c") };
    let outer = kind("", "+s", vec![coded]);
    let found = |rows: u8, own: u8, values: u8| {
        let indices = Some(Data::Own(vec![0, 1, 1]));
        let mut inner = Node::new(3, vec![some(own), indices], Vec::new());
        inner.dictionary =
            Some(Arc::new(Node::new(2, vec![some(values), words(&[5, 6])], Vec::new())));
        let node = Node::new(3, vec![some(rows)], vec![inner]);
        Part { kind: &outer, node: &node }.nulls_and_values(&["x".to_owned()]).unwrap()
    };
    assert_eq!(found(7, 7, 3), (false, true));
    assert_eq!(found(7, 7, 1), (true, true));
    assert_eq!(found(6, 7, 1), (true, false));
    assert_eq!(found(7, 6, 1), (true, false));
    assert_eq!(found(0, 7, 3), (true, false));
}

#[test]
fn shapes_too_large_for_memory_fit_nothing() {
    let size = 1_usize << 32;
    let wide = list("+w:4294967296", list("+w:4294967296", plain("f")));
    let shaped = layout(Cell::Numbers(Number::Float(4), vec![size, size]), Repeat::One);
    assert!(!shaped.fits(&wide));
    assert!(!layout(Cell::Numbers(Number::Float(4), vec![3]), Repeat::One).fits(&wide));
}
