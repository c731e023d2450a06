import shutil
import threading
import tracemalloc
from contextlib import suppress

import pytest

import ingot
from tests.packed.packs import (
    TREE,
    build,
    no_file_larger_than,
    read_back,
    without_privileges,
    write_pack,
)


def test_unpacking_takes_no_memory_for_each_path(tmp_path):
    tree = {f"{k}": 0 for k in range(5000)}
    for _ in range(15):
        tree = {"d" * 255: tree}
    folder = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", tree, files=[b""]))
    tracemalloc.start()
    try:
        folder.unpack(tmp_path / "target")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def test_unpacking_reads_in_batches(folder, native_reads, tmp_path):
    folder.unpack(tmp_path / "target")
    assert len(native_reads) == 2  # the lengths, and the contents


@pytest.mark.parametrize("name", ["x" * 256, "\u6f22" * 86, "\ud800", "a\udfff"])
def test_nothing_is_unpacked_if_a_name_cannot_be_one(tmp_path, name):
    tree = {"a": 0, "b": {"c": {name: 1}}}
    folder = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", tree))
    assert folder.read_one(f"b/c/{name}") == b"second"
    with pytest.raises(ingot.FormatError, match="nothing was unpacked"):
        folder.unpack(tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_target_that_is_not_empty_is_left_alone(tmp_path, folder):
    build(tmp_path / "target", {"mine": b"mine"})
    with pytest.raises(FileExistsError, match="overwrite=True"):
        folder.unpack(tmp_path / "target")
    assert read_back(tmp_path / "target") == {"mine": b"mine"}
    (tmp_path / "file").write_bytes(b"mine")
    for overwrite in (False, True):
        with pytest.raises(FileExistsError):
            folder.unpack(tmp_path / "file", overwrite=overwrite)


def test_targets_are_made_with_what_is_above_them(tmp_path, folder):
    folder.unpack(tmp_path / "not" / "there" / "yet")
    assert read_back(tmp_path / "not" / "there" / "yet") == TREE
    (tmp_path / "empty").mkdir()
    folder.unpack(tmp_path / "empty")
    assert read_back(tmp_path / "empty") == TREE


def test_overwriting_replaces_files_and_keeps_others(tmp_path, folder):
    target = tmp_path / "target"
    build(target, {"A.txt": b"old", "mine": b"mine", "images": {"1.png": b"old", "my.png": b"my"}})
    (target / "A.txt").chmod(0o444)
    folder.unpack(target, overwrite=True)
    images = {**TREE["images"], "my.png": b"my"}
    assert read_back(target) == {**TREE, "mine": b"mine", "images": images}
    assert (target / "A.txt").stat().st_mode & 0o200


def test_overwriting_does_not_replace_folders_by_files(tmp_path, folder):
    build(tmp_path / "target", {"A.txt": {"mine": b"mine"}})
    with pytest.raises(IsADirectoryError) as caught:
        folder.unpack(tmp_path / "target", overwrite=True)
    assert caught.value.__notes__ == [f"while unpacking 'A.txt' into {tmp_path / 'target'}"]
    assert read_back(tmp_path / "target")["A.txt"] == {"mine": b"mine"}
    build(tmp_path / "other", {"images": b"mine"})
    with pytest.raises(NotADirectoryError, match=r"a folder is needed here: .*/other/images"):
        folder.unpack(tmp_path / "other", overwrite=True)


@pytest.mark.parametrize("leads_to", ["outside", "outside/kept", "nowhere", "target"])
def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path, folder, leads_to):
    build(tmp_path / "outside", {"kept": b"kept"})
    build(tmp_path / "target", {"sub": {}})
    (tmp_path / "target" / "sub" / "deep").symlink_to(tmp_path / leads_to)
    with pytest.raises(NotADirectoryError, match=r"a folder is needed here: .*/target/sub/deep"):
        folder.unpack(tmp_path / "target", overwrite=True)
    assert read_back(tmp_path / "outside") == {"kept": b"kept"}
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("leads_to", ["outside/kept", "outside", "nowhere"])
def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path, folder, leads_to):
    build(tmp_path / "outside", {"kept": b"kept"})
    build(tmp_path / "target", {"images": {}})
    for path in ("A.txt", "images/1.png"):
        (tmp_path / "target" / path).symlink_to(tmp_path / leads_to)
    folder.unpack(tmp_path / "target", overwrite=True)
    assert read_back(tmp_path / "outside") == {"kept": b"kept"}
    assert read_back(tmp_path / "target") == TREE
    assert not (tmp_path / "target" / "A.txt").is_symlink()
    assert not (tmp_path / "nowhere").exists()


def test_a_link_that_is_swapped_in_meanwhile_leads_nowhere(tmp_path):
    files = {f"f{k}": 0 for k in range(20)}
    pack = ingot.PackedFolder(write_pack(tmp_path / "x.ingot", {"d": {"e": files}, "g": files}))
    build(tmp_path / "outside", {})
    target, spare = tmp_path / "target", tmp_path / "spare"
    over = threading.Event()

    def swap():
        while not over.is_set():
            for place in (target / "g", target / "d" / "e"):
                with suppress(OSError):
                    place.rename(spare)
                    place.symlink_to(tmp_path / "outside")
                    place.unlink()
                shutil.rmtree(spare, ignore_errors=True)

    swapper = threading.Thread(target=swap)
    swapper.start()
    refused = 0
    try:
        for _ in range(300):
            try:
                pack.unpack(target, overwrite=True)
            except OSError:
                refused += 1
    finally:
        over.set()
        swapper.join()
    assert read_back(tmp_path / "outside") == {}
    assert refused > 0


def test_a_target_that_may_not_be_written_to_is_an_error(tmp_path, folder):
    (tmp_path / "target").mkdir(mode=0o555)
    with without_privileges(), pytest.raises(PermissionError):
        folder.unpack(tmp_path / "target")
    assert read_back(tmp_path / "target") == {}


def test_no_part_of_a_file_is_left_if_writing_fails(tmp_path):
    path = write_pack(tmp_path / "x.ingot", {"a": 0, "b": 1}, files=(b"a", b"b" * 100_000))
    folder = ingot.PackedFolder(path)
    with no_file_larger_than(50_000), pytest.raises(OSError, match="File too large") as caught:
        folder.unpack(tmp_path / "target")
    assert caught.value.__notes__ == [f"while unpacking 'b' into {tmp_path / 'target'}"]
    assert read_back(tmp_path / "target") == {"a": b"a"}


def test_descriptors_are_closed(tmp_path, folder, packed_path, open_files):
    before = open_files(tmp_path)
    folder.unpack(tmp_path / "target")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sub").symlink_to(tmp_path)
    with pytest.raises(NotADirectoryError):
        folder.unpack(tmp_path / "other", overwrite=True)
    for _ in range(5):
        ingot.PackedFolder(packed_path).close()
        with pytest.raises(ingot.FormatError):
            ingot.PackedFolder(write_pack(tmp_path / "x.ingot", b"?"))
        (tmp_path / "x.ingot").unlink()
    assert open_files(tmp_path) == before
