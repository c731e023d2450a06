"""FFRecord's data sets and data loader, beside PyTorch's own."""

import inspect
import os
import pickle
import signal
import struct
import subprocess
import sys
import traceback
import zlib
from itertools import accumulate

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    random_split,
)

import ingot
import ingot.compat.ffrecord.torch as fftorch
from ingot.compat import ffrecord
from ingot.compat.ffrecord import FileReader
from tests.support import FAULTS

COUNT = 100
METHODS = ["fork", "spawn", "forkserver"]


def write_ffr(path, samples):
    header = 12 + 12 * len(samples)
    offsets = [header, *accumulate(map(len, samples), initial=header)][1:-1] if samples else []
    index = struct.pack(
        f"<Q{len(samples)}I{len(samples)}Q", len(samples), *map(zlib.crc32, samples), *offsets
    )
    path.write_bytes(struct.pack("<I", zlib.crc32(index)) + index + b"".join(samples))
    return path


def value(index):
    return index * index


def decode(sample):
    assert isinstance(sample, np.ndarray)
    assert sample.dtype == np.uint8
    return int(sample.tobytes())


ITEMS = [(k, value(k)) for k in range(COUNT)]


class Processing(fftorch.Dataset):
    """The older way: the base class reads, `process` decodes."""

    asked = []  # noqa: RUF012

    def process(self, indices, data):
        self.asked.append(list(indices))
        return [(index, decode(sample)) for index, sample in zip(indices, data, strict=True)]


class Own(fftorch.Dataset):
    """The newer way: no constructor of the base class, everything of its own."""

    asked = []  # noqa: RUF012

    def __init__(self, fname):
        self.file = FileReader(fname)

    def __len__(self):
        return self.file.n

    def __getitem__(self, indices):
        assert isinstance(indices, list)
        self.asked.append(indices)
        samples = self.file.read(indices)
        return [(index, decode(sample)) for index, sample in zip(indices, samples, strict=True)]


class Plain(torch.utils.data.Dataset):
    """The same items as a data set of PyTorch."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return index, value(index)


class Stream(IterableDataset):
    def __len__(self):
        return COUNT

    def __iter__(self):
        return iter(range(COUNT))


def asked_and_pid(batch):
    """Return a batch with the calls that were made for it in this process."""
    calls = Processing.asked + Own.asked
    Processing.asked.clear()
    Own.asked.clear()
    return batch, calls, os.getpid()


def same(batches, others):
    batches, others = list(batches), list(others)
    assert len(batches) == len(others)
    for one, other in zip(batches, others, strict=True):
        assert all(map(torch.equal, one, other))
    return True


def seeded(seed=3):
    return torch.Generator().manual_seed(seed)


def load_until_error(loader):
    """Return the batches before an error, and the error.

    Its traceback would keep the iterator in a cycle, whose workers PyTorch stops only after
    ten seconds.
    """
    batches = []
    try:
        batches.extend(loader)
    except ingot.IngotError as error:
        traceback.clear_frames(error.__traceback__)
        return batches, error.with_traceback(None)
    return batches, None


@pytest.fixture(autouse=True)
def nothing_asked():
    asked_and_pid(None)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    samples = [b"%d" % value(k) for k in range(COUNT)]
    return write_ffr(tmp_path_factory.mktemp("data") / "x.ffr", samples)


@pytest.fixture(params=[Processing, Own])
def dataset(request, path):
    return request.param(path)


def test_the_public_names_are_ffrecords():
    assert fftorch.__all__ == ["ConcatDataset", "DataLoader", "Dataset", "ReaderRegistry", "Subset"]
    for name in fftorch.__all__:
        one = getattr(fftorch, name)
        assert one.__module__ == "ingot.compat.ffrecord.torch"
        assert inspect.getdoc(one)
    assert issubclass(fftorch.Dataset, torch.utils.data.Dataset)
    assert issubclass(fftorch.Dataset, fftorch.ReaderRegistry)
    assert issubclass(fftorch.Subset, fftorch.Dataset)
    assert issubclass(fftorch.ConcatDataset, fftorch.Dataset)
    assert issubclass(fftorch.DataLoader, torch.utils.data.DataLoader)


def test_the_loaders_arguments_are_ffrecords():
    names = (
        "dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory "
        "drop_last timeout worker_init_fn generator"
    )
    defaults = [inspect.Parameter.empty, 1, False, None, None, 0, None, False, False, 0, None, None]
    signature = inspect.signature(fftorch.DataLoader)
    by_place = [one for one in signature.parameters.values() if one.kind != one.KEYWORD_ONLY]
    by_name = [one for one in signature.parameters.values() if one.kind == one.KEYWORD_ONLY]
    assert [one.name for one in by_place] == names.split()
    assert [one.default for one in by_place] == defaults
    assert {one.name: one.default for one in by_name} == {
        "prefetch_factor": 2,
        "persistent_workers": False,
        "skippable": True,
        "multiprocessing_context": None,
    }


def test_pytorch_itself_is_left_alone():
    kinds = torch.utils.data.dataloader._DatasetKind
    assert {name for name in vars(kinds) if not name.startswith("_")} == {
        "Map",
        "Iterable",
        "create_fetcher",
    }
    assert kinds.create_fetcher.__module__ == "torch.utils.data.dataloader"


def test_the_module_is_an_attribute_of_ffrecord():
    program = "from ingot.compat import ffrecord; print(ffrecord.torch.Dataset.__module__)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert found.stdout.strip() == b"ingot.compat.ffrecord.torch"
    with pytest.raises(AttributeError, match="has no attribute 'tensorflow'"):
        _ = ffrecord.tensorflow


def test_ffrecord_without_torch_loads_no_pytorch():
    code = "import sys, ingot.compat.ffrecord\nprint('torch' in sys.modules)"
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert outcome.stdout == "False\n"


class TestDataset:
    def test_a_list_of_indices_gives_a_list_of_items(self, dataset):
        assert len(dataset) == COUNT
        assert dataset[[5, 1, 5]] == [(5, 25), (1, 1), (5, 25)]
        assert dataset[[]] == []

    def test_the_base_class_reads_for_process(self, path):
        dataset = Processing(path, check_data=False)
        assert dataset.fnames == path
        assert isinstance(dataset.reader, FileReader)
        assert dataset.reader.check_data is False
        assert Processing(fnames=[path, str(path)]).reader.n == 2 * COUNT
        assert dataset[(2, 3)] == [(2, 4), (3, 9)]

    @pytest.mark.parametrize("index", [5, slice(0, 3), np.arange(3), torch.arange(3), "12"])
    def test_anything_but_a_list_is_rejected(self, path, index):
        dataset = Processing(path)
        for one in (dataset, fftorch.Subset(dataset, [1, 2, 3]), dataset + dataset):
            with pytest.raises(
                TypeError, match=r"indices must be a list of index, not .*\[\[i\]\]"
            ):
                one[index]

    def test_a_subclass_without_process_gets_a_hint(self, path):
        with pytest.raises(NotImplementedError, match=r"Dataset overrides neither process"):
            fftorch.Dataset(path)[[0]]

    @pytest.mark.parametrize("kind", [fftorch.DataLoader, torch.utils.data.DataLoader])
    @pytest.mark.parametrize("count", [0, 1, 4])
    def test_a_list_of_any_length_goes_to_collate(self, path, kind, count):
        class Several(fftorch.Dataset):
            def process(self, _indices, _data):
                return [7] * count

        loader = kind(Several(path), batch_size=3, collate_fn=list)
        assert next(iter(loader)) == [7] * count

    def test_own_items_of_any_number_go_to_collate(self, path):
        class Several(Own):
            def __getitem__(self, indices):
                return [index for index in indices for _ in range(index)]

        loader = fftorch.DataLoader(Several(path), batch_size=3, collate_fn=list)
        assert next(iter(loader)) == [1, 2, 2]

    @pytest.mark.parametrize("num_workers", [0, 1])
    def test_a_batch_may_be_a_list_of_images_and_labels(self, path, num_workers):
        class Pairs(fftorch.Dataset):
            def process(self, indices, data):
                return [torch.zeros(len(data), 2, 2), torch.tensor(indices)]

        loader = fftorch.DataLoader(Pairs(path), 3, collate_fn=list, num_workers=num_workers)
        images, labels = next(iter(loader))
        assert images.shape == (3, 2, 2)
        assert labels.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("num_workers", [0, 1])
    def test_own_items_of_one_index_are_loaded_by_pytorch(self, num_workers):
        class Single(fftorch.Dataset):
            def __init__(self):
                pass

            def __len__(self):
                return 5

            def __getitem__(self, index):
                return {"number": index, "twice": torch.tensor(2 * index)}

        loader = torch.utils.data.DataLoader(Single(), 3, num_workers=num_workers)
        first, second = loader
        assert first["number"].tolist() == [0, 1, 2]
        assert second["twice"].tolist() == [6, 8]

    def test_the_error_of_one_index_is_reported(self):
        class Single(fftorch.Dataset):
            def __init__(self):
                pass

            def __len__(self):
                return 3

            def __getitem__(self, index):
                return [4, 5, "6"][index] + 1

        with pytest.raises(TypeError) as caught:
            list(torch.utils.data.DataLoader(Single()))
        assert "can only concatenate str" in str(caught.value.__context__)

    def test_a_batch_that_is_made_already_is_left_alone(self, path):
        class Batches(fftorch.Dataset):
            def process(self, indices, _data):
                return {"numbers": torch.tensor(indices)}

        batch = next(iter(fftorch.DataLoader(Batches(path), 3, collate_fn=dict)))
        assert batch["numbers"].tolist() == [0, 1, 2]

    def test_a_data_set_for_single_indices_rejects_lists_with_a_hint(self):
        class Single(fftorch.Dataset):
            def __init__(self):
                self.items = [1, 2, 3]

            def __len__(self):
                return 3

            def __getitem__(self, index):
                return self.items[index]

        with pytest.raises(TypeError, match="list indices must be integers") as caught:
            next(iter(fftorch.DataLoader(Single(), 2)))
        told = "Single.__getitem__ takes a list of indices and must return a list of items"
        assert caught.value.__notes__ == [told]

    def test_a_data_set_pickles(self, dataset):
        again = pickle.loads(pickle.dumps(dataset))  # noqa: S301
        assert again[[9, 8]] == [(9, 81), (8, 64)]


class TestSubset:
    def test_indices_match_the_subset(self, dataset):
        chosen = np.random.default_rng(1).permutation(COUNT)[:30]
        subset = fftorch.Subset(dataset, chosen)
        assert len(subset) == 30
        assert subset[[4, 0, 4]] == [(chosen[k], value(chosen[k])) for k in (4, 0, 4)]
        assert subset.dataset is dataset
        assert subset.indices is chosen

    def test_a_subset_is_loaded_with_one_call_for_each_batch(self, dataset):
        subset = fftorch.Subset(dataset, range(10, 50))
        loader = fftorch.DataLoader(subset, batch_size=16, collate_fn=asked_and_pid)
        batches, calls, _ = zip(*loader, strict=True)
        assert [item for batch in batches for item in batch] == [
            (k, value(k)) for k in range(10, 50)
        ]
        assert [len(call) for call in calls] == [1, 1, 1]

    def test_a_random_split_by_pytorch_works_too(self, dataset):
        parts = random_split(dataset, [60, 40], seeded())
        loaders = [fftorch.DataLoader(part, 16, collate_fn=asked_and_pid) for part in parts]
        seen = [batch for loader in loaders for batch in loader]
        assert sorted(item for batch, _, _ in seen for item in batch) == ITEMS
        assert all(len(calls) == 1 for _, calls, _ in seen)


class TestConcatDataset:
    def test_data_sets_are_concatenated(self, path):
        both = fftorch.ConcatDataset([Processing(path), Own(path)])
        assert len(both) == 2 * COUNT
        assert both.cumulative_sizes == [COUNT, 2 * COUNT]
        assert [type(one) for one in both.datasets] == [Processing, Own]
        indices = np.random.default_rng(2).permutation(2 * COUNT).tolist()
        assert both[indices] == [(k % COUNT, value(k % COUNT)) for k in indices]

    def test_a_sum_is_a_concatenation(self, path):
        three = Processing(path) + Own(path) + fftorch.Subset(Own(path), [7])
        assert isinstance(three, fftorch.ConcatDataset)
        assert len(three) == 2 * COUNT + 1
        assert three[[200, 0, 199]] == [(7, 49), (0, 0), (99, 9801)]

    def test_repeated_indices_give_repeated_items(self, dataset):
        both = dataset + dataset
        assert both[[3, 103, 3, 3, 103]] == [(3, 9)] * 5

    def test_sampling_with_replacement_repeats_items(self, dataset):
        both = dataset + dataset
        sampler = RandomSampler(both, replacement=True, num_samples=500, generator=seeded())
        drawn = list(RandomSampler(both, replacement=True, num_samples=500, generator=seeded()))
        loader = fftorch.DataLoader(both, batch_size=64, sampler=sampler)
        numbers, values = map(torch.cat, zip(*loader, strict=True))
        assert numbers.tolist() == [k % COUNT for k in drawn]
        assert values.tolist() == [value(k % COUNT) for k in drawn]

    def test_a_batch_asks_each_data_set_once(self, path):
        both = Processing(path) + Own(path)
        both[[150, 3, 101, 3, 99]]
        assert Processing.asked == [[3, 3, 99]]
        assert Own.asked == [[50, 1]]
        both[[120]]
        assert len(Processing.asked) == 1

    def test_negative_indices_count_from_the_end(self, dataset):
        both = dataset + dataset
        assert both[[-1, -101, -200]] == [(99, 9801), (99, 9801), (0, 0)]

    def test_indices_out_of_range_are_rejected(self, dataset):
        both = dataset + dataset
        with pytest.raises(ValueError, match=r"index -201 is out of range for 200 items"):
            both[[0, -201]]
        with pytest.raises(IndexError, match=r"index 200 is out of range for 200 items"):
            both[[0, 200]]

    def test_lengths_add_up(self):
        assert fftorch.ConcatDataset.cumsum([range(3), range(0), range(4)]) == [3, 3, 7]

    def test_empty_data_sets_are_passed_over(self, dataset):
        empty = fftorch.Subset(dataset, [])
        several = fftorch.ConcatDataset([empty, dataset, empty, dataset])
        assert several[[0, 99, 100]] == [(0, 0), (99, 9801), (0, 0)]

    def test_nothing_cannot_be_concatenated(self):
        with pytest.raises(AssertionError, match="pass at least one data set"):
            fftorch.ConcatDataset([])

    def test_other_data_sets_cannot_be_concatenated(self, dataset):
        with pytest.raises(AssertionError, match=r"not Plain; use torch\.utils\.data\.ConcatDat"):
            fftorch.ConcatDataset([dataset, Plain()])
        with pytest.raises(AssertionError, match="not Plain"):
            dataset + Plain()

    def test_a_data_set_that_gives_too_few_items_is_named(self, dataset):
        class Short(Own):
            def __getitem__(self, indices):
                return super().__getitem__(indices)[1:]

        both = dataset + Short(dataset.ffreaders()[0].fnames)
        with pytest.raises(ValueError, match="data set 1: Short gave 1 items for 2 indices"):
            both[[1, 101, 102]]


class TestRegistry:
    def test_readers_are_found_here_and_below(self, path):
        class Inner(fftorch.ReaderRegistry):
            def __init__(self):
                self.first = FileReader(path)
                self.second = FileReader(path)

        class Outer(fftorch.Dataset):
            def __init__(self):
                self.name = "outer"
                self.inner = Inner()
                self.train = FileReader(path)
                self.test = FileReader(path)

        one = Outer()
        own, below = [one.train, one.test], [one.inner.first, one.inner.second]
        assert one.ffreaders() == own + below
        assert fftorch.Subset(one, [0]).ffreaders() == own + below

    def test_both_kinds_of_data_set_know_their_reader(self, dataset):
        (reader,) = dataset.ffreaders()
        assert reader.n == COUNT

    def test_a_reader_can_be_deleted_and_replaced(self, path):
        dataset = Processing(path)
        del dataset.reader
        assert dataset.ffreaders() == []
        dataset.reader = None
        assert dataset.ffreaders() == []
        dataset.reader = FileReader(path)
        assert dataset.ffreaders() == [dataset.reader]
        assert dataset[[3]] == [(3, 9)]

    def test_an_object_without_readers_has_none(self):
        assert fftorch.ReaderRegistry().ffreaders() == []


class TestLoader:
    @pytest.mark.parametrize("num_workers", [0, 2])
    @pytest.mark.parametrize("shuffle", [False, True])
    def test_batches_match_pytorch(self, dataset, num_workers, shuffle):
        ours = fftorch.DataLoader(
            dataset, 8, shuffle=shuffle, num_workers=num_workers, generator=seeded()
        )
        theirs = torch.utils.data.DataLoader(Plain(), 8, shuffle=shuffle, generator=seeded())
        assert len(ours) == len(theirs) == 13
        assert same(ours, theirs)
        assert same(ours, theirs)

    def test_a_loader_needs_no_arguments(self, dataset):
        loader = fftorch.DataLoader(dataset)
        assert (loader.batch_size, loader.num_workers, loader.skippable) == (1, 0, True)
        assert same(loader, torch.utils.data.DataLoader(Plain()))

    def test_a_batch_is_one_call_in_a_worker(self, dataset):
        loader = fftorch.DataLoader(dataset, 16, num_workers=2, collate_fn=asked_and_pid)
        batches, calls, workers = zip(*loader, strict=True)
        assert [item for batch in batches for item in batch] == ITEMS
        assert list(calls) == [[[index for index, _ in batch]] for batch in batches]
        assert len(set(workers) - {os.getpid()}) == 2

    @pytest.mark.parametrize("method", METHODS)
    def test_workers_of_every_start_method_load_the_same(self, path, method):
        both = Processing(path) + Own(path)
        both[[0, 1, 2, 100, 101, 102]]
        loader = fftorch.DataLoader(
            both, 16, num_workers=2, multiprocessing_context=method, generator=seeded()
        )
        loader.set_step(2)
        numbers, values = map(torch.cat, zip(*loader, strict=True))
        assert numbers.tolist() == [k % COUNT for k in range(32, 200)]
        assert values.tolist() == [value(k % COUNT) for k in range(32, 200)]

    def test_workers_are_forked_by_default(self, dataset):
        loader = fftorch.DataLoader(dataset, num_workers=1)
        assert loader.multiprocessing_context.get_start_method() == "fork"
        assert fftorch.DataLoader(dataset).multiprocessing_context is None

    def test_a_data_set_that_was_read_before_the_fork_is_read_after_it(self, dataset):
        assert dataset[list(range(50))] == ITEMS[:50]
        loader = fftorch.DataLoader(dataset, 16, num_workers=2)
        assert same(loader, torch.utils.data.DataLoader(Plain(), 16))
        assert dataset[list(range(50))] == ITEMS[:50]

    def test_many_loaders_read_at_once(self, path):
        loaders = [iter(fftorch.DataLoader(Own(path), 64, num_workers=1)) for _ in range(20)]
        for batches in zip(*loaders, strict=True):
            for batch in batches:
                assert all(map(torch.equal, batch, batches[0]))

    def test_samplers_and_batch_samplers_are_taken(self, dataset):
        order = [5, 1, 5, 99, 0]
        by_sampler = fftorch.DataLoader(dataset, 2, sampler=order, drop_last=True)
        assert [batch[0].tolist() for batch in by_sampler] == [[5, 1], [5, 99]]
        by_batches = fftorch.DataLoader(dataset, batch_sampler=[[5], [1, 5, 99]])
        assert [batch[1].tolist() for batch in by_batches] == [[25], [1, 25, 9801]]

    def test_contradictions_are_rejected_as_by_pytorch(self, dataset):
        with pytest.raises(ValueError, match="mutually exclusive"):
            fftorch.DataLoader(dataset, shuffle=True, sampler=[1])
        with pytest.raises(ValueError, match="prefetch_factor"):
            fftorch.DataLoader(dataset, prefetch_factor=4)

    def test_attributes_match_pytorch(self, dataset):
        ours = fftorch.DataLoader(dataset, 8, shuffle=True, drop_last=True, num_workers=2)
        assert (ours.batch_size, ours.drop_last, ours.prefetch_factor) == (8, True, 2)
        assert isinstance(ours.sampler, RandomSampler)
        assert ours.dataset is dataset
        assert ours.batch_sampler.sampler is ours.sampler
        with pytest.raises(ValueError, match="should not be set"):
            ours.batch_sampler = []

    def test_data_sets_of_pytorch_are_loaded_as_usual(self):
        plain = fftorch.DataLoader(Plain(), 8, num_workers=2)
        assert same(plain, torch.utils.data.DataLoader(Plain(), 8))
        stream = fftorch.DataLoader(Stream(), 8)
        assert torch.cat(list(stream)).tolist() == list(range(COUNT))
        assert len(stream) == 13
        assert list(fftorch.DataLoader(Stream(), batch_size=None)) == list(range(COUNT))
        single = fftorch.DataLoader(Plain(), batch_size=None, skippable=False)
        assert list(single) == list(torch.utils.data.DataLoader(Plain(), batch_size=None))

    def test_records_are_loaded_too(self, make):
        reader = ingot.open(make([b"%d" % k for k in range(50)]))
        loader = fftorch.DataLoader(reader, 8)
        loader.set_step(5)
        assert list(loader) == [[b"%d" % k for k in range(40, 48)], [b"48", b"49"]]

    def test_pytorchs_loader_takes_these_data_sets(self, dataset):
        loader = torch.utils.data.DataLoader(dataset, 16, collate_fn=asked_and_pid)
        batches, calls, _ = zip(*loader, strict=True)
        assert [item for batch in batches for item in batch] == ITEMS
        assert [len(call) for call in calls] == [1] * 7
        shuffled = torch.utils.data.DataLoader(
            dataset, 16, shuffle=True, num_workers=2, generator=seeded()
        )
        theirs = torch.utils.data.DataLoader(Plain(), 16, shuffle=True, generator=seeded())
        assert same(shuffled, theirs)

    @pytest.mark.parametrize("shuffle", [False, True])
    def test_without_batches_lists_have_one_item(self, dataset, shuffle):
        options = {"batch_size": None, "shuffle": shuffle}
        ours = fftorch.DataLoader(
            dataset, **options, skippable=False, generator=seeded(), collate_fn=list
        )
        theirs = torch.utils.data.DataLoader(Plain(), **options, generator=seeded())
        order = [index for index, _ in theirs]
        assert len(ours) == COUNT
        assert list(ours) == [[ITEMS[k]] for k in order]
        assert dataset.asked == [[k] for k in order]

    def test_without_batches_arrays_become_tensors(self, path):
        class Raw(fftorch.Dataset):
            def process(self, indices, data):  # noqa: ARG002
                return data

        (item,) = next(iter(fftorch.DataLoader(Raw(path), batch_size=None, skippable=False)))
        assert torch.equal(item, torch.tensor(list(b"0"), dtype=torch.uint8))

    def test_a_damaged_sample_stops_the_training_loop(self, path, tmp_path):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        (tmp_path / "bad.ffr").write_bytes(content)
        for num_workers in (0, 2):
            loader = fftorch.DataLoader(
                Processing(tmp_path / "bad.ffr"), 50, num_workers=num_workers
            )
            batches, error = load_until_error(loader)
            assert [batch[0].tolist() for batch in batches] == [list(range(50))]
            assert isinstance(error, ingot.CorruptFileError)
            assert "bad.ffr" in str(error)


class TestSteps:
    @pytest.mark.parametrize("batch_size", [1, 4])
    @pytest.mark.parametrize("num_workers", [0, 2])
    @pytest.mark.parametrize("shuffle", [False, True])
    def test_the_rest_of_an_epoch_is_that_of_a_whole_one(
        self, dataset, shuffle, num_workers, batch_size
    ):
        ours = fftorch.DataLoader(
            dataset, batch_size, shuffle=shuffle, num_workers=num_workers, generator=seeded()
        )
        theirs = torch.utils.data.DataLoader(
            Plain(), batch_size, shuffle=shuffle, generator=seeded()
        )
        total = len(ours)
        ours.set_step(5)
        assert len(ours) == total - 5
        assert same(ours, list(theirs)[5:])
        ours.set_step(0)
        assert len(ours) == total
        assert same(ours, theirs)

    def test_the_global_seed_governs_an_epoch_too(self, dataset):
        ours = fftorch.DataLoader(dataset, 8, shuffle=True)
        theirs = torch.utils.data.DataLoader(Plain(), 8, shuffle=True)
        ours.set_step(4)
        with torch.random.fork_rng():
            torch.manual_seed(11)
            rest = list(ours)
            after = torch.random.get_rng_state()
            torch.manual_seed(11)
            assert same(rest, list(theirs)[4:])
            assert torch.equal(after, torch.random.get_rng_state())

    @pytest.mark.parametrize("step", range(8))
    def test_every_step_of_an_epoch_can_be_resumed(self, dataset, step):
        loader = fftorch.DataLoader(dataset, 16, shuffle=True, generator=seeded())
        whole = list(loader)
        assert len(whole) == 7
        loader.generator.manual_seed(3)
        loader.set_step(step)
        assert same(loader, whole[step:])

    def test_skipped_batches_are_not_loaded(self, dataset):
        loader = fftorch.DataLoader(dataset, 16)
        loader.set_step(5)
        assert len(list(loader)) == 2
        assert dataset.asked == [list(range(80, 96)), list(range(96, 100))]

    @pytest.mark.parametrize("persistent_workers", [False, True])
    def test_a_step_stays_until_it_is_taken_back(self, dataset, persistent_workers):
        loader = fftorch.DataLoader(
            dataset, 16, num_workers=2, persistent_workers=persistent_workers
        )
        lengths = []
        for step in (0, 5, None, 6, 0):
            if step is not None:
                loader.set_step(step)
            lengths.append(len(list(loader)))
        assert lengths == [7, 2, 2, 1, 7]

    def test_a_step_of_a_whole_epoch_leaves_nothing(self, dataset):
        loader = fftorch.DataLoader(dataset, 16, num_workers=2)
        loader.set_step(len(loader))
        assert len(loader) == 0
        assert list(loader) == []
        loader.set_step(0)
        assert len(list(loader)) == 7

    @pytest.mark.parametrize("step", [-1, 8])
    def test_a_step_beyond_an_epoch_is_rejected(self, dataset, step):
        loader = fftorch.DataLoader(dataset, 16)
        loader.set_step(3)
        with pytest.raises(AssertionError, match=rf"step must be from 0 to 7, .* got {step}"):
            loader.set_step(step)
        assert len(loader) == 4

    def test_a_step_is_an_integer(self, dataset):
        loader = fftorch.DataLoader(dataset, 16)
        loader.set_step(np.int64(3))
        assert loader.batch_sampler.step == 3
        with pytest.raises(TypeError):
            loader.set_step(3.0)

    def test_the_batch_sampler_can_be_stepped_itself(self, dataset):
        loader = fftorch.DataLoader(dataset, batch_sampler=[[1], [2, 3], [4]])
        loader.batch_sampler.set_step(1)
        assert len(loader.batch_sampler) == len(loader) == 2
        assert [batch[0].tolist() for batch in loader] == [[2, 3], [4]]

    @pytest.mark.parametrize("rank", [0, 1])
    def test_each_rank_of_a_distributed_run_resumes_its_own_part(self, dataset, rank):
        def loaded(of, loader_class, step):
            sampler = DistributedSampler(of, num_replicas=2, rank=rank, seed=4)
            loader = loader_class(of, 8, sampler=sampler)
            if step:
                loader.set_step(step)
            sampler.set_epoch(3)
            return list(loader)

        whole = loaded(Plain(), torch.utils.data.DataLoader, 0)
        assert len(whole) == 7
        assert same(loaded(dataset, fftorch.DataLoader, 4), whole[4:])

    def test_repeated_indices_are_resumed_exactly(self, dataset):
        def loader():
            sampler = RandomSampler(dataset, replacement=True, num_samples=200, generator=seeded())
            return fftorch.DataLoader(dataset, 16, sampler=sampler)

        whole, rest = loader(), loader()
        rest.set_step(9)
        assert same(rest, list(whole)[9:])

    def test_an_epoch_without_batches_has_no_steps(self, dataset):
        for one in (dataset, Plain()):
            with pytest.raises(AssertionError, match="pass skippable=False"):
                fftorch.DataLoader(one, batch_size=None)

    def test_a_stream_has_no_steps(self):
        with pytest.raises(AssertionError, match=r"not skippable.*map-style"):
            fftorch.DataLoader(Stream(), 8).set_step(1)

    def test_a_loader_that_is_not_skippable_says_so(self, dataset):
        loader = fftorch.DataLoader(dataset, 8, skippable=False)
        assert loader.skippable is False
        with pytest.raises(AssertionError, match="This dataloader is not skippable"):
            loader.set_step(0)

    def test_a_loader_that_is_not_skippable_can_be_made_anew_from_its_attributes(self, dataset):
        loader = fftorch.DataLoader(dataset, 8, num_workers=2, skippable=False)
        assert type(loader.batch_sampler) is BatchSampler
        names = set(inspect.signature(fftorch.DataLoader).parameters)
        attributes = {name: one for name, one in vars(loader).items() if name in names}
        assert set(attributes) == names - {"shuffle", "multiprocessing_context"}
        sampler = DistributedSampler(dataset, num_replicas=2, rank=1, shuffle=False)
        again = type(loader)(**{**attributes, "sampler": sampler, "batch_sampler": None})
        assert again.skippable is False
        assert next(iter(again))[0].tolist() == [1, 3, 5, 7, 9, 11, 13, 15]
        assert isinstance(loader.sampler, SequentialSampler)

    def test_misuse_is_a_wrong_value_too(self, dataset):
        with pytest.raises(ValueError, match="step must be"):
            fftorch.DataLoader(dataset).set_step(COUNT + 1)
        with pytest.raises(ValueError, match="at least one"):
            fftorch.ConcatDataset([])


class TestTraining:
    SCRIPT = FAULTS / "train.py"

    def start(self, *arguments):
        return subprocess.Popen(
            [sys.executable, str(self.SCRIPT), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def test_a_killed_training_run_ends_with_the_weights_of_a_whole_one(self, tmp_path):
        rng = np.random.default_rng(5)
        points = rng.standard_normal((333, 9)).astype(np.float32)
        data = write_ffr(tmp_path / "points.ffr", [point.tobytes() for point in points])
        whole, resumed = tmp_path / "whole.pt", tmp_path / "resumed.pt"
        with self.start(data, whole, 0) as uninterrupted:
            with self.start(data, resumed, 2, 31) as killed:
                said = killed.stdout.readline()
                os.killpg(killed.pid, signal.SIGKILL)
            assert (said, killed.returncode) == ("stopped\n", -signal.SIGKILL)
            left = torch.load(resumed)
            assert (left["epoch"], left["step"]) == (1, 8)
            with self.start(data, resumed, 2) as second:
                pass
            assert second.returncode == 0
        assert uninterrupted.returncode == 0
        one, other = torch.load(whole), torch.load(resumed)
        assert not torch.equal(left["model"]["weight"], one["model"]["weight"])
        for name in ("weight", "bias"):
            assert torch.equal(one["model"][name], other["model"][name])
        assert (other["epoch"], other["step"]) == (one["epoch"], one["step"]) == (2, 21)


def test_modules_are_imported_by_the_paths_of_the_original():
    code = (
        "from ingot.compat.ffrecord.torch.dataloader import DataLoader\n"
        "from ingot.compat.ffrecord.torch import DataLoader as same\n"
        "assert DataLoader is same\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
