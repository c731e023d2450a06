import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import webdataset
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import ingot
from tests.support import containers
from tests.support.containers import RECORD_FILES, RECORDS
from tests.support.foreign_files import masked

ROWS = containers.rows()


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    containers.make(folder)
    return folder


def examples():
    """Return the class of `tf.train.Example`, made of its published fields."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tf", syntax="proto3")
    for name, kind in (("BytesList", 12), ("FloatList", 2), ("Int64List", 3)):
        message = file.message_type.add(name=name)
        message.field.add(name="value", number=1, label=3, type=kind)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, kind in enumerate(("BytesList", "FloatList", "Int64List"), 1):
        feature.field.add(
            name=kind.lower(),
            number=number,
            label=1,
            type=11,
            type_name=f".tf.{kind}",
            oneof_index=0,
        )
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=1, type=9)
    entry.field.add(name="value", number=2, label=1, type=11, type_name=".tf.Feature")
    features.field.add(
        name="feature", number=1, label=3, type=11, type_name=".tf.Features.FeatureEntry"
    )
    example = file.message_type.add(name="Example")
    example.field.add(name="features", number=1, label=1, type=11, type_name=".tf.Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tf.Example"))


def framed(path):
    """Return the records of a TFRecord file, whose checksums must be right."""
    data, found = path.read_bytes(), []
    while data:
        length = int.from_bytes(data[:8], "little")
        assert data[8:12] == masked(data[:8])
        found.append(data[12 : 12 + length])
        assert data[12 + length : 16 + length] == masked(found[-1])
        data = data[16 + length :]
    return found


def test_records_are_framed_as_tfrecord_readers_expect(data, tmp_path):
    ingot.convert(data / "records.bag", tmp_path / "x.tfrecord")
    assert framed(tmp_path / "x.tfrecord") == RECORDS


def test_rows_become_examples_that_protocol_buffers_parse(tmp_path):
    spec = {
        "image": "jpg",
        "label": "int",
        "flag": "bool",
        "caption": "utf8?",
        "meta": "json",
        "box": "array(float32,2)",
        "tags": "utf8[]",
        "ids": "int[]",
        "score": "float?",
    }
    stored = containers.jpeg(5)
    row = {"image": stored, "label": -7, "flag": True, "caption": None, "meta": {"a": [1]}}
    row |= {"box": np.array([0.5, 2], np.float32), "tags": ["x", "", "y"], "ids": [2**40, -1]}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        writer.append({**row, "score": 0.25})
        writer.append({**row, "caption": "\u00e9", "tags": [], "ids": []})
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.tfrecord")
    first, second = (examples().FromString(one) for one in framed(tmp_path / "x.tfrecord"))
    feature = first.features.feature
    assert "caption" not in feature
    assert feature["image"].byteslist.value == [stored]
    assert feature["label"].int64list.value == [-7]
    assert feature["flag"].int64list.value == [1]
    assert json.loads(feature["meta"].byteslist.value[0]) == {"a": [1]}
    assert feature["box"].floatlist.value == [0.5, 2.0]
    assert feature["tags"].byteslist.value == [b"x", b"", b"y"]
    assert feature["ids"].int64list.value == [2**40, -1]
    assert feature["score"].floatlist.value == [0.25]
    feature = second.features.feature
    assert "score" not in feature
    assert feature["caption"].byteslist.value == ["\u00e9".encode()]
    assert feature["ids"].WhichOneof("kind") == "int64list"
    assert feature["ids"].int64list.value == []


# WebDataset leaves the files that it has read to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_rows_become_a_tar_that_webdataset_reads(data, tmp_path):
    ingot.convert(data / "rows", tmp_path / "x.tar")
    url = f"file:{tmp_path / 'x.tar'}"
    found = list(webdataset.WebDataset(url, shardshuffle=False).decode())
    assert [one["__key__"] for one in found] == [f"{k:06}" for k in range(len(ROWS))]
    for row, one in zip(ROWS, found, strict=True):
        assert one["label.cls"] == row["label"]
        assert one["caption.txt"] == row["caption"]
        assert np.array_equal(one["box.npy"], row["box"])
    with tarfile.open(tmp_path / "x.tar") as tar:
        content = tar.extractfile("000007.image.jpg").read()
    assert content == ROWS[7]["image"]


def test_a_missing_value_has_no_file_in_a_tar(tmp_path):
    with ingot.DatasetWriter(
        tmp_path / "x.ingot", {"jpg": "jpg", "json": "json", "t": "utf8?"}
    ) as w:
        w.append({"jpg": containers.jpeg(1), "json": {"a": None}, "t": None})
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.tar")
    with tarfile.open(tmp_path / "x.tar") as tar:
        assert tar.getnames() == ["000000.jpg", "000000.json"]


@pytest.mark.parametrize("name", RECORD_FILES)
def test_a_record_becomes_a_row_of_one_field_and_back(data, tmp_path, name):
    ingot.convert(data / name, tmp_path / "rows")
    assert dict(ingot.open(tmp_path / "rows").spec) == {"record": "bytes"}
    ingot.convert(data / name, tmp_path / "x.h5", names=["text"])
    assert list(ingot.open(tmp_path / "x.h5").spec) == ["text"]
    for source in ("rows", "x.h5"):
        target = tmp_path / f"{source}.bag"
        ingot.convert(tmp_path / source, target)
        assert list(ingot.open(target)) == RECORDS


def test_one_field_of_rows_becomes_records_as_stored(data, tmp_path):
    ingot.convert(data / "rows", tmp_path / "x.ffr", names=["image"])
    assert list(ingot.open(tmp_path / "x.ffr")) == [row["image"] for row in ROWS]


@pytest.mark.parametrize("target", ["rows2", "x.ingot", "g", "x.tfrecord"])
@pytest.mark.parametrize("source", ["rows", "rows_granular"])
def test_images_are_never_encoded_again(data, tmp_path, source, target):
    form = "granular" if target == "g" else None
    ingot.convert(data / source, tmp_path / target, format=form, names=["image", "label"])
    content = b"".join(
        file.read_bytes()
        for file in [tmp_path / target, *(tmp_path / target).glob("*")]
        if file.is_file()
    )
    if target in {"rows2", "x.ingot"}:
        with ingot.open(tmp_path / target) as opened:
            assert [row["image"] for row in opened.stored()] == [row["image"] for row in ROWS]
    else:
        assert all(row["image"] in content for row in ROWS)


def test_metadata_go_along_to_ingot_files(data, tmp_path):
    ingot.convert(data / "records.ingot", tmp_path / "x.ingot")
    ingot.convert(data / "records.ingot", tmp_path / "x")
    assert ingot.open(tmp_path / "x.ingot").metadata == {"origin": "test"}
    assert ingot.open(tmp_path / "x").metadata == {"origin": "test"}


@pytest.mark.parametrize(
    ("source", "target", "options", "message"),
    [
        ("rows", "x.bag", {}, "name the one field whose values are to be the records with names="),
        ("rows", "x.bag", {"names": ["label"]}, "field 'label' is int, expected bytes, utf8"),
        ("records.bag", "x.ingot", {"names": ["a"]}, "records have no fields for names="),
        ("records.bag", "x", {"names": ["a", "b"]}, "records become one field"),
        ("rows", "x.zip", {}, "x.zip: unknown suffix"),
        ("rows", "x.bag", {"format": "ingot"}, "the name of an Ingot file ends in .ingot"),
        ("rows", "x.ingot", {"format": "granular"}, "a Granular data set ends in no suffix"),
        ("rows", "x", {"format": "excel"}, "unknown format 'excel'"),
        ("rows", "../data/rows/x.ingot", {}, "the target is inside the source"),
        ("rows", "../data", {}, "the target contains the source"),
        ("rows.ingot", "../data/rows.ingot", {"overwrite": True}, "the target is the source"),
    ],
)
def test_unsupported_conversions_are_rejected_before_anything_is_written(  # noqa: PLR0917
    data, tmp_path, source, target, options, message
):
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(ValueError, match=message):
        ingot.convert(data / source, os.path.normpath(out / target), **options)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "value", "target", "message"),
    [
        ("utf8?", None, "g", "Granular data set has no missing values"),
        ("tree", {"a": 1}, "x.h5", "HDF5 file has no such type"),
        ("tree", {"a": 1}, "x.parquet", "Parquet file would have it back as something else"),
        ("tree", {"a": 1}, "x.tar", "has no such kind of file"),
        ("array", np.ones(2), "x.tfrecord", "has lists of bytes, int64 and float32 only"),
        ("jpg[]", [], "x.h5", "has sequences of numbers only"),
        ("utf8", "a\0b", "x.h5", "row 0: field 'v': an HDF5 file cannot store text"),
        ("float", 1e300, "x.tfrecord", "row 0: field 'v': 1e\\+300 does not fit into float32"),
        ("tree", (1, 2), "g", r"row 0: field 'v': .* a tuple would come back as a list: \(1, 2\)"),
        ("tree", [{"a": np.float32(1)}], "g", "row 0: field 'v': .* cannot|can not serialize"),
        ("json", 1 << 70, "g", "row 0: field 'v': .* out of range"),
        ("array(complex64)", 1j, "x.parquet", "has no complex numbers"),
        ("array", np.ones(2, complex), "x.parquet", "rows 0 to 0: .* has no type for a value"),
        ("array(complex64,2)", [1j, 2], "x.tar", "has no such kind of file"),
        ("array", np.ones(2, complex), "x.tar", "row 0: field 'v': an array of complex128"),
        ("bytes", b"x", "x.jsonl", "field 'v' is bytes: .* has numbers, text, lists and JSON only"),
        ("png?", None, "x.jsonl", "field 'v' is png.*; name the fields to convert with names="),
        ("msgpack", {"a": b""}, "x.jsonl", "has numbers, text, lists and JSON only"),
        ("array(complex64)", 1j, "x.jsonl", "has no complex numbers"),
        ("array", np.ones(2, complex), "x.jsonl", "row 0: field 'v': JSON has no numbers of"),
        ("float", np.inf, "x.jsonl", "row 0: field 'v': JSON has no infinity; convert other rows"),
        ("float[]", [1.0, np.nan], "x.jsonl", "row 0: field 'v': JSON has no NaN; convert other"),
        ("array", np.full((1, 1), np.nan), "x.jsonl", "row 0: field 'v': JSON has no NaN"),
        ("array(float16,1)", [np.nan], "x.jsonl", "row 0: field 'v': JSON has no NaN"),
        ("json", {"a": 1}, "x.csv", "field 'v' is json: a CSV file has single numbers and text"),
        ("int[]", [1], "x.csv", "field 'v' is int.*: a CSV file has single numbers and text only"),
        ("array(float32,2)", [1, 2], "x.csv", "a CSV file has single numbers and text only"),
        ("jpg?", None, "x.csv", "a CSV file has single numbers and text only"),
        ("utf8?", None, "x.csv", "row 0: field 'v': it is missing, and the line of a CSV file"),
    ],
)
def test_values_that_a_format_cannot_hold_are_rejected_by_field(
    tmp_path, kind, value, target, message
):
    with ingot.DatasetWriter(tmp_path / "in.ingot", {"v": kind}) as writer:
        writer.append({"v": value})
    form = "granular" if target == "g" else None
    with pytest.raises((ValueError, ingot.FormatError), match=message):
        ingot.convert(tmp_path / "in.ingot", tmp_path / target, format=form)
    assert [one.name for one in tmp_path.iterdir()] == ["in.ingot"]


@pytest.mark.parametrize(
    ("spec", "rows", "message"),
    [
        ({"Label": "int", "label": "int"}, [{"Label": 1, "label": 2}], "'Label' and 'label' would"),
        ({"__key__": "int", "v": "int"}, [{"__key__": 1, "v": 2}], "has text for keys"),
        ({"__key__": "utf8", "v": "int"}, [{"__key__": "__a__/b", "v": 2}], "row 0: '__key__' is"),
    ],
)
def test_rows_that_readers_of_tars_would_lose_are_rejected(tmp_path, spec, rows, message):
    with ingot.DatasetWriter(tmp_path / "in.ingot", spec) as writer:
        writer.extend(rows)
    with pytest.raises(ValueError, match=message):
        ingot.convert(tmp_path / "in.ingot", tmp_path / "x.tar")
    assert [one.name for one in tmp_path.iterdir()] == ["in.ingot"]


@pytest.mark.parametrize(
    ("kind", "values", "target"),
    [
        ("array(uint64)", [(1 << 64) - 1, 0], "x.tar"),
        ("array", [np.zeros((0, 3), np.float32), np.ones((2, 3), np.float32)], "x.parquet"),
        ("array(float32,2)[]", [[], []], "g"),
        ("array(float32,2)?", [[1, 2], None], "x.parquet"),
    ],
)
def test_odd_values_come_back(tmp_path, kind, values, target):
    with ingot.DatasetWriter(tmp_path / "in.ingot", {"v": kind}) as writer:
        writer.extend({"v": value} for value in values)
    assert ingot.convert(
        tmp_path / "in.ingot", tmp_path / target, format="granular" if target == "g" else None
    ).checked
    found = [row["v"] for row in ingot.open(tmp_path / target)]
    found = [one["npy"] for one in found] if target == "x.tar" else found
    for one, value in zip(found, values, strict=True):
        assert np.size(one) == np.size(value)
        assert (one is None) == (value is None)
        assert one is None or np.array_equal(np.ravel(one), np.ravel(value))


@pytest.mark.parametrize("target", ["x.tar", "x.tfrecord"])
def test_values_of_all_types_pass_the_check(tmp_path, target):
    spec = {
        "a.bool": "bool",
        "a.int": "int?",
        "b.float": "float",
        "b.float32": "array(float32)?",
        "Bytes": "bytes?",
        "json": "json",
        "mp": "msgpack",
        "numbers": "float[]",
        "runs": "array(int16)[]?",
        "matrix": "array(uint8,2,3)",
        "text": "utf8?",
        "ü": "utf8",
    }
    nan = float("nan")
    rows = [
        {
            "a": {"bool": k == 0, "int": None if k else -5},
            "b": {"float": nan if k else 0.5, "float32": nan if k else None},
            "Bytes": None if k else b"\xff\x00",
            "json": [{"x": k}, None, "t"] if k else None,
            "mp": {"y": [k, b"z"]},
            "numbers": np.arange(k) / 4,
            "runs": None if k else [1, 2, 3],
            "matrix": np.full((2, 3), k),
            "text": "" if k else None,
            "ü": "\u4e2d.\n" * k,
        }
        for k in range(3)
    ]
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec) as writer:
        writer.extend(rows)
    assert ingot.convert(tmp_path / "x.ingot", tmp_path / target).checked


@pytest.mark.parametrize("target", ["x.ingot", "x.bag", "x"])
def test_an_existing_target_is_replaced_only_on_request(data, tmp_path, target):
    ingot.convert(data / "records.bag", tmp_path / target)
    with ingot.Writer(tmp_path / "other.ingot") as writer:
        writer.append(b"other")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ingot.convert(tmp_path / "other.ingot", tmp_path / target)
    assert len(ingot.open(tmp_path / target)) == len(RECORDS)
    ingot.convert(tmp_path / "other.ingot", tmp_path / target, overwrite=True)
    (found,) = ingot.open(tmp_path / target)
    assert found in (b"other", {"record": b"other"})
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(["data", "other.ingot", target])


def test_zero_records_are_records(tmp_path):
    ingot.Writer(tmp_path / "x.ingot").close()
    for target in (
        "a.ffr",
        "a.array_record",
        "a.bag",
        "a.bagz",
        "a",
        "a.h5",
        "a.tfrecord",
        "a.tar",
    ):
        assert ingot.convert(tmp_path / "x.ingot", tmp_path / target).rows == 0
    assert len(ingot.open(tmp_path / "a")) == 0
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert tar.getnames() == []


@pytest.mark.parametrize("target", ["x.bag", "x", "x.tar"])
def test_progress_counts_writing_and_the_check(data, tmp_path, target):
    seen = []
    ingot.convert(data / "records.ingot", tmp_path / target, progress=lambda *one: seen.append(one))
    assert seen.count((len(RECORDS), len(RECORDS))) == 2
    assert {total for _, total in seen} == {len(RECORDS)}


def test_hdf5_objects_without_rows_are_reported(tmp_path):
    import h5py  # noqa: PLC0415

    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["b"] = np.arange(3), np.arange(3.0)
        file["classes"] = np.arange(7)
    done = ingot.convert(tmp_path / "x.h5", tmp_path / "y.ingot")
    assert done.left_out == ("classes",)
    assert ingot.open(tmp_path / "y.ingot").column("b").tolist() == [0.0, 1.0, 2.0]


def test_a_large_conversion_to_a_directory_uses_processes(tmp_path):
    rows = [{"text": f"row {k}", "a": np.full(3, k)} for k in range(500)]
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"text": "utf8", "a": "array"}) as writer:
        writer.extend(rows)
    ingot.convert(tmp_path / "x.ingot", tmp_path / "g", format="granular")
    ingot.convert(tmp_path / "g", tmp_path / "y", workers=2, shard_bytes=5000)
    with ingot.open(tmp_path / "y") as found:
        assert len(found.paths) > 2
        assert [row["text"] for row in found] == [row["text"] for row in rows]
        assert [row["a"].tolist() for row in found] == [row["a"].tolist() for row in rows]


def test_the_stored_values_of_granular_are_bytes(data):
    found = ingot.open(data / "rows_granular").stored()[3]
    assert found["image"] == ROWS[3]["image"]
    assert found["label"] == ROWS[3]["label"]
    assert io.BytesIO(found["caption"]).read().decode() == ROWS[3]["caption"]


def test_fields_whose_numbers_lose_digits_are_named(tmp_path):
    spec = {"a": "float", "b": "float", "c": "array(float64,2)", "d": "float?"}
    with ingot.DatasetWriter(tmp_path / "x.ingot", spec, sync=False) as writer:
        writer.append({"a": 0.1, "b": 0.5, "c": np.array([np.nan, np.inf]), "d": None})
        writer.append({"a": 0.5, "b": -np.inf, "c": np.array([1, 1 + 2**-40]), "d": 2.0})
    assert ingot.convert(tmp_path / "x.ingot", tmp_path / "x.tfrecord").rounded == ("a", "c")
    assert ingot.convert(tmp_path / "x.ingot", tmp_path / "x.parquet").rounded == ()


def rows_of(folder, name="x.ingot"):
    with ingot.DatasetWriter(folder / name, {"a": "int"}, sync=False) as writer:
        writer.append({"a": 1})
    return folder / name


@pytest.mark.parametrize("name", ["thesis.tex", "sub/photo.jpg", "dataset.json", "000000-x.ingot"])
def test_a_directory_of_other_files_is_never_replaced(tmp_path, name):
    source = rows_of(tmp_path)
    mine = tmp_path / "mine" / name
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"precious")
    if name == "dataset.json":
        (tmp_path / "mine" / "notes.txt").write_bytes(b"precious")
    with pytest.raises(FileExistsError, match=r"holds files that are not part of a data set"):
        ingot.convert(source, tmp_path / "mine", overwrite=True)
    assert mine.read_bytes() == b"precious"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["mine", "x.ingot"]


def test_data_sets_are_replaced_but_foreign_files_in_them_are_kept(tmp_path):
    source = rows_of(tmp_path)
    for target, form in (("rows", None), ("bags", "granular")):
        for _ in range(2):
            ingot.convert(source, tmp_path / target, format=form, overwrite=True)
        (tmp_path / target / "notes.txt").write_text("mine", encoding="utf-8")
        with pytest.raises(FileExistsError, match=r"such as notes\.txt; choose another target"):
            ingot.convert(source, tmp_path / target, format=form, overwrite=True)
        assert ingot.open(tmp_path / target).column("a").tolist() == [1]
    (tmp_path / "empty").mkdir()
    assert ingot.convert(source, tmp_path / "empty", overwrite=True).rows == 1


def test_a_folder_of_the_conversion_that_leads_elsewhere_is_rejected(tmp_path):
    source = rows_of(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mine").write_bytes(b"precious")
    (tmp_path / ".y.ingot.converting").symlink_to(tmp_path / "home")
    with pytest.raises(FileExistsError, match="is a link"):
        ingot.convert(source, tmp_path / "y.ingot")
    assert [one.name for one in (tmp_path / "home").iterdir()] == ["mine"]


def test_a_row_without_any_value_does_not_fit_into_a_tar(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"a": null}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="row 1 has no values"):
        ingot.convert(tmp_path / "x.jsonl", tmp_path / "x.tar")
    assert not (tmp_path / "x.tar").exists()


def test_keys_of_a_tar_are_kept(tmp_path):
    with ingot.DatasetWriter(
        tmp_path / "x.ingot", {"__key__": "utf8", "txt": "utf8"}, sync=False
    ) as writer:
        writer.append({"__key__": "a/first", "txt": "one"})
        writer.append({"__key__": "second", "txt": "two"})
    ingot.convert(tmp_path / "x.ingot", tmp_path / "x.tar")
    ingot.convert(tmp_path / "x.tar", tmp_path / "y.tar")
    assert list(ingot.open(tmp_path / "y.tar")) == [
        {"__key__": "a/first", "txt": "one"},
        {"__key__": "second", "txt": "two"},
    ]


@pytest.mark.parametrize("key", ["", "a.b", "a/", "/a", "../a", "same"])
def test_keys_that_cannot_be_names_of_files_are_rejected(tmp_path, key):
    with ingot.DatasetWriter(
        tmp_path / "x.ingot", {"__key__": "utf8", "n": "int"}, sync=False
    ) as writer:
        writer.append({"__key__": "same", "n": 1})
        writer.append({"__key__": key, "n": 2})
    with pytest.raises(ValueError, match=r"row 1: '__key__' is .* leaves it out"):
        ingot.convert(tmp_path / "x.ingot", tmp_path / "x.tar")


def test_a_field_with_a_slash_does_not_fit_into_hdf5(tmp_path):
    (tmp_path / "x.csv").write_text("a/b\n1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="field 'a/b' is int: an HDF5 file takes a slash"):
        ingot.convert(tmp_path / "x.csv", tmp_path / "x.h5")


def test_a_spec_says_what_the_source_holds(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1, "b": 2}\n', encoding="utf-8")
    ingot.convert(tmp_path / "x.jsonl", tmp_path / "x.ingot", spec={"a": "float"})
    assert list(ingot.open(tmp_path / "x.ingot")) == [{"a": 1.0}]
