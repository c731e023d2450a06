"""Rows that are chosen by an expression: which, and what is refused."""

import itertools
import json
import operator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.dataset.read.dataset import selection_of
from ingot.dataset.read.expression import Expression

SPEC = {
    "label": "int",
    "score": "float?",
    "caption": "utf8?",
    "tags": "utf8[]",
    "ids": "int[]?",
    "flag": "bool",
    "image": "bytes?",
    "meta": "json",
    "my name": "int",
    "small": "array(float32)",
    "count": "array(uint64)",
    "obs": {"reward": "float", "step": "int?"},
}


def row(k):
    found = {
        "label": k,
        "tags": ["red", "green", "blue"][: k % 4],
        "flag": k % 2 == 0,
        "meta": {"lang": ["en", "de"][k % 2], "words": k, "sources": ["web"] * (k % 3)},
        "my name": -k,
        "small": np.float32(k / 10),
        "count": 2**63 + k,
        "obs": {"reward": k - 10, "step": None if k % 5 == 0 else k},
    }
    optional = {
        "score": k / 2 if k % 3 else None,
        "caption": f"Cat {k}" if k % 4 else None,
        "ids": list(range(k % 4)) if k % 6 else None,
        "image": b"x" if k % 7 else None,
    }
    return found | {name: value for name, value in optional.items() if value is not None}


ROWS = [row(k) for k in range(40)]


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    path = tmp_path_factory.mktemp("expression") / "rows"
    with ingot.DatasetWriter(path, SPEC, shard_rows=17) as w:
        w.extend(ROWS)
    return ingot.open(path)


def labels(part):
    return part.column("label").tolist()


def chosen(condition):
    return [one["label"] for one in ROWS if condition(one)]


CONDITIONS = {
    "label == 3": lambda r: r["label"] == 3,
    " label==3\n\tor label == 5 ": lambda r: r["label"] in {3, 5},
    "1 < label <= 5": lambda r: 1 < r["label"] <= 5,
    "5 > label >= 2 != 3": lambda r: 5 > r["label"] >= 2,
    "label == 3 or label > 35 and not flag": lambda r: (
        r["label"] == 3 or (r["label"] > 35 and not r["flag"])
    ),
    "flag": lambda r: r["flag"],
    "not flag": lambda r: not r["flag"],
    "flag == True": lambda r: r["flag"],
    "flag == 0": lambda r: not r["flag"],
    "label in (1, 2, -3, 4.0, 4.5)": lambda r: r["label"] in {1, 2, 4},
    "label not in [1, 2]": lambda r: r["label"] not in {1, 2},
    "label in {7}": lambda r: r["label"] == 7,
    "label in ()": lambda _: False,
    "caption in ('Cat 1', 'Cat 2')": lambda r: r.get("caption") in {"Cat 1", "Cat 2"},
    "'7' in caption": lambda r: "7" in r.get("caption", ""),
    "caption in 'one Cat 1, or Cat 2'": lambda r: r.get("caption") in {"Cat 1", "Cat 2"},
    "'green' in tags": lambda r: "green" in r["tags"],
    "2 in ids": lambda r: 2 in r.get("ids", []),
    "label in ids": lambda r: r["label"] in r.get("ids", []),
    "2 not in ids": lambda r: "ids" in r and 2 not in r["ids"],
    "len(tags) == 2": lambda r: len(r["tags"]) == 2,
    "len(ids) < 1": lambda r: "ids" in r and not r["ids"],
    "len(caption) == 5": lambda r: len(r.get("caption", "")) == 5,
    "len(lower(caption)) == 5": lambda r: len(r.get("caption", "")) == 5,
    "glob(caption, '*1?')": lambda r: fnmatchcase(r.get("caption", ""), "*1?"),
    "glob(caption, ['Cat 1', 'Cat [23]'])": lambda r: r["label"] in {1, 2, 3},
    "caption.startswith('Cat 1')": lambda r: r.get("caption", "").startswith("Cat 1"),
    "caption.endswith(('1', '2'))": lambda r: r.get("caption", "").endswith(("1", "2")),
    "caption.lower() == 'cat 9'": lambda r: r["label"] == 9,
    "upper(caption) == 'CAT 9'": lambda r: r["label"] == 9,
    "caption > 'Cat 35'": lambda r: r.get("caption", "") > "Cat 35",
    "meta.lang == 'de'": lambda r: r["meta"]["lang"] == "de",
    "meta.lang == 'de' and meta.words < 9": lambda r: (
        r["meta"]["lang"] == "de" and r["meta"]["words"] < 9
    ),
    "'web' in meta.sources": lambda r: "web" in r["meta"]["sources"],
    "len(meta.sources) == 2": lambda r: len(r["meta"]["sources"]) == 2,
    "len(meta) == 3 and label < 2": lambda r: r["label"] < 2,
    "obs.reward > 0": lambda r: r["obs"]["reward"] > 0,
    "obs.step is None": lambda r: r["obs"]["step"] is None,
    'field("my name") == -3': lambda r: r["my name"] == -3,
    "field('obs.reward') == -abs(obs . reward)": lambda r: r["obs"]["reward"] <= 0,
    "row % 10 == 0": lambda r: r["label"] % 10 == 0,
    "row == label": lambda _: True,
    "label + 1 == 2 * (label - 3)": lambda r: r["label"] == 7,
    "label // 7 == label % 7": lambda r: r["label"] // 7 == r["label"] % 7,
    "-label // 7 == -2": lambda r: -r["label"] // 7 == -2,
    "label / 2 == 1.5": lambda r: r["label"] == 3,
    "+label == 3": lambda r: r["label"] == 3,
    "label * 9_223_372_036_854_775_807 == 27670116110564327421": lambda r: r["label"] == 3,
    "count == 9223372036854775813": lambda r: r["label"] == 5,
    "count > 9.3e18": lambda _: False,
    "count - 9223372036854775808 == label": lambda _: True,
    "small == 0.3": lambda r: r["label"] == 3,
    "small in (0.3, 0.7, 1)": lambda r: r["label"] in {3, 7, 10},
    "small < 1e300": lambda _: True,
    "score is None": lambda r: "score" not in r,
    "score is not None": lambda r: "score" in r,
    "score + label is None": lambda r: "score" not in r,
    "image is None": lambda r: "image" not in r,
    "label is None": lambda _: False,
    "row is not None": lambda _: True,
    "1 < 2": lambda _: True,
    "'a' in 'b'": lambda _: False,
    "True": lambda _: True,
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_an_expression_chooses_the_rows_that_python_would(ds, text):
    assert labels(ds.where(text)) == chosen(CONDITIONS[text])
    assert labels(ds.filter(text)) == chosen(CONDITIONS[text])


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("score != 1", lambda score: score is not None and score != 1),
        ("not score == 1", lambda score: score is not None and score != 1),
        ("not (score < 1 or score >= 1)", lambda _: False),
        ("score not in (1, 2)", lambda score: score is not None and score not in {1, 2}),
        ("score > 3 or score is None", lambda score: score is None or score > 3),
        ("score > 3 or True", lambda _: True),
        ("not (score > 3 and False)", lambda _: True),
        ("1 < score < 3", lambda score: score is not None and 1 < score < 3),
    ],
)
def test_a_comparison_with_a_missing_value_is_neither_true_nor_false(ds, text, condition):
    assert labels(ds.where(text)) == chosen(lambda r: condition(r.get("score")))


@pytest.mark.parametrize("sign", ["/", "//", "%"])
def test_a_division_by_zero_is_a_missing_value(ds, sign):
    assert labels(ds.where(f"label {sign} (label - 3) is None")) == [3]
    assert labels(ds.where(f"1.0 {sign} (label - 3) is None")) == [3]
    assert 3 not in labels(ds.where(f"not label {sign} (label - 3) > 1"))
    assert 4 in labels(ds.where(f"label != 3 and 9 {sign} (label - 3) == 9 {sign} 1"))
    assert labels(ds.where(f"1 {sign} 0 == 1 {sign} 0")) == []


def test_nan_is_equal_to_nothing(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"x": "float", "k": "int"}) as w:
        w.extend({"x": x, "k": k} for k, x in enumerate([1.0, float("nan"), float("inf")]))
    ds = ingot.open(tmp_path / "x.ingot")
    assert ds.where("x == x").column("k").tolist() == [0, 2]
    assert ds.where("x != 1").column("k").tolist() == [1, 2]
    assert ds.where("isnan(x)").column("k").tolist() == [1]
    assert ds.where("isnan(k)").column("k").tolist() == []
    assert ds.where("x == 1e999 and x - x != 0").column("k").tolist() == [2]


def test_a_field_called_row_is_that_field(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"row": "int", "class": "int"}) as w:
        w.extend({"row": 10 - k, "class": k} for k in range(10))
    ds = ingot.open(tmp_path / "x.ingot")
    assert ds.where("row == 3")[0] == {"row": 3, "class": 7}
    assert ds.where("field('class') == 3")[0] == {"row": 7, "class": 3}


def test_a_name_is_the_one_that_is_written(tmp_path):
    # Python would take the micro sign for a Greek letter.
    names = {"\u00b5": 1, "\u03bc": 2, "gr\u00f6\u00dfe": 3}
    with ingot.DatasetWriter(tmp_path / "x.ingot", dict.fromkeys(names, "int")) as w:
        w.append(names)
    ds = ingot.open(tmp_path / "x.ingot")
    for name, value in names.items():
        assert len(ds.where(f"'\u00e9\u20ac' != 'e' and {name} == {value}")) == 1
    assert Expression("\u00b5 > 1 and \u03bc < 2").names == ("\u00b5", "\u03bc")


def test_views_are_filtered_by_their_own_rows_and_fields(ds):
    assert labels(ds[10:20].where("label % 2 == 0")) == [10, 12, 14, 16, 18]
    assert labels(ds[10:20].where("row < 2 and len(tags) > 1 and '1' in caption")) == [10, 11]
    assert labels(ds[::-3].where("caption is not None and row < 4")) == [39, 33, 30]
    assert labels(ds.take([5, 1, 5, 9]).where("label > 1 and meta.words < 9")) == [5, 5]
    assert labels(ds.where("label > 5").where("row == 0")) == [6]
    assert labels(ds[:0].where("label == 3 and caption == 'x' and meta.none == 3")) == []
    assert labels(ds[3:3].where("label == 3")) == []
    twice = ds.concat(ds[:5])
    assert labels(twice.where("label == 4 and (row > 30 or 'red' in tags)")) == [4]
    assert labels(twice.where("label == 3 and 'Cat' in caption")) == [3, 3]


def test_fields_of_zipped_data_sets_are_found(ds, tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"more": "int", "note": "utf8"}) as w:
        w.extend({"more": 2 * k, "note": str(k)} for k in range(len(ds)))
    wide = ds.zip(ingot.open(tmp_path / "x.ingot"))
    assert labels(wide.where("more == label + 5 and note == '5' and 'Cat' in caption")) == [5]


def test_a_field_that_is_not_selected_is_refused_with_what_to_do(ds):
    with pytest.raises(KeyError, match=r"'score' is not selected; call where before select"):
        ds.select("label").where("score > 1")
    assert labels(ds.where("score > 18").select("label")) == [37, 38]


def test_an_order_is_filtered_by_an_expression(ds):
    order = ds.shuffle(3).filter("label % 10 == 3 and caption is not None")
    assert sorted(one["label"] for one in order) == [3, 13, 23, 33]


def test_rows_of_other_formats_are_chosen(tmp_path):
    rows = [
        {"name": f"img{k}.{'jpg' if k % 2 else 'png'}", "n": k, "x": None if k % 3 == 0 else k / 4}
        for k in range(20)
    ]
    table = {name: [one[name] for one in rows] for name in rows[0]}
    pq.write_table(pa.table(table), tmp_path / "x.parquet", row_group_size=7)
    lines = "".join(json.dumps(one) + "\n" for one in rows)
    (tmp_path / "x.jsonl").write_text(lines, encoding="utf-8")
    cells = [f"{one['name']},{one['n']},{'' if one['x'] is None else one['x']}" for one in rows]
    (tmp_path / "x.csv").write_text("\n".join(["name,n,x", *cells]) + "\n", encoding="utf-8")
    for name in ("x.parquet", "x.jsonl", "x.csv"):
        found = ingot.open(tmp_path / name)
        assert found.where("n > 15").column("n").tolist() == [16, 17, 18, 19], name
        assert found.where("glob(name, '*1?.jpg')").column("n").tolist() == [11, 13, 15, 17, 19]
        assert found.where("x > 4").column("n").tolist() == [17, 19], name
        assert found.where("x is None and row >= 12").column("n").tolist() == [12, 15, 18], name
        assert found[5:9].where("len(name) == 8 and n % 2 == 0").column("n").tolist() == [6, 8]


def test_each_column_that_is_named_is_read_once_and_no_other(ds, monkeypatch):
    selection = selection_of(ds)
    asked = []
    for verb in ("column", "lengths", "present", "plan"):
        real = getattr(selection.source, verb)

        def counted(name, *more, real=real, verb=verb):
            asked.append((verb, name if isinstance(name, str) else tuple(*more)))
            return real(name, *more)

        monkeypatch.setattr(selection.source, verb, counted, raising=True)
    mask = Expression("label > 3 and label < 9 and score * 2 > label - 1 and len(tags) == 1")
    assert mask.names == ("label", "score", "tags")
    mask.mask(selection)
    assert asked == [
        ("column", "label"),
        ("column", "score"),
        ("present", "score"),
        ("lengths", "tags"),
    ]


def test_rows_are_evaluated_some_at_a_time(tmp_path):
    count = (1 << 20) + 10
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"k": "int"}) as w:
        w.extend({"k": np.arange(count)})
    ds = ingot.open(tmp_path / "x.ingot")
    blocks = list(Expression("k % 2 == 0").scan(selection_of(ds)))
    assert [len(places) for places, _ in blocks] == [1 << 20, 10]
    assert ds.where("k == row").column("k").tolist() == list(range(count))
    (places, truths), *_ = Expression("row == 5").scan(selection_of(ds), range(3, 8))
    assert (places, truths.tolist()) == (range(3, 8), [False, False, True, False, False])


def test_text_and_json_are_read_in_blocks_of_bounded_size(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"text": "utf8", "meta": "json"}) as w:
        w.extend({"text": "x" * 200_000 + str(k), "meta": {"k": k}} for k in range(400))
    selection = selection_of(ingot.open(tmp_path / "x.ingot"))
    blocks = list(Expression("text.endswith('7') and meta.k > 50").scan(selection))
    assert len(blocks) > 1
    assert [k for places, _ in blocks for k in places] == list(range(400))
    found = [k for places, truths in blocks for k, one in zip(places, truths, strict=True) if one]
    assert found == [k for k in range(51, 400) if k % 10 == 7]


def test_an_expression_serves_several_threads_and_data_sets(ds):
    expression = Expression("label % 3 == 0 and 'Cat' in caption")
    expected = [k for k in range(40) if k % 3 == 0 and k % 4]
    with ThreadPoolExecutor(4) as pool:
        parts = [ds, ds[::-1]] * 8
        masks = list(pool.map(lambda part: expression.mask(selection_of(part)), parts))
    for part, mask in zip(parts, masks, strict=True):
        assert sorted(labels(part.where(mask))) == expected


def test_a_damaged_row_is_named(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.DatasetWriter(path, {"text": "utf8"}, compression=None) as w:
        w.extend({"text": f"text {k:04}"} for k in range(100))
    content = bytearray(path.read_bytes())
    content[content.index(b"text 0042")] ^= 1
    path.write_bytes(content)
    with pytest.raises(ingot.CorruptFileError, match="42") as caught:
        ingot.open(path).where("text == 'x'")
    assert caught.value.record == 42


def test_a_closed_data_set_is_refused(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"k": "int"}) as w:
        w.append({"k": 1})
    ds = ingot.open(tmp_path / "x.ingot")
    ds.close()
    with pytest.raises(ingot.ClosedError):
        ds.where("1 == 1")


# What is refused, the class of the error, what it says, and the part of the text it points at.
REFUSED = [
    ("label = 3", ValueError, "write == to compare", "="),
    ("label <> 3", ValueError, "write !=", "<>"),
    ("label == 3 AND flag", ValueError, "write and instead of AND", "AND"),
    ("label == 3 Or flag", ValueError, "write or instead of Or", "Or"),
    ("NOT flag", ValueError, "write not", "NOT"),
    ("label == 3 && flag", ValueError, "write and", "&&"),
    ("(label == 3) & flag", ValueError, "write and", "&"),
    ("label == 3 || flag", ValueError, "write or", "||"),
    ("(label == 3) | flag", ValueError, "write or", "|"),
    ("!flag", ValueError, "write not", "!"),
    ("~flag", ValueError, "write not", "~"),
    ("score IS NULL", ValueError, "write is None or is not None", "IS"),
    ("score is NULL", ValueError, "only None goes after is", "NULL"),
    ("score is not null", ValueError, "only None goes after is", "null"),
    ("score == None", ValueError, "write is None or is not None", "None"),
    ("score in (1, None)", ValueError, "None goes after is", "None"),
    ("flag is True", ValueError, "write ==", "True"),
    ("flag == true", KeyError, "write True for true", "true"),
    ("caption LIKE 'a%'", ValueError, "write glob", "LIKE"),
    ("label BETWEEN 1 AND 5", ValueError, "write 1 <= label <= 5", "BETWEEN"),
    ("caption contains 'cat'", ValueError, "in caption", "contains"),
    ("contains(caption, 'cat')", ValueError, "in caption", "contains"),
    ("`my name` == 3", ValueError, r"field\(", "`"),
    ("lable == 3", KeyError, "did you mean 'label'", "lable"),
    ("label == 3 and skore > 1", KeyError, "did you mean 'score'", "skore"),
    ("meta.lnag == 'de'", KeyError, "no row has 'meta.lnag'; the first row has", "meta.lnag"),
    ("obs > 3", KeyError, "no field 'obs'", "obs"),
    ("label", TypeError, "expected a condition, got a number", "label"),
    ("label and flag", TypeError, "expected a condition, got a number", "label"),
    ("flag or caption", TypeError, "expected a condition, got text", "caption"),
    ("not label", TypeError, "expected a condition", "label"),
    ("caption == 3", TypeError, "text cannot be compared with a number", "caption == 3"),
    ("label < '3'", TypeError, "a number cannot be compared with text", "label < '3'"),
    ("label in (1, 'a')", TypeError, "cannot be compared", "(1, 'a')"),
    ("label in 3", TypeError, "expected text or a sequence", "3"),
    ("3 in label", TypeError, "expected text or a sequence", "label"),
    ("3 in caption", TypeError, "expected text", "caption"),
    ("3 in tags", TypeError, "cannot be compared", "tags"),
    ("b in image", KeyError, "no field 'b'", "b"),
    ("label in image", TypeError, "field 'image' is bytes", "image"),
    ("image == 'x'", TypeError, "image is None is all that can be asked", "image"),
    ("tags == 'red'", TypeError, r"len\(tags\)", "tags"),
    ("meta == 3", TypeError, "the values of 'meta' are of type dict", "meta"),
    ("len(label) == 3", TypeError, "expected text or a sequence", "label"),
    ("len(image) == 3", TypeError, "expected text or a sequence", "image"),
    ("len(row) == 3", TypeError, "number of the row", "row"),
    ("caption + 'x' == 'y'", TypeError, "expected a number, got text", "caption + 'x'"),
    ("'a' * 1000000000 == caption", TypeError, "expected a number", "'a' * 1000000000"),
    ("-caption == 'x'", TypeError, "expected a number", "caption"),
    ("abs(caption) == 3", TypeError, "expected a number", "caption"),
    ("lower(label) == 'x'", TypeError, "expected text", "label"),
    ("glob(label, '3')", TypeError, "expected text", "label"),
    ("glob(caption, caption)", ValueError, "a text in quotes", "caption"),
    ("glob(caption, ())", ValueError, "a text in quotes", "()"),
    ("glob(caption)", ValueError, r"write glob\(caption", "glob(caption)"),
    ("len(caption, 3)", ValueError, r"write len\(caption\)", "len(caption, 3)"),
    ("len(*tags)", ValueError, "not part of the language", "*tags"),
    ("tags[0] == 'red'", ValueError, "not part of the language", "tags[0]"),
    ("field(caption) == 3", ValueError, "write field", "field(caption)"),
    ("field('nothing') == 3", KeyError, "no field 'nothing'", "field('nothing')"),
    ("sqrt(label) == 3", ValueError, "no function sqrt; there are len", "sqrt"),
    ("(1, 2) == label", ValueError, "a list goes after in", "(1, 2)"),
    ("label in (1, label)", ValueError, "expected a number or a text", "label"),
    ("label == 3 flag", ValueError, "is missing", "f"),
    ("label ==", ValueError, "is missing", None),
    ("(label == 3", ValueError, "never closed", "("),
    ("label == 3)", ValueError, "unmatched", ")"),
    ("label == 'x", ValueError, "the text is not closed", "'"),
    ("caption == 'a' 'b'", ValueError, "between two texts", "'b'"),
    ("caption == 'it''s'", ValueError, "between two texts", "'s'"),
    ("caption == '''a'''", ValueError, "between two texts", "'a'"),
    (r"caption == '\d'", ValueError, "for a backslash", r"\d"),
    ("caption == r'x'", ValueError, "without r", "r"),
    ("caption == b'x'", ValueError, "without b", "b"),
    ("f'{label}' == 'x'", ValueError, "without f", "f"),
    (r"caption == '\ud800'", ValueError, "not valid", r"'\ud800'"),
    ("caption == '\ud800'", ValueError, "not valid", "'\ud800'"),
    ("label == 007", ValueError, "not a number", "007"),
    ("label == 3and flag", ValueError, "not a number", "3and"),
    ("label == 0x1f", ValueError, "not a number", "0x1f"),
    ("label == 1j", ValueError, "not a number", "1j"),
    ("label == " + "9" * 101, ValueError, "at most 100 digits", "9" * 40),
    ("label == 3 # three", ValueError, "'#' is not an operator", "#"),
    ("label; flag", ValueError, "';' is not an operator", ";"),
    ("label == $1", ValueError, "is not an operator", "$"),
    ("label\0 == 3", ValueError, "is not an operator", "\0"),
    ("label == \u00b2", ValueError, r"write field\(", "\u00b2"),
    ("label == \u0663", ValueError, "is not an operator", "\u0663"),
    ("class == 3", ValueError, r"field\(\"class\"\) is a field", "class"),
    ("", ValueError, "empty text", None),
    (" \n ", ValueError, "empty text", None),
]


@pytest.mark.parametrize(("text", "kind", "message", "part"), REFUSED)
def test_a_mistake_is_refused_with_what_to_write_and_where(ds, text, kind, message, part):
    with pytest.raises(kind, match=message) as caught:
        ds.where(text)
    notes = getattr(caught.value, "__notes__", [])
    if part is None and not notes:
        return
    shown, carets = notes
    start = carets.index("^")
    pointed = shown[start : start + carets.count("^")]
    place = text.index(part) if part and text.count(part) == 1 else None
    if place is not None:
        assert f"column {place + 1} of the expression" in str(caught.value)
    if part is not None and part.isprintable():
        assert pointed == part or (len(part) == 40 and pointed.startswith(part))


HOSTILE = [
    "().__class__.__bases__[0].__subclasses__()",
    "label.__class__ == 3",
    "caption.__class__.__mro__",
    "meta.__class__ == 'x'",
    "__import__('os').system('true')",
    "eval('1')",
    "open('/etc/passwd')",
    "lambda: 1",
    "(lambda: 1)()",
    "[x for x in tags]",
    "{x: 1 for x in tags}",
    "(x for x in tags)",
    "(label := 3)",
    "f'{label}' == ''",
    "f'{label!r:>{1000000000}}' == ''",
    "label if flag else 3",
    "yield label",
    "await label",
    "*label",
    "**label",
    "{**meta}",
    "{'a': 1}",
    "label[0]",
    "tags[0:1]",
    "...",
    "label @ label",
    "label << 1000000000",
    "label >> 1 == 3",
    "glob(caption, '" + "*a" * 10_000 + "')",
    "9**9**9",
    "2 ** label",
    "'%1000000000d' % label == ''",
    "'a' * 9999999999",
    "import os",
    "label == 3\nimport os",
    "label, flag",
    "label == 3; flag",
    "print(label)",
    "label(3)",
    "len(len)(3)",
    "'x'.format(label)",
    "''.join(tags) == 'x'",
    "x" * 100_001,
    "(" * 1_000_000,
    "(" * 49_999 + "label" + ")" * 49_999,
    "(" * 60 + "label" + ")" * 60,
    "-" * 99_990 + "1 == 1",
    "- " * 60 + "1 == 1",
    "not " * 20_000 + "flag",
    "[" * 60 + "]" * 60,
    "label" + " + 1" * 20_000 + " == 1",
    "label" + " + 1" * 400 + " == 1",
    "label" + ".x" * 40_000 + " == 1",
    "len" + "(label)" * 300,
    "label == " * 900 + "3 +",
    "label == 3 or " * 5000 + "flag",
    "9" * 99_999,
    "'" + "\\" * 99_999,
    "'" + "\\'" * 49_999,
    "1e" + "9" * 99_999,
    "\0",
    "label == '\0",
    "\ud800 == 3",
    "\u202elabel == 3 )",
    "\U000e0001",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: f"{len(text)}: {text[:30]!a}")
def test_a_hostile_expression_is_refused(ds, text):
    with pytest.raises((KeyError, TypeError, ValueError)) as caught:
        ds.where(text)
    assert "expression" in str(caught.value)
    assert len(str(caught.value)) < 1000
    notes = getattr(caught.value, "__notes__", [])
    assert all(len(note) <= 100 and note.isprintable() for note in notes)


@pytest.mark.parametrize("text", [b"label == 3", bytearray(b"1"), 3, None])
def test_what_is_not_text_is_refused(ds, text):
    with pytest.raises((TypeError, ValueError)):
        ds.where(text)
    with pytest.raises(TypeError, match="an expression is text"):
        Expression(text)


def test_names_beside_an_expression_are_refused(ds):
    with pytest.raises(TypeError, match="pass it alone"):
        ds.where("label == 3", "label")


def test_an_expression_over_records_is_refused(tmp_path):
    with ingot.Writer(tmp_path / "x.ingot") as w:
        w.append(b"x")
    with pytest.raises(TypeError, match="records have no fields"):
        ingot.open(tmp_path / "x.ingot").where("row == 3")


def test_a_long_list_of_constants_is_compared_at_once(ds):
    many = [str(k) for k in range(0, 20_000, 2)]
    assert labels(ds.where(f"label in ({', '.join(many)})")) == list(range(0, 40, 2))
    assert labels(ds.where(f"small in [{', '.join(many)}]")) == [0, 20]
    texts = ", ".join(f"'Cat {k}'" for k in many[:5000])
    assert labels(ds.where(f"caption in ({texts})")) == [k for k in range(0, 40, 2) if k % 4]


def test_many_alternatives_are_an_expression(ds):
    text = " or ".join(f"label == {k}" for k in range(200))
    assert labels(ds.where(text)) == list(range(40))


def test_a_number_that_grows_without_end_is_refused(ds):
    with pytest.raises(ValueError, match="more than 1,000 bits"):
        ds.where("count" + " * count" * 40 + " > 0")
    assert len(ds.where("count" + " * count" * 10 + " > 0")) == 40


def test_members_of_json_may_be_missing_or_of_several_types(tmp_path):
    rows = [{"a": 1}, {"a": None}, {}, None, {"a": 2.5}, {"b": {"c": "x"}}, {"a": 2**70}]
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"meta": "json", "k": "int"}) as w:
        w.extend({"meta": one, "k": k} for k, one in enumerate(rows))
    ds = ingot.open(tmp_path / "x.ingot")

    def found(text, part=ds):
        return part.where(text).column("k").tolist()

    assert found("meta.a is None") == [1, 2, 3, 5]
    assert found("meta.a >= 1") == [0, 4, 6]
    assert found("not meta.a >= 2") == [0]
    assert found("meta.b.c == 'x'") == [5]
    assert found("meta.a == 1180591620717411303424", ds[6:]) == [6]
    with pytest.raises(KeyError, match="no row has"):
        found("meta.b.d == 'x'")
    with ingot.DatasetWriter(tmp_path / "y.ingot", {"meta": "json"}) as w:
        w.extend([{"meta": {"a": 1}}, {"meta": {"a": "x"}}])
    with pytest.raises(TypeError, match="are of type int, str"):
        ingot.open(tmp_path / "y.ingot").where("meta.a == 1")


INTS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]),
)
FLOATS = st.one_of(st.floats(width=64), st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0**53, 2.0**63]))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=4) | st.sampled_from(["a", "ab", "\0", ""])
TABLE = st.fixed_dictionaries(
    {
        "i": INTS,
        "j": st.none() | INTS,
        "x": FLOATS,
        "y": st.none() | FLOATS,
        "s": TEXTS,
        "t": st.none() | TEXTS,
        "b": st.booleans(),
        "c": st.none() | st.booleans(),
        "v": st.none() | st.lists(INTS, max_size=3),
    }
)
TYPES = {
    "i": "int",
    "j": "int?",
    "x": "float",
    "y": "float?",
    "s": "utf8",
    "t": "utf8?",
    "b": "bool",
    "c": "bool?",
    "v": "int[]?",
}
COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPUTE = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def known(function):
    """Return a function of values that is None if one of them is."""
    return lambda *given: None if None in given else function(*given)


def divided(function):
    def compute(one, two):
        try:
            return function(one, two)
        except ZeroDivisionError:
            return None

    return compute


def literal(value):
    if isinstance(value, str):
        escaped = "".join(
            one if one.isalnum() and one.isascii() else f"\\U{ord(one):08x}" for one in value
        )
        return f'"{escaped}"'
    if isinstance(value, float) and value in {float("inf"), float("-inf")}:
        return "1e999" if value > 0 else "-1e999"
    return f"({value!r})" if value < 0 else repr(value)


# An expression is its text, and a function that returns its value in a row as Python has it.
def of_field(name):
    return name, lambda row: row[name]


def of_literal(value):
    return literal(value), lambda _: value


def of_call(form, function, *parts):
    text = form.format(*(part[0] for part in parts))
    return text, lambda row: known(function)(*(part[1](row) for part in parts))


def arithmetic(parts):
    signs = st.sampled_from(sorted(COMPUTE))
    return st.one_of(
        st.builds(
            lambda sign, one, two: of_call(f"({{}} {sign} {{}})", divided(COMPUTE[sign]), one, two),
            signs,
            parts,
            parts,
        ),
        st.builds(lambda one: of_call("(-{})", operator.neg, one), parts),
        st.builds(lambda one: of_call("abs({})", abs, one), parts),
    )


FINITE = FLOATS.filter(lambda x: x == x)  # noqa: PLR0124 -- the language has no word for NaN
NUMBERS = st.recursive(
    st.one_of(
        st.sampled_from(["i", "j", "x", "y"]).map(of_field),
        INTS.map(of_literal),
        FINITE.map(of_literal),
        st.sampled_from(["s", "t"]).map(lambda name: of_call("len({})", len, of_field(name))),
        st.just(of_call("len({})", len, of_field("v"))),
    ),
    arithmetic,
    max_leaves=4,
)
STRINGS = st.one_of(st.sampled_from(["s", "t"]).map(of_field), TEXTS.map(of_literal))
STRINGS = STRINGS | STRINGS.map(lambda one: of_call("lower({})", str.lower, one))


def comparison(parts):
    return st.builds(
        lambda sign, one, two: of_call(f"{{}} {sign} {{}}", COMPARE[sign], one, two),
        st.sampled_from(sorted(COMPARE)),
        parts,
        parts,
    )


def member(parts, contents):
    def make(one, listed, sign):
        text = f"{{}} {sign} [{', '.join(map(literal, listed))}]"
        return of_call(text, lambda value: (value in listed) == (sign == "in"), one)

    return st.builds(
        make, parts, st.lists(contents, max_size=12), st.sampled_from(["in", "not in"])
    )


def is_in(one, two):
    return one in two


def conjunction(one, two):
    def value(row):
        given = [one[1](row), two[1](row)]
        return False if False in given else None if None in given else True

    return f"({one[0]} and {two[0]})", value


def disjunction(one, two):
    def value(row):
        given = [one[1](row), two[1](row)]
        return True if True in given else None if None in given else False

    return f"({one[0]} or {two[0]})", value


def is_none(part, form):
    return form.format(part[0]), lambda row: (part[1](row) is None) == ("not" not in form)


CONDITION = st.recursive(
    st.one_of(
        st.sampled_from(["b", "c"]).map(of_field),
        comparison(NUMBERS),
        comparison(STRINGS),
        member(NUMBERS, st.one_of(INTS, FINITE)),
        member(STRINGS, TEXTS),
        st.builds(lambda one, two: of_call("{} in {}", is_in, one, two), STRINGS, STRINGS),
        NUMBERS.map(lambda one: of_call("{} in {}", is_in, one, of_field("v"))),
        st.builds(
            is_none,
            st.one_of(NUMBERS, STRINGS, st.just(of_field("v"))),
            st.sampled_from(["{} is None", "{} is not None"]),
        ),
        st.builds(
            lambda one, two: of_call(
                f"startswith({{}}, {literal(two)})", lambda a: a.startswith(two), one
            ),
            STRINGS,
            TEXTS,
        ),
    ),
    lambda parts: st.one_of(
        st.builds(conjunction, parts, parts),
        st.builds(disjunction, parts, parts),
        parts.map(lambda one: of_call("(not {})", operator.not_, one)),
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(TABLE, min_size=1, max_size=6), st.lists(CONDITION, min_size=1, max_size=5))
def test_random_expressions_choose_what_python_chooses(tmp_path_factory, rows, conditions):
    path = tmp_path_factory.mktemp("random") / "x.ingot"
    with ingot.DatasetWriter(path, TYPES, sync=False) as w:
        for one in rows:
            w.append({name: value for name, value in one.items() if value is not None})
    ds = ingot.open(path)
    for text, value in conditions:
        try:
            expected = [value(one) is True for one in rows]
        except OverflowError:  # Python refuses to turn a large integer into a float.
            continue
        found = Expression(text).mask(selection_of(ds))
        assert list(itertools.compress(range(len(rows)), found)) == list(
            itertools.compress(range(len(rows)), expected)
        ), text
