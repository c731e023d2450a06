"""TFRecord files, as records and as examples."""

import contextlib
import hashlib
import struct

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from hypothesis import given, settings
from hypothesis import strategies as st

import ingot
from tests.support.canonical import FOREIGN, manifest, record_sha256
from tests.support.foreign_files import (
    example,
    masked,
    sequence_example,
    tfrecord,
    write,
    write_all,
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    return lambda name: ingot.open(FOREIGN / "tfrecord" / name, index_dir=folder)


def test_golden_records_come_out_as_they_went_in(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_INDEX_DIR", str(tmp_path))
    records = ingot.open_records(FOREIGN / "tfrecord" / "examples.tfrecord")
    found = [hashlib.sha256(record).hexdigest() for record in records]
    assert found == [one["payload_sha256"] for one in manifest("tfrecord")["records"]]
    assert records.verify() == ingot.Verification(50, [])


def test_golden_examples_decode(opened):
    ds = opened("examples.tfrecord")
    assert dict(ds.spec) == {
        "arr": "array(float32)[]",
        "big": "int",
        "blob": "bytes",
        "id": "int",
        "jpg": "bytes",
        "score": "array(float32)",
        "text": "bytes",
        "tokens": "int[]",
    }
    for row, known in zip(ds, manifest("tfrecord")["records"], strict=True):
        for name in ("id", "big"):
            row[name] = np.array([row[name]])
        row["score"] = np.array([row["score"]])
        assert record_sha256(row) == known["record_sha256"]


def test_golden_sequence_examples_decode(opened):
    ds = opened("sequence_examples.tfrecord")
    assert dict(ds.spec) == {"id": "int", "tok": "int[]", "vec": "array(float32,4)[]"}
    assert [len(row["vec"]) for row in ds] == ds.lengths("vec").tolist()
    assert ds[2, {"vec": range(1, 2)}]["vec"][0].tolist() == ds[2]["vec"][1].tolist()


def test_a_spec_names_the_fields_and_their_types(tmp_path):
    rows = [
        example(x=[float(k)] * 6, n=[k], raw=[bytes(range(4))], t=["é".encode()]) for k in (1, 2)
    ]
    path = write(tmp_path / "x.tfrecord", tfrecord(rows))
    spec = {"x": "array(float32,2,3)", "n": "float", "raw": "array(uint8,2,2)", "t": "utf8"}
    ds = ingot.open(path, spec=spec)
    batch = ds[[1, 0]]
    assert batch["x"].shape == (2, 2, 3)
    assert batch["raw"].tolist() == [[[0, 1], [2, 3]]] * 2
    assert (batch["n"].tolist(), batch["t"]) == ([2.0, 1.0], ["é", "é"])
    assert ingot.open(path, spec={"n": "array(uint8)"}).column("n").dtype == np.uint8


def test_a_field_that_some_rows_lack_is_optional(tmp_path):
    rows = [example(a=[1]), example(a=[2], b=[b"x"]), example(a=[3], b=[])]
    ds = ingot.open(write(tmp_path / "x.tfrecord", tfrecord(rows)))
    assert dict(ds.spec) == {"a": "int", "b": "bytes?"}
    assert [row["b"] for row in ds] == [None, b"x", None]
    assert ds.present("b").tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("late", "why"),
    [
        (example(a=[1], new=[2]), "record 1000, offset .*.new. appears here for the first time"),
        (example(), "record 1000: field .a. is int, but it has no value"),
        (example(a=[1, 2]), "record 1000: field .a. is int, but the record has several values"),
        (example(a=[b"x"]), "record 1000: field .a. is int, but the record has a bytes_list"),
        (b"\x0a\xff", "record 1000, offset .*: not a tf.train.Example"),
    ],
)
def test_a_later_row_that_does_not_fit_is_named(tmp_path, late, why):
    path = write(tmp_path / "x.tfrecord", tfrecord([example(a=[1])] * 1000 + [late]))
    with pytest.raises(ingot.FormatError, match=rf"x\.tfrecord: {why}"):
        ingot.open(path)


def test_other_records_open_as_records(tmp_path):
    path = write(tmp_path / "x.tfrecord", tfrecord([b"abc", b"", b"\xff" * 9]))
    reader = ingot.open(path)
    assert list(reader) == [b"abc", b"", b"\xff" * 9]
    assert reader[[2, 0]] == [b"\xff" * 9, b"abc"]
    with pytest.raises(ingot.FormatError, match="open_records"):
        ingot.open_dataset(path)


def test_no_records_are_an_empty_file(tmp_path):
    assert len(ingot.open(write(tmp_path / "x.tfrecord", b""))) == 0


def test_a_gzip_file_that_is_not_named_so_says_what_to_do(tmp_path):
    data = (FOREIGN / "tfrecord" / "examples.tfrecord.gz").read_bytes()
    with pytest.raises(ingot.FormatError, match="gunzip"):
        ingot.open(write(tmp_path / "x.tfrecord", data))


def test_every_byte_is_verified_and_every_cut_is_found(tmp_path):
    whole = tfrecord([example(a=[1], b=[b"xy"]), example(a=[2], b=[b""])])
    path = tmp_path / "x.tfrecord"
    for at in range(len(whole)):
        write(path, whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        with pytest.raises(ingot.FormatError):
            ingot.open(path)
    first = len(tfrecord([example(a=[1], b=[b"xy"])]))
    for cut in range(1, len(whole)):
        write(path, whole[:cut])
        if cut != first:
            with pytest.raises(ingot.FormatError):
                ingot.open(path)


def test_a_length_beyond_the_file_is_rejected_at_once(tmp_path):
    length = struct.pack("<Q", (1 << 63) + 5)
    path = write(tmp_path / "x.tfrecord", length + masked(length) + b"abcd" * 3)
    with pytest.raises(
        ingot.CorruptFileError, match="record 0: offset 0: the file ends inside a record"
    ):
        ingot.open(path)


@pytest.mark.parametrize("row", [3, 1005])
def test_damage_names_its_record(tmp_path, row):
    one = tfrecord([example(a=[1], b=[b"xy"])])
    data = bytearray(one * 1010)
    data[row * len(one) + 14] ^= 1
    with pytest.raises(ingot.CorruptFileError, match=rf"record {row}: offset \d+: .*checksum") as e:
        ingot.open(write(tmp_path / "x.tfrecord", bytes(data)))
    assert e.value.record == row


def test_hostile_examples_are_rejected_or_are_records(tmp_path):
    whole = sequence_example({"a": [1], "b": [1.5, 2.5]}, {"c": [[1], [2]], "d": [[b"x"]]})
    damaged = (
        tfrecord([whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :]])
        for at in range(len(whole))
        for bit in range(8)
    )
    for path in write_all(tmp_path / "damaged", ".tfrecord", damaged):
        with contextlib.suppress(ingot.IngotError):
            list(ingot.open(path))


values = st.one_of(
    st.lists(st.binary(max_size=9), min_size=1, max_size=3),
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=3),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=3),
)


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from("abc"), values, min_size=1), min_size=1, max_size=5
    ),
    packed=st.booleans(),
)
def test_examples_decode_as_protocol_buffers_do(tmp_path_factory, rows, packed):
    kinds: dict[str, type] = {}
    for row in rows:
        for name, value in list(row.items()):
            if kinds.setdefault(name, type(value[0])) is not type(value[0]):
                del row[name]
    path = tmp_path_factory.mktemp("x") / "x.tfrecord"
    records = [example(packed=packed, **row) for row in rows]
    write(path, tfrecord(records))
    if not any(rows):
        return
    for row, record in zip(ingot.open(path), records, strict=True):
        parsed = EXAMPLE.FromString(record).features.feature
        for name, value in row.items():
            if value is None:
                assert name not in parsed
                continue
            feature = parsed[name]
            expected = list(getattr(feature, feature.WhichOneof("kind")).value)
            found = value if isinstance(value, list | np.ndarray) else [value]
            assert list(found) == expected


DESCRIPTION = """
name: "example.proto" package: "t" syntax: "proto3"
message_type { name: "B" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_BYTES } }
message_type { name: "F" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_FLOAT } }
message_type { name: "I" field { name: "value" number: 1 label: LABEL_REPEATED type: TYPE_INT64 } }
message_type {
  name: "Feature"
  oneof_decl { name: "kind" }
  field { name: "b" number: 1 label: LABEL_OPTIONAL type_name: ".t.B" oneof_index: 0 }
  field { name: "f" number: 2 label: LABEL_OPTIONAL type_name: ".t.F" oneof_index: 0 }
  field { name: "i" number: 3 label: LABEL_OPTIONAL type_name: ".t.I" oneof_index: 0 }
}
message_type {
  name: "Features"
  nested_type {
    name: "FeatureEntry"
    options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type_name: ".t.Feature" }
  }
  field { name: "feature" number: 1 label: LABEL_REPEATED type_name: ".t.Features.FeatureEntry" }
}
message_type {
  name: "Example"
  field { name: "features" number: 1 label: LABEL_OPTIONAL type_name: ".t.Features" }
}
"""


def _example_class():
    """Return `tf.train.Example`, made of its description: the real parser, no TensorFlow."""
    pool = descriptor_pool.DescriptorPool()
    text = DESCRIPTION.replace("type_name", "type: TYPE_MESSAGE type_name")
    pool.Add(text_format.Parse(text, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


EXAMPLE = _example_class()


def test_the_index_of_the_records_is_that_of_the_tfrecord_package(tmp_path):
    lines = (FOREIGN / "tfrecord" / "examples.tfrecord.index").read_text().splitlines()
    lengths = [int(line.split()[1]) - 16 for line in lines]
    path = write(tmp_path / "x.tfrecord", (FOREIGN / "tfrecord" / "examples.tfrecord").read_bytes())
    assert ingot.open_records(path).lengths().tolist() == lengths
