"""What fails arrives at its step, or is replaced; misuse is refused."""

import inspect
import time
from pathlib import Path

import numpy as np
import pytest

import ingot
from ingot.loader import Replacement
from ingot.order import Origin
from tests.loader.batches import ROWS, global_batches, refuse_sevens


def test_an_exception_arrives_at_its_step_and_names_the_row(cats):
    loader = ingot.Loader(cats.map(refuse_sevens), 5, workers=3, prefetch=8)
    batches = iter(loader)
    assert next(batches).tolist() == [0, 1, 2, 3, 4]
    for _ in range(2):  # The step is tried again.
        with pytest.raises(
            ingot.WorkerError,
            match=r"step 1, position 7 \(row 7 of cats, in 000000-\w+\.ingot\): KeyError: 'no 7'",
        ) as caught:
            next(batches)
        assert caught.value.step == loader.step == 1
        assert isinstance(caught.value.__cause__, KeyError)
    loader.skip(1, 2)
    assert next(batches).tolist() == [10, 11, 12, 13, 14]


def test_an_exception_of_a_collate_function_names_the_step():
    def fail(samples):
        raise OSError(len(samples))

    with pytest.raises(ingot.WorkerError, match="step 0: OSError: 3") as caught:
        ingot.Loader(range(9), 3, collate=fail, on_error="substitute").batch(0)
    assert isinstance(caught.value.__cause__, OSError)


def test_samples_with_different_fields_are_not_a_batch(cats):
    loader = ingot.Loader([{"a": 1}, {"b": 2}], 2)
    message = r"different fields, \['a'\] and \['b'\]: map them to the same fields"
    with pytest.raises(ingot.WorkerError, match=message):
        next(iter(loader))
    mixed = ingot.mix(
        {"some": cats.select("label").repeat(), "all": cats.repeat()}, [(0, {"some": 1, "all": 1})]
    )
    with pytest.raises(ingot.WorkerError, match="different fields"):
        next(iter(ingot.Loader(mixed, 4)))


def test_a_sample_that_fails_is_replaced_the_same_way_on_any_topology(cats):
    order = cats.shuffle(1).map(refuse_sevens)
    expected = None
    for worlds in (1, 2, 5):
        found, _ = global_batches(
            order, 6, worlds=worlds, global_batch_size=10, on_error="substitute"
        )
        expected = expected or found
        assert found == expected
    flat = [label for batch in expected for label in batch]
    assert len(flat) == ROWS
    assert not any(label % 10 == 7 for label in flat)
    assert {label for label in range(ROWS) if label % 10 != 7} <= set(flat)


def test_the_loader_lists_what_it_has_replaced(cats):
    loader = ingot.Loader(cats.map(refuse_sevens), 20, workers=2, on_error="substitute")
    batches = iter(loader)
    assert loader.errors == []
    first = next(batches)
    assert [one.position for one in loader.errors] == [7, 17]
    one = loader.errors[0]
    assert isinstance(one, Replacement)
    file = Path(cats.paths[0]).name
    assert (one.step, one.rows) == (0, f"row 7 of cats, in {file}")
    assert one.reason == "KeyError: 'no 7'"
    assert first[7] == one.substitute
    list(batches)
    assert [one.position for one in loader.errors] == [7, 17, 27, 37, 47, 57]


def test_a_damaged_record_is_replaced_in_columns_too(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "array(uint8,999)"}) as writer:
        for k in range(20):
            writer.append({"a": np.random.default_rng(k).integers(0, 256, 999, np.uint8)})
    content = bytearray((tmp_path / "x.ingot").read_bytes())
    place = content.index(np.random.default_rng(7).integers(0, 256, 999, np.uint8).tobytes())
    content[place + 5] ^= 1
    (tmp_path / "x.ingot").write_bytes(content)
    ds = ingot.open(tmp_path / "x.ingot")
    with pytest.raises(ingot.WorkerError, match="step 1, position 7 ") as caught:
        list(ingot.Loader(ds, 5))
    assert isinstance(caught.value.__cause__, ingot.CorruptFileError)
    assert caught.value.path == str(tmp_path / "x.ingot")
    for order in (ds, ds.repeat()):
        loader = ingot.Loader(order, 5, on_error="substitute")
        batch = loader.batch(1)["a"]
        assert batch.shape == (5, 999)
        loader.seek(1)
        assert (next(iter(loader))["a"] == batch).all()
        (replaced,) = loader.errors
        assert replaced.position == 7
        assert replaced.reason.startswith("CorruptFileError: ")
        assert (batch[2] == ds[replaced.substitute % 20]["a"]).all()


def test_the_last_errors_are_kept_and_all_are_counted(cats, monkeypatch):
    monkeypatch.setattr("ingot.loader.loader._ERRORS_MAX", 3)
    with ingot.Loader(cats.map(refuse_sevens).repeat(9), 20, on_error="substitute") as loader:
        for _ in loader:
            pass
        replaced = [k for k in range(len(loader) * 20) if k % len(cats) % 10 == 7]
        assert [one.position for one in loader.errors] == replaced[-3:]
        assert loader.stats().replaced == len(replaced)


def test_a_function_that_always_fails_is_an_error_even_with_substitutes(cats):
    def fail(sample):
        raise ValueError(sample)

    with pytest.raises(ingot.WorkerError, match="step 0, position 0 and 16 substitutes"):
        next(iter(ingot.Loader(cats.map(fail), 5, on_error="substitute")))


def test_an_error_that_no_sample_caused_is_not_replaced(folder):
    ds = ingot.open(folder / "cats")
    loader = ingot.Loader(ds, 5, on_error="substitute")
    ds.close()
    with pytest.raises(ingot.WorkerError, match="ClosedError"):
        next(iter(loader))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("cats",), {}, TypeError, r"got a path: ingot\.open\('cats'\) opens it"),
        ((5,), {}, TypeError, "an order is made of a sequence"),
        ((range(9), 0), {}, ValueError, "batch_size is at least 1"),
        ((range(9), "4"), {}, TypeError, "batch_size is an integer, not '4'"),
        ((range(9), True), {}, TypeError, "batch_size is an integer, not True"),
        ((range(9), np.True_), {}, TypeError, "batch_size is an integer, not np.True_"),
        (
            (range(9), None),
            {"global_batch_size": True},
            TypeError,
            "global_batch_size is an integer",
        ),
        ((range(9), 4), {"workers": True}, TypeError, "workers is an integer, not True"),
        ((range(9), 4), {"prefetch": True}, TypeError, "prefetch is an integer, not True"),
        (
            (range(9), None),
            {},
            TypeError,
            "on each rank, or global_batch_size=, the number on all ranks together, got neither",
        ),
        ((range(9), 4), {"global_batch_size": 4}, TypeError, "all ranks together, got both"),
        (
            (range(9), None),
            {"global_batch_size": 2, "shard": (0, 3)},
            ValueError,
            "global_batch_size=2 has no sample for each of 3 ranks: pass at least 3, or batch_size",
        ),
        ((range(9),), {"workers": "2"}, TypeError, "workers is an integer, not '2'"),
        ((range(0), 1), {}, ValueError, "the order has no samples"),
        (
            (range(9), 5),
            {"drop_last": True, "shard": (0, 2)},
            ValueError,
            "9 samples has no whole batch of 10 on all ranks: pass drop_last=False",
        ),
        ((range(9),), {"shard": (3, 3)}, ValueError, "rank 3 of 3"),
        (
            (range(9),),
            {"shard": 3},
            TypeError,
            r'shard is "auto", \(rank, world\), a device mesh or None, not 3',
        ),
        ((range(9),), {"to": "tf"}, ValueError, 'not "tf": ingot.tf.dataset'),
        ((range(9),), {"to": "x"}, ValueError, 'to is "numpy" or "torch" or "jax", not \'x\''),
        ((range(9),), {"on_error": "skip"}, ValueError, 'on_error is "raise" or "substitute"'),
        ((range(9),), {"pin_memory": True}, ValueError, 'pin_memory requires to="torch"'),
        ((range(9),), {"workers": -1}, ValueError, "workers is at least 0"),
        ((range(9),), {"prefetch": 0}, ValueError, "prefetch is at least 1"),
        (
            (ingot.Order.of(range(99)).shard(0, 2),),
            {"shard": (0, 2)},
            ValueError,
            r"the order has shard\(rank=0, world=2\), and the loader gives each of 2 ranks",
        ),
        (
            (ingot.mix({"a": ingot.Order.of(range(99)).shard(0, 2)}, {"a": 1}),),
            {"shard": (0, 2)},
            ValueError,
            "leave the step out, or pass shard=None",
        ),
    ],
)
def test_natural_mistakes_get_exact_messages(arguments, options, error, message):
    batch_size = arguments[1] if len(arguments) > 1 else 4
    with pytest.raises(error, match=message):
        ingot.Loader(arguments[0], batch_size, **options)


def test_invalid_steps_are_rejected():
    loader = ingot.Loader(ingot.Order.of(range(9)).repeat(), 4)
    for step in (-1, 2**62):
        with pytest.raises(ValueError, match="a step is at least 0"):
            loader.seek(step)
    with pytest.raises(ValueError, match="expected first <= stop, got 5 and 3"):
        loader.skip(5, 3)
    with pytest.raises(TypeError, match="an infinite order has no number of steps"):
        len(loader)


def test_a_row_of_a_part_is_named_as_verify_names_it(tmp_path):
    with ingot.DatasetWriter(
        tmp_path / "x", {"a": "array(uint8,999)", "n": "int"}, shard_rows=10, compression=None
    ) as writer:
        writer.extend({"a": np.full(999, k, np.uint8), "n": k} for k in range(30))
    damaged = sorted((tmp_path / "x").glob("*.ingot"))[1]
    content = bytearray(damaged.read_bytes())
    content[content.find(bytes([17] * 999)) + 500] ^= 1
    damaged.write_bytes(content)
    ds = ingot.open(tmp_path / "x")
    assert [one.record for one in ds.verify().damaged] == [17]

    odd = ds.where(ds.column("n") % 2 == 1)
    half = next(one for one in ds.split(0.5) if 17 in one.column("n"))
    for part in (odd, odd.select("a"), odd[::-1], odd.concat(ds[:4]), half):
        loader = ingot.Loader(part.shuffle(3), 2, drop_last=False, on_error="substitute")
        for _ in loader:
            pass
        (one,) = loader.errors
        assert one.rows == f"row 17 of x, in {damaged.name}"
        assert "record 17" in one.reason
        with pytest.raises(ingot.WorkerError, match=rf"\(row 17 of x, in {damaged.name}\)"):
            list(ingot.Loader(part.map(len), 2, drop_last=False))


def test_indices_tell_where_rows_are_stored(tmp_path, cats, logs):
    files = []
    for name in "ab":
        files.append(str(tmp_path / f"{name}.ingot"))
        with ingot.Writer(files[-1]) as writer:
            writer.extend([b"x", b"y"])
    both = ingot.open(files)
    order = ingot.concat(cats[::-1], both[1:], both.take([3]), logs, ["plain"])
    loader = ingot.Loader(order, len(order), drop_last=False)
    rows = loader.indices(0)
    assert rows.row[:3].tolist() == [0, 1, 2]
    found = loader.order.origins(rows)
    assert len(found) == len(order)
    assert found[0] == Origin(ROWS - 1, cats.path, cats.paths[0])
    assert found[ROWS : ROWS + 4] == [
        Origin(1, files[0], files[0]),
        Origin(2, files[0], files[1]),
        Origin(3, files[0], files[1]),
        Origin(3, files[0], files[1]),
    ]
    assert found[-2:] == [Origin(ROWS - 1, logs.path, logs.path), Origin(0)]
    assert [str(one) for one in (found[ROWS], found[ROWS + 1], *found[-2:])] == [
        "row 1 of a.ingot",
        "row 2 of all files, in b.ingot",
        f"row {ROWS - 1} of logs.ingot",
        "row 0",
    ]


def test_a_pack_that_fails_names_its_rows(cats):
    def fail(samples):
        raise ValueError(len(samples))

    loader = ingot.Loader(cats[1:].batch(6).map(fail), 1)
    with pytest.raises(ingot.WorkerError, match=r"\(rows 1, 2, 3, 4, \.\.\. of cats, in "):
        next(iter(loader))


@pytest.mark.parametrize(
    ("options", "instead"),
    [
        ({"shuffle": True}, r"Loader\(ds\.shuffle\(seed=0\), batch_size\)"),
        ({"num_workers": 4}, "workers="),
        ({"collate_fn": list}, "collate="),
        ({"prefetch_factor": 2}, "prefetch="),
        ({"sampler": [1]}, r"ds\.take\(indices\)"),
        ({"rank": 0, "world_size": 1}, r"shard=\(rank, world\)"),
    ],
)
def test_arguments_of_other_loaders_are_rejected_with_the_alternative(options, instead):
    name = next(iter(options))
    with pytest.raises(TypeError, match=f"has no argument '{name}'; instead: .*{instead}"):
        ingot.Loader(range(9), 3, **options)
    with pytest.raises(TypeError, match="has no argument 'dataset'; instead: order="):
        ingot.Loader(dataset=range(9), batch_size=3)
    with pytest.raises(TypeError, match="unknown option 'nonsense'"):
        ingot.Loader(range(9), 3, nonsense=1)
    assert list(inspect.signature(ingot.Loader).parameters)[:2] == ["order", "batch_size"]


def test_stats_count_what_was_replaced(cats):
    def slow_or_bad(row):
        time.sleep(0.002)
        return refuse_sevens(row)

    loader = ingot.Loader(cats.map(slow_or_bad), 10, workers=0, on_error="substitute")
    list(loader)
    stats = loader.stats()
    assert stats.replaced == len(loader.errors) > 0
    assert stats.replace_s > 0.002
    assert f"{stats.replaced} samples replaced in" in str(stats)


def test_a_source_that_loses_rows_is_rejected():
    class Lossy(list):
        def __getitems__(self, rows):
            return [self[row] for row in rows if row != 35]

    with pytest.raises(ingot.WorkerError, match="__getitems__ of Lossy returned 0 items for 1 row"):
        list(ingot.Loader(Lossy(range(100)), 10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shard": ("0", "2")}, "a rank is an integer, not '0'"),
        ({"batch_size": 1 << 60}, "a step has at most 134,217,728 samples on all ranks"),
        ({"collate": 5}, "collate is a function of a list of samples, not 5"),
        ({"epochs": 3}, r"instead: ds\.repeat\(n\)"),
    ],
)
def test_mistakes_are_named_at_once(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ingot.Loader(ingot.Order.of(range(9)).repeat(), **{"batch_size": 3} | options)
    with pytest.raises(TypeError, match="a step is an integer, not '3'"):
        ingot.Loader(range(9), 3).seek("3")


class Panic(BaseException):
    """As the engine raises it: no Exception."""


class Failing:
    """Numbers, one of which ends the program, or so it asks."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 64

    def __getitem__(self, k):
        if k == 21:
            raise self.error
        return k


class FailingMany(Failing):
    """The same, read many at a time."""

    def __getitems__(self, indices):
        return [self[k] for k in indices]


@pytest.mark.parametrize("options", [{"workers": 0}, {"workers": 2}, {"processes": 2}])
@pytest.mark.parametrize("source", [Failing, FailingMany])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("now"), Panic("broken")])
@pytest.mark.timeout(60)
def test_base_exceptions_reach_the_loop_unchanged(error, source, options):
    with ingot.Loader(source(error), 4, **options) as loader:
        taken = []
        with pytest.raises(type(error)) as caught:
            taken.extend(loader)
        assert caught.value.args == error.args
        assert len(taken) <= 5
        loader.seek(6)
        assert next(iter(loader)).tolist() == [24, 25, 26, 27]
