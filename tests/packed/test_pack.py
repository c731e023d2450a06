import json
import os
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ingot
from tests.packed.packs import (
    ORDER,
    TREE,
    build,
    flatten,
    nested,
    no_file_larger_than,
    read_back,
    write_pack,
)

relaxed = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50
)
names = (
    st.text(min_size=1, max_size=20)
    | st.binary(min_size=1, max_size=30).map(os.fsdecode)
    | st.sampled_from(["C:\\x", "nul", "a ", "a.", "-", "~", "*", "[a]", '"', "\\", "{", "\n", "%"])
).filter(lambda name: name not in {".", ".."} and not set(name) & {"/", "\0"})
trees = st.dictionaries(
    names,
    st.recursive(
        st.binary(max_size=40),
        lambda below: st.dictionaries(names, below, max_size=4),
        max_leaves=12,
    ),
    max_size=5,
)


@relaxed
@given(tree=trees)
def test_packed_folders_unpack_unchanged(tmp_path_factory, tree):
    base = tmp_path_factory.mktemp("round")
    build(base / "source", tree)
    ingot.pack(base / "source", base / "x.ingot")
    with ingot.PackedFolder(base / "x.ingot") as folder:
        assert dict(folder) == dict(folder.items()) == dict(flatten(tree))
        assert folder.num_files == len(folder) == len(list(flatten(tree)))
        assert folder.verify().ok
        folder.unpack(base / "target")
    assert read_back(base / "target") == tree


def test_files_are_depth_first_and_by_name(folder):
    assert list(folder) == ORDER
    records = list(folder.reader)
    assert records[:-1] == [dict(flatten(TREE))[path] for path in ORDER]


def test_the_last_record_is_the_tree_as_json(folder):
    loaded = json.loads(folder.reader[-1])
    assert loaded["version"] == 1
    assert list(loaded["tree"]) == sorted(TREE)
    assert loaded["tree"]["images"] == {"1.png": 3, "10.png": 4, "2.png": 5, "labels": {"1.txt": 6}}
    assert loaded["tree"]["emptydir"] == {}


def test_names_that_are_not_utf8_survive(tmp_path):
    (tmp_path / "source").mkdir()
    raw = os.fsencode(tmp_path / "source") + b"/caf\xe9\xff"
    with open(raw, "wb") as file:  # noqa: PTH123
        file.write(b"latin")
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    folder = ingot.PackedFolder(tmp_path / "x.ingot")
    assert list(folder) == ["caf\udce9\udcff"]
    assert folder.read_one(os.fsdecode(b"caf\xe9\xff")) == b"latin"
    folder.unpack(tmp_path / "target")
    assert os.listdir(os.fsencode(tmp_path / "target")) == [b"caf\xe9\xff"]  # noqa: PTH208


def test_metadata_of_the_user_is_kept_beside_the_mark(source, tmp_path, folder):
    assert folder.reader.metadata == {"made": "here", "ingot.packed": 1}
    given = {"ingot.packed": 7}
    ingot.pack(source, tmp_path / "x.ingot", metadata=given)
    assert ingot.PackedFolder(tmp_path / "x.ingot").reader.metadata == {"ingot.packed": 1}
    assert given == {"ingot.packed": 7}


@pytest.mark.parametrize("compression", ["auto", "zstd", "lz4", None])
def test_packs_may_be_compressed(tmp_path, compression):
    build(tmp_path / "source", {f"{k}": b"the same text again and again " * 40 for k in range(50)})
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot", compression=compression)
    folder = ingot.PackedFolder(tmp_path / "x.ingot")
    assert set(folder.values()) == {b"the same text again and again " * 40}
    assert (folder.reader.stats().file_bytes < 30_000) == (compression is not None)


def test_progress_is_reported_after_each_file(source, tmp_path, folder, capsys):
    seen = []
    ingot.pack(source, tmp_path / "x.ingot", progress=lambda *at: seen.append(at))
    folder.unpack(tmp_path / "target", progress=lambda *at: seen.append(at))
    assert seen == 2 * [(k + 1, len(ORDER)) for k in range(len(ORDER))]
    assert capsys.readouterr() == ("", "")
    ingot.pack(source, tmp_path / "y.ingot", progress=True)
    assert capsys.readouterr().err.endswith(f"packed {len(ORDER)} of {len(ORDER)} files\n")
    folder.unpack(tmp_path / "other", progress=True)
    assert capsys.readouterr().err.endswith(f"unpacked {len(ORDER)} of {len(ORDER)} files\n")


def test_links_to_files_and_folders_are_followed(tmp_path):
    build(tmp_path / "other", {"inside": b"i"})
    build(tmp_path / "source", {"a": b"a"})
    (tmp_path / "source" / "link").symlink_to("a")
    (tmp_path / "source" / "folder").symlink_to(tmp_path / "other")
    (tmp_path / "source" / "twin").symlink_to(tmp_path / "other")
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert dict(ingot.PackedFolder(tmp_path / "x.ingot")) == {
        "a": b"a",
        "folder/inside": b"i",
        "link": b"a",
        "twin/inside": b"i",
    }


@pytest.mark.parametrize("leads_to", [".", "..", "../../source", "../b"])
def test_a_link_back_to_a_folder_above_is_rejected(tmp_path, leads_to):
    build(tmp_path / "source", {"a": b"", "b": {}})
    (tmp_path / "source" / "b" / "loop").symlink_to(leads_to)
    with pytest.raises(ValueError, match="source/b/loop: this link leads back"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert not (tmp_path / "x.ingot").exists()


def test_links_that_lead_nowhere_are_rejected(tmp_path):
    build(tmp_path / "source", {})
    (tmp_path / "source" / "link").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="source/link"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    (tmp_path / "source" / "link").unlink()
    (tmp_path / "source" / "link").symlink_to("link")
    with pytest.raises(OSError, match="source/link"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")


@pytest.mark.timeout(10)
def test_special_files_are_rejected_by_name(tmp_path):
    build(tmp_path / "source", {})
    os.mkfifo(tmp_path / "source" / "fifo")
    with pytest.raises(ValueError, match="source/fifo: this is a pipe"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    (tmp_path / "source" / "fifo").unlink()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "source" / "socket"))
        with pytest.raises(ValueError, match="source/socket: this is a socket"):
            ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    (tmp_path / "source" / "socket").unlink()
    (tmp_path / "source" / "null").symlink_to("/dev/null")
    with pytest.raises(ValueError, match="source/null: this is a device"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert not (tmp_path / "x.ingot").exists()


def test_an_unreadable_file_leaves_no_target(tmp_path):
    build(tmp_path / "source", {f"{k}": b"" for k in range(9000)})
    (tmp_path / "source" / "z").symlink_to("/proc/self/mem")  # reading it fails
    with pytest.raises(OSError, match=r"Input/output error"):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert os.listdir(tmp_path) == ["source"]  # noqa: PTH208


def test_a_full_disk_leaves_no_target(tmp_path):
    build(tmp_path / "source", {f"{k}": os.urandom(100) for k in range(9000)})
    with no_file_larger_than(500_000), pytest.raises(ingot.StorageError):
        ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    assert os.listdir(tmp_path) == ["source"]  # noqa: PTH208


def test_an_existing_target_is_replaced_only_if_asked_and_only_by_a_whole_pack(tmp_path):
    build(tmp_path / "source", {"a": b"old"})
    target = tmp_path / "x.ingot"
    ingot.pack(tmp_path / "source", target)
    (tmp_path / "source" / "a").write_bytes(b"new")
    with pytest.raises(FileExistsError, match="overwrite=True") as caught:
        ingot.pack(tmp_path / "source", target)
    assert caught.value.filename == str(target)
    (tmp_path / "source" / "z").symlink_to("/proc/self/mem")
    with pytest.raises(OSError, match=r"Input/output error"):
        ingot.pack(tmp_path / "source", target, overwrite=True)
    assert dict(ingot.PackedFolder(target)) == {"a": b"old"}
    (tmp_path / "source" / "z").unlink()
    ingot.pack(tmp_path / "source", target, overwrite=True)
    assert dict(ingot.PackedFolder(target)) == {"a": b"new"}
    assert sorted(os.listdir(tmp_path)) == ["source", "x.ingot"]  # noqa: PTH208


def test_a_target_in_the_folder_itself_is_rejected(tmp_path):
    build(tmp_path / "source", {"b": {}})
    for target in ("source/x.ingot", "source/b/x.ingot", "source/../source/b/x.ingot"):
        with pytest.raises(ValueError, match="is inside the folder"):
            ingot.pack(tmp_path / "source", tmp_path / target, overwrite=True)
    assert read_back(tmp_path / "source") == {"b": {}}


def test_only_a_folder_can_be_packed(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError):
        ingot.pack(tmp_path / "file", tmp_path / "x.ingot")
    with pytest.raises(FileNotFoundError):
        ingot.pack(tmp_path / "missing", tmp_path / "x.ingot")
    assert not (tmp_path / "x.ingot").exists()


def test_folders_nest_at_most_256_deep(tmp_path):
    deep = tmp_path / "source" / "/".join("d" * 256)
    deep.mkdir(parents=True)
    (deep / "f").write_bytes(b"deep")
    ingot.pack(tmp_path / "source", tmp_path / "x.ingot")
    folder = ingot.PackedFolder(tmp_path / "x.ingot")
    assert list(folder) == ["d/" * 256 + "f"]
    assert len(list(folder.walk())) == 257
    folder.unpack(tmp_path / "target")
    assert (tmp_path / "target" / list(folder)[0]).read_bytes() == b"deep"  # noqa: RUF015
    (deep / "d").mkdir()
    with pytest.raises(ValueError, match="at most 256 folders"):
        ingot.pack(tmp_path / "source", tmp_path / "y.ingot")
    write_pack(tmp_path / "z.ingot", nested(257))
    with pytest.raises(ingot.FormatError, match="deeper than 256"):
        ingot.PackedFolder(tmp_path / "z.ingot")


def test_memory_is_bounded_while_packing_and_unpacking(tmp_path, run_fault):
    outcome = run_fault("pack_much.py", tmp_path, 80, 8 << 20, env={"INGOT_IO": "pread"})
    assert outcome.returncode == 0, outcome.stderr
    packing, unpacking = map(int, outcome.stdout.split())
    assert packing < 200 << 20
    assert unpacking < 200 << 20
