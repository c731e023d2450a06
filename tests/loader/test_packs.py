"""Packs of sequences become padded arrays."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from ingot.loader import collate_packs

LENGTH = 12


def row(values):
    return {"tokens": np.array(values, np.uint16), "weights": np.array(values, np.float32) / 2}


def expected(packs, length, pad):
    """Return what `collate_packs` promises, element by element."""
    batch = {"tokens": [], "weights": [], "segment_ids": [], "positions": []}
    for pack in packs:
        line = [
            (token, weight, number, place)
            for number, one in enumerate((one for one in pack if len(one["tokens"])), 1)
            for place, (token, weight) in enumerate(
                zip(one["tokens"].tolist(), one["weights"].tolist(), strict=True)
            )
        ]
        line += [(pad["tokens"], pad["weights"], 0, 0)] * (length - len(line))
        for key, column in zip(batch, zip(*line, strict=True), strict=True):
            batch[key].append(list(column))
    return batch


rows_of_pack = st.lists(
    st.lists(st.integers(0, 65_535), max_size=4).map(row), min_size=1, max_size=LENGTH // 4
)


@settings(max_examples=200, deadline=None)
@given(packs=st.lists(rows_of_pack, min_size=1, max_size=6))
def test_any_packs_are_put_side_by_side(packs):
    pad = {"tokens": 7, "weights": -1.5}
    batch = collate_packs(packs, ["tokens", "weights"], LENGTH, pad)
    assert {key: value.tolist() for key, value in batch.items()} == expected(packs, LENGTH, pad)
    assert [value.dtype for value in batch.values()] == [np.uint16, np.float32, np.int32, np.int32]
    assert all(value.shape == (len(packs), LENGTH) for value in batch.values())


def test_elements_may_be_arrays():
    rows = [{"x": np.arange(6).reshape(3, 2)}, {"x": np.full((1, 2), 9)}]
    batch = collate_packs([rows], "x", 5, pad=-1)
    assert batch["x"].tolist() == [[[0, 1], [2, 3], [4, 5], [9, 9], [-1, -1]]]


@pytest.mark.parametrize("long", ["drop", "cut"])
def test_a_loader_gives_padded_packs_of_all_tokens(tmp_path, long):
    check_packs(tmp_path, long, to="numpy")


def check_packs(tmp_path, long, *, to):
    """Check that the packs of a loader have all tokens, as arrays or tensors."""
    rng = np.random.default_rng(0)
    with ingot.DatasetWriter(tmp_path / "x", {"tokens": "int[]", "id": "int"}) as writer:
        for k in range(300):
            writer.append({"tokens": rng.integers(1, 999, rng.integers(0, 90)), "id": k})
    ds = ingot.open(tmp_path / "x")
    order = ds.shuffle(0).pack("tokens", max_length=64, long=long).shuffle(1)
    collate = partial(collate_packs, fields="tokens", length=64)
    found = []
    for batch in ingot.Loader(order, 8, drop_last=False, collate=collate, to=to, workers=2):
        assert batch["tokens"].shape[1:] == (64,)
        found.append(np.asarray(batch["tokens"])[np.asarray(batch["segment_ids"]) > 0])
    kept = ds.lengths("tokens") <= 64 if long == "drop" else np.ones(len(ds), bool)
    stored = np.concatenate([row["tokens"] for row in ds.where(kept)])
    assert sorted(np.concatenate(found).tolist()) == sorted(stored.tolist())


@pytest.mark.parametrize(
    ("packs", "fields", "error", "match"),
    [
        ([[row([1] * 13)]], "tokens", ValueError, "a pack has 13 elements: expected at most"),
        ([row([1])], "tokens", TypeError, "expected packs, which are lists of rows, got dict"),
        ([[[1, 2]]], "tokens", TypeError, r"expected rows with the fields \['tokens'\], got list"),
        ([[row([1])]], "text", TypeError, r"\['text'\], got \['tokens', 'weights'\]"),
        ([[row([1])]], [], ValueError, "expected the names of sequences"),
        ([[row([1])]], "positions", ValueError, "other than segment_ids and positions"),
        (
            [[{"a": [1, 2], "b": [1]}]],
            ["a", "b"],
            ValueError,
            "'b' has 1 elements in a row in which another one has 2",
        ),
    ],
)
def test_invalid_packs_are_rejected(packs, fields, error, match):
    with pytest.raises(error, match=match):
        collate_packs(packs, fields, LENGTH)
