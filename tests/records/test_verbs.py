"""Readers, views and data sets choose and read rows with the same verbs, as lists would."""

import itertools
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot

RECORDS = [b"%d" % k * (k % 5) for k in range(40)]
KINDS = ["reader", "view", "taken", "dataset", "part"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verbs")
    for part, records in enumerate((RECORDS[:23], RECORDS[23:])):
        with ingot.Writer(folder / f"{part}.ingot", sync=False) as writer:
            writer.extend(records)
    with ingot.DatasetWriter(folder / "rows", {"b": "bytes"}, shard_rows=9, sync=False) as writer:
        writer.extend({"b": record} for record in RECORDS)
    return folder


@pytest.fixture(scope="module")
def opened(folder):
    """Return each kind of rows, and the list that it is compared with."""
    reader = ingot.open([folder / "0.ingot", folder / "1.ingot"])
    rows = ingot.open(folder / "rows")
    order = [7, 3, 37, 3, 0, 12, 30]
    return {
        "reader": (reader, RECORDS),
        "view": (reader[35:4:-3], RECORDS[35:4:-3]),
        "taken": (reader.take(order), [RECORDS[k] for k in order]),
        "dataset": (rows, RECORDS),
        "part": (rows[2:].take(order[:3]), [RECORDS[2:][k] for k in order[:3]]),
    }


def plain(found):
    """Return rows as a list of bytes."""
    if isinstance(found, dict):
        found = found["b"]
    return [bytes(one["b"]) if isinstance(one, dict) else bytes(one) for one in found]


def indices_of(data, length):
    return data.draw(st.lists(st.integers(-length, length - 1), max_size=70))


FORMS = [list, tuple, np.array, lambda indices: np.array(indices, np.int32), iter]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rows_are_taken_and_read_as_from_a_list(opened, kind, data):
    rows, expected = opened[kind]
    indices = indices_of(data, len(expected))
    wanted = [expected[k] for k in indices]
    form = data.draw(st.sampled_from(FORMS)) if indices else list
    assert plain(rows.iter(indices)) == wanted
    assert plain(rows.read(form(indices))) == wanted
    taken = rows.take(form(indices))
    assert (len(taken), plain(taken)) == (len(wanted), wanted)
    places = data.draw(st.slices(len(wanted)))
    assert plain(taken[places]) == wanted[places]
    assert plain(taken[places].iter()) == wanted[places]
    assert plain(taken[places].read()) == wanted[places]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rows_are_chosen_by_a_mask(opened, kind, data):
    rows, expected = opened[kind]
    length = len(expected)
    mask = data.draw(st.lists(st.booleans(), min_size=length, max_size=length))
    assert plain(rows.where(np.array(mask, bool))) == list(itertools.compress(expected, mask))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_parts_of_a_split_have_every_row_once(opened, kind, data):
    rows, expected = opened[kind]
    sizes = data.draw(
        st.lists(st.integers(0, len(expected)), min_size=1, max_size=4).filter(
            lambda sizes: sum(sizes) <= len(expected)
        )
    )
    seed = data.draw(st.sampled_from([None, 0, 5]))
    parts = rows.split(*sizes, seed=seed)
    rest = len(expected) - sum(sizes)
    assert [len(part) for part in parts] == sizes + [rest] * (rest > 0)
    found = [record for part in parts for record in plain(part)]
    assert sorted(found) == sorted(expected)
    if seed is None:
        assert found == expected
    assert [plain(part) for part in rows.split(*sizes, seed=seed)] == [*map(plain, parts)]


@pytest.mark.parametrize("kinds", [("reader", "view", "taken"), ("dataset", "part")])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rows_are_concatenated(opened, kinds, data):
    chosen = data.draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=5))
    parts = [opened[kind] for kind in chosen]
    whole = parts[0][0].concat(*(rows for rows, _ in parts[1:]))
    expected = [record for _, records in parts for record in records]
    assert plain(whole) == expected
    indices = indices_of(data, len(expected))
    assert plain(whole.read(indices)) == [expected[k] for k in indices]
    assert plain(whole.take(indices)) == [expected[k] for k in indices]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_of_indices_may_be_endless(opened, kind):
    rows, expected = opened[kind]
    endless = itertools.cycle(range(len(expected)))
    found = itertools.islice(rows.iter(endless), 3 * len(expected))
    assert plain(found) == expected * 3


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_out_of_range_is_reported_after_the_rows_before_it(opened, kind):
    rows, expected = opened[kind]
    found = rows.iter([0, 1, len(expected), 0])
    assert plain(itertools.islice(found, 2)) == expected[:2]
    with pytest.raises(IndexError, match=f"index {len(expected)} is out of range"):
        next(found)

    def failing():
        yield 0
        message = "no more"
        raise RuntimeError(message)

    found = rows.iter(failing())
    assert plain([next(found)]) == expected[:1]
    with pytest.raises(RuntimeError, match="no more"):
        next(found)


@pytest.mark.parametrize("kind", KINDS)
def test_verbs_reject_invalid_arguments(opened, kind):
    rows, expected = opened[kind]
    with pytest.raises(IndexError, match="out of range"):
        rows.take([len(expected)])
    with pytest.raises(ValueError, match=r"at least 0 rows, got -2; \[-2:\] is the last 2"):
        rows.take(-2)
    with pytest.raises(TypeError, match=r"where\(mask\)"):
        rows.take(np.zeros(len(expected), bool))
    with pytest.raises(ValueError, match=r"take\(indices\)"):
        rows.where(np.array([0, 1]))
    with pytest.raises(ValueError, match=f"one boolean for each of {len(expected)} rows"):
        rows.where(np.zeros(len(expected) + 1, bool))
    with pytest.raises(ValueError, match="exceed"):
        rows.split(len(expected) + 1)
    with pytest.raises(TypeError, match="expected instances of ingot"):
        rows.concat([b"1"])


@pytest.mark.parametrize("kind", KINDS)
def test_figures_match_the_files(opened, kind, folder):
    rows, _ = opened[kind]
    names = ["0.ingot", "1.ingot"]
    paths = [str(folder / name) for name in names]
    if kind in {"dataset", "part"}:
        paths = sorted(str(path) for path in (folder / "rows").glob("*.ingot"))
    assert rows.paths == paths
    assert rows.nbytes == sum((folder / path).stat().st_size for path in paths)
    assert (rows.stats().rows, rows.stats().file_bytes) == (len(RECORDS), rows.nbytes)
    assert rows.verify().ok
    assert rows.verify().rows == len(RECORDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_rows_is_not_that_of_its_user(opened, kind):
    rows, expected = opened[kind]
    indices = np.array([1, 0])
    taken = rows.take(indices)
    indices[:] = 0
    assert plain(taken) == [expected[1], expected[0]]
    assert plain(pickle.loads(pickle.dumps(taken))) == [expected[1], expected[0]]  # noqa: S301


def test_the_lengths_of_a_view_match_its_records(opened):
    for kind in ("reader", "view", "taken"):
        rows, expected = opened[kind]
        assert rows.lengths().tolist() == [*map(len, expected)]
        assert rows.lengths([2, -1]).tolist() == [len(expected[2]), len(expected[-1])]
    reader, _ = opened["reader"]
    assert plain(reader.where(reader.lengths() == 4)) == [one for one in RECORDS if len(one) == 4]


def test_concatenated_records_outlive_the_readers_and_travel(folder):
    with ingot.open(folder / "0.ingot") as one, ingot.open(folder / "1.ingot") as two:
        whole = two.concat(one[::2], two)
    expected = RECORDS[23:] + RECORDS[:23:2] + RECORDS[23:]
    assert list(whole) == expected
    assert list(pickle.loads(pickle.dumps(whole))) == expected  # noqa: S301
    assert list(whole.concat(whole[3:5])) == expected + expected[3:5]
    assert whole.verify().rows == len(RECORDS)
    with pytest.raises(ValueError, match="concatenate again"):
        whole.reader.refresh()


def test_whole_readers_are_concatenated_without_a_table(folder):
    one, two = (ingot.open(folder / f"{k}.ingot") for k in range(2))
    assert one.concat(two).rows == range(40)
    assert one.concat(two[:0]).rows == range(23)
    assert one[:5].concat(one[5:9]).reader is one


def test_a_file_that_grew_does_not_move_the_records_of_others(tmp_path, folder):
    writer = ingot.Writer(tmp_path / "x.ingot", sync=False)
    writer.append(b"1")
    writer.flush()
    growing = ingot.open(tmp_path / "x.ingot", partial=True)
    whole = pickle.dumps(growing.concat(ingot.open(folder / "0.ingot")))
    writer.append(b"2")
    writer.close()
    with pytest.raises(ingot.FormatError, match="has 2 records, expected the 1"):
        pickle.loads(whole)  # noqa: S301


@pytest.mark.parametrize("kind", KINDS)
def test_booleans_in_a_list_are_not_indices(opened, kind):
    rows, _ = opened[kind]
    for indices in ([True, False], (False,), np.array([True])):
        with pytest.raises(TypeError, match=r"a boolean mask is not an index array: where\(mask\)"):
            rows[indices]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", [1 << 31, 1 << 63, -(1 << 63) - 1, 1 << 64, 1 << 100])
def test_an_index_that_no_number_holds_is_out_of_range(opened, kind, index):
    rows, _ = opened[kind]
    with pytest.raises(IndexError, match="out of range"):
        rows[index]


@pytest.mark.parametrize("kind", ["reader", "dataset"])
def test_a_file_that_was_cut_under_a_reader_is_damaged(tmp_path, kind):
    path = tmp_path / "x.ingot"
    if kind == "reader":
        with ingot.Writer(path) as writer:
            writer.extend(RECORDS)
    else:
        with ingot.DatasetWriter(path, {"b": "bytes"}) as writer:
            writer.extend({"b": record} for record in RECORDS)
    rows = ingot.open(path)
    size = path.stat().st_size
    assert rows.verify().ok
    for cut in range(size - 1, size // 2, -1):
        os.truncate(path, cut)
        assert not rows.verify().ok, cut


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_takes_the_first_rows(opened, kind):
    rows, expected = opened[kind]
    for count in (0, 3, np.int32(3), len(expected), len(expected) + 1):
        assert plain(rows.take(count)) == expected[:count]
        assert plain(rows.repeat(1).take(count)) == expected[:count]
    assert plain(rows.take(3).take([2, 0])) == [expected[2], expected[0]]


@pytest.mark.parametrize("kind", KINDS)
def test_verbs_that_begin_an_order_match_the_order(opened, kind):
    rows, expected = opened[kind]
    order = ingot.Order.of(rows)
    lengths = [1] * len(expected)
    pairs = [
        (rows.shuffle(3), order.shuffle(3)),
        (rows.shuffle(), order.shuffle(0)),
        (rows.repeat(2), order.repeat(2)),
        (rows.shard(1, 3), order.shard(1, 3)),
        (rows.skip(2), order.skip(2)),
        (rows.map(len, seed=4), order.map(len, seed=4)),
        (rows.batch(2, drop_last=True), order.batch(2, drop_last=True)),
        (rows.pack(lengths, 3), order.pack(lengths, 3)),
    ]
    for begun, longhand in pairs:
        assert isinstance(begun, ingot.Order)
        assert begun.fingerprint == longhand.fingerprint
    if kind in {"dataset", "part"}:
        with pytest.raises(TypeError, match="names of the sequences to cut"):
            rows.window(lengths, 1)
        assert plain(rows.filter(np.arange(len(rows)) < 2)) == expected[:2]
    else:
        assert rows.window(lengths, 1).fingerprint == order.window(lengths, 1).fingerprint


def test_sources_and_orders_are_mixed_interleaved_and_concatenated(opened):
    reader, expected = opened["reader"]
    view, seen = opened["view"]
    assert list(ingot.concat(reader, view.skip(1))) == expected + seen[1:]
    assert list(ingot.interleave(reader, view))[:4] == [expected[0], seen[0], expected[1], seen[1]]
    mixed = ingot.mix({"all": reader.repeat(), "some": view.repeat()}, {"all": 3, "some": 1})
    assert sum(mixed.rows(0, 400).source == 0) == 300
