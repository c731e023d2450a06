"""Batches as arrays of JAX, on one device and laid out over the devices of several processes."""

import json
import os
import random
import socket
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

import ingot
import ingot.jax
from ingot.loader.pipeline import NAME

ROWS = 60


def noisy(sample, rng):
    return {"label": sample["label"], "noise": rng.integers(1 << 30), "words": sample["words"]}


def refuse_sevens(sample):
    if sample["label"] % 10 == 7:
        raise ValueError(sample["label"])
    return sample["label"]


@pytest.fixture(scope="module")
def cats(tmp_path_factory):
    path = tmp_path_factory.mktemp("jax") / "cats"
    spec = {"label": "int", "image": "array(uint8,4,3)", "words": "utf8[]", "deep": {"x": "float"}}
    with ingot.DatasetWriter(path, spec, sync=False) as writer:
        for k in range(ROWS):
            image = np.full((4, 3), k, np.uint8)
            words = [f"{k}/{j}" for j in range(k % 5)]
            writer.append({"label": k, "image": image, "words": words, "deep": {"x": k / 2}})
    return ingot.open(path)


@pytest.fixture(autouse=True)
def no_ranks(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


def plain(batch):
    if isinstance(batch, dict):
        return {key: plain(one) for key, one in batch.items()}
    return batch.tolist() if hasattr(batch, "tolist") else batch


def aligned(values):
    """Return an array that begins where JAX uses memory without copying it."""
    memory = np.empty(len(values) * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    array = memory[start : start + 4 * len(values)].view(np.float32)
    array[:] = values
    return array


def run(code, *arguments, flags=""):
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240, env=env
    )


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("steps", [[], [noisy]])
def test_batches_match_the_plain_loader(cats, workers, steps):
    order = cats.shuffle(seed=3)
    for step in steps:
        order = order.map(step)
    expected = [plain(one) for one in ingot.Loader(order, 8)]
    found = list(ingot.Loader(order, 8, workers=workers, to="jax"))
    assert [plain(one) for one in found] == expected
    assert isinstance(found[0]["label"], jax.Array)
    assert isinstance(found[0]["words"], list)


def test_numbers_get_the_bits_that_jax_has(cats):
    batch = ingot.Loader(cats, 4, to="jax").batch(1)
    assert batch["label"].dtype == jnp.int32
    assert batch["deep"]["x"].dtype == jnp.float32
    assert batch["image"].dtype == jnp.uint8
    with jax.enable_x64(new_val=True):
        loader = ingot.Loader(cats, 4, workers=2, to="jax")
    batch = next(iter(loader))
    assert batch["label"].dtype == jnp.int64
    assert batch["deep"]["x"].dtype == jnp.float64


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(np.int64, 1 << 31), (np.int64, -(1 << 31) - 1), (np.uint64, 1 << 32)],
)
def test_an_integer_that_does_not_fit_is_an_error_that_names_it(dtype, number):
    rows = [{"a": 1, "b": {"id": np.full(2, one, dtype)}} for one in (5, number)]
    with pytest.raises(ingot.WorkerError, match=rf"batch\['b'\]\['id'\] has {number}, which does"):
        ingot.Loader(rows, 2, to="jax").batch(0)
    with jax.enable_x64(new_val=True):
        wide = ingot.Loader(rows, 2, to="jax").batch(0)
    assert int(wide["b"]["id"][1, 0]) == number
    with pytest.raises(ingot.WorkerError, match=r"step 0: OverflowError: batch has "):
        ingot.Loader([5, number], 2, to="jax", on_error="substitute").batch(0)


@pytest.mark.parametrize("number", [(1 << 31) - 1, -(1 << 31), 0])
def test_the_largest_integers_that_fit_are_kept(number):
    assert ingot.Loader([number], 1, to="jax").batch(0).tolist() == [number]


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, 2], ">i4"),
        np.array([1.5, 2.5], ">f8"),
        np.array([1, 2], ml_dtypes.bfloat16),
        np.array([True, False]),
        np.array([1 + 2j]),
        np.array([1.5], np.float16),
        np.array(7, np.int16),
        np.empty((0, 3), np.int64),
        np.arange(6).reshape(2, 3).T,
        np.arange(9)[::-2],
    ],
)
def test_arrays_keep_their_values(values):
    found = ingot.Loader([0], 1, collate=lambda _: values, to="jax").batch(0)
    assert isinstance(found, jax.Array)
    assert found.shape == values.shape
    assert found.tolist() == values.tolist()


@pytest.mark.parametrize(
    "other", [np.array(["a"]), np.array([b"a"]), np.array(["2020"], "M8[D]"), np.ones(1, "g")]
)
def test_values_that_jax_cannot_hold_stay_unchanged(other):
    found = ingot.Loader([0], 1, collate=lambda _: (other, [np.ones(2)]), to="jax").batch(0)
    assert found[0] is other
    assert isinstance(found[1][0], np.ndarray)


def test_arrays_never_share_memory_that_changes():
    used = aligned(np.zeros(1 << 14))

    def collate(samples):
        used[:] = samples[0]
        return used

    loader = ingot.Loader([3, 4, 5], 1, collate=collate, workers=0, to="jax")
    found = list(loader)
    used[:] = 9
    assert [(one.min(), one.max()) for one in found] == [(3, 3), (4, 4), (5, 5)]


def test_arrays_are_on_the_default_device_of_the_thread_that_made_the_loader():
    code = """
import jax, ingot, sys
with jax.default_device(jax.devices()[2]):
    loader = ingot.Loader(range(8), 2, workers=2, to="jax")
print({device.id for batch in loader for device in batch.devices()})
"""
    done = run(code, flags="--xla_force_host_platform_device_count=4")
    assert (done.stdout, done.stderr) == ("{2}\n", "")


def test_samples_that_are_jax_arrays_are_stacked():
    order = ingot.Order.of(range(4))
    found = ingot.Loader(order.map(lambda k: jnp.full(2, k)), 2, to="jax").batch(1)
    assert isinstance(found, jax.Array)
    assert found.tolist() == [[2, 2], [3, 3]]
    found = ingot.Loader(order.map(jnp.ones), 2, to="jax").batch(1)
    assert [one.shape for one in found] == [(2,), (3,)]


def test_a_function_may_make_the_batch(cats):
    loader = ingot.Loader(cats, 4, to=lambda batch: batch["label"].sum(), workers=2)
    assert next(iter(loader)) == 6


def test_a_bad_sample_is_replaced(cats):
    order = cats.map(refuse_sevens)
    options = {"on_error": "substitute"}
    expected = [one.tolist() for one in ingot.Loader(order, 10, **options)]
    batches = ingot.jax.Batches(order, 10, **options)
    assert [one.tolist() for one in batches] == expected
    assert [one.position for one in batches.loader.errors] == [7, 17, 27, 37, 47, 57]


def test_batches_resume_at_any_step(cats):
    order = cats.shuffle(seed=1).map(noisy)
    whole, states = [], []
    batches = ingot.jax.Batches(order, 8, workers=2)
    for _ in range(3):
        for batch in batches:
            whole.append(plain(batch))
            states.append(batches.get_state())
    assert len(whole) == 3 * -(-ROWS // 8)
    for step in random.Random(0).sample(range(len(whole)), 5):
        again = ingot.jax.Batches(order, 8, workers=1)
        again.set_state(states[step])
        again.start_prefetch()
        found = []
        while len(found) + step + 1 < len(whole):
            found += [plain(batch) for batch in again]
        assert found == whole[step + 1 :]


def test_next_continues_to_the_end_of_the_epoch(cats):
    batches = ingot.jax.Batches(cats, 20)
    assert next(batches)["label"][0] == 0
    assert next(batches)["label"][0] == 20
    batches.set_state(batches.get_state())
    batches.load_state_dict(batches.state_dict())
    assert next(batches)["label"][0] == 40
    assert next(batches, None) is None
    assert next(batches, None) is None
    assert len(list(batches)) == 3
    assert json.loads(batches.get_state())["step"] == 6


def test_a_closed_iterator_has_no_threads(cats):
    with ingot.jax.Batches(cats, 20, workers=3) as batches:
        batches.start_prefetch()
        threads = {one for one in threading.enumerate() if one.name.startswith(NAME)}
        assert len(threads) >= 3
    left = threads & set(threading.enumerate())
    assert len(left) == len(threads) - 3
    with pytest.raises(ingot.ClosedError):
        next(batches)


def test_reading_ahead_starts_before_the_first_batch():
    made = threading.Event()
    loader = ingot.Loader(ingot.Order.of(range(4)).map(lambda _: made.set()), 2, workers=1)
    loader.start()
    assert made.wait(60)
    assert loader.step == 0


SHARDED = """
import json, sys
import jax, ingot, ingot.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2, 2), ("data", "model"))
order = ingot.open(sys.argv[1]).shuffle(seed=3)
for spec in (P("data"), P(("data", "model")), P(), P(None), P("data", None, "model")):
    sharding = NamedSharding(mesh, spec)
    batches = ingot.jax.Batches(order, 8, sharding=sharding, drop_last=True)
    found = [(b["label"].tolist(), b["grid"].tolist(), b["words"]) for b in batches]
    grid = batches.loader.batch(0)["grid"]
    print(json.dumps([found, grid.sharding.shard_shape(grid.shape), len(grid.sharding.device_set)]))
"""


def test_batches_are_laid_out_over_the_devices_of_a_mesh(tmp_path):
    path = tmp_path / "grids"
    spec = {"label": "int", "grid": "array(float32,3,4)", "words": "utf8"}
    with ingot.DatasetWriter(path, spec, sync=False) as writer:
        for k in range(20):
            grid = np.arange(12, dtype=np.float32).reshape(3, 4) + k
            writer.append({"label": k, "grid": grid, "words": f"w{k}"})
    done = run(SHARDED, path, flags="--xla_force_host_platform_device_count=4")
    assert done.stderr == ""
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    loader = ingot.Loader(ingot.open(path).shuffle(seed=3), 8, drop_last=True)
    expected = [[b["label"].tolist(), b["grid"].tolist(), b["words"]] for b in loader]
    assert [line[0] for line in lines] == [expected] * 5
    assert [line[1:] for line in lines] == [
        [[4, 3, 4], 4],
        [[2, 3, 4], 4],
        [[8, 3, 4], 4],
        [[8, 3, 4], 4],
        [[4, 3, 2], 4],
    ]


PROCESSES = """
import json, sys
rank, address, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
import jax, ingot, ingot.jax
from jax._src import xla_bridge
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.distributed.initialize(address, 2, rank)
order = ingot.open(path).shuffle(seed=3)
loader = ingot.Loader(order, 4, to="jax")
assert "(jax.distributed)" in repr(loader)
assert not xla_bridge.backends_are_initialized()
assert (loader.rank, loader.world) == (jax.process_index(), jax.process_count()) == (rank, 2)
own = loader.batch(0)["label"].tolist()

mesh = Mesh(jax.devices(), "data")
sharding = NamedSharding(mesh, P("data"))
batches = ingot.jax.Batches(order, 4, sharding=sharding, workers=2, drop_last=True)
assert (batches.loader.batch_size, batches.loader.global_batch_size) == (4, 8)
shared = ingot.jax.Batches(order, global_batch_size=8, sharding=sharding, drop_last=True)
assert (shared.loader.batch_size, shared.loader.global_batch_size) == (4, 8)
total = jax.jit(lambda x: x.sum())
found = []
for batch in batches:
    shards = sorted(batch["label"].addressable_shards, key=lambda one: one.index[0].start)
    parts = [one.data.tolist() for one in shards]
    found.append([parts, int(total(batch["label"])), len(batch["words"])])

across = NamedSharding(Mesh(jax.devices(), "model"), P(None, "model"))
copies = next(ingot.jax.Batches(order.repeat(), 8, sharding=across))["image"]
whole = [copies.shape, [one.data.shape for one in copies.addressable_shards]]

import numpy as np
devices = np.array(jax.devices())[[0, 2, 1, 3]]
try:
    ingot.jax.shard_of(NamedSharding(Mesh(devices, "data"), P("data")), 8)
except ValueError as error:
    message = str(error)
print(json.dumps([own, found, whole, message]))
jax.distributed.shutdown()
"""


def test_each_process_reads_the_samples_of_its_own_devices(cats):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    flags = "--xla_force_host_platform_device_count=2"
    env = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESSES, str(rank), address, cats.path],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        for rank in range(2)
    ]
    ended = [one.communicate(timeout=240) for one in processes]
    assert [one.returncode for one in processes] == [0, 0], ended[0][1] + ended[1][1]
    loader = ingot.Loader(cats.shuffle(seed=3), 8, drop_last=True)
    labels = [one["label"].tolist() for one in loader]
    for rank, (text, _) in enumerate(ended):
        own, found, whole, message = json.loads(text.splitlines()[-1])
        half = slice(4 * rank, 4 * rank + 4)
        assert own == labels[0][half]
        expected = [[[one[half][:2], one[half][2:]], sum(one), 4] for one in labels]
        assert found == expected
        assert whole == [[8, 4, 3], [[8, 1, 3]] * 2]
        first = 2 * rank
        assert message == (
            f"the devices of this process hold samples {first} to {first + 1}, {first + 4} to "
            f"{first + 5} of 8, expected one run of the same length for each process: order the "
            "devices of the mesh by process"
        )


def one_device(*spec):
    return NamedSharding(Mesh(jax.devices()[:1], "data"), PartitionSpec(*spec))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sharding": SingleDeviceSharding(jax.devices()[0])}, TypeError, "got SingleDevice"),
        ({"sharding": one_device("data"), "shard": (0, 1)}, TypeError, "leave out shard="),
        ({"sharding": one_device("data")}, ValueError, "pass drop_last=True, or repeat the order"),
        ({"global_batch_size": 8}, TypeError, "all ranks together, got both"),
        (
            {"sharding": one_device("data"), "global_batch_size": 8},
            TypeError,
            "all ranks together, got both",
        ),
        (
            {"sharding": one_device("data"), "collate": lambda _: np.ones(3), "drop_last": True},
            ingot.WorkerError,
            r"an array of shape \(3,\) has no place in a batch of 8 samples per process",
        ),
        ({"to": "numpy"}, TypeError, "leave out to=, or use ingot.Loader"),
        ({"pin_memory": True}, ValueError, 'pin_memory requires to="torch"'),
    ],
)
def test_natural_mistakes_get_exact_messages(cats, options, error, message):
    with pytest.raises(error, match=message):
        next(ingot.jax.Batches(cats, 8, **options))


def test_a_place_whose_epoch_ends_with_a_shorter_batch_is_rejected_by_a_sharding(cats):
    state = ingot.Loader(cats, 7)
    state.seek(1)
    batches = ingot.jax.Batches(cats, 10, sharding=one_device("data"))
    next(batches)
    with pytest.raises(ValueError, match="pass drop_last=True, or repeat the order"):
        batches.load_state_dict(state.state_dict())
    assert batches.loader.step == 1
    whole = ingot.jax.Batches(cats, 10, sharding=one_device("data"), drop_last=True)
    whole.load_state_dict(state.state_dict())
    assert [batch["label"][0] for batch in whole] == [7, 17, 27, 37, 47]


def test_a_batch_that_cannot_be_divided_is_rejected():
    code = """
import jax, ingot, ingot.jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
sharding = NamedSharding(Mesh(jax.devices(), "data"), P("data"))
try:
    ingot.jax.Batches(range(10), 6, sharding=sharding)
except ValueError as error:
    print(str(error).replace(str(sharding.spec), "SPEC"))
"""
    done = run(code, flags="--xla_force_host_platform_device_count=4")
    assert done.stdout == (
        "a batch of 6 samples in all processes cannot be divided into 4 equal parts, as SPEC "
        "does: make it a multiple of 4\n"
    )


def test_without_jax_there_is_a_word_on_how_to_get_it():
    code = """
import sys
sys.modules["jax"] = None
import ingot
for attempt in ("ingot.Loader(range(9), 3, to='jax')", "import ingot.jax"):
    try:
        exec(attempt)
    except ModuleNotFoundError as error:
        print(error)
print(ingot.Loader(range(9), 3).batch(1).tolist())
"""
    hint = "pip install 'ingot-data[jax]' (in a checkout: pip install '.[jax]')"
    assert run(code).stdout == (
        f'to="jax" requires JAX: {hint}\ningot.jax requires JAX: {hint}\n[3, 4, 5]\n'
    )


def test_jax_is_not_imported_unless_it_is_asked_for():
    code = "import sys, ingot; next(iter(ingot.Loader(range(9), 3))); print('jax' in sys.modules)"
    assert run(code).stdout == "False\n"
