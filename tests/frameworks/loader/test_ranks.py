"""Ranks of torch.distributed, and of PyTorch's own loader."""

import json
import subprocess
import sys

import pytest
import torch

import ingot
import ingot.torch
from tests.loader.test_ranks import check_ranks


def test_ranks_come_from_torch_distributed(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 2)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    loader = ingot.Loader(range(8), 8)
    assert (loader.rank, loader.world) == (2, 4)
    assert "rank 2 of 4 (torch.distributed)" in repr(loader)


@pytest.mark.parametrize("length", range(1, 26))
def test_every_rank_has_every_step_and_every_sample_is_seen(length):
    check_ranks(ingot.torch.DataLoader, length)


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
