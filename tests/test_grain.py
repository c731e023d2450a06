"""Readers and ArrayRecord's data source as sources of Grain."""

import warnings

import numpy as np
import pytest

import ingot
from ingot.compat.array_record.array_record_data_source import ArrayRecordDataSource
from ingot.compat.array_record.array_record_module import ArrayRecordWriter

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import grain

N = 240


def record(index):
    return index.to_bytes(2, "big") + b"." * (index % 50)


def number(data):
    return np.int64(int.from_bytes(data[:2], "big"))


def make_ingot(folder):
    with ingot.Writer(folder / "x.ingot") as writer:
        writer.extend(record(k) for k in range(N))
    return ingot.open(folder / "x.ingot")


def make_view(folder):
    with ingot.Writer(folder / "x.ingot") as writer:
        writer.extend(record(abs(k)) for k in range(-N, N))
    return ingot.open(folder / "x.ingot")[N:]


def make_array_record(folder):
    for k in range(3):
        with ArrayRecordWriter(folder / f"{k}.array_record") as writer:
            for index in range(k * N // 3, (k + 1) * N // 3):
                writer.write(record(index))
    return ArrayRecordDataSource(folder / "*.array_record")


def make_parts(folder):
    make_array_record(folder)
    third = N // 3
    parts = [
        f"{folder}/{k}.array_record[{a}:{b}]" for k in range(3) for a, b in [(0, 7), (7, third)]
    ]
    return ArrayRecordDataSource(parts)


SOURCES = {
    "reader": make_ingot,
    "view": make_view,
    "data source": make_array_record,
    "parts": make_parts,
}


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    return SOURCES[request.param](tmp_path)


def pipeline(source):
    return grain.MapDataset.source(source).shuffle(seed=7).map(number).batch(batch_size=16)


def test_sources_have_what_grain_asks_for(source):
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert source._getitems([3, 200, 3]) == [record(3), record(200), record(3)]
    assert len(source) == N


def test_an_epoch_has_each_record_once(source):
    batches = list(pipeline(source))
    assert [len(batch) for batch in batches] == [16] * 15
    assert sorted(np.concatenate(batches)) == list(range(N))
    again = list(pipeline(source))
    assert all((a == b).all() for a, b in zip(batches, again, strict=True))


def test_every_source_gives_the_same_batches(tmp_path):
    all_batches = []
    for name, make in SOURCES.items():
        folder = tmp_path / name
        folder.mkdir()
        all_batches.append(np.stack(list(pipeline(make(folder)))))
    for batches in all_batches[1:]:
        assert (batches == all_batches[0]).all()


def test_batches_of_grain_are_read_at_once(source):
    dataset = grain.MapDataset.source(source).shuffle(seed=1)
    assert dataset._getitems(range(N)) == [dataset[k] for k in range(N)]
    assert grain.MapDataset.source(source)._getitems([5, N + 5]) == [record(5)] * 2


def test_iteration_goes_on_from_a_checkpoint(source):
    dataset = pipeline(source).repeat(2).to_iter_dataset()
    whole = [batch.tolist() for batch in dataset]
    assert len(whole) == 30
    iterator = iter(dataset)
    first = [next(iterator).tolist() for _ in range(11)]
    state = iterator.get_state()
    rest = [batch.tolist() for batch in iterator]
    again = iter(dataset)
    again.set_state(state)
    assert first + rest == whole
    assert [batch.tolist() for batch in again] == rest


def test_worker_processes_read_the_same(source):
    dataset = pipeline(source).to_iter_dataset()
    expected = [batch.tolist() for batch in dataset]
    parallel = dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=2))
    assert [batch.tolist() for batch in parallel] == expected


def test_the_data_loader_of_grain_resumes(source):
    sampler = grain.samplers.IndexSampler(
        N, grain.sharding.NoSharding(), shuffle=True, num_epochs=1, seed=3
    )
    loader = grain.DataLoader(data_source=source, sampler=sampler, worker_count=0)
    iterator = iter(loader)
    first = [next(iterator) for _ in range(100)]
    state = iterator.get_state()
    rest = list(iterator)
    assert sorted(first + rest) == sorted(record(k) for k in range(N))
    again = iter(loader)
    again.set_state(state)
    assert list(again) == rest
    assert repr(source) in state.decode()


def test_a_checkpoint_made_with_the_real_package_goes_on(tmp_path):
    ours = make_array_record(tmp_path)
    real = grain.sources.ArrayRecordDataSource(ours._paths)
    sampler = grain.samplers.IndexSampler(
        N, grain.sharding.NoSharding(), shuffle=True, num_epochs=1, seed=3
    )
    loaders = [grain.DataLoader(data_source=one, sampler=sampler) for one in (real, ours)]
    iterator, resumed = map(iter, loaders)
    for _ in range(100):
        next(iterator)
    resumed.set_state(iterator.get_state())
    assert list(resumed) == list(iterator)


def test_representations_are_the_same_in_every_process(source, tmp_path):
    again = ingot.open(source.path) if isinstance(source, ingot.Reader) else source
    assert repr(again) == repr(source)
    assert " object at 0x" not in repr(source)
    assert str(tmp_path) in repr(source) or "hash_of_paths" in repr(source)


def test_grains_own_data_source_may_be_made_of_ours(tmp_path):
    ours = make_array_record(tmp_path)

    class Source(ArrayRecordDataSource):
        def __init__(self, paths, reader_options=None):
            super().__init__(paths, reader_options)

        def __getitem__(self, record_key):
            return super().__getitem__(record_key)

        @property
        def paths(self):
            return self._paths

    source = Source(str(tmp_path / "*.array_record"))
    assert source.paths == [str(tmp_path / f"{k}.array_record") for k in range(3)]
    assert (
        grain.MapDataset.source(source).shuffle(seed=2)[5]
        == grain.MapDataset.source(ours).shuffle(seed=2)[5]
    )
    assert repr(source) == repr(ours)
