"""Each rank reads its own part of every batch."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import ingot
import ingot.torch


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


def test_ranks_come_from_torch_distributed(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    loader = ingot.Loader(range(8), 8)
    assert (loader.rank, loader.world) == (2, 4)
    assert "rank 2 of 4 (torch.distributed)" in repr(loader)


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


@pytest.mark.parametrize("kind", ["ingot", "torch"])
@pytest.mark.parametrize("length", range(1, 26))
def test_every_rank_has_every_step_and_every_sample_is_seen(length, kind):
    make = ingot.Loader if kind == "ingot" else ingot.torch.DataLoader
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


TRAINED = """
import sys, torch.distributed, ingot
rank, store = int(sys.argv[1]), sys.argv[2]
torch.distributed.init_process_group(
    "gloo", init_method=f"file://{store}", rank=rank, world_size=2
)
loader = ingot.Loader(ingot.open(sys.argv[3]).shuffle(6), 5, to="torch")
for batch in loader:
    parts = [torch.empty(5, dtype=torch.int64) for _ in range(2)]
    torch.distributed.all_gather(parts, batch["label"])
    print(torch.cat(parts).tolist())
torch.distributed.destroy_process_group()
"""


def test_ranks_of_torch_distributed_share_each_batch(folder, tmp_path, cats):
    command = [sys.executable, "-c", TRAINED]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "store"), str(folder / "cats")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    found = [one.communicate(timeout=120)[0] for one in ranks]
    assert [one.returncode for one in ranks] == [0, 0]
    expected = [batch["label"].tolist() for batch in ingot.Loader(cats.shuffle(6), 10)]
    assert [list(map(json.loads, one.splitlines())) for one in found] == [expected] * 2
