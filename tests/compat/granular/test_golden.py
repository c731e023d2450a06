import hashlib
import json

import numpy as np
import pytest

import ingot
from ingot.compat import granular
from tests.support import DATA

GOLDEN = DATA / "granular"
MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())
VERSIONS = ("v1", "v2", "v3")
LOSSY = {"jpg", "mp4", "webm"}


def said(value):
    """Return a value in the form that the manifest has it in."""
    match value:
        case np.ndarray():
            digest = hashlib.sha256(value.tobytes()).hexdigest()
            shape = list(value.shape)
            return {"dtype": value.dtype.str, "shape": shape, "sha256": digest}
        case bytes():
            return {"bytes": value.hex()}
        case dict():
            return {key: said(one) for key, one in value.items()}
        case list():
            return [said(one) for one in value]
    return value


def without_figures(value):
    """Return a value of the manifest without what its digest says better."""
    if isinstance(value, list):
        return [without_figures(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = ("dtype", "shape", "sha256") if "sha256" in value else value
    return {key: without_figures(value[key]) for key in kept}


def check_row(row, expected, spec):
    assert row.keys() == expected.keys()
    for key, value in row.items():
        if spec[key] in LOSSY:
            assert value.dtype.str == expected[key]["dtype"]
            assert list(value.shape) == expected[key]["shape"]
            assert abs(float(value.mean()) - expected[key]["mean"]) < 2
        else:
            assert said(value) == without_figures(expected[key]), key


FOLDERS = [(version, name) for version in VERSIONS for name in ("dataset50", "alltypes")]


@pytest.mark.parametrize(("version", "name"), FOLDERS)
def test_every_value_of_a_golden_folder_is_read(version, name):
    expected = MANIFEST[version][f"{version}_{name}"]
    with granular.DatasetReader(GOLDEN / f"{version}_{name}", granular.decoders) as reader:
        assert reader.spec == expected["spec"]
        assert len(reader) == expected["len"]
        assert reader.size == expected.get("size", reader.size)
        for index, row in enumerate(expected["decoded"]):
            check_row(reader[index], row, expected["spec"])


@pytest.mark.parametrize(("version", "name"), FOLDERS)
def test_a_golden_folder_is_opened_as_a_data_set(version, name):
    expected = MANIFEST[version][f"{version}_{name}"]
    with ingot.open(GOLDEN / f"{version}_{name}") as ds:
        assert dict(ds.spec) == expected["spec"]
        assert len(ds) == expected["len"]
        assert ds.verify().ok
        for index in (0, 4, len(ds) - 1):
            check_row(ds[index], expected["decoded"][index], expected["spec"])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_shards_of_a_golden_folder_are_one_data_set(version):
    folder = GOLDEN / f"{version}_sharded20"
    expected = MANIFEST[version][f"{version}_sharded20"]
    with granular.ShardedDatasetReader(folder, granular.decoders) as reader:
        assert (reader.shards, reader.starts, reader.stops) == (
            expected["shards"],
            expected["starts"],
            expected["stops"],
        )
        assert reader.size == expected["size"]
        assert reader.spec == expected["spec"]
        assert [reader[i, ["foo"]]["foo"] for i in range(len(reader))] == expected["foo"]
        assert reader[15:45, ("foo",)] == {"foo": expected["foo"][15:45]}
        assert reader[[45, 3, 21, 4], ["foo"]] == {"foo": [45, 3, 21, 4]}
        assert reader[-1, ["foo"]] == {"foo": 49}
    part = granular.ShardedDatasetReader(folder, granular.decoders, shardstart=1, shardstep=2)
    assert part[0 : len(part), ["foo"]]["foo"] == expected["shardstart1_step2_foo"]
    with ingot.open(folder) as ds:
        assert ds.select("foo")[range(50)]["foo"].tolist() == expected["foo"]
        assert ds.column("foo").tolist() == expected["foo"]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_sequences_are_read_in_part(version):
    expected = MANIFEST[version][f"{version}_dataset50"]
    folder = GOLDEN / f"{version}_dataset50"
    reader = granular.DatasetReader(folder, granular.decoders, cache_keys=("refs", "foo"))
    for index, there in enumerate(expected["available"]):
        available = reader.available(index)
        assert {k: [v.start, v.stop] if v is not True else v for k, v in available.items()} == there
        assert reader[index, available].keys() == expected["spec"].keys()
    example = expected["mask_example"]
    for mask in (
        {"bar": range(1, 3), "foo": True},
        {"bar": slice(1, 3), "foo": True, "abc": False},
    ):
        assert reader[example["index"], mask] == example["value"]
    assert reader[4, {"bar": range(2, 99)}] == {"bar": ["hello4-2", "hello4-3"]}
    assert reader[4, {"bar": range(50, 99)}] == {"bar": []}
    assert reader[3:6, ["bar"]]["bar"] == [row["bar"] for row in expected["decoded"][3:6]]
    with ingot.open(folder) as ds:
        assert ds[4, {"bar": range(1, 3)}] == {"bar": ["hello4-1", "hello4-2"]}
        assert ds.available(4) == reader.available(4)
        assert ds[[4, 0], ["bar"]]["bar"] == [expected["decoded"][4]["bar"], []]


def test_columns_are_read_in_ranges():
    example = MANIFEST["v3"]["v3_dataset50"]["slice_example"]
    reader = granular.DatasetReader(GOLDEN / "v3_dataset50", granular.decoders)
    assert reader[3:6, tuple(example["keys"])] == example["value"]
    assert reader[range(3, 6), example["keys"]] == example["value"]
    assert reader[:2, ["foo"]] == {"foo": [0, 1]}
    assert reader[45:99, ["foo"]] == {"foo": [45, 46, 47, 48, 49]}
    assert reader[5:5, ["foo"]] == {"foo": []}
    assert reader[3, {"foo": True, "bar": False}] == {"foo": 3}
    assert reader[3, {}] == {}


BAGS = [
    (version, name)
    for version in VERSIONS
    for name, file in MANIFEST[version][f"{version}_bags"]["files"].items()
    if "records" in file
]


@pytest.mark.parametrize(("version", "name"), BAGS)
def test_every_record_of_a_golden_bag_is_read(version, name):
    path = GOLDEN / f"{version}_bags" / name
    expected = MANIFEST[version][f"{version}_bags"]["files"][name]["records"]
    limits = path.with_suffix(".idx")
    in_memory = [path.read_bytes(), *([limits.read_bytes()] if version == "v3" else [])]
    for reader in (
        granular.BagReader(path),
        granular.BagReader(str(path)),
        granular.BagReader(*in_memory),
    ):
        digests = [[len(one), hashlib.sha256(one).hexdigest()] for one in reader]
        assert digests == expected
        assert reader[0 : len(reader)] == list(reader)
        assert len(reader) == len(expected)
        with pytest.raises(IndexError):
            reader[len(reader)]


def test_files_of_a_dead_writer_are_not_read():
    reader = granular.BagReader(GOLDEN / "v3_crash" / "partial.bag")
    assert len(reader) == 2
    assert reader[-1] == reader[1]
    with pytest.raises(ingot.FormatError, match="inconsistent column lengths"):
        granular.DatasetReader(GOLDEN / "v3_crash" / "ahead", granular.decoders)


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_orders_match_granular(version):
    expected = MANIFEST[version]["sources"]
    epochs = granular.sources.Epochs(range(50), seed=0)
    for epoch, order in enumerate(expected["epochs_permutation_n50"]):
        assert [epochs(50 * epoch + k) for k in range(50)] == order
    sample = granular.sources.Sample(range(50), seed=3)
    assert [sample(k) for k in range(20)] == expected["sample_n50_seed3"]
    mix = granular.sources.Mix([lambda k: k, lambda k: 100 + k], [1, 3], seed=5)
    assert [mix(k) for k in range(20)] == expected["mix_w1_3_seed5"]
