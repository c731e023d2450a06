"""Batches of a loader: columns, collated samples, tensors, epochs."""

import pickle
import re
from collections import namedtuple

import numpy as np
import pytest

import ingot
from ingot.loader import LoaderStats
from tests.loader.batches import ROWS, label_of, plain, run

Pair = namedtuple("Pair", "a b")  # noqa: PYI024 -- as old code has them


def test_a_batch_of_a_data_set_has_its_columns(cats):
    loader = ingot.Loader(cats.shuffle(1), 8, drop_last=True)
    for step, batch in enumerate(loader):
        rows = loader.indices(step).row
        expected = cats[rows]
        assert batch.keys() == expected.keys()
        assert batch["label"].tolist() == rows.tolist()
        assert (batch["image"] == expected["image"]).all()
        assert batch["image"].shape == (8, 2, 3)
        assert batch["words"] == expected["words"]
        assert batch["deep"]["x"].tolist() == (rows / 2).tolist()
    assert step == len(loader) - 1 == 6


def test_columns_equal_collated_rows(cats, dogs):
    orders = [
        cats.shuffle(0),
        ingot.mix({"c": cats.repeat(), "d": dogs.shuffle(1).repeat()}, {"c": 1, "d": 2}),
        cats.window("words", length=2).shuffle(2),
        ingot.concat(cats.select("label", "words"), dogs.select("words", "label")),
        ingot.interleave(cats, dogs, cats.skip(3)),
        ingot.interleave(cats, cats.window("words", length=2)),
    ]
    for order in orders:
        columns, rows = ingot.Loader(order, 7), ingot.Loader(order.map(dict), 7)
        for step in range(4):
            assert plain(columns.batch(step)) == plain(rows.batch(step))
            assert plain(columns.batch(step)) == plain(ingot.Loader(order, 7).batch(step))


def test_records_and_other_sequences_come_as_lists_or_arrays(logs):
    assert next(iter(ingot.Loader(logs, 3))) == [b"0", b"1", b"2"]
    assert next(iter(ingot.Loader(logs[5:9], 3))) == [b"5", b"6", b"7"]
    assert next(iter(ingot.Loader(range(9), 3))).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([1, 2], np.array([1, 2])),
        ([1, 2.5], np.array([1, 2.5])),
        ([True, False], np.array([True, False])),
        ([1, None], [1, None]),
        ([2**70, 1], [2**70, 1]),
        ([2**63, -1], [2**63, -1]),
        (["a", "b"], ["a", "b"]),
        ([b"a", 1], [b"a", 1]),
        ([np.float32(1), np.float32(2)], np.array([1, 2], np.float32)),
        ([np.zeros(2), np.ones(2)], np.array([[0, 0], [1, 1.0]])),
        ([np.zeros(2), np.ones(3)], [np.zeros(2), np.ones(3)]),
        ([{"a": 1}, {"a": 2}], {"a": np.array([1, 2])}),
        ([(1, "x"), (2, "y")], (np.array([1, 2]), ["x", "y"])),
        ([Pair(1, "x"), Pair(2, "y")], Pair(np.array([1, 2]), ["x", "y"])),
        ([(1,), (2, 3)], [(1,), (2, 3)]),
        ([[1], [2]], [[1], [2]]),
    ],
)
def test_samples_are_collated_by_their_type(samples, expected):
    found = ingot.Loader(samples, 2).batch(0)
    assert type(found) is type(expected)
    assert str(found) == str(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype


def test_a_collate_function_gets_the_samples(cats):
    loader = ingot.Loader(cats.map(label_of), 4, collate=sum)
    assert [loader.batch(0), loader.batch(1)] == [6, 22]


def test_tensors_without_pytorch_say_how_to_get_it():
    code = """
import sys
sys.modules["torch"] = None
import ingot
try:
    ingot.Loader(range(9), 3, to="torch")
except ModuleNotFoundError as error:
    print(error)
"""
    hint = "pip install 'ingot-data[torch]' (in a checkout: pip install '.[torch]')"
    assert run(code).stdout == f'to="torch" requires PyTorch: {hint}\n'


def test_a_loop_is_an_epoch_and_the_next_one_is_shuffled_anew(cats):
    loader = ingot.Loader(cats.shuffle(1).map(label_of), 20)
    first, second = (np.concatenate(list(loader)).tolist() for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(ROWS))
    assert first != second
    assert first == [row["label"] for row in cats.shuffle(1)]
    assert (loader.step, loader.epoch) == (6, 2)


def test_the_last_batch_is_shorter_or_left_out():
    loader = ingot.Loader(range(10), 4)
    assert [len(one) for one in loader] == [4, 4, 2]
    assert len(loader) == 3
    assert next(iter(loader)).tolist() == [0, 1, 2, 3]
    loader = ingot.Loader(range(10), 4, drop_last=True)
    assert [len(one) for one in loader] == [4, 4]
    assert "2 samples of an epoch left out" in repr(loader)


def test_stats_show_what_the_bottleneck_is(cats):
    loader = ingot.Loader(cats.map(dict), 10)
    assert str(loader.stats()).startswith("no batch was handed out yet")
    list(loader)
    stats = loader.stats()
    assert (stats.batches, stats.samples) == (6, 60)
    assert min(stats.read_s, stats.transform_s, stats.collate_s, stats.wait_s) > 0
    assert stats.elapsed_s >= stats.wait_s
    slow = LoaderStats(1, 1, elapsed_s=10, wait_s=5, read_s=1, transform_s=8, collate_s=1)
    assert slow.bottleneck == (
        "the loader is the bottleneck: the training loop waited for data 50% of the time, "
        "and workers spent 80% of theirs in the functions of map"
    )
    fast = LoaderStats(1, 1, elapsed_s=10, wait_s=0.1)
    assert fast.bottleneck == (
        "the training loop is the bottleneck: it waited for data 1% of the time"
    )


def test_a_loader_is_true_and_not_pickled():
    loader = ingot.Loader(ingot.Order.of(range(9)).repeat(), 4)
    assert loader
    with pytest.raises(TypeError, match="pickle its order and its state_dict"):
        pickle.dumps(loader)


def test_a_loader_describes_itself(logs):
    text = repr(ingot.Loader(logs.shuffle(0).repeat(), 16, shard=(1, 4)))
    assert text == (
        "<ingot.Loader at step 0, steps without end of 16 samples on this rank and 64 on all "
        "ranks, rank 1 of 4 (given), of "
        "Reader('logs.ingot', 60 rows) -> shuffle(seed=0) -> repeat()>"
    )


def test_messages_have_no_addresses(cats):
    texts = [repr(ingot.Loader(cats.map(label_of), 4)), str(LoaderStats())]
    assert not any(re.search("0x[0-9a-f]{6}", text) for text in texts)


def test_arrays_of_subclasses_are_stacked_and_masks_are_kept():
    masked = [np.ma.masked_array([k, 1], [True, False]) for k in range(4)]
    matrices = [np.array([[k, 1]]).view(np.matrix) for k in range(4)]
    samples = [
        {"masked": one, "matrix": other} for one, other in zip(masked, matrices, strict=True)
    ]
    batch = next(iter(ingot.Loader(samples, 4)))
    assert [one.mask.tolist() for one in batch["masked"]] == [[True, False]] * 4
    assert batch["matrix"].tolist() == [[[k, 1]] for k in range(4)]
    assert type(batch["matrix"]) is np.ndarray
