"""HDF5 files in the workers of PyTorch's loader."""

import pytest
import torch
from torch.utils.data import DataLoader

from tests.formats.hdf5.test_faults import check, make


def check_in_worker(rows):
    assert torch.utils.data.get_worker_info() is not None
    return check(rows)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_every_start_method_read_the_same(tmp_path, method):
    ds = make(tmp_path / "x.h5", 100)
    assert check([ds[7], ds[99]]) == [7, 99]
    for part, labels in ((ds, range(100)), (ds[10:90:3], range(10, 90, 3))):
        loader = DataLoader(
            part,
            batch_size=8,
            num_workers=2,
            collate_fn=check_in_worker,
            multiprocessing_context=method,
        )
        assert [label for batch in loader for label in batch] == list(labels)
        assert check([ds[3]]) == [3]
