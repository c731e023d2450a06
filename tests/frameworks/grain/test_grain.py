"""Readers, orders and ArrayRecord's data source as sources of Grain, and batches for its steps."""

import json
import pickle
import random
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from absl import flags

import ingot
import ingot.grain
import ingot.jax
from ingot.compat.array_record.array_record_data_source import ArrayRecordDataSource
from ingot.compat.array_record.array_record_module import ArrayRecordWriter

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import grain
    import orbax.checkpoint as ocp

flags.FLAGS.mark_as_parsed()  # Grain asks them before it starts processes.

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


def make_source_of_reader(folder):
    return ingot.grain.Source(make_ingot(folder).path)


def make_source_of_order(folder):
    reader = make_ingot(folder)
    return ingot.grain.Source(ingot.concat(reader[:100], reader[100:]))


def make_rows(folder):
    with ingot.DatasetWriter(folder / "rows", {"data": "bytes"}, sync=False) as writer:
        writer.extend({"data": record(k)} for k in range(N))
    return ingot.open(folder / "rows")


def data_of(row):
    return row["data"]


def make_source_of_data_set(folder):
    return ingot.grain.Source(make_rows(folder).map(data_of))


SOURCES = {
    "reader": make_ingot,
    "view": make_view,
    "data source": make_array_record,
    "parts": make_parts,
    "source of a reader": make_source_of_reader,
    "source of an order": make_source_of_order,
    "source of a data set": make_source_of_data_set,
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


def test_iteration_resumes_from_a_checkpoint(source):
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
    check_that_the_data_loader_resumes(source, 0)


def test_the_data_loader_of_grain_resumes_with_processes(tmp_path):
    check_that_the_data_loader_resumes(make_source_of_order(tmp_path), 2)


def check_that_the_data_loader_resumes(source, workers):
    sampler = grain.samplers.IndexSampler(
        N, grain.sharding.NoSharding(), shuffle=True, num_epochs=1, seed=3
    )
    loader = grain.DataLoader(data_source=source, sampler=sampler, worker_count=workers)
    iterator = iter(loader)
    first = [next(iterator) for _ in range(100)]
    state = iterator.get_state()
    rest = list(iterator)
    assert sorted(first + rest) == sorted(record(k) for k in range(N))
    again = iter(loader)
    again.set_state(state)
    assert list(again) == rest
    assert repr(source) in state.decode()


def test_a_checkpoint_of_the_real_package_resumes(tmp_path):
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
    names = str(tmp_path), "hash_of_paths", "<ingot.grain.Source "
    assert any(name in repr(source) for name in names)


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


def noisy(row, rng):
    return {"number": int.from_bytes(row["data"][:2], "big"), "noise": rng.integers(1 << 30)}


def refuse_sevens(row):
    number = int.from_bytes(row["data"][:2], "big")
    if number % 10 == 7:
        raise ValueError(number)
    return number


def plain(batch):
    if isinstance(batch, dict):
        return {key: plain(one) for key, one in batch.items()}
    return batch.tolist() if hasattr(batch, "tolist") else batch


@pytest.fixture
def order(tmp_path):
    return make_rows(tmp_path).shuffle(seed=2).map(noisy)


def test_a_source_is_identified_by_content_and_not_by_location(tmp_path):
    texts = []
    make_rows(tmp_path)
    shutil.copytree(tmp_path / "rows", tmp_path / "there" / "rows")
    for folder in (tmp_path, tmp_path / "there"):
        rows = ingot.open_dataset(folder / "rows")
        again = pickle.loads(pickle.dumps(ingot.grain.Source(rows.shuffle(seed=1))))  # noqa: S301
        assert again._getitems([3, 5]) == list(rows.shuffle(seed=1))[3:6:2]
        texts.append(repr(again))
        assert repr(ingot.grain.Source(rows.shuffle(seed=2))) != texts[0]
    assert texts[0] == texts[1]
    assert texts[0].endswith(" of Dataset('rows', 240 rows) -> shuffle(seed=1)>")


def test_a_source_opens_a_path_and_has_an_end(tmp_path):
    rows = make_rows(tmp_path)
    assert ingot.grain.Source(tmp_path / "rows")[7] == {"data": record(7)}
    assert ingot.grain.Source(str(tmp_path / "rows"))[-1] == {"data": record(N - 1)}
    with pytest.raises(IndexError, match="240 is out of range"):
        ingot.grain.Source(rows)[N]
    with pytest.raises(IndexError, match="position 240 is out of range"):
        ingot.grain.Source(rows.shuffle(seed=1))[N]
    with pytest.raises(ValueError, match=r"leave repeat\(\) out, and call Grain's repeat"):
        ingot.grain.Source(rows.repeat())
    with pytest.raises(TypeError, match="an order is made of a sequence"):
        ingot.grain.Source(5)


def test_rows_go_through_grains_steps_in_processes(tmp_path):
    source = ingot.grain.Source(make_rows(tmp_path))
    rows = grain.MapDataset.source(source).seed(4).shuffle().map(data_of).map(number)
    dataset = rows.batch(batch_size=16).to_iter_dataset()
    expected = [batch.tolist() for batch in dataset]
    assert sorted(np.concatenate(expected)) == list(range(N))
    iterator = iter(dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=2)))
    assert [next(iterator).tolist() for _ in range(6)] == expected[:6]
    state = iterator.get_state()
    iterator.close()
    again = iter(dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=2)))
    again.set_state(state)
    assert [batch.tolist() for batch in again] == expected[6:]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_match_the_plain_loader(order, workers):
    expected = [plain(batch) for batch in ingot.Loader(order, 16)]
    batches = ingot.grain.Batches(order, 16, workers=workers)
    assert isinstance(batches, grain.IterDataset)
    assert [plain(batch) for batch in batches] == expected
    assert [plain(batch) for batch in batches] == expected


def test_grains_steps_follow_batches_and_resume(order):
    def dataset():
        return ingot.grain.Batches(order, 16, workers=2).map(lambda batch: batch["number"] + 1)

    expected = [plain(batch["number"] + 1) for batch in ingot.Loader(order, 16)]
    iterator = iter(dataset())
    assert [plain(next(iterator)) for _ in range(4)] == expected[:4]
    again = iter(dataset())
    again.set_state(json.loads(json.dumps(iterator.get_state())))
    assert [plain(batch) for batch in again] == expected[4:]


def test_an_iterator_resumes_at_any_step_and_stays_at_its_end(order):
    batches = ingot.grain.Batches(order.repeat(2), 16)
    iterator = iter(batches)
    whole, states = [], [iterator.get_state()]
    for batch in iterator:
        whole.append(plain(batch))
        states.append(iterator.get_state())
    assert len(whole) == 30
    for step in [*random.Random(1).sample(range(30), 4), 30]:
        again = iter(batches)
        again.set_state(json.loads(json.dumps(states[step])))
        again.start_prefetch()
        assert [plain(batch) for batch in again] == whole[step:]
        assert next(again, None) is None


def test_an_iterator_continues_from_the_position_of_its_loader(order):
    loader = ingot.Loader(order, 16)
    for _ in loader:
        pass
    loader.seek(loader.step + 3)
    expected = [plain(loader.batch(step)) for step in range(18, 30)]
    assert [plain(batch) for batch in ingot.grain.BatchIterator(loader)] == expected
    with pytest.raises(ingot.ClosedError):
        loader.batch(18)


def test_an_order_without_end_has_batches_without_end(order):
    iterator = iter(ingot.grain.Batches(order.repeat(), 100))
    assert [len(next(iterator)["number"]) for _ in range(9)] == [100] * 9


@pytest.mark.parametrize("kind", ["grain", "jax"])
def test_checkpoints_of_orbax_save_and_restore_batches(order, tmp_path, kind):
    def make():
        if kind == "jax":
            return ingot.jax.Batches(order, 16)
        return iter(ingot.grain.Batches(order, 16))

    whole = [plain(batch) for batch in ingot.Loader(order, 16)]
    batches = make()
    for step in range(9):
        assert plain(next(batches))["number"] == whole[step]["number"]
        if step in {2, 7}:
            with ocp.CheckpointManager(tmp_path / "run") as manager:
                manager.save(step, args=grain.checkpoint.CheckpointSave(batches))
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        for step in (2, 7):
            again = make()
            manager.restore(step, args=grain.checkpoint.CheckpointRestore(again))
            rest = [plain(batch)["number"] for batch in again]
            assert rest == [one["number"] for one in whole[step + 1 :]]


def test_orbax_saves_the_state_of_a_loader_as_json(order, tmp_path):
    loader = ingot.Loader(order, 16)
    for _, _ in zip(range(5), loader, strict=False):
        pass
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        manager.save(5, args=ocp.args.JsonSave(loader.state_dict()))
    again = ingot.Loader(order, 16)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        again.load_state_dict(manager.restore(5, args=ocp.args.JsonRestore()))
    assert plain(next(iter(again))) == plain(loader.batch(5))


def test_a_bad_sample_is_replaced_and_a_closed_iterator_is_closed(tmp_path):
    order = make_rows(tmp_path).map(refuse_sevens)
    expected = [plain(batch) for batch in ingot.Loader(order, 16, on_error="substitute")]
    iterator = iter(ingot.grain.Batches(order, 16, on_error="substitute"))
    assert [plain(batch) for batch in iterator] == expected
    assert len(iterator.loader.errors) == 24
    iterator.close()
    iterator.close()
    with pytest.raises(ValueError, match="closed"):
        iterator.loader.batch(0)


def test_natural_mistakes_show_when_batches_are_made(order):
    with pytest.raises(ValueError, match="240 samples has no whole batch of 241"):
        ingot.grain.Batches(order, 241, drop_last=True)
    with pytest.raises(TypeError, match="got neither"):
        ingot.grain.Batches(order)
    with pytest.raises(TypeError, match="no argument 'batch'; instead: batch_size="):
        ingot.grain.Batches(order, 16, batch=3)
    other = iter(ingot.grain.Batches(order.shuffle(seed=9), 16))
    with pytest.raises(ValueError, match="it has nothing more, this loader has shuffle"):
        other.set_state(iter(ingot.grain.Batches(order, 16)).get_state())


def test_without_grain_there_is_a_word_on_how_to_get_it():
    code = """
import sys
sys.modules["grain"] = None
try:
    import ingot.grain
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    hint = "pip install 'ingot-data[grain]' (in a checkout: pip install '.[grain]')"
    assert done.stdout == f"ingot.grain requires Grain: {hint}\n"
