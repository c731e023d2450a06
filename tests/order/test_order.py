import functools
import json
import pickle
import re
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.order import Order, concat, difference, interleave, mix
from tests.support import DATA

GOLDEN = DATA / "orders"
LAST = 2**63 - 1


def noisy(sample, rng):
    return sample, int(rng.integers(1 << 30))


def double(sample):
    return 2 * sample


@pytest.fixture
def cats(tmp_path):
    with ingot.DatasetWriter(tmp_path / "cats", {"label": "int", "frames": "utf8[]"}) as w:
        for k in range(30):
            w.append({"label": k, "frames": [f"{k}/{j}" for j in range(k % 7)]})
    with ingot.open(tmp_path / "cats") as ds:
        yield ds


@pytest.fixture
def logs(tmp_path):
    with ingot.Writer(tmp_path / "logs.ingot") as w:
        w.extend(b"%d" % k for k in range(50))
    with ingot.open(tmp_path / "logs.ingot") as reader:
        yield reader


# Each strategy gives an order and a function from an epoch, and the number of sources before it,
# to the list that it stands for.


def permutation(n, seed, epoch, branch):
    order = Order.of(range(n)).shuffle(seed).repeat(epoch + 1)
    return list(concat(*[[]] * branch, order)[n * epoch :])


def leaves():
    def make(n, first):
        values = [first + k for k in range(n)]
        return Order.of(values), lambda *_: values

    return st.builds(make, st.integers(0, 9), st.integers(0, 5).map(lambda k: 100 * k))


def lists_of(pairs, epoch, branch):
    """Return the list of each of several parts."""
    before = accumulate((len(one.sources) for one, _ in pairs), initial=branch)
    return [model(epoch, first) for (_, model), first in zip(pairs, before, strict=False)]


def steps(inner):  # noqa: C901 -- one function for each kind of step
    def shuffled(pair, seed):
        order, model = pair

        def listed(epoch, branch):
            values = model(epoch, branch)
            return [values[k] for k in permutation(len(values), seed, epoch, branch)]

        return order.shuffle(seed), listed

    def repeated(pair, times):
        order, model = pair

        def listed(epoch, branch):
            return [one for k in range(times) for one in model(epoch * times + k, branch)]

        return order.repeat(times), listed

    def sliced(pair, index):
        return pair[0][index], lambda *at: pair[1](*at)[index]

    def sharded(pair, rank, more):
        world = rank + more
        return pair[0].shard(rank, world), lambda *at: pair[1](*at)[rank::world]

    def cut(pair, n):
        return pair[0].skip(n).take(n), lambda *at: pair[1](*at)[n : 2 * n]

    def joined(pairs):
        return concat(*(one for one, _ in pairs)), lambda *at: [
            value for values in lists_of(pairs, *at) for value in values
        ]

    def in_turns(pairs):
        def listed(epoch, branch):
            lists = lists_of(pairs, epoch, branch)
            longest = max(map(len, lists))
            return [one[k] for k in range(longest) for one in lists if k < len(one)]

        return interleave(*(one for one, _ in pairs)), listed

    several = st.lists(inner, min_size=1, max_size=3)
    bound = st.none() | st.integers(-12, 12)
    slices = st.builds(slice, bound, bound, st.none() | st.sampled_from([-3, -2, -1, 1, 2, 5]))
    return st.one_of(
        st.builds(shuffled, inner, st.integers(0, 3)),
        st.builds(repeated, inner, st.integers(0, 3)),
        st.builds(sliced, inner, slices),
        st.builds(sharded, inner, st.integers(0, 3), st.integers(1, 3)),
        st.builds(cut, inner, st.integers(0, 7)),
        st.builds(joined, several),
        st.builds(in_turns, several),
        inner.map(lambda pair: (pair[0].map(double), lambda *at: [2 * k for k in pair[1](*at)])),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(leaves(), steps, max_leaves=6), st.integers(1, 4))
def test_any_composition_is_what_lists_give(pair, size):
    order, model = pair
    expected = model(0, 0)
    assert len(order) == len(expected)
    assert list(order) == expected
    assert [order[k] for k in range(-len(expected), 0)] == expected
    assert order.__getitems__(range(len(expected))[::-1]) == expected[::-1]
    batches = [expected[k : k + size] for k in range(0, len(expected), size)]
    assert list(order.batch(size)) == batches
    assert list(order.batch(size, drop_last=True)) == batches[: len(expected) // size]
    again = pickle.loads(pickle.dumps(order))  # noqa: S301
    assert list(again) == expected
    assert again.fingerprint == order.fingerprint
    assert json.loads(json.dumps(order.describe())) == order.describe()
    assert difference(order.describe(), again.describe()) is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 10) | st.integers(0, 50), min_size=1, max_size=6))
def test_a_mix_has_its_proportions_at_every_prefix(given_weights):
    weights = {str(k): weight for k, weight in enumerate(given_weights)}
    if sum(weights.values()) == 0:
        return
    order = mix({name: Order.of([name]).repeat() for name in weights}, weights)
    ((_, whole),) = order.describe()["schedule"]
    exact = np.array(
        [float(Fraction(one) / sum(map(Fraction, given_weights))) for one in given_weights]
    )
    assert np.allclose(np.array(whole) / sum(whole), exact, atol=len(whole) / 65_536)
    assert ((np.array(whole) > 0) == (np.array(given_weights) > 0)).all()
    drawn = order.rows(0, 500).source
    counts = np.cumsum(drawn[:, None] == np.arange(len(weights)), axis=0)
    shares = np.arange(1, 501)[:, None] * np.array(whole) / sum(whole)
    assert np.abs(counts - shares).max() < 1


def test_weights_that_are_fractions_are_exact():
    parts = {name: Order.of([name]).repeat() for name in "abc"}
    for weights in ({"a": 0.7, "b": 0.2, "c": 0.1}, {"a": 7, "b": Fraction(2), "c": 1}):
        assert mix(parts, weights).describe()["schedule"] == [[0, [7, 2, 1]]]
    assert mix(parts, dict.fromkeys("abc", 1 / 3)).describe()["schedule"] == [[0, [1, 1, 1]]]
    tiny = mix(parts, {"a": 1e-300, "b": 1, "c": 0}).describe()["schedule"]
    assert tiny == [[0, [1, 65_535, 0]]]


def test_no_sample_is_lost_or_repeated_where_weights_change():
    parts = {"a": Order.of(range(1000)), "b": Order.of(range(1000, 2000))}
    order = mix(parts, [(0, {"a": 1, "b": 0}), (10, {"a": 1, "b": 3}), (50, {"a": 0, "b": 1})])
    samples = list(order[:60])
    assert samples[:10] == list(range(10))
    assert sorted(samples) == [*range(20), *range(1000, 1040)]
    assert [one for one in samples if one < 1000] == list(range(20))
    assert samples[50:] == list(range(1030, 1040))


def test_a_mix_ends_before_the_first_sample_that_is_missing():
    parts = {"a": Order.of(["a"] * 3), "b": Order.of(["b"]).repeat()}
    assert "".join(mix(parts, {"a": 1, "b": 1})) == "ababab"
    assert "".join(mix(parts, {"a": 1, "b": 2})) == "babbabbabb"
    assert mix(parts, {"a": 0, "b": 1}).is_infinite


def test_an_epoch_has_each_row_once_and_epochs_differ():
    order = Order.of(range(2000)).shuffle(7).repeat()
    epochs = [list(order[2000 * k : 2000 * k + 2000]) for k in range(3)]
    assert all(sorted(one) == list(range(2000)) for one in epochs)
    assert len({tuple(one) for one in epochs}) == 3
    assert epochs[0] == list(Order.of(range(2000)).shuffle(7))
    assert order.rows(3999, 4002).epoch.tolist() == [1, 2, 2]


def test_nested_repeats_keep_counting_epochs():
    order = Order.of(range(50)).shuffle(1)
    assert list(order.repeat(2).repeat(3)) == list(order.repeat(6))


def test_the_shards_of_any_number_of_ranks_make_up_the_order():
    order = Order.of(range(101)).shuffle(2).repeat(2)
    for world in (1, 2, 7, 300):
        shards = [list(order.shard(rank, world)) for rank in range(world)]
        assert sum(map(len, shards)) == 202
        turns = [shards[k % world][k // world] for k in range(202)]
        assert turns == list(order)


def test_an_infinite_order_has_positions_but_no_length():
    order = Order.of(range(10)).shuffle().repeat()
    assert order.is_infinite
    assert order
    with pytest.raises(TypeError, match="an infinite order has no length; take"):
        len(order)
    assert len(order.take(25)) == 25
    assert order[LAST - 1] in range(10)
    assert [one for one, _ in zip(order, range(40), strict=False)] == list(order[:40])
    assert order.skip(5)[0] == order[5]
    assert list(order[3:30:7]) == [order[k] for k in range(3, 30, 7)]
    assert order[4::3][2] == order[10]
    assert len(order[5 : 2**70]) == LAST - 5
    with pytest.raises(IndexError, match="position 9223372036854775807 is out of range"):
        order[LAST]
    with pytest.raises(ValueError, match=r"positions are below 2\^63"):
        order[2**63]
    with pytest.raises(ValueError, match="positions fit into 64 bits"):
        order[2**70]
    with pytest.raises(IndexError, match="position -1 counts from the end, and the order has"):
        order[-1]
    with pytest.raises(ValueError, match="an infinite order has no end to count from"):
        order[:-1]
    with pytest.raises(ValueError, match=r"at most 2\^63 - 1 positions"):
        order[::5][LAST // 2]
    assert not Order.of([]).repeat()


def test_random_numbers_depend_on_seed_map_epoch_and_position_alone():
    order = Order.of(range(40)).shuffle(3).map(noisy).repeat()
    once = list(order[:80])
    assert order.__getitems__(range(79, -1, -1)) == once[::-1]
    assert len({number for _, number in once}) == 80
    assert list(order[:40]) == list(Order.of(range(40)).shuffle(3).map(noisy))
    other = Order.of(range(40)).shuffle(3).map(noisy, seed=4)
    assert [one for one, _ in other] == [one for one, _ in once[:40]]
    assert not {number for _, number in other} & {number for _, number in once}
    both = Order.of(range(40)).map(noisy).map(noisy)
    assert all(one[1] != again for one, again in both)
    rows = order.rows(5, 6)
    assert noisy(once[5][0], np.random.default_rng(rows.key[0, 0])) == once[5]


def test_maps_of_parts_and_of_batches_are_applied_where_they_are():
    left = Order.of(range(3)).map(double)
    order = concat(left, Order.of(range(3))).batch(2).map(sum).map(noisy).batch(2)
    assert [[one for one, _ in batch] for batch in order] == [[2, 4], [3]]
    rows = order.rows(0, 2)
    assert rows.map.tolist() == [[0], [0], [0], [-1], [-1], [-1]]
    assert rows.groups[1].map.tolist() == [[1, 2]] * 3
    assert rows.offsets.tolist() == [0, 4, 6]
    assert [one.offsets.tolist() for one in rows.groups] == [[0, 2, 3], [0, 2, 4, 6]]


def test_samples_of_data_sets_and_readers_are_read_together(cats, logs):
    order = mix(
        {"cats": Order.of(cats).shuffle(1).repeat(), "logs": logs[10:20]}, {"cats": 2, "logs": 1}
    )
    rows = order.rows(0, 12)
    expected = [
        cats[row] if source == 0 else logs[10 + row]
        for source, row in zip(rows.source, rows.row, strict=True)
    ]
    assert order.__getitems__(range(12)) == expected
    assert order.sources == [cats, order.sources[1]]
    assert [order[k] for k in range(12)] == expected
    twice = interleave(Order.of(cats), Order.of(cats).shuffle())
    assert [one["label"] for one in twice[:6:2]] == [0, 1, 2]


def test_a_filter_reaches_the_data_sets(cats):
    order = Order.of(cats).shuffle(1).map(lambda row: row["label"]).repeat(2)
    kept = order.filter(lambda label: label >= 27, "label")
    assert sorted(kept) == [27, 27, 28, 28, 29, 29]
    some = Order.of(cats, [3, 5, 7]).filter(lambda label: label > 3, "label")
    assert [row["label"] for row in some] == [5, 7]
    for step, name in (
        (order.take(3), r"take\(3\)"),
        (order.skip(3), r"skip\(3\)"),
        (order[2:8], r"\[2:8:1\]"),
        (order.shard(0, 2), r"shard\(rank=0, world=2\)"),
        (order.batch(4), r"batch\(size=4\)"),
        (Order.of(cats).pack("frames", 9), r"pack\("),
    ):
        with pytest.raises(TypeError, match=rf"filter goes before {name}"):
            step.filter(lambda label: label > 3, "label")
    with pytest.raises(TypeError, match=r"filter requires.*list\(3 rows\) is not a data set"):
        Order.of([1, 2, 3]).filter(lambda label: label > 3, "label")


def test_windows_are_cut_from_sequences(cats):
    windows = Order.of(cats).window("frames", 3, 2)
    assert len(windows) == sum((k % 7 - 3) // 2 + 1 for k in range(30) if k % 7 >= 3)
    for k, sample in enumerate(windows):
        rows = windows.rows(k, k + 1)
        (row,), (start,), (stop,) = rows.row, rows.start, rows.stop
        assert stop - start == 3
        assert sample == {"label": row, "frames": cats[row]["frames"][start:stop]}
    parts = Order.of(cats).window("frames", 4, partial=True)
    rebuilt = {}
    for sample in parts:
        rebuilt.setdefault(sample["label"], []).extend(sample["frames"])
    assert rebuilt == {k: cats[k]["frames"] for k in range(30) if k % 7}
    assert list(Order.of([[0, 1, 2]]).window([3], 1, 5, partial=True)) == [[0]]
    assert list(Order.of([[0, 1, 2], [3]]).window([3, 1], 1, 2, partial=True)) == [[0], [2], [3]]
    texts = ["abcde", "", "xyz"]
    assert list(Order.of(texts).window([5, 0, 3], 2)) == ["ab", "cd", "xy"]
    shuffled = Order.of(texts).shuffle(1).window([5, 0, 3], 2).shuffle(0).repeat(2)
    assert sorted(shuffled) == ["ab", "ab", "cd", "cd", "xy", "xy"]


def test_packs_hold_each_row_once(cats):
    order = Order.of(cats).shuffle(1).pack("frames", 8)
    sizes = [sum(len(row["frames"]) for row in pack) for pack in order]
    assert max(sizes) <= 8
    assert sum(sizes) == sum(k % 7 for k in range(30))
    assert sorted(row["label"] for pack in order for row in pack) == list(range(30))
    assert len(order) <= 13
    over = order.shuffle(2).repeat()
    first, second = (over.rows(k * len(order), (k + 1) * len(order)) for k in (0, 1))
    assert sorted(first.row) == sorted(second.row)
    assert first.row.tolist() != second.row.tolist()


def test_rows_longer_than_a_pack_are_rejected_cut_or_dropped(cats):
    with pytest.raises(ValueError, match=r"is 6 long, a pack at most 5: long=\"cut\" cuts"):
        Order.of(cats).pack("frames", 5)
    dropped = Order.of(cats).pack("frames", 5, long="drop")
    assert sorted(row["label"] for pack in dropped for row in pack) == [
        k for k in range(30) if k % 7 < 6
    ]
    pieces = Order.of(cats).pack("frames", 2, long="cut")
    rebuilt = [frame for pack in pieces for row in pack for frame in row["frames"]]
    assert sorted(rebuilt) == sorted(frame for row in cats for frame in row["frames"])
    assert max(sum(len(row["frames"]) for row in pack) for pack in pieces) == 2
    assert list(Order.of(["abcde"]).pack([5], 2, long="cut")) == [["ab"], ["cd"], ["e"]]
    with pytest.raises(ValueError, match="too many pieces"):
        Order.of(["abcde"]).pack([LAST], 1, long="cut")
    with pytest.raises(ValueError, match="long is"):
        Order.of(["abcde"]).pack([5], 2, long="keep")


def test_an_order_pickles_in_a_kilobyte_and_its_sources(cats):
    order = Order.of(cats).shuffle(1).repeat().map(noisy).shard(1, 4).batch(8)
    assert len(pickle.dumps(order)) - len(pickle.dumps(cats)) < 1000
    packed = Order.of(cats).pack("frames", 9).shuffle(3).repeat()
    assert len(pickle.dumps(packed)) - len(pickle.dumps(cats)) < 1000
    assert pickle.loads(pickle.dumps(packed))[7] == packed[7]  # noqa: S301


def test_an_order_tells_its_composition(cats, logs):
    order = Order.of(cats).shuffle(0).repeat().map(noisy)
    chain = "Dataset('cats', 30 rows) -> shuffle(seed=0) -> repeat() -> map(noisy)"
    assert repr(order) == chain
    both = mix({"a": order, "b": Order.of(logs).repeat()}, {"a": 0.75, "b": 0.25}).take(5)
    assert repr(both) == (
        f"mix({{'a': 3, 'b': 1}}) -> take(5)\n  a: {chain}\n"
        "  b: Reader('logs.ingot', 50 rows) -> repeat()"
    )
    assert repr(Order.of(range(2000))[4:1:-1]) == "range(2,000 rows) -> [4:1:-1]"
    changing = mix({"a": order}, [(0, {"a": 1}), (9, {"a": 2})])
    assert repr(changing).startswith("mix([(0, {'a': 1}), (9, {'a': 1})])")
    assert repr(Order.of([1]).map(functools.partial(double))).endswith("map(double)")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (
            Order.of(range(9)).shuffle(1).repeat(),
            Order.of(range(9)).shuffle(2).repeat(3),
            ("shuffle(seed=1)", "shuffle(seed=2)"),
        ),
        (
            Order.of(range(9)),
            Order.of(range(8)).shuffle(),
            ("range(9 rows)", "range(8 rows)"),
        ),
        (Order.of(range(9)), Order.of(range(9)).take(4), ("nothing more", "take(4)")),
        (
            mix({"a": range(3), "b": range(3)}, {"a": 1, "b": 1}),
            mix({"a": range(3), "b": range(4)}, {"a": 1, "b": 1}),
            ("range(3 rows)", "range(4 rows)"),
        ),
        (
            concat(range(3)),
            concat(range(3), range(3)),
            ("concat() of 1 part", "concat() of 2 parts"),
        ),
        (
            Order.of(range(9)).map(double),
            Order.of(range(9)).map(double, seed=1),
            ("map(double) with seed 0", "map(double) with seed 1"),
        ),
    ],
)
def test_the_first_difference_of_two_orders_is_reported(one, other, expected):
    assert difference(one.describe(), other.describe()) == expected
    assert one.fingerprint != other.fingerprint


def test_which_rows_a_data_set_has_is_part_of_its_fingerprint(cats):
    orders = [Order.of(one) for one in (cats, cats[:20], cats[10:], cats.take([3, 1]))]
    orders += [Order.of(cats, [3, 1]), Order.of(cats, [1, 3])]
    assert len({one.fingerprint for one in orders}) == len(orders)


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda: Order.of(5), TypeError, "an order is made of a sequence, not of int"),
        (lambda: Order.of("abc"), TypeError, "got a path: ingot.open('abc') opens it"),
        (lambda: ingot.concat("abc"), TypeError, "got a path: ingot.open('abc') opens it"),
        (lambda: ingot.mix({"a": "b"}, {"a": 1}), TypeError, "ingot.open('b') opens it"),
        (lambda: Order.of(iter([1])), TypeError, "not of list_iterator: list(...) makes one"),
        (lambda: Order(range(3)), TypeError, "call Order.of(source) to make an order of range"),
        (lambda: Order.of([1], [1]), ValueError, "row 1 is not in a source of 1 row"),
        (lambda: Order.of([1], [-1]), ValueError, "row -1 is not in a source of 1 row"),
        (lambda: Order.of([1], [0.5]), TypeError, "rows are integers, got float64"),
        (lambda: Order.of([1])[1], IndexError, "position 1 is out of range for an order of 1"),
        (lambda: Order.of([1])[-2], IndexError, "position -2 is out of range for an order of 1"),
        (lambda: Order.of([1])["a"], TypeError, "positions are integers or slices, not str"),
        (lambda: Order.of([1])[::0], ValueError, "slice step cannot be zero"),
        (lambda: Order.of([1]).rows(0, 2), IndexError, "position 1 is out of range"),
        (lambda: Order.of([1]).rows(1, 0), IndexError, "expected 0 <= start <= stop, got 1 and 0"),
        (lambda: Order.of([1]).shuffle(-1), ValueError, "a seed is at least 0 and below 2^64"),
        (lambda: Order.of([1]).shuffle(2**64), ValueError, "a seed is at least 0"),
        (lambda: Order.of([1]).shuffle("x"), TypeError, "a seed is an integer, not 'x'"),
        (lambda: Order.of([1]).shuffle(seed=True), TypeError, "a seed is an integer, not True"),
        (lambda: Order.of([1]).repeat(times=True), TypeError, "times is an integer, not True"),
        (lambda: Order.of([1]).repeat(1.5), TypeError, "times is an integer, not 1.5"),
        (lambda: Order.of([1]).repeat(-1), ValueError, "times is at least 0 and below 2^63"),
        (lambda: Order.of([1]).repeat().repeat(), ValueError, "this one is infinite already"),
        (
            lambda: Order.of([1]).repeat().shuffle(),
            ValueError,
            "shuffle needs an order with an end: the order is infinite; take(n) before it, or",
        ),
        (lambda: Order.of([1, 2]).repeat(2**62), ValueError, "at most 2^63 - 1 positions"),
        (lambda: Order.of([1]).shard(0, 0), ValueError, "0 <= rank < world, got rank 0 of 0"),
        (lambda: Order.of([1]).shard(4, 4), ValueError, "0 <= rank < world, got rank 4 of 4"),
        (lambda: Order.of([1]).shard(-1, 4), ValueError, "0 <= rank < world, got rank -1 of 4"),
        (lambda: Order.of([1]).take(-1), ValueError, "n is at least 0 and below 2^63, got -1"),
        (lambda: Order.of([1]).skip(2**63), ValueError, "n is at least 0 and below 2^63"),
        (lambda: Order.of([1]).map(5), TypeError, "map expects a function, not int"),
        (lambda: Order.of([1]).shard(0, 2**63), ValueError, "world is at least 1 and below 2^63"),
        (
            lambda: mix({"a": [1]}, [(0, {"a": 1}), (2**70, {"a": 1})]),
            ValueError,
            "positions are below 2^63, got 1180591620717411303424",
        ),
        (lambda: Order.of([1]).pack([1], 2**32), ValueError, "is 1 to 2^32 - 1, not 4294967296"),
        (lambda: Order.of([1]).batch(0), ValueError, "size is at least 1 and below 2^63, got 0"),
        (lambda: Order.of([1]).batch(2**40), ValueError, "a batch has 1 to 16777216 samples"),
        (concat, ValueError, "expected at least one order"),
        (
            lambda: concat(Order.of([1]).repeat(), [2]),
            ValueError,
            "only the last part of a concatenation may be infinite",
        ),
        (
            lambda: concat(Order.of([1]).batch(1), [2]),
            ValueError,
            "expected parts that all have single samples, or all have batches",
        ),
        (lambda: mix({}, {}), ValueError, "a mix has at least one part"),
        (lambda: mix([[1]], {}), TypeError, "a mix is made of a dict of names and orders"),
        (lambda: mix({"a": [1]}, {}), ValueError, "expected a weight for each of ['a'], got"),
        (lambda: mix({"a": [1]}, {"a": 0}), ValueError, "the weights of ['a'] are all 0"),
        (lambda: mix({"a": [1]}, {"a": -1}), ValueError, "the weight of 'a' is -1, expected"),
        (lambda: mix({"a": [1]}, {"a": float("nan")}), ValueError, "the weight of 'a' is nan"),
        (lambda: mix({"a": [1]}, {"a": float("inf")}), ValueError, "the weight of 'a' is inf"),
        (lambda: mix({"a": [1]}, {"a": "much"}), ValueError, "the weight of 'a' is 'much'"),
        (lambda: mix({"a": [1]}, 5), TypeError, "weights are a dict of names and numbers"),
        (lambda: mix({"a": [1]}, [(1, {"a": 1})]), ValueError, "begin with 0 and go up, got [1]"),
        (lambda: mix({"a": [1]}, []), ValueError, "begin with 0 and go up, got []"),
        (
            lambda: mix({"a": [1]}, [(0, {"a": 1}), (0, {"a": 1})]),
            ValueError,
            "begin with 0 and go up, got [0, 0]",
        ),
        (
            lambda: Order.of(["ab"]).window([float("nan")], 1),
            TypeError,
            "lengths are integers, got float64",
        ),
        (
            lambda: Order.of(["ab"]).window([-1], 1),
            ValueError,
            "the length of row 0 of source 0 is -1",
        ),
        (
            lambda: Order.of(["ab", "c"]).window([2], 1),
            ValueError,
            "expected a length for each row, got 1, but row 1 of source 0 is in the order",
        ),
        (
            lambda: Order.of(["ab", "c"]).window([LAST, LAST], 1),
            ValueError,
            "at most 2^63 - 1 positions",
        ),
        (lambda: Order.of(["ab"]).window([2], 0), ValueError, "length is at least 1"),
        (lambda: Order.of(["ab"]).window([2], 1, 0), ValueError, "stride is at least 1"),
        (lambda: Order.of(["ab"]).window("x", 1), TypeError, "list has no field 'x'"),
        (
            lambda: concat(["ab"], ["c"]).window([2, 1], 1),
            ValueError,
            "expected an array of lengths for each of 2 sources",
        ),
        (
            lambda: Order.of(["ab"]).batch(2).pack([2], 3),
            ValueError,
            "pack needs whole rows; it goes before batch, window and pack",
        ),
        (lambda: Order.of(["ab"]).repeat().pack([2], 3), ValueError, "pack needs an order with"),
        (lambda: Order.of(["ab"]).pack([2], 0), ValueError, "max_length is at least 1"),
    ],
)
def test_invalid_arguments_raise_with_a_reason(wrong, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        wrong()


def test_the_fields_to_cut_must_be_sequences(cats):
    with pytest.raises(TypeError, match="expected the names of the sequences to cut"):
        Order.of(cats).window(cats.lengths("frames"), 2)
    with pytest.raises(TypeError, match="field 'label' is int, expected a sequence"):
        Order.of(cats).window("frames", 2, fields=["label"])
    with pytest.raises(KeyError, match="nothing"):
        Order.of(cats).window("nothing", 2)
    named = Order.of(cats).window(cats.lengths("frames"), 2, fields="frames")
    assert list(named) == list(Order.of(cats).window("frames", 2))


def test_too_many_positions_at_once_are_rejected():
    order = Order.of(range(2**40)).shuffle()
    with pytest.raises(ValueError, match="more than 134217728 rows; ask for fewer"):
        order.rows(0, 2**40)
    assert len(order.rows(2**39, 2**39 + 5)) == 5


def golden_orders():
    large = Order.of(range(10**9)).shuffle(3)
    small = Order.of(range(10)).shuffle(0).map(noisy)
    third = Order.of(range(3000)).shuffle(2**64 - 1).repeat(4)
    lengths = [(k * 7919) % 13 for k in range(40)]
    rows = Order.of([list(range(n)) for n in lengths])
    parts = {"large": large.repeat(), "small": small.repeat(), "third": third.repeat()}
    weights = [(0, {"large": 5, "small": 2, "third": 1}), (9, {"large": 1, "small": 1, "third": 9})]
    return {
        "large": large,
        "small": small.repeat(),
        "third": third.repeat().skip(2998),
        "interleaved": interleave(range(3), small, third).shard(1, 3),
        "mixed": mix(parts, weights).map(noisy, seed=5),
        "windows": rows.window(lengths, 4, 3).shuffle(1).repeat(),
        "packs": rows.shuffle(6).pack(lengths, 16).shuffle(1).repeat().batch(2),
        "twins": concat(interleave(small, small), third[:2], small.repeat(2)).shuffle(1),
        "packed parts": interleave(*[rows.shuffle(6).pack(lengths, 16).shuffle(1)] * 2),
    }


@pytest.mark.parametrize("name", golden_orders())
def test_orders_never_change(name):
    order = golden_orders()[name]
    expected = json.loads((GOLDEN / "v2.json").read_text())[name]
    assert order.fingerprint == expected.pop("fingerprint")
    assert told(order) == expected


@pytest.mark.parametrize("name", json.loads((GOLDEN / "v1.json").read_text()))
def test_orders_without_parts_match_algorithm_version_1(name):
    order = golden_orders()[name]
    first = json.loads((GOLDEN / "v1.json").read_text())[name]
    found = {"fingerprint": order.fingerprint, **told(order)}
    if name in {"interleaved", "mixed"}:
        assert found["row"] != first["row"]
        assert found["fingerprint"] != first["fingerprint"]
        assert found["source"] == first["source"]
    else:
        assert found == first


@pytest.mark.parametrize("rows", [60, 3000])
def test_parts_with_equal_lengths_and_seeds_have_orders_of_their_own(rows):
    source = Order.of(range(rows)).shuffle(seed=0)
    alone = list(source)
    parts = dict.fromkeys("abc", source)
    for order in (mix(parts, dict.fromkeys(parts, 1)), interleave(*parts.values())):
        found = [list(order)[k::3] for k in range(3)]
        assert found[0] == alone
        assert found[1] != alone
        assert found[2] not in (alone, found[1])
        assert sorted(found[1]) == sorted(found[2]) == list(range(rows))
    joined = list(concat(source, source))
    assert joined[:rows] == alone != joined[rows:]


def test_the_description_of_parts_names_the_algorithm_of_the_order():
    order = concat(range(3), range(4))
    assert order.describe()["algorithm"] == 2
    assert str(order).startswith("concat()\n")
    old = {key: value for key, value in order.describe().items() if key != "algorithm"}
    assert difference(old, order.describe()) == (
        "concat() with algorithm None",
        "concat() with algorithm 2",
    )


def told(order):
    rows = order.rows(0, min(16, len(order)) if not order.is_infinite else 16)
    columns = ("source", "row", "epoch", "map", "key", "start", "stop", "offsets")
    found = {name: getattr(rows, name) for name in columns}
    return {name: one.tolist() for name, one in found.items() if one is not None and one.size}


def test_a_data_set_that_is_there_twice_is_cut_where_it_is_cut(cats):
    both = interleave(cats, Order.of(cats).window("frames", length=2), cats)
    windows = [row["frames"] for row in both][1:60:3]
    assert windows[:4] == [["2/0", "2/1"], ["3/0", "3/1"], ["4/0", "4/1"], ["4/2", "4/3"]]
    assert [both[k]["frames"] for k in (0, 3, 6, 9)] == [cats[k]["frames"] for k in range(4)]


def test_steps_beyond_every_number_leave_one_sample():
    order = Order.of(range(5))
    assert [list(order[:: 2**70]), list(order[:: -(2**70)]), list(order[1 :: 2**63])] == [
        [0],
        [4],
        [1],
    ]


@pytest.mark.parametrize("combine", [ingot.concat, ingot.interleave])
def test_orders_in_a_list_are_rejected(combine):
    orders = [ingot.Order.of(range(3)), ingot.Order.of(range(4)).shuffle()]
    name = combine.__name__
    with pytest.raises(TypeError, match=rf"one by one: ingot\.{name}\(\*orders\)"):
        combine(orders)
    assert len(combine(*orders)) == 7
    assert list(combine([1, 2])) == [1, 2]
