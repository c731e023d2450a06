"""Batches as a `tf.data.Dataset`: the same as the plain loader's, with exact signatures."""

import random
import subprocess
import sys
import warnings
from collections import namedtuple

import numpy as np
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tensorflow as tf

import ingot
import ingot.tf

ROWS = 60
SPEC = {
    "label": "int",
    "image": "array(uint8,2,3)",
    "state": "array",
    "photo": "png",
    "name": "utf8",
    "data": "bytes",
    "words": "utf8[]",
    "steps": "array(float32,2)[]",
    "tokens": "int[]",
    "frames": "png[]",
    "score": "float?",
    "note": "utf8?",
    "vector": "array(float32,2)?",
    "tags": "int[]?",
    "deep": {"x": "float", "y": "bool?"},
}
Pair = namedtuple("Pair", "a b")  # noqa: PYI024 -- as old code has them


def row(k):
    found = {
        "label": k,
        "image": np.full((2, 3), k, np.uint8),
        "state": np.full((k // 10 + 1, 2), k, np.float32),
        "photo": np.full((4, 5, 3), k, np.uint8),
        "name": f"n\u00e4me {k}",
        "data": b"\0%d\0" % k,
        "words": [f"{k}/{j}" for j in range(k % 5)],
        "steps": [np.full(2, j, np.float32) for j in range(k % 3)],
        "tokens": list(range(k % 7)),
        "frames": [np.full((4, 4), k, np.uint8)] * (k % 2 + (k == 0)),
        "deep": {"x": k / 2},
    }
    if k % 2:
        found |= {"score": k / 4, "note": f"note {k}", "vector": np.full(2, k, np.float32)}
    if k % 3:
        found |= {"tags": [k] * (k % 4)}
        found["deep"]["y"] = k % 2 == 0
    return found


@pytest.fixture(scope="module")
def cats(tmp_path_factory):
    path = tmp_path_factory.mktemp("tf") / "cats"
    with ingot.DatasetWriter(path, SPEC, sync=False) as writer:
        writer.extend(row(k) for k in range(ROWS))
    return ingot.open(path)


@pytest.fixture(autouse=True)
def no_ranks(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


def noisy(sample, rng):
    return {"label": sample["label"], "noise": rng.integers(1 << 40), "words": sample["words"]}


def label_of(sample):
    return sample["label"]


def refuse_sevens(sample):
    if sample["label"] % 10 == 7:
        raise ValueError(sample["label"])
    return sample["label"]


def plain(batch):
    """Return a batch, of tensors or of arrays, as lists; text as bytes."""
    if isinstance(batch, dict):
        return {key: plain(one) for key, one in batch.items()}
    if isinstance(batch, list | tuple):
        return [plain(one) for one in batch]
    if isinstance(batch, tf.RaggedTensor):
        return batch.to_list()
    if isinstance(batch, str):
        return batch.encode()
    array = batch.numpy() if isinstance(batch, tf.Tensor) else batch
    return array.tolist() if hasattr(array, "tolist") else array


def spec_of(dtype, *shape):
    return tf.TensorSpec(shape, dtype)


def ragged_of(dtype, *shape):
    return tf.RaggedTensorSpec(shape, dtype, ragged_rank=1)


def test_the_signature_is_that_of_the_fields(cats):
    assert ingot.tf.dataset(cats, 10).element_spec == {
        "label": spec_of(tf.int64, 10),
        "image": spec_of(tf.uint8, 10, 2, 3),
        "state": spec_of(tf.float32, 10, None, None),
        "photo": spec_of(tf.uint8, 10, None, None, 3),
        "name": spec_of(tf.string, 10),
        "data": spec_of(tf.string, 10),
        "words": ragged_of(tf.string, 10, None),
        "steps": ragged_of(tf.float32, 10, None, 2),
        "tokens": ragged_of(tf.int64, 10, None),
        "frames": ragged_of(tf.uint8, 10, None, None, None),
        "score": spec_of(tf.float64, 10),
        "score?": spec_of(tf.bool, 10),
        "note": spec_of(tf.string, 10),
        "note?": spec_of(tf.bool, 10),
        "vector": spec_of(tf.float32, 10, 2),
        "vector?": spec_of(tf.bool, 10),
        "tags": ragged_of(tf.int64, 10, None),
        "tags?": spec_of(tf.bool, 10),
        "deep": {
            "x": spec_of(tf.float64, 10),
            "y": spec_of(tf.bool, 10),
            "y?": spec_of(tf.bool, 10),
        },
    }


def test_a_batch_has_the_values_of_its_rows(cats):
    (batch,) = ingot.tf.dataset(cats.take(10), 10)
    found = plain(batch)
    rows = [row(k) for k in range(10)]
    for name in ("label", "image", "state", "photo", "data", "steps", "tokens", "frames"):
        assert found[name] == [plain(one[name]) for one in rows], name
    assert found["name"] == [one["name"].encode() for one in rows]
    assert found["words"] == [[word.encode() for word in one["words"]] for one in rows]
    assert found["score"] == [one.get("score", 0) for one in rows]
    assert found["score?"] == ["score" in one for one in rows]
    assert found["note"] == [one.get("note", "").encode() for one in rows]
    assert found["vector"] == [plain(one.get("vector", [0, 0])) for one in rows]
    assert found["tags"] == [one.get("tags", []) for one in rows]
    assert found["tags?"] == ["tags" in one for one in rows]
    assert found["deep"]["y"] == [one["deep"].get("y", False) for one in rows]
    assert found["deep"]["y?"] == ["y" in one["deep"] for one in rows]


def test_missing_values_of_unknown_shape_take_that_of_the_others(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x", {"a": "array?"}, sync=False) as writer:
        writer.extend([{"a": np.ones(3)}, {}, {}, {}])
    first, second = ingot.tf.dataset(ingot.open(tmp_path / "x"), 2)
    assert first["a"].numpy().tolist() == [[1, 1, 1], [0, 0, 0]]
    assert second["a"].shape == (2, 0)
    assert second["a?"].numpy().tolist() == [False, False]


def chosen(ds):
    return ds.select("label", "image", "name", "words", "deep.x")


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_match_the_plain_loader(cats, workers):
    for order in (chosen(cats).shuffle(seed=3), cats.shuffle(seed=3).map(noisy)):
        expected = [plain(batch) for batch in ingot.Loader(order, 8)]
        found = ingot.tf.dataset(order, 8, workers=workers)
        assert [plain(batch) for batch in found] == expected


def test_each_loop_is_an_epoch_even_after_one_that_was_left(cats):
    order = cats.shuffle(seed=3).map(label_of)
    epochs = [plain(ingot.Loader(order, 8).batch(step)) for step in range(40)]
    found = ingot.tf.dataset(order, 8)
    assert found.cardinality() == 8
    assert [plain(batch) for batch in found] == epochs[:8]
    assert [plain(batch) for batch in found.take(2)] == epochs[8:10]
    assert [plain(batch) for batch in found] == epochs[16:24]
    for batch in found:
        assert plain(batch) == epochs[24]
        break
    assert [plain(batch) for batch in found] == epochs[32:40]


def test_an_order_without_end_is_an_infinite_data_set(cats):
    order = cats.shuffle(seed=3).map(label_of).repeat()
    found = ingot.tf.dataset(order, 8)
    assert found.cardinality() == tf.data.INFINITE_CARDINALITY
    expected = [plain(ingot.Loader(order, 8).batch(step)) for step in range(20)]
    assert [plain(batch) for batch in found.take(20)] == expected


def test_the_last_batch_may_be_shorter(cats):
    found = ingot.tf.dataset(cats.map(label_of), 8)
    assert found.element_spec == spec_of(tf.int64, None)
    assert [len(batch) for batch in found] == [8] * 7 + [4]
    assert found.cardinality() == 8
    for whole in (
        ingot.tf.dataset(cats.map(label_of), 20),
        ingot.tf.dataset(cats.map(label_of), 20, drop_last=True),
    ):
        assert whole.element_spec == spec_of(tf.int64, 20)
    short = ingot.tf.dataset(cats.map(label_of), 100)
    assert short.element_spec == spec_of(tf.int64, None)
    assert [len(batch) for batch in short] == [60]


def test_an_epoch_that_is_resumed_within_a_batch_ends_with_a_shorter_one(cats):
    first = ingot.Loader(cats.map(label_of), 7)
    first.seek(1)
    loader = ingot.Loader(cats.map(label_of), 20)
    loader.load_state_dict(first.state_dict())
    found = ingot.tf.dataset(loader)
    assert found.element_spec == spec_of(tf.int64, None)
    assert [len(batch) for batch in found] == [20, 20, 13]
    assert [len(batch) for batch in found] == [20, 20, 20]


def test_a_state_resumes_at_any_step(cats):
    order = cats.shuffle(seed=5).map(noisy)
    loader = ingot.Loader(order, 8)
    whole, states = [], []
    for _ in range(2):
        for batch in ingot.tf.dataset(loader):
            whole.append(plain(batch))
            states.append(loader.state_dict())
    assert len(whole) == 16
    for step in random.Random(0).sample(range(15), 4):
        again = ingot.Loader(order, 8, workers=1)
        again.load_state_dict(states[step])
        rest = ingot.tf.dataset(again)
        at_start = (step + 1) % 8 == 0
        assert rest.cardinality() == (8 if at_start else tf.data.UNKNOWN_CARDINALITY)
        found = []
        while len(found) < 15 - step:
            found += [plain(batch) for batch in rest]
        assert found == whole[step + 1 :]


def test_a_step_is_all_that_is_needed_to_resume_behind_a_prefetch(cats):
    order = cats.shuffle(seed=5).map(label_of).repeat()
    trained = [plain(batch) for batch in ingot.tf.dataset(order, 8).prefetch(4).take(9)]
    loader = ingot.Loader(order, 8)
    loader.seek(len(trained))
    assert plain(next(iter(ingot.tf.dataset(loader)))) == plain(loader.batch(9))


def test_steps_that_are_left_out_are_not_counted(cats):
    loader = ingot.Loader(cats.map(label_of), 10)
    loader.skip(2, 4)
    found = ingot.tf.dataset(loader)
    assert found.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert [plain(batch)[0] for batch in found] == [0, 10, 40, 50]


def test_each_rank_has_its_part(cats):
    order = cats.map(label_of)
    parts = [ingot.tf.dataset(order, global_batch_size=10, shard=(rank, 3)) for rank in range(3)]
    assert [one.element_spec.shape[0] for one in parts] == [3, 3, 4]
    found = [sum(map(plain, batches), []) for batches in zip(*parts, strict=True)]  # noqa: RUF017
    assert found == [list(range(k, k + 10)) for k in range(0, ROWS, 10)]
    parts = [ingot.tf.dataset(order, 5, shard=(rank, 3)) for rank in range(3)]
    assert [one.element_spec.shape[0] for one in parts] == [5, 5, 5]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([1, 2], spec_of(tf.int64, 2)),
        ([b"a", b"\0"], spec_of(tf.string, 2)),
        (["a", "b"], spec_of(tf.string, 2)),
        ([(1, "a"), (2, "b")], (spec_of(tf.int64, 2), spec_of(tf.string, 2))),
        ([Pair(1, "a"), Pair(2, "b")], Pair(spec_of(tf.int64, 2), spec_of(tf.string, 2))),
        ([np.ones((3, 2), np.float16)] * 2, spec_of(tf.float16, 2, 3, 2)),
        ([np.ones((3, 2)), np.ones((4, 2))], ragged_of(tf.float64, 2, None, 2)),
        ([[1, 2], [3]], ragged_of(tf.int64, 2, None)),
        ([["a"], []], ragged_of(tf.string, 2, None)),
    ],
)
def test_other_samples_have_the_signature_of_the_first_batch(samples, expected):
    found = ingot.tf.dataset(samples, 2)
    assert found.element_spec == expected
    (batch,) = found
    assert plain(batch) == plain(ingot.Loader(samples, 2).batch(0))


def test_a_collate_function_may_return_anything_that_is_a_tensor(cats):
    found = ingot.tf.dataset(
        cats.map(label_of), 6, collate=lambda labels: (sum(labels), labels[:3], labels, "w")
    )
    assert found.element_spec == (
        spec_of(tf.int64),
        spec_of(tf.int64, 3),
        spec_of(tf.int64, 6),
        spec_of(tf.string),
    )
    assert plain(next(iter(found))) == [15, [0, 1, 2], [0, 1, 2, 3, 4, 5], b"w"]


@pytest.mark.parametrize("is_ragged", [False, True])
def test_tensors_never_share_memory_that_changes(is_ragged):
    memory = np.empty(4 * 16384 + 64, np.uint8)
    start = -memory.ctypes.data % 64  # TensorFlow copies what is not aligned.
    used = memory[start : start + 4 * 16384].view(np.float32)

    def collate(samples):
        used[:] = samples[0]
        return [used, used[:3]] if is_ragged else used

    found = list(ingot.tf.dataset([3, 4, 5], 1, collate=collate, workers=0))
    used[:] = 9
    values = [one.flat_values if is_ragged else one for one in found]
    assert [(one.numpy().min(), one.numpy().max()) for one in values] == [(3, 3), (4, 4), (5, 5)]


def test_nothing_is_read_if_the_types_tell_the_signature(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.DatasetWriter(path, {"text": "utf8"}, compression=None, sync=False) as writer:
        writer.append({"text": "damaged"})
    path.write_bytes(path.read_bytes().replace(b"damaged", b"DAMAGED"))
    found = ingot.tf.dataset(ingot.open(path), 1)
    assert found.element_spec == {"text": spec_of(tf.string, 1)}
    with pytest.raises(tf.errors.OpError, match="CorruptFileError"):
        list(found)


def test_a_signature_chooses_fields_and_widens_types(cats):
    signature = {
        "image": spec_of(tf.float32, None, None, None),
        "words": ragged_of(tf.string, None, None),
        "score?": spec_of(tf.bool, None),
    }
    found = ingot.tf.dataset(cats, 10, signature=signature)
    assert found.element_spec == signature
    batch = next(iter(found))
    assert batch["image"].dtype == tf.float32
    assert batch["image"].numpy()[:, 0, 0].tolist() == list(range(10))
    assert batch["score?"].numpy().tolist() == [False, True] * 5


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ([np.ones(2)] * 2 + [np.ones(3)] * 2, {}, r"batch has shape \(2, 3\), and the signature"),
        ([1, 2, 2.5, 3], {}, "batch has dtype float64, and the signature has int64: map it"),
        (
            [{"a": 1}] * 2,
            {"signature": {"b": spec_of(tf.int64, 2)}},
            "batch has no field 'b', which the signature names: it has",
        ),
        ([1, 2], {"signature": (spec_of(tf.int64, 2),)}, "batch is ndarray, and the signature has"),
        (
            [np.ones((1, 2)), np.ones((1, 3))],
            {"signature": ragged_of(tf.float64, 2, None, None)},
            r"batch has values of shapes \(2,\) and \(3,\), which do not make a tensor",
        ),
        (
            [[1], [2]],
            {"signature": tf.RaggedTensorSpec((2, None, None), tf.int64, ragged_rank=2)},
            "expected a signature of ragged_rank 1, got 2",
        ),
    ],
)
def test_a_batch_that_does_not_fit_is_an_error(samples, options, message):
    with pytest.raises(tf.errors.OpError, match=message):
        list(ingot.tf.dataset(samples, 2, **options))


def test_images_of_different_shapes_are_an_error_that_names_the_field(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x", {"image": "png"}, sync=False) as writer:
        writer.extend({"image": np.zeros((4, 4 + k % 3, 3), np.uint8)} for k in (0, 0, 1, 1, 1, 2))
    batches = iter(ingot.tf.dataset(ingot.open(tmp_path / "x"), 2))
    assert next(batches)["image"].shape == (2, 4, 4, 3)
    assert next(batches)["image"].shape == (2, 4, 5, 3)
    with pytest.raises(tf.errors.OpError, match=r"batch\['image'\] has values of shapes \(4, 5, 3"):
        next(batches)


def test_a_bad_sample_is_replaced_or_an_error(cats):
    order = cats.map(refuse_sevens)
    expected = [plain(one) for one in ingot.Loader(order, 6, on_error="substitute")]
    loader = ingot.Loader(order, 6, on_error="substitute")
    assert [plain(batch) for batch in ingot.tf.dataset(loader)] == expected
    assert len(loader.errors) == 6
    with pytest.raises(tf.errors.OpError, match=r"WorkerError: step 1, position 7 \(row 7 of cats"):
        list(ingot.tf.dataset(order, 6))


def test_two_loops_at_once_are_rejected(cats):
    found = ingot.tf.dataset(cats.map(label_of), 6)
    with pytest.raises(tf.errors.OpError, match="another loop over this loader has begun since"):
        list(zip(found, found, strict=True))


@pytest.mark.parametrize(
    ("spec", "value"),
    [("json", {"a": 1}), ("tree", {"a": 1}), ("array?", None), ("png[]", [])],
)
def test_a_field_without_tensors_is_rejected_by_name(tmp_path, spec, value):
    with ingot.DatasetWriter(tmp_path / "x", {"field": spec}, sync=False) as writer:
        writer.extend([{} if value is None else {"field": value}] * 2)
    pattern = rf"field 'field' is {spec.replace('[', '.').replace('?', '.')[:4]}.*, and the first"
    with pytest.raises(TypeError, match=pattern):
        ingot.tf.dataset(ingot.open(tmp_path / "x"), 2)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((range(9),), {}, TypeError, "expected a loader, or an order and a batch_size"),
        ((ingot.Loader(range(9), 3), 3), {}, TypeError, "options are those of the loader"),
        ((ingot.Loader(range(9), 3),), {"workers": 1}, TypeError, "options are those of the"),
        ((range(9), 10), {"drop_last": True}, ValueError, "9 samples has no whole batch of 10"),
        (([{1}, {2}], 2), {}, TypeError, "batch is a list of values that do not make a tensor"),
        (([1, "a"], 2), {}, TypeError, "batch is a list of values that do not make a tensor"),
        (([np.datetime64(1, "s")], 1), {}, TypeError, "batch has values of type datetime64"),
    ],
)
def test_natural_mistakes_get_exact_messages(arguments, options, error, message):
    with pytest.raises(error, match=message):
        ingot.tf.dataset(*arguments, **options)


def test_keras_trains_on_it(cats):
    order = cats.shuffle(seed=0).map(lambda row: (np.float32(row["image"]), row["label"] % 2))
    keras = tf.keras
    model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, optimizer="sgd")
    loader = ingot.Loader(order, 6)
    model.fit(ingot.tf.dataset(loader), epochs=3, shuffle=False, verbose=0)
    assert int(model.optimizer.iterations) == 30
    assert loader.step == 30


def test_without_tensorflow_there_is_a_word_on_how_to_get_it():
    code = """
import sys
sys.modules["tensorflow"] = None
try:
    import ingot.tf
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    hint = "pip install 'ingot-data[tf]' (in a checkout: pip install '.[tf]')"
    assert done.stdout == f"ingot.tf requires TensorFlow: {hint}\n"
