"""Steps that the caller waits for are read together, and each still fails alone."""

from collections.abc import Sequence

import numpy as np
import pytest

import ingot

BATCH = 10


class Counted(Sequence):
    """Numbers that tell how they were read."""

    def __init__(self, length, bad=()):
        self._length = length
        self._bad = set(bad)
        self.reads = []

    def __len__(self):
        return self._length

    def __getitem__(self, index):
        raise NotImplementedError

    def __getitems__(self, indices):
        self.reads.append(len(indices))
        if self._bad.intersection(indices.tolist()):
            message = "this row is bad"
            raise ingot.CorruptFileError(message)
        return indices.tolist()


def test_the_first_batch_is_read_alone_and_others_together():
    source = Counted(17 * BATCH)
    with ingot.Loader(source, BATCH, workers=1, prefetch=8) as loader:
        found = np.concatenate(list(loader))
    assert found.tolist() == list(range(17 * BATCH))
    assert source.reads == [BATCH, 8 * BATCH, 8 * BATCH]


def test_rows_of_many_sources_are_put_back_to_their_steps(tmp_path):
    for name in "ab":
        with ingot.DatasetWriter(tmp_path / name, {"x": "utf8"}, sync=False) as writer:
            writer.extend({"x": f"{name}{k}"} for k in range(60))
    records = Counted(60)
    a, b = (ingot.open(tmp_path / name) for name in "ab")
    order = ingot.interleave(a, ingot.Order.of(records), b.shuffle(seed=1))
    expected = list(order.batch(9))
    collate = {"collate": lambda samples: samples}
    with ingot.Loader(order, 9, workers=2, prefetch=9, **collate) as loader:
        assert list(loader) == expected


@pytest.mark.parametrize("workers", [1, 3])
def test_a_bad_row_costs_its_own_step_alone(workers):
    source = Counted(200, bad=[57, 58, 120])
    with ingot.Loader(source, BATCH, workers=workers, prefetch=8) as loader:
        found, failed = [], []
        batches = iter(loader)
        while loader.step < 20:
            step = loader.step
            try:
                found.append(next(batches).tolist())
            except ingot.WorkerError as error:
                failed.append((error.step, step))
                loader.seek(step + 1)
    assert failed == [(5, 5), (12, 12)]
    assert found == [
        list(range(first, first + BATCH))
        for first in range(0, 200, BATCH)
        if first not in (50, 120)
    ]


def test_a_bad_row_among_steps_that_are_read_together_is_replaced_as_alone():
    def read(**options):
        source = Counted(200, bad=[57, 58, 120])
        with ingot.Loader(source, BATCH, on_error="substitute", **options) as loader:
            return [batch.tolist() for batch in loader], loader.errors

    assert read(workers=1, prefetch=16) == read(workers=0)
