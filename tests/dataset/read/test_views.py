"""Parts of data sets, and data sets made of several."""

import pickle
import re
from concurrent.futures import ThreadPoolExecutor

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.compat import granular

SPEC = {"label": "int", "vector": "array(float32,3)", "text": "utf8", "tags": "utf8[]"}


def row(k):
    return {
        "label": k,
        "vector": np.arange(k, k + 3, dtype=np.float32),
        "text": f"row {k}",
        "tags": [f"t{j}" for j in range(k % 4)],
    }


def write(path, numbers, **options):
    with ingot.DatasetWriter(path, SPEC, **options) as w:
        w.extend(map(row, numbers))
    return ingot.open(path)


@pytest.fixture
def ds(tmp_path):
    return write(tmp_path / "first", range(60), shard_rows=25)


@pytest.fixture
def more(tmp_path):
    return write(tmp_path / "more.ingot", range(60, 90))


@pytest.fixture
def extra(tmp_path):
    """A field for each of 60 rows, in a file of its own."""
    path = tmp_path / "extra.ingot"
    with ingot.DatasetWriter(path, {"score": "float", "frames": "bytes[]"}) as w:
        w.extend({"score": k / 2, "frames": [b"%d" % k] * 3} for k in range(60))
    return ingot.open(path)


def labels(part):
    return part.column("label").tolist()


@pytest.mark.parametrize("seed", [0, 7, None])
def test_the_parts_of_a_split_have_every_row_once(ds, seed):
    parts = ds.split(0.5, 0.2, seed=seed)
    assert [len(part) for part in parts] == [30, 12, 18]
    assert sorted(label for part in parts for label in labels(part)) == list(range(60))
    for part in parts:
        assert labels(part) == sorted(labels(part))
        assert part[3]["text"] == f"row {labels(part)[3]}"
    assert (labels(parts[0]) == list(range(30))) == (seed is None)


def test_a_split_is_the_same_for_the_same_seed(ds):
    assert labels(ds.split(10, seed=3)[0]) == labels(ds.split(10, seed=3)[0])
    assert labels(ds.split(10, seed=3)[0]) != labels(ds.split(10, seed=4)[0])


@pytest.mark.parametrize(
    ("sizes", "lens"),
    [
        ((0.9,), [54, 6]),
        ((0.9, 0.1), [54, 6]),
        ((0.7, 0.2, 0.1), [42, 12, 6]),
        ((1 / 3, 1 / 3, 1 / 3), [20, 20, 20]),
        ((10, 20), [10, 20, 30]),
        ((60,), [60]),
        ((1.0,), [60]),
        ((0.0,), [0, 60]),
    ],
)
def test_sizes_of_a_split_are_fractions_or_rows(ds, sizes, lens):
    assert [len(part) for part in ds.split(*sizes)] == lens


@pytest.mark.parametrize("sizes", [(61,), (0.8, 0.3), (-1,), (30, 31), (-0.1, 0.5)])
def test_a_split_of_more_than_there_is_is_rejected(ds, sizes):
    with pytest.raises(ValueError, match="exceed 60 rows"):
        ds.split(*sizes)


@pytest.mark.parametrize("sizes", [(), (True,), (0.5, 10), ("half",)])
def test_a_split_by_neither_fractions_nor_rows_is_rejected(ds, sizes):
    with pytest.raises(TypeError, match="all fractions"):
        ds.split(*sizes)


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_a_split_of_few_rows_has_as_many_parts(ds, rows):
    train, test = ds[:rows].split(0.9)
    assert len(train) + len(test) == rows
    assert [len(part) for part in ds[:rows].split([0.8, 0.1, 0.1])][1:] in ([0, 0], [1, 0])


def test_a_condition_is_not_met_by_what_is_missing(tmp_path):
    path = tmp_path / "gaps.ingot"
    with ingot.DatasetWriter(path, {"score": "float?"}) as w:
        w.extend([{}, {"score": 0.0}, {"score": 1.0}])
    ds = ingot.open(path)
    assert len(ds.where(lambda score: score == 0, "score")) == 1
    with pytest.raises(TypeError, match="names of the fields whose columns it takes"):
        ds.where(lambda score: score == 0)


def test_a_directory_goes_by_its_own_name(ds, tmp_path):
    folder = str(tmp_path / "first")
    assert ds.path == folder
    assert repr(ds).endswith(f"in {folder!r}>")
    with pytest.raises(IndexError, match=f"^{re.escape(folder)}: index 500"):
        ds[500]
    assert pickle.loads(pickle.dumps(ds)).path == folder  # noqa: S301


def test_a_file_of_rows_is_known_by_its_content(tmp_path, more):
    (tmp_path / "more.data").write_bytes((tmp_path / "more.ingot").read_bytes())
    assert len(ingot.open(tmp_path / "more.data")) == len(more)


def test_fields_are_selected_by_a_list_too(ds):
    assert ds.select(["label", "text"])[1] == {"label": 1, "text": "row 1"}


def test_concatenated_data_sets_are_one(ds, more):
    both = ds.concat(more)
    assert len(both) == 90
    assert both.spec == ds.spec
    assert both.nbytes == ds.nbytes + more.nbytes
    assert [one["label"] for one in both] == list(range(90))
    assert both[-1]["text"] == "row 89"
    assert both[70, {"tags": range(1, 2)}] == {"tags": ["t1"]}
    assert both.available(63)["tags"] == range(3)
    assert labels(both) == list(range(90))
    assert labels(both[5:85:10]) == list(range(5, 85, 10))
    batch = both[[80, 1, 61, 2, 80]]
    assert batch["label"].tolist() == [80, 1, 61, 2, 80]
    assert batch["vector"].tolist() == [row(k)["vector"].tolist() for k in (80, 1, 61, 2, 80)]
    assert batch["text"] == ["row 80", "row 1", "row 61", "row 2", "row 80"]
    assert both[[]]["vector"].shape == (0, 3)


def test_parts_of_data_sets_are_concatenated(ds, more):
    both = ds.where(lambda label: label % 2 == 1, "label").concat(more[::-1], ds[:2])
    expected = [*range(1, 60, 2), *range(89, 59, -1), 0, 1]
    assert labels(both) == expected
    assert both[[3, 40]]["label"].tolist() == [expected[3], expected[40]]
    assert [both[k]["label"] for k in range(len(both))] == expected


def test_arrays_that_differ_between_data_sets_make_a_list(tmp_path):
    sets = []
    for k, shape in enumerate([(2,), (3,)]):
        path = tmp_path / f"{k}.ingot"
        with ingot.DatasetWriter(path, {"x": "array"}) as w:
            w.extend({"x": np.ones(shape)} for _ in range(3))
        sets.append(ingot.open(path))
    found = sets[0].concat(sets[1])[[4, 0]]["x"]
    assert [one.shape for one in found] == [(3,), (2,)]


def test_only_equal_fields_are_concatenated(ds, more, extra):
    with pytest.raises(ValueError, match=r"the fields .*score"):
        ds.concat(extra)
    with pytest.raises(ValueError, match="has the fields"):
        ds.concat(more.select("label"))
    with pytest.raises(TypeError, match=re.escape("instances of ingot.Dataset")):
        ds.concat([more])
    with pytest.raises(TypeError, match=re.escape("instances of ingot.Dataset")):
        ds.concat()


def test_a_zipped_data_set_has_the_fields_of_all(ds, extra):
    wide = ds.zip(extra)
    assert list(wide.spec) == [*SPEC, "score", "frames"]
    assert len(wide) == 60
    assert wide[7]["score"] == 3.5
    assert wide[7]["text"] == "row 7"
    assert wide[7, {"frames": range(2), "label": True}] == {"frames": [b"7"] * 2, "label": 7}
    assert wide.available(5)["frames"] == range(3)
    assert wide.column("score")[:3].tolist() == [0, 0.5, 1]
    batch = wide[[9, 4]]
    assert list(batch) == list(wide.spec)
    assert batch["score"].tolist() == [4.5, 2]
    assert batch["text"] == ["row 9", "row 4"]
    high = wide.where(lambda score, label: (score > 20) & (label % 2 == 0), "score", "label")
    assert labels(high) == list(range(42, 60, 2))
    assert high[[1]]["frames"] == [[b"44"] * 3]


def test_only_as_many_rows_and_other_fields_are_zipped(ds, extra, more):
    with pytest.raises(ValueError, match=r"has 10 rows, but .* has 60"):
        ds.zip(extra[:10])
    with pytest.raises(ValueError, match="also has a field 'label'"):
        ds.zip(ds)
    assert ds.select("label")[:30].zip(more.select("text"))[1] == {"label": 1, "text": "row 61"}


def test_made_data_sets_survive_pickling_and_threads(ds, more, extra):
    made = (
        ds.zip(extra)
        .select("label", "score")
        .concat(more.select("label").zip(extra[:30].select("score")))[5:80]
    )
    again = pickle.loads(pickle.dumps(made))  # noqa: S301
    assert again[[0, 70]]["label"].tolist() == [5, 75]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: again[k]["label"], range(75)))
    assert found == list(range(5, 80))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_composition_equals_the_same_of_lists(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "composition"
    if not folder.exists():
        write(folder, range(20), shard_rows=7)
    ds, numbers = ingot.open(folder), list(range(20))
    for _ in range(data.draw(st.integers(1, 4))):
        match data.draw(st.sampled_from(["slice", "take", "concat", "split"])):
            case "slice":
                part = data.draw(st.slices(len(numbers)))
                ds, numbers = ds[part], numbers[part]
            case "take" if numbers:
                chosen = data.draw(st.lists(st.integers(-len(numbers), len(numbers) - 1)))
                ds, numbers = ds.take(chosen), [numbers[k] for k in chosen]
            case "concat":
                ds, numbers = ds.concat(ds[::2]), numbers + numbers[::2]
            case "split":
                cut = data.draw(st.integers(0, len(numbers)))
                ds, numbers = ds.split(cut, seed=None)[0], numbers[:cut]
    assert labels(ds) == numbers
    assert [one["text"] for one in ds] == [f"row {k}" for k in numbers]
    if numbers:
        assert ds[[-1, 0]]["label"].tolist() == [numbers[-1], numbers[0]]


@pytest.mark.usefixtures("more")
def test_verify_names_the_damaged_row(tmp_path, ds):
    assert ds.verify().ok
    calls = []
    assert ds.verify(lambda done, total: calls.append((done, total))).rows == 60
    assert calls[-1] == (60, 60)
    path = tmp_path / "more.ingot"
    data = bytearray(path.read_bytes())
    data[data.index(b"row 71")] ^= 1
    path.write_bytes(data)
    found = ingot.open(path).verify()
    assert not found.ok
    assert found.damaged[0].record == 11
    both = ds.concat(ingot.open(path)).verify()
    assert both.rows == 90
    assert "more.ingot" in both.damaged[0].reason
    with pytest.raises(ingot.CorruptFileError, match="11"):
        ingot.open(path)[11]


def test_a_notebook_shows_fields_rows_and_thumbnails(tmp_path):
    path = tmp_path / "shown.ingot"
    spec = {"image": "array(uint8,40,30,3)", "<b>": "utf8", "n": "int[]", "frames": "bytes[]"}
    with ingot.DatasetWriter(path, spec) as w:
        for k in range(8):
            image = np.full((40, 30, 3), k, np.uint8)
            w.append({"image": image, "<b>": "<i>" * 50, "n": [k] * 9, "frames": [b"abc"] * 6})
    html = ingot.open(path)._repr_html_()
    assert html.count("<img ") == 5
    assert 'title="40 x 30"' in html
    assert "<i>" not in html
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "int64 9" in html
    assert "6 in all" in html
    assert "8 rows" in html


def test_an_empty_data_set_is_shown(ds):
    assert "0 rows" in ds[:0]._repr_html_()


def test_invalid_indices_are_explained(ds):
    with pytest.raises(TypeError, match=re.escape("select('label')")):
        ds["label"]
    with pytest.raises(TypeError, match=re.escape("pass ['label']")):
        ds[3, "label"]
    with pytest.raises(TypeError, match=r"call ingot\.open"):
        ingot.Dataset("x.ingot")
    with pytest.raises(TypeError, match="indices are integers"):
        ds[1.5]
    with pytest.raises(TypeError, match="indices are integers"):
        ds[[1.5]]
    with pytest.raises(ValueError, match="one dimension"):
        ds[np.zeros((2, 2), int)]
    with pytest.raises(IndexError, match="index 60 is out of range for 60 rows"):
        ds[[3, 60]]
    with pytest.raises(ValueError, match="must not be negative"):
        ds[3, {"tags": range(-3, 2)}]
    assert ds.where(ds.column("label") == 5)[0]["label"] == 5
    with pytest.raises(TypeError, match="require a callable condition"):
        ds.where(ds.column("label") == 5, "label")
    with pytest.raises(TypeError, match=r'such as where\(lambda label: label == 3, "label"\)'):
        ds.where(lambda label: label == 5)


def test_elements_of_many_rows_are_picked_in_one_read(ds, more, extra):
    ranges = [range(1, 3), range(2), slice(0, 1), range(5, 9)]
    expected = [
        row(k)["tags"][part.start : part.stop] for k, part in zip((3, 7, 2, 3), ranges, strict=True)
    ]
    assert ds[[3, 7, 2, 3], {"tags": ranges}] == {"tags": expected}
    found = ds[[3, 7], {"tags": range(1, 2), "label": True}]
    assert found["tags"] == [["t1"], ["t1"]]
    assert found["label"].tolist() == [3, 7]
    both = ds.concat(more)
    assert both[[63, 3, 62], {"tags": [range(1), range(3), range(2)]}]["tags"] == [
        ["t0"],
        ["t0", "t1", "t2"],
        ["t0", "t1"],
    ]
    wide = ds.zip(extra)
    found = wide[[5, 6], {"frames": [range(1), range(2)], "tags": True}]
    assert found == {"frames": [[b"5"], [b"6"] * 2], "tags": [["t0"], ["t0", "t1"]]}
    with pytest.raises(ValueError, match="expected 2 ranges, one per row, got 1"):
        ds[[3, 7], {"tags": [range(1)]}]
    with pytest.raises(TypeError, match="a slice reads nothing yet"):
        ds[3:5, {"tags": range(1)}]
    with pytest.raises(TypeError, match="expected a sequence"):
        ds[[3], {"text": range(1)}]


def test_runs_of_numbers_are_picked_too(tmp_path):
    path = tmp_path / "runs.ingot"
    with ingot.DatasetWriter(path, {"times": "float[]?"}) as w:
        w.extend([{"times": [0.5, 1.5, 2.5]}, {}, {"times": []}])
    ds = ingot.open(path)
    first, missing, empty = ds[[0, 1, 2], {"times": [range(1, 9), range(1), range(2)]}]["times"]
    assert first.tolist() == [1.5, 2.5]
    assert missing is None
    assert empty.tolist() == []
    assert ds.available(0) == {"times": range(3)}


def test_sequences_of_several_parts_are_lists_if_they_are_not_alike(tmp_path):
    for name, length in (("a", 3), ("b", 2)):
        with ingot.DatasetWriter(tmp_path / name, {"x": "array(uint8,2)[]"}) as writer:
            writer.extend({"x": [np.full(2, k, np.uint8)] * length} for k in range(4))
    a, b = ingot.open(tmp_path / "a"), ingot.open(tmp_path / "b")
    assert a.concat(a)[[0, 5]]["x"].shape == (2, 3, 2)
    found = a.concat(b)[[0, 5]]["x"]
    assert [type(row) for row in found] == [list, list]
    assert [np.array(row).tolist() for row in found] == [[[0, 0]] * 3, [[1, 1]] * 2]


def opened(folder, kind):
    """Return a data set of each kind of source."""
    for name in "ab":
        with ingot.DatasetWriter(folder / name, {name: "int", "n": "int"}) as writer:
            writer.extend([{name: k, "n": k} for k in range(4)])
    first, second = (ingot.open(folder / name) for name in "ab")
    match kind:
        case "granular":
            with granular.DatasetWriter(folder / "x", {"n": "int"}, granular.encoders) as writer:
                writer.append({"n": 1})
            return ingot.open(folder / "x")
        case "hdf5":
            with h5py.File(folder / "x.h5", "w") as file:
                file["n"] = [1, 2]
            return ingot.open(folder / "x.h5")
        case "concat":
            return first.select("n").concat(second.select("n"))
        case "zip":
            return first.zip(second.select("b"))
    return first


@pytest.mark.parametrize("kind", ["ingot", "granular", "hdf5", "concat", "zip"])
def test_a_closed_data_set_says_so(tmp_path, kind):
    ds = opened(tmp_path, kind)
    part = ds[:1]
    assert not ds.closed
    assert len(part) == 1
    for _ in range(2):
        ds.close()
    assert ds.closed
    assert part.closed
    for use in (
        lambda: len(ds),
        lambda: len(part),
        lambda: ds.nbytes,
        lambda: ds[:1],
        lambda: ds[0],
        lambda: next(iter(ds)),
    ):
        with pytest.raises(ingot.ClosedError, match="closed"):
            use()
    assert repr(ds).endswith(f"in {ds.path!r}, closed>")
    assert "closed" in ds._repr_html_()
    assert "n" in ds.spec


@pytest.fixture
def talks(tmp_path):
    """Rows with JSON: of every third, some members are missing."""
    with ingot.DatasetWriter(tmp_path / "talks", {"id": "int", "meta": "json"}) as w:
        for k in range(30):
            meta = {"lang": "de" if k % 2 else "en", "n": {"words": k, "rate": k / 2}, "any": k}
            meta |= {"any": "text"} if k == 4 else {}
            w.append({"id": k, "meta": {"n": {}} if k % 3 == 2 else meta})
    return ingot.open(tmp_path / "talks")


def test_column_reaches_members_of_json(talks):
    assert talks.column("meta.lang")[:5].tolist() == ["en", "de", None, "de", "en"]
    words = talks.column("meta.n.words")
    assert (words.dtype, words[:5].tolist()) == (np.int64, [0, 1, 0, 3, 4])
    assert talks.column("meta.n.rate").dtype == np.float64
    assert talks.present("meta.lang")[:5].tolist() == [True, True, False, True, True]
    assert talks[3:5].column("meta.n.words").tolist() == [3, 4]


def test_where_reaches_members_of_json(talks):
    long = talks.where(lambda words: words < 5, "meta.n.words")
    assert long.column("id").tolist() == [0, 1, 3, 4]
    german = talks.where(lambda lang: lang == "de", "meta.lang")
    assert german.column("id")[:3].tolist() == [1, 3, 7]


def test_column_says_which_members_of_json_there_are(talks):
    with pytest.raises(KeyError, match=r"no row has 'meta.langs'; the first row has 'lang', 'n'"):
        talks.column("meta.langs")
    with pytest.raises(TypeError, match=r"of 'meta.any' are of type int, str, expected only text"):
        talks.column("meta.any")
    with pytest.raises(TypeError, match=r"column\('meta.KEY'\) returns a member"):
        talks.column("meta")
    with pytest.raises(KeyError, match=r"there is no field 'id.x'"):
        talks.column("id.x")
