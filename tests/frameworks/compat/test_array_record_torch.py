"""ArrayRecord's data source, read by PyTorch."""

import multiprocessing

import pytest
import torch.utils.data

from ingot.compat.array_record.array_record_data_source import ArrayRecordDataSource
from tests.compat.array_record.test_data_source import DIGITS, digits  # noqa: F401


def test_tensors_are_indices(digits):
    source = ArrayRecordDataSource(digits)
    assert source[torch.tensor([7, 3])] == [b"7", b"3"]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_data_loaders_of_pytorch_read_in_their_workers(digits, method):
    source = ArrayRecordDataSource([*digits, f"{digits[0]}[2:4]"])
    assert source[11] == b"3"
    loader = torch.utils.data.DataLoader(
        source,
        batch_size=5,
        num_workers=2,
        collate_fn=list,
        multiprocessing_context=multiprocessing.get_context(method),
    )
    batches = list(loader)
    assert batches == [DIGITS[:5], DIGITS[5:], [b"2", b"3"]]
