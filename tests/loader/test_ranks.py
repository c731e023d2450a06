"""Each rank reads its own part of every batch."""

import numpy as np
import pytest

import ingot


def test_ranks_come_from_the_environment(monkeypatch):
    alone = ingot.Loader(range(9), 4)
    assert (alone.rank, alone.world) == (0, 1)
    assert "rank 0 of 1 (no ranks found)" in repr(alone)
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(ValueError, match="RANK=1, WORLD_SIZE=: expected two integers"):
        ingot.Loader(range(9), 4)
    monkeypatch.setenv("WORLD_SIZE", "3")
    loader = ingot.Loader(range(9), global_batch_size=4)
    assert (loader.rank, loader.world) == (1, 3)
    assert "rank 1 of 3 (RANK and WORLD_SIZE)" in repr(loader)
    assert loader.batch(0).tolist() == [1]
    assert ingot.Loader(range(9), 2).batch(0).tolist() == [2, 3]
    assert ingot.Loader(range(9), 4, shard=None).batch(0).tolist() == [0, 1, 2, 3]
    given = ingot.Loader(range(9), global_batch_size=4, shard=(2, 3))
    assert given.batch(0).tolist() == [2, 3]
    assert "rank 2 of 3 (given)" in repr(given)


@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_a_batch_has_batch_size_samples_on_each_rank(world):
    loaders = [ingot.Loader(range(60), 4, shard=(rank, world)) for rank in range(world)]
    assert {(one.batch_size, one.global_batch_size) for one in loaders} == {(4, 4 * world)}
    assert {len(one) for one in loaders} == {-(-60 // (4 * world))}
    steps = [np.concatenate(parts) for parts in zip(*loaders, strict=True)]
    assert np.concatenate(steps).tolist() == list(range(60))


def test_a_global_batch_is_shared_among_ranks():
    loaders = [ingot.Loader(range(60), global_batch_size=10, shard=(rank, 3)) for rank in range(3)]
    assert [one.batch_size for one in loaders] == [3, 3, 4]
    assert {one.global_batch_size for one in loaders} == {10}
    assert [one.batch(1).tolist() for one in loaders] == [
        [10, 11, 12],
        [13, 14, 15],
        [16, 17, 18, 19],
    ]


@pytest.mark.parametrize("length", range(1, 26))
def test_every_rank_has_every_step_and_every_sample_is_seen(length):
    check_ranks(ingot.Loader, length)


def check_ranks(make, length):
    """Check what five ranks read of `length` samples."""
    loaders = [make(range(length), 2, shard=(rank, 5)) for rank in range(5)]
    found = [[batch.tolist() for batch in one] for one in loaders]
    assert {len(batches) for batches in found} == {-(-length // 10)}
    assert {sample for batches in found for one in batches for sample in one} == set(range(length))
    last = [batches[-1] for batches in found]
    assert max(map(len, last)) - min(map(len, last)) <= 1
    rest = length % 10
    if 0 < rest < 5:
        assert [one - (length - rest) for (one,) in last] == [rank % rest for rank in range(5)]
    else:
        assert sum(map(len, last)) == (rest or 10)
