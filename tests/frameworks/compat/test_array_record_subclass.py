"""Subclasses of the data source do what they do with the real package."""

import grain
import pytest
from array_record.python import array_record_data_source as real

from ingot.compat.array_record import array_record_data_source, array_record_module

BOTH = pytest.mark.parametrize("package", [real, array_record_data_source], ids=["real", "here"])
PARTS = pytest.mark.parametrize("part", ["", "[2:6]"], ids=["whole", "part"])


@pytest.fixture
def path(tmp_path):
    with array_record_module.ArrayRecordWriter(tmp_path / "x.array_record") as writer:
        for k in range(8):
            writer.write(b"%d" % k)
    return str(tmp_path / "x.array_record")


def numbers(package):
    class Numbers(package.ArrayRecordDataSource):
        def __getitem__(self, record_key):
            return 10 * int(super().__getitem__(record_key))

    return Numbers


@BOTH
@PARTS
def test_own_items_are_iterated_and_batched_by_grain(package, path, part):
    source = numbers(package)(path + part)
    expected = [10 * int(k) for k in package.ArrayRecordDataSource(path + part)]
    assert list(source) == expected
    batches = grain.MapDataset.source(source).batch(2)
    assert [k for batch in batches for k in batch] == expected
    assert grain.MapDataset.source(source)._getitems([3, 1]) == [expected[3], expected[1]]


@BOTH
@PARTS
def test_a_batch_of_the_source_itself_is_that_of_the_files(package, path, part):
    keys = [3, 1]
    raw = [package.ArrayRecordDataSource(path + part)[key] for key in keys]
    assert numbers(package)(path + part).__getitems__(keys) == raw


@BOTH
@PARTS
def test_an_item_may_be_made_of_a_batch(package, path, part):
    class Numbers(package.ArrayRecordDataSource):
        def __getitem__(self, record_key):
            return int(super().__getitems__([record_key])[0])

    first = 2 if part else 0
    assert list(Numbers(path + part))[:2] == [first, first + 1]


@BOTH
@PARTS
def test_own_batches_leave_items_alone(package, path, part):
    class Numbers(package.ArrayRecordDataSource):
        def __getitems__(self, record_keys):
            return [int(record) for record in super().__getitems__(record_keys)]

    source = Numbers(path + part)
    first = 2 if part else 0
    assert source[1] == b"%d" % (first + 1)
    assert source.__getitems__([1]) == [first + 1]
    assert list(source)[:1] == [b"%d" % first]
