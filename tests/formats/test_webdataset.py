"""WebDataset archives, read in place, against the real package."""

import io
import json
import pickle
import tarfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from webdataset.tariterators import group_by_keys, tar_file_iterator

import ingot
from tests.support.canonical import FOREIGN, manifest, record_sha256
from tests.support.foreign_files import write_all

SHARDS = [str(FOREIGN / "webdataset" / f"shard-{k:06}.tar") for k in range(3)]


def archive(path, members, tar_format=tarfile.USTAR_FORMAT):
    """Write an archive of names and bytes; None is a directory."""
    with tarfile.open(path, "w", format=tar_format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            info.size = len(data or b"")
            tar.addfile(info, io.BytesIO(data or b""))
    return path


def by_webdataset(path):
    """Return the samples as the real package has them, without what it adds of its own."""
    with path.open("rb") as file:
        files = [{**one, "__url__": ""} for one in tar_file_iterator(file)]
    rows = group_by_keys(files)
    return [{name: one for name, one in row.items() if name != "__url__"} for row in rows]


def stored(path):
    return list(ingot.open(path).stored())


def test_golden_samples_come_out_as_they_went_in(tmp_path):
    ds = ingot.open(SHARDS, index_dir=tmp_path)
    assert dict(ds.spec) == {"__key__": "utf8", "cls": "int", "jpg": "jpg", "json": "json"}
    for row, raw, known in zip(ds, ds.stored(), manifest("webdataset")["records"], strict=True):
        text = {"__key__": row["__key__"], "cls": str(row["cls"]).encode()}
        assert record_sha256({**raw, **text}) == known["record_sha256"]
        assert row["json"] == json.loads(raw["json"])
        assert row["jpg"].shape == (24, 24, 3)


def test_a_pattern_and_a_directory_are_all_shards(golden):
    folder = golden("webdataset")
    (folder / "all.tar.gz").unlink()
    for source in (folder, folder / "shard-*.tar", str(folder / "shard-00000[01].tar")):
        assert len(ingot.open(source)) == (40 if "01" in str(source) else 50)


@pytest.mark.parametrize(
    "tar_format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
)
def test_long_and_odd_names_match_webdataset(tmp_path, tar_format):
    long = "d" * 90 + "/" + "e" * 60
    members = [
        ("a/b.c/x.seg.png", b"1"),
        ("a/b.c/x.TXT", b"2"),
        ("folder", None),
        (f"{long}/y.txt", b"3" * 600),
        (f"{long}/y.bin", b""),
        ("folder.d/", None),
        ("none", b"no dot"),
        ("__meta__", b"skipped"),
        ("__meta__/z.txt", b"skipped"),
        ("z/.hidden", b"4"),
        ("a/b.c/x.txt", b"5"),
    ]
    path = archive(tmp_path / "x.tar", members, tar_format)
    expected = by_webdataset(path)
    assert len(expected) == 4
    found = stored(path)
    for row, known in zip(found, expected, strict=True):
        flat = {"seg.png": row.pop("seg", {"png": None})["png"], **row}
        flat["__key__"] = flat["__key__"].decode()
        assert {name: one for name, one in flat.items() if one is not None} == known


def test_types_go_by_the_extension(tmp_path):
    array = io.BytesIO()
    np.save(array, np.arange(6, dtype=">i4").reshape(2, 3))
    members = [
        ("k.txt", "é".encode()),
        ("k.cls", b" 7\n"),
        ("k.json", b'{"a": [1]}'),
        ("k.npy", array.getvalue()),
        ("k.pyd", pickle.dumps({"b": 2})),
        ("k.other", b"\xff"),
    ]
    path = archive(tmp_path / "x.tar", members)
    ds = ingot.open(path)
    row = ds.select("__key__", "txt", "cls", "json", "npy", "other")[0]
    assert row.pop("npy").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert row == {"__key__": "k", "txt": "é", "cls": 7, "json": {"a": [1]}, "other": b"\xff"}
    with pytest.raises(ingot.FormatError, match="allow_pickle=True"):
        ds[0]
    assert ingot.open(path, allow_pickle=True)[0]["pyd"] == {"b": 2}
    assert ingot.open(path, spec={"txt": "bytes", "cls": "float"})[0] == {
        "txt": "é".encode(),
        "cls": 7.0,
    }


def test_a_member_that_some_samples_lack_is_optional(tmp_path):
    path = archive(tmp_path / "x.tar", [("a.txt", b"1"), ("b.txt", b"2"), ("b.cls", b"3")])
    ds = ingot.open(path)
    assert [row["cls"] for row in ds] == [None, 3]


def test_two_members_for_one_field_are_rejected_as_webdataset_does(tmp_path):
    path = archive(tmp_path / "x.tar", [("a.txt", b"1"), ("a.TXT", b"2")])
    with pytest.raises(ingot.FormatError, match="two members"):
        ingot.open(path)


@pytest.mark.parametrize("cut", [*range(0, 8193, 512), 100, 600, 1400, 1600, 5000])
def test_an_archive_that_is_truncated_is_rejected_and_read_in_part(tmp_path, cut):
    members = [(f"{k}.{name}", b"1" * 9) for k in range(4) for name in ("cls", "txt")]
    whole = archive(tmp_path / "x.tar", members)
    path = tmp_path / "cut.tar"
    path.write_bytes(whole.read_bytes()[:cut])
    # Of a sample alone nobody knows whether it is whole.
    count = 0 if cut < 3072 else cut // 2048
    why = (
        rf"cut\.tar: offset {cut // 1024 * 1024}: the archive is truncated.*; {count} whole samples"
    )
    with pytest.raises(ingot.CorruptFileError, match=why):
        ingot.open(path)
    if count:
        ds = ingot.open(path, partial=True)
        assert (ds.spec, list(ds)) == (ingot.open(whole).spec, list(ingot.open(whole))[:count])
        with pytest.raises(ingot.CorruptFileError, match="partial=True"):
            ingot.open(path)


def test_one_block_of_zeros_ends_an_archive(tmp_path):
    path = archive(tmp_path / "x.tar", [("a.cls", b"1"), ("b.cls", b"2")])
    path.write_bytes(path.read_bytes()[: 4 * 512 + 512])
    assert [row["cls"] for row in ingot.open(path)] == [1, 2]
    assert [row["cls"] for row in ingot.open(path, partial=True)] == [1, 2]


def test_a_cut_that_is_found_late_is_rejected_too(tmp_path):
    members = [(f"{k:04}.{name}", b"1") for k in range(1500) for name in ("cls", "txt")]
    whole = archive(tmp_path / "x.tar", members).read_bytes()
    path = tmp_path / "cut.tar"
    path.write_bytes(whole[: 1400 * 2048 + 1024])
    with pytest.raises(ingot.CorruptFileError, match="1400 whole samples are there"):
        ingot.open(path)
    ds = ingot.open(path, partial=True)
    assert (len(ds), ds[1399]["txt"]) == (1400, "1")
    assert dict(ds.spec) == {"__key__": "utf8", "cls": "int", "txt": "utf8"}
    assert len(pickle.loads(pickle.dumps(ds))) == 1400  # noqa: S301


def test_a_size_that_lies_is_rejected(tmp_path):
    path = archive(tmp_path / "x.tar", [("a.txt", b"1")])
    block = bytearray(path.read_bytes())
    for size in (b"77777777777\0", b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7, b"9" * 12):
        block[124:136] = size
        block[148:156] = b" " * 8
        block[148:156] = f"{sum(block[:512]):06o}\0 ".encode()
        path.write_bytes(block)
        with pytest.raises(ingot.CorruptFileError):
            ingot.open(path)


def test_damaged_archives_give_errors_or_other_samples_but_never_crash(tmp_path):
    members = [("a/" * 60 + "x.txt", b"1"), ("y.cls", b"22"), ("y.json", b"{}")]
    for tar_format in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        whole = archive(tmp_path / "x.tar", members, tar_format).read_bytes()
        used = len(whole.rstrip(b"\0"))
        damaged = (
            whole[:at] + bytes([whole[at] ^ 0x31]) + whole[at + 1 :] for at in range(0, used, 3)
        )
        refused = 0
        for path in write_all(tmp_path / f"{tar_format}", ".tar", damaged):
            try:
                list(ingot.open(path).stored())
            except (ingot.IngotError, ValueError):
                refused += 1
        assert refused > 200


def test_a_damaged_value_is_found_although_tar_has_no_checksums(tmp_path):
    path = archive(tmp_path / "x.tar", [("a.txt", b"hello"), ("b.txt", b"world")])
    ds = ingot.open(path)
    data = path.read_bytes().replace(b"world", b"w0rld")
    with path.open("r+b") as file:
        file.write(data)
    with pytest.raises(ingot.CorruptFileError, match="record 1"):
        ds[1]
    assert ds[0]["txt"] == "hello"


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "d/c", "d.e/f", "g" * 120]),
            st.sampled_from(["txt", "bin", "seg.png"]),
            st.binary(max_size=1100),
        ),
        max_size=8,
    ),
    st.sampled_from([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
)
def test_any_archive_has_the_samples_of_webdataset(tmp_path_factory, given_members, tar_format):
    members, latest = [], None
    for key, suffix, data in given_members:
        if tar_format == tarfile.USTAR_FORMAT and len(key) > 100:
            continue
        if latest is not None and latest[0] == key and suffix in latest[1]:
            continue
        latest = (key, {suffix, *(latest[1] if latest and latest[0] == key else ())})
        members.append((f"{key}.{suffix}", data))
    if not members:
        return
    path = archive(tmp_path_factory.mktemp("x") / "x.tar", members, tar_format)
    expected = by_webdataset(path)
    for row, known in zip(stored(path), expected, strict=True):
        flat = {"seg.png": row.pop("seg", {"png": None})["png"], **row}
        flat["__key__"] = flat["__key__"].decode()
        assert {name: one for name, one in flat.items() if one is not None} == known
