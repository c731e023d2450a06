"""The index of a file of another format: where it is, when it is built, what it is worth."""

import gzip
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ingot
from tests.support.foreign_files import example, tfrecord, write

ROWS = [example(id=[k], text=[b"x" * k]) for k in range(40)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data" / "x.tfrecord", tfrecord(ROWS), parents=True)


def indexes(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.index"))


def test_the_index_is_in_the_cache_and_is_an_ingot_file(data, cache):
    ingot.open(data)
    (index,) = indexes(cache)
    with ingot.Writer(data.parent.parent / "own.ingot") as writer:
        writer.append(b"")
    assert index.read_bytes()[:8] == (data.parent.parent / "own.ingot").read_bytes()[:8]
    assert [one.name for one in data.parent.iterdir()] == ["x.tfrecord"]


def test_an_index_is_written_beside_the_data_if_that_is_asked_for(data, cache, monkeypatch):
    monkeypatch.setenv("INGOT_INDEX", "beside")
    ingot.open(data)
    (index,) = indexes(data.parent)
    assert index.parent == data.parent / ".ingot-index"
    monkeypatch.delenv("INGOT_INDEX")
    assert len(ingot.open(data)) == 40
    assert indexes(cache) == []


def test_a_stale_index_beside_the_data_is_not_used_and_left_alone(data, cache, monkeypatch):
    monkeypatch.setenv("INGOT_INDEX", "beside")
    ingot.open(data)
    monkeypatch.delenv("INGOT_INDEX")
    before = {one: one.stat().st_mtime_ns for one in data.parent.rglob("*")}
    write(data, tfrecord(ROWS[:7]))
    assert len(ingot.open(data)) == 7
    assert len(indexes(cache)) == 1
    del before[data]
    assert {one: one.stat().st_mtime_ns for one in before} == before


def test_an_invalid_index_directory_is_rejected(data):
    program = f"import ingot; ingot.open({str(data)!r})"
    outcome = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "INGOT_INDEX": "near"},
    )
    assert "INGOT_INDEX=near: expected beside or cache" in outcome.stderr


def test_an_index_is_built_once(data, cache):
    ingot.open(data)
    (index,) = indexes(cache)
    before = index.stat()
    assert ingot.open(data)[7]["text"] == b"x" * 7
    after = index.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_user_chooses_the_directory(data, tmp_path, monkeypatch):
    ingot.open(data, index_dir=tmp_path / "mine")
    assert len(indexes(tmp_path / "mine")) == 1
    monkeypatch.setenv("INGOT_INDEX_DIR", str(tmp_path / "ours"))
    ingot.open(data)
    assert len(indexes(tmp_path / "ours")) == 1
    assert not (data.parent / ".ingot-index").exists()


def test_files_of_one_name_in_two_directories_have_two_indexes(data, tmp_path):
    other = write(tmp_path / "other" / "x.tfrecord", tfrecord(ROWS[:3]), parents=True)
    lengths = [len(ingot.open(one, index_dir=tmp_path / "mine")) for one in (data, other)]
    assert lengths == [40, 3]
    assert len(indexes(tmp_path / "mine")) == 2


def test_where_the_data_cannot_be_written_the_index_is_in_the_cache(data, cache, monkeypatch):
    monkeypatch.setenv("INGOT_INDEX", "beside")
    # A file in the place of the directory is what root cannot write into either.
    (data.parent / ".ingot-index").write_text("in the way")
    assert len(ingot.open(data)) == 40
    assert len(indexes(cache)) == 1
    assert len(ingot.open(data)) == 40


def test_files_of_killed_writers_are_removed_after_a_day(data, monkeypatch):
    monkeypatch.setenv("INGOT_INDEX", "beside")
    folder = data.parent / ".ingot-index"
    folder.mkdir()
    left = [".x.index.7-0-0123456789abcdef.part", ".y.unpacked.7-12-0123456789abcdef.part"]
    others = [".mine.part", ".x.7-0-nothex.part", "x.7-0-0123456789abcdef.part", ".x.7-0-ab.tmp"]
    young = ".young.index.7-0-0123456789abcdef.part"
    for name in (*left, *others, young):
        (folder / name).write_bytes(b"half")
        if name != young:
            os.utime(folder / name, (0, 0))
    ingot.open(data)
    found = {one.name for one in folder.iterdir()}
    assert found & {*left, *others, young} == {*others, young}


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_lock_that_is_not_a_regular_file_is_neither_waited_for_nor_followed(
    data, tmp_path, kind, monkeypatch
):
    monkeypatch.setenv("INGOT_INDEX", "beside")
    folder = data.parent / ".ingot-index"
    folder.mkdir()
    if kind == "pipe":
        os.mkfifo(folder / "lock")
    else:
        (folder / "lock").symlink_to(tmp_path / "elsewhere")
    assert len(ingot.open(data)) == 40
    assert len(indexes(data.parent)) == 1
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("suffix", [".index", ".unpacked"])
def test_a_directory_in_the_place_of_a_file_of_the_cache_is_named(tmp_path, cache, suffix):
    data = tmp_path / "x.jsonl.gz"
    data.write_bytes(gzip.compress(b'{"a": 1}\n'))
    ingot.open(data).close()
    (place,) = cache.rglob(f"*{suffix}")
    place.unlink()
    place.mkdir()
    with pytest.raises(ingot.StorageError, match="found a directory; remove it") as caught:
        ingot.open(data)
    assert caught.value.path == str(place)
    place.rmdir()
    assert ingot.open(data)[0] == {"a": 1}


def test_a_read_only_file_system_is_left_alone(data, cache):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a read-only mount needs root and unshare")
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 77; exec "$2" -c "$3"'
    program = f"import ingot; assert len(ingot.open({str(data)!r})) == 40"
    command = ["unshare", "--mount", "sh", "-c", script, "sh"]
    outcome = subprocess.run(
        [*command, str(data.parent), sys.executable, program],
        check=False,
        capture_output=True,
        text=True,
    )
    if outcome.returncode == 77 or "unshare" in outcome.stderr:
        pytest.skip("mounting is not allowed here")
    assert outcome.returncode == 0, outcome.stderr
    assert not (data.parent / ".ingot-index").exists()
    assert len(indexes(cache)) == 1


def test_without_any_directory_the_error_says_so(data, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(OSError, match=r"the folder for the index of .*x\.tfrecord"):
        ingot.open(data)


@pytest.mark.parametrize("change", ["longer", "same size", "touched"])
def test_an_index_of_other_bytes_is_rebuilt(data, change):
    ingot.open(data)
    stat = data.stat()
    if change == "longer":
        write(data, tfrecord([*ROWS, *ROWS]))
    elif change == "same size":
        write(data, tfrecord(ROWS[::-1]))
        os.utime(data, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    else:
        os.utime(data, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    found = ingot.open(data)
    expected = {"longer": [*range(40), *range(40)], "same size": [*range(39, -1, -1)]}
    np.testing.assert_array_equal(found.column("id"), expected.get(change, [*range(40)]))


def flipped(whole: bytes, step: int, first: int = 0) -> Iterator[bytes]:
    """Yield bytes of which one is damaged."""
    for at in range(first, len(whole), step):
        yield whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]


def read_rows(path: Path) -> list[dict[str, object]] | ingot.CorruptFileError:
    """Return all rows, or the error."""
    try:
        return list(ingot.open(path))
    except ingot.CorruptFileError as error:
        return error


def test_a_damaged_index_gives_no_wrong_row_and_is_built_anew(data, cache):
    expected = list(ingot.open(data))
    (index,) = indexes(cache)
    whole = index.read_bytes()
    refused = 0
    for damaged in flipped(whole, 7):
        index.write_bytes(damaged)
        found = read_rows(data)
        if isinstance(found, ingot.CorruptFileError):
            assert found.path == str(index)
            assert f"was removed; open {data} again" in str(found)
            assert not index.exists()
            refused += 1
            found = read_rows(data)
        assert found == expected
    assert refused
    for cut in range(0, len(whole), 29):
        index.write_bytes(whole[:cut])
        assert list(ingot.open(data)) == expected


def test_damage_in_any_page_of_an_index_is_found(tmp_path, cache):
    path = write(tmp_path / "x.jsonl", b'{"n": 7, "t": ["a", "b"]}\n' * 20_000)
    expected = list(ingot.open(path))
    (index,) = indexes(cache)
    whole = index.read_bytes()
    for damaged in flipped(whole, len(whole) // 11, 5000):
        index.write_bytes(damaged)
        found = read_rows(path)
        assert found == expected or str(found).startswith(f"{index}: ")
        assert list(ingot.open(path)) == expected


def test_an_index_of_another_file_is_not_used(data, tmp_path):
    ingot.open(data, index_dir=tmp_path / "a")
    other = write(tmp_path / "other" / "x.tfrecord", tfrecord(ROWS[:3]), parents=True)
    ingot.open(other, index_dir=tmp_path / "b")
    (index,), (mine,) = indexes(tmp_path / "a"), indexes(tmp_path / "b")
    shutil.copy(index, mine)
    assert len(ingot.open(other, index_dir=tmp_path / "b")) == 3


def test_threads_and_processes_that_open_at_once_all_see_the_rows(data, cache):
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, [data] * 8)) == [40] * 8
    shutil.rmtree(cache)
    with multiprocessing.get_context("spawn").Pool(3) as processes:
        assert processes.map(count, [data] * 6) == [40] * 6
    assert [one.name.endswith(".part") for one in indexes(cache)] == [False]


def count(path: Path) -> int:
    return sum(1 for row in ingot.open(path) if len(row["text"]) == row["id"])


def test_nothing_is_left_of_a_build_that_failed(data, cache):
    write(data, tfrecord(ROWS * 30)[:-3])
    with pytest.raises(ingot.CorruptFileError, match=r"x\.tfrecord: .*ends inside a record"):
        ingot.open(data)
    assert [one.name for one in cache.rglob("*") if one.is_file()] == ["lock"]


def test_a_byte_that_changed_under_an_index_is_found(data):
    opened = ingot.open(data)
    whole = bytearray(data.read_bytes())
    at = whole.rindex(b"x" * 39) + 5
    stat = data.stat()
    whole[at] ^= 1
    with data.open("r+b") as file:
        file.write(whole)
    os.utime(data, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(ingot.CorruptFileError, match="record 39"):
        opened[39]
    assert [one.record for one in opened.verify().damaged] == [39]
    assert opened[38]["id"] == 38


def test_a_pickled_data_set_rejects_a_replaced_file(data):
    opened = ingot.open(data)
    pickled = pickle.dumps(opened)
    assert len(pickled) < 1000
    assert pickle.loads(pickled)[3] == opened[3]  # noqa: S301
    write(data, tfrecord(ROWS[::-1]))
    with pytest.raises(ingot.FormatError, match="replaced"):
        pickle.loads(pickled)  # noqa: S301


def test_a_forked_child_reads_on(data):
    opened = ingot.open(data)
    opened[3]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(opened.__getitem__, range(40)) == list(opened)


def test_files_are_one_data_set_in_batches_views_and_a_loader(tmp_path):
    for k in range(5):
        write(tmp_path / f"x.tfrecord-0000{k}-of-00005", tfrecord(ROWS[8 * k : 8 * k + 8]))
    ds = ingot.open(tmp_path / "x.tfrecord-*")
    assert len(ds) == 40
    batch = ds[[39, 0, 17, 17]]
    np.testing.assert_array_equal(batch["id"], [39, 0, 17, 17])
    assert batch["text"] == [b"x" * 39, b"", b"x" * 17, b"x" * 17]
    assert [row["id"] for row in ds.where(ds.column("id") % 10 == 3)] == [3, 13, 23, 33]
    loader = ingot.Loader(ds.shuffle(seed=1), batch_size=8)
    assert sorted(k for one in loader for k in one["id"].tolist()) == list(range(40))


def test_save_copies_values_as_they_are_stored(data, tmp_path):
    ds = ingot.open(data)
    ds.save(tmp_path / "copy.ingot")
    assert list(ingot.open(tmp_path / "copy.ingot")) == list(ds)


def test_a_spec_needs_rows_with_fields(tmp_path):
    path = write(tmp_path / "x.tfrecord", tfrecord([b"\xff\xff"]))
    with pytest.raises(ingot.FormatError, match=r"not a tf\.train\.Example"):
        ingot.open(path, spec={"a": "int"})
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.append(b"a")
    with pytest.raises(ValueError, match="spec="):
        ingot.open(tmp_path / "x.ingot", spec={"a": "int"})


def test_ingots_own_writer_leaves_the_names_of_others_alone(tmp_path):
    for name in ("x.tfrecord", "x.tar", "x.jsonl"):
        with pytest.raises(ingot.FormatError, match=r"name it \.ingot"):
            ingot.Writer(tmp_path / name)


def test_an_index_of_many_rows_has_several_pages(tmp_path):
    rows = [example(id=[k]) for k in range(30_000)]
    path = write(tmp_path / "x.tfrecord", tfrecord(rows))
    ds = ingot.open(path)
    assert ds.stats().pages > 1
    np.testing.assert_array_equal(ds[[29_999, 0, 12_345]]["id"], [29_999, 0, 12_345])
    np.testing.assert_array_equal(ds.column("id"), np.arange(30_000))


TWO = ("a,b\n1,x\n", "a,b\n2.5,\n")


@pytest.mark.parametrize(
    "before", [[], ["0.csv"], ["1.csv"], ["*.csv"], ["0.csv", "1.csv", "*.csv"]]
)
@pytest.mark.parametrize(
    ("what", "spec"),
    [
        ("0.csv", {"a": "int", "b": "utf8"}),
        ("1.csv", {"a": "float", "b": "utf8?"}),
        ("*.csv", {"a": "float", "b": "utf8?"}),
    ],
)
def test_types_do_not_depend_on_what_was_opened_before(tmp_path, before, what, spec):
    for k, text in enumerate(TWO):
        write(tmp_path / f"{k}.csv", text.encode())
    for one in before:
        ingot.open(str(tmp_path / one))
    assert ingot.open(str(tmp_path / what)).spec == spec
    assert ingot.open(str(tmp_path / what)).spec == spec


def test_an_index_with_chosen_fields_does_not_hide_that_rows_have_others(tmp_path):
    lines = '{"a": 1}\n' * 1000 + '{"a": 1, "b": 2}\n'
    path = write(tmp_path / "x.jsonl", lines.encode())
    assert ingot.open(path, spec={"a": "int"}).spec == {"a": "int"}
    with pytest.raises(ingot.FormatError, match=r'line 1001, .*"b" appears here'):
        ingot.open(path)


def test_a_new_file_leaves_the_indexes_of_others(tmp_path, cache):
    for k in range(3):
        write(tmp_path / f"{k}.csv", b"a\n1\n")
        assert len(ingot.open(str(tmp_path / "*.csv"))) == k + 1
    assert len(indexes(cache)) == 3


def test_damaged_notes_about_fields_are_made_anew(data, cache):
    spec = ingot.open(data).spec
    (notes,) = cache.rglob("*.fields")
    whole = notes.read_bytes()
    for at in range(0, len(whole), 7):
        notes.write_bytes(whole[:at] + bytes([whole[at] ^ 0x01]) + whole[at + 1 :])
        assert ingot.open(data).spec == spec


def test_a_spec_with_a_name_that_no_row_has_says_which_there_are(data, tmp_path):
    files = [data, write(tmp_path / "x.jsonl", b'{"id": 1, "text": "x"}\n')]
    files.append(write(tmp_path / "x.csv", b"id,text\n1,x\n"))
    for path in files:
        why = rf'{path.name}: there is no field "idd"; the fields are \["id", "text"\]'
        with pytest.raises(ingot.FormatError, match=why):
            ingot.open(path, spec={"idd": "int", "text": "bytes"})


@pytest.mark.parametrize(("name", "there"), [("webdataset/shard-*.tar", "cls"), ("mds", "")])
def test_a_spec_with_an_unknown_name_is_rejected_for_shards(golden, name, there):
    folder = golden(name.split("/")[0])
    with pytest.raises(ingot.FormatError, match=rf'no field "aa"; the fields are .*{there}'):
        ingot.open(str(folder.parent / name), spec={"aa": "int"})


NUMBERS = {
    "x.csv": lambda k: b"n,t\n" + b"".join(b"%d,line\n" % n for n in numbers(k)),
    "x.jsonl": lambda k: b"".join(b'{"n": %d, "t": "line"}\n' % n for n in numbers(k)),
    "x.tfrecord": lambda k: tfrecord([example(n=[n], t=[b"line"]) for n in numbers(k)]),
}


def numbers(k: int) -> list[int]:
    """Return many numbers, of which one is `k`, far from what is sampled of a file."""
    found = [*range(10_000, 30_000)]
    found[11_111] = 70_000 + k
    return found


def replace_with(path: Path, data: bytes, times: os.stat_result) -> None:
    """Write a file anew, with the times of another, as `cp -p` and `rsync -t` do."""
    write(path, data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("name", NUMBERS)
def test_a_file_of_the_same_size_and_time_but_other_numbers_is_indexed_anew(tmp_path, name):
    path = write(tmp_path / name, NUMBERS[name](0))
    os.utime(path, (0, 1_000_000_000))
    for k in range(4):
        replace_with(path, NUMBERS[name](k), path.stat())
        np.testing.assert_array_equal(ingot.open(path).column("n"), numbers(k))


def test_a_file_that_was_replaced_by_its_like_keeps_its_index(tmp_path, cache):
    path = write(tmp_path / "x.csv", NUMBERS["x.csv"](0))
    ingot.open(path)
    (index,) = indexes(cache)
    before = index.stat().st_ino
    for _ in range(3):
        replace_with(path, NUMBERS["x.csv"](0), path.stat())
        np.testing.assert_array_equal(ingot.open(path).column("n"), numbers(0))
    assert index.stat().st_ino == before


def test_changes_in_quick_succession_are_all_seen(tmp_path):
    path = write(tmp_path / "x.csv", NUMBERS["x.csv"](0))
    times = path.stat()
    for k in range(10):
        replace_with(path, NUMBERS["x.csv"](k), times)
        found = ingot.open(path)
        replace_with(path, NUMBERS["x.csv"](k + 1), times)
        assert found.column("n")[11_111] in {70_000 + k, 70_001 + k}
        assert ingot.open(path).column("n")[11_111] == 70_001 + k


def test_indexes_of_what_a_file_was_are_removed(tmp_path, cache):
    for k in range(5):
        path = write(tmp_path / "x.csv", b"a%d\n%d\n" % (k, k))
        assert ingot.open(path).column(f"a{k}").tolist() == [k]
    ingot.open(path, spec={"a4": "utf8"})
    assert len(indexes(cache)) == 2
    assert len([*cache.rglob("*.fields")]) == 1


def test_indexes_of_files_that_are_gone_are_removed_with_the_next_one(tmp_path, cache):
    for name in ("a.csv", "b.csv"):
        ingot.open(write(tmp_path / name, b"a\n1\n"))
    (tmp_path / "a.csv").unlink()
    ingot.open(write(tmp_path / "c.csv", b"a\n1\n"))
    assert [one.name[:5] for one in indexes(cache)] == ["b.csv", "c.csv"]


def test_rows_with_more_fields_than_an_index_holds_are_rejected(tmp_path):
    names = [f"c{k}" for k in range(5000)]
    rows = f"{','.join(names)}\n{','.join('1' * 5000)}\n"
    path = write(tmp_path / "x.csv", rows.encode())
    with pytest.raises(ingot.FormatError, match=r"x\.csv: 5000 columns, at most 4095.*spec"):
        ingot.open(path)
    assert ingot.open(path, spec={"c7": "int"})[0] == {"c7": 1}


def test_a_feature_without_a_name_is_rejected(tmp_path):
    path = write(tmp_path / "x.tfrecord", tfrecord([example(**{"": [1], "a": [2]})]))
    with pytest.raises(ingot.FormatError, match=r"x\.tfrecord: .*no name.*spec"):
        ingot.open(path)
    assert ingot.open(path, spec={"a": "int"})[0] == {"a": 2}


def test_a_small_file_does_not_make_a_large_index(tmp_path, cache, monkeypatch):
    lines = [b"{%s}" % b",".join(b'"f%d":1' % k for k in range(900))] + [b"{}"] * 3000
    path = write(tmp_path / "x.jsonl", b"\n".join(lines))
    monkeypatch.setenv("INGOT_MAX_INDEX_BYTES", "1000000")
    with pytest.raises(ingot.FormatError, match=r"more than 1000000 bytes.*INGOT_MAX_INDEX_BYTES"):
        ingot.open(path)
    assert [one.name for one in cache.rglob("*") if one.is_file()] == ["lock"]
    monkeypatch.delenv("INGOT_MAX_INDEX_BYTES")
    assert len(ingot.open(path)) == 3001


def test_a_forked_child_does_not_keep_the_lock_of_a_folder(tmp_path, run_fault, cache):
    done = run_fault("fork_while_indexing.py", tmp_path, cache)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["forked", "free"]


@pytest.mark.timeout(60)
def test_one_folder_under_two_names_has_one_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("INGOT_INDEX", "beside")
    monkeypatch.delenv("INGOT_INDEX_DIR", raising=False)
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    first = write(tmp_path / "data" / "a.csv", b"a\n1\n")
    write(tmp_path / "data" / "b.csv", b"a\n2\n")
    ds = ingot.open([first, tmp_path / "link" / "b.csv"])
    assert ds.column("a").tolist() == [1, 2]
