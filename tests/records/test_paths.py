"""Several files as one sequence, by what a user calls them."""

import errno
import pickle
import random
import re
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

import ingot
from ingot.compat import bagz, ffrecord
from ingot.formats.bag import BagWriter

PARTS = [[b"%d.%d" % (part, k) * (k % 50) for k in range(300)] for part in range(5)]
RECORDS = list(chain.from_iterable(PARTS))


@pytest.fixture
def folder(tmp_path):
    for number, part in enumerate(PARTS):
        with ingot.Writer(tmp_path / f"part-{number}.ingot", compression=None) as writer:
            writer.extend(part)
    return tmp_path


def test_a_folder_a_pattern_and_a_list_are_the_same_sequence(folder):
    names = [folder / f"part-{number}.ingot" for number in range(5)]
    for source in (folder, str(folder), folder / "part-*.ingot", names, [names[0], *names[1:]]):
        reader = ingot.open(source)
        assert reader.paths == [str(name) for name in names]
        assert len(reader) == len(RECORDS)
        assert list(reader) == RECORDS


@pytest.mark.parametrize("way", ["", "mmap", "uring", "pread"])
def test_every_way_of_reading_crosses_files(folder, way, monkeypatch):
    monkeypatch.setenv("INGOT_IO", way)
    reader = ingot.open(folder)
    rng = random.Random(0)
    for size in (1, 2, 64, 1000):
        indices = rng.choices(range(-len(RECORDS), len(RECORDS)), k=size)
        expected = [RECORDS[k] for k in indices]
        assert reader[indices] == expected
        assert [bytes(one) for one in reader.read(indices)] == expected
        assert list(reader.iter(indices)) == expected
        assert [reader[k] for k in indices] == expected
    assert list(reader[250:950:7]) == RECORDS[250:950:7]
    assert reader[290:310][[15, -1]] == [RECORDS[305], RECORDS[309]]
    assert reader.lengths().tolist() == [len(record) for record in RECORDS]


def test_a_file_may_be_listed_twice_and_be_empty(folder, make):
    empty = make([], name="empty.ingot")
    first = folder / "part-0.ingot"
    reader = ingot.open([empty, first, empty, empty, first])
    assert list(reader) == PARTS[0] * 2
    assert reader[300] == PARTS[0][0]


def test_containers_mix_in_a_list_but_not_in_a_folder(folder):
    with ffrecord.FileWriter(folder / "x.ffr", 1) as writer:
        writer.write_one(b"another container")
    reader = ingot.open([folder / "x.ffr", folder / "part-1.ingot"])
    assert list(reader) == [b"another container", *PARTS[1]]
    with pytest.raises(ingot.FormatError, match=r"holds \.ffr and \.ingot files"):
        ingot.open(folder)


def test_errors_name_the_file_and_the_record_of_the_sequence(folder):
    damaged = folder / "part-3.ingot"
    content = bytearray(damaged.read_bytes())
    place = content.index(PARTS[3][77])
    content[place] ^= 1
    damaged.write_bytes(content)
    reader = ingot.open(folder)
    for read in (
        lambda: reader[977],
        lambda: reader[[1, 977, 3]],
        lambda: list(reader.iter([977])),
    ):
        with pytest.raises(ingot.CorruptFileError, match=r"part-3\.ingot: record 977") as caught:
            read()
        assert (caught.value.path, caught.value.record) == (str(damaged), 977)
    (found,) = reader.verify().damaged
    assert found.record == 977
    with pytest.raises(IndexError, match="index 1500 is out of range for 1,500"):
        reader[1500]


def test_names_without_a_file_are_rejected(tmp_path):
    with pytest.raises(ingot.FormatError, match="holds no record files"):
        ingot.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        ingot.open(tmp_path / "x-*.ingot")
    with pytest.raises(FileNotFoundError):
        ingot.open([tmp_path / "x.ingot"])
    with pytest.raises(ValueError, match="no files"):
        ingot.open([])
    with pytest.raises(FileNotFoundError, match="the path is empty"):
        ingot.open("")


def test_a_name_with_brackets_is_a_file_if_there_is_one(make):
    path = make([b"odd"], name="x[1].ingot")
    assert list(ingot.open(path)) == [b"odd"]


@pytest.mark.parametrize(
    ("braces", "numbers"),
    [
        ("part-{0..4}.ingot", [0, 1, 2, 3, 4]),
        ("part-{3..1}.ingot", [3, 2, 1]),
        ("part-{0..4..2}.ingot", [0, 2, 4]),
        ("part-{4,0}.ingot", [4, 0]),
        ("{part-{1..2},part-0}.ingot", [1, 2, 0]),
        ("{part,part}-{2..3}.{ingot,ingot}", [2, 2, 3, 3] * 2),
        ("part-{2..2}.ingot", [2]),
        ("part-{[01],4}.ingot", [0, 1, 4]),
    ],
)
def test_braces_stand_for_ranges_and_lists(folder, braces, numbers):
    reader = ingot.open(folder / braces)
    assert reader.paths == [str(folder / f"part-{number}.ingot") for number in numbers]
    again = pickle.loads(pickle.dumps(reader))  # noqa: S301
    assert again.paths == reader.paths
    assert ingot.open([folder / braces, folder / "part-0.ingot"]).paths[:-1] == reader.paths


def test_ranges_are_padded_as_their_bounds_are(tmp_path):
    names = [f"x-{number:03}.ingot" for number in range(8, 12)]
    for name in names:
        ingot.Writer(tmp_path / name).close()
    for braces in ("x-{008..011}.ingot", "x-{008..11}.ingot", "x-0{08..11}.ingot"):
        assert ingot.open(tmp_path / braces).paths == [str(tmp_path / name) for name in names]


@pytest.mark.parametrize(
    "suffix", ["ingot", "jsonl", "tar", "csv", "npy", "parquet", "arrow", "h5"]
)
def test_a_missing_file_of_a_range_is_named(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    ingot.from_generator(lambda: ({"x": k} for k in range(3)), "rows.ingot")
    if suffix == "npy":
        np.save("x-0.npy", np.arange(3))
    elif suffix in ("ingot", "tar", "parquet", "h5"):
        ingot.convert("rows.ingot", f"x-0.{suffix}")
    elif suffix == "arrow":
        pa.feather.write_feather(pa.table({"x": [1]}), "x-0.arrow")
    else:
        Path(f"x-0.{suffix}").write_text("x\n1\n" if suffix == "csv" else '{"x": 1}\n')
    Path(f"x-2.{suffix}").write_bytes(Path(f"x-0.{suffix}").read_bytes())
    assert len(ingot.open(f"x-{{0,2}}.{suffix}")) in (2, 6)
    for braces in ("{0..2}", "{1..2}"):
        with pytest.raises(FileNotFoundError, match=rf"x-1\.{suffix}"):
            ingot.open(f"x-{braces}.{suffix}")
    with pytest.raises(FileNotFoundError, match=r"y-\*0"):
        ingot.open(f"{{x,y}}-*0.{suffix}")


def test_braces_that_are_part_of_a_name_stay(tmp_path):
    folder = tmp_path / "{a,b}"
    folder.mkdir()
    for name in ("{0..3}.ingot", "x{y}.ingot", "part-1.ingot"):
        ingot.Writer(folder / name).close()
        assert ingot.open(folder / name).paths == [str(folder / name)]
    assert ingot.open(folder / "part-{1..1}.ingot").paths == [str(folder / "part-1.ingot")]
    assert len(ingot.open(folder / "*.ingot").paths) == 3
    with pytest.raises(FileNotFoundError, match=r"\{x\}\.ingot"):
        ingot.open(folder / "{x}.ingot")


@pytest.mark.parametrize(
    "braces", ["{0..999999999999}", "{0..9999}{0..9999}", "{1..99999,{0..99999}}", "{0,1}" * 64]
)
def test_braces_that_stand_for_too_many_files_are_rejected(tmp_path, braces):
    with pytest.raises(ingot.FormatError, match="the braces expand to more than 100,000 files"):
        ingot.open(tmp_path / f"x-{braces}.ingot")


def test_braces_may_be_longer_than_a_name(folder):
    long = ",".join(["part-1"] * 100)
    assert len(ingot.open(f"{folder}/{{{long}}}.ingot").paths) == 100
    assert ingot.convert(f"{folder}/{{{long}}}.ingot", folder / "all.ingot").rows == 30_000


def test_a_conversion_takes_braces_and_keeps_off_its_sources(folder):
    done = ingot.convert(folder / "part-{0..1}.ingot", folder / "both.ffr")
    assert list(ingot.open(done.path)) == PARTS[0] + PARTS[1]
    with pytest.raises(ValueError, match="the target is the source"):
        ingot.convert(folder / "part-{0..1}.ingot", folder / "part-1.ingot", overwrite=True)


def test_readers_of_many_files_pickle_small_and_notice_a_change(folder):
    reader = ingot.open(folder)
    pickled = pickle.dumps(reader)
    assert len(pickled) < 1000
    assert list(pickle.loads(pickled)) == RECORDS  # noqa: S301
    Path(folder / "part-2.ingot").unlink()
    with pytest.raises(ingot.FormatError, match="replaced"):
        pickle.loads(pickled)  # noqa: S301


def test_stats_of_many_files_add_up(folder):
    each = [ingot.open(path).stats() for path in ingot.open(folder).paths]
    total = ingot.open(folder).stats()
    assert total.rows == len(RECORDS)
    assert total.file_bytes == sum(one.file_bytes for one in each)
    assert total.closed


def test_one_unfinished_file_is_enough_to_reject(folder):
    whole = (folder / "part-4.ingot").read_bytes()
    (folder / "part-4.ingot").write_bytes(whole[:-10])
    with pytest.raises(ingot.UnfinishedFileError, match=r"part-4\.ingot"):
        ingot.open(folder)


@pytest.mark.parametrize("source", [3, None, b"x.ingot", 1.5])
def test_arguments_that_are_neither_paths_nor_lists_are_named(source):
    message = f"expected a path or a list of paths, got {type(source).__name__}$"
    with pytest.raises(TypeError, match=message):
        ingot.open(source)


@pytest.mark.parametrize("path", [3, None, b"x.ingot", 1.5])
@pytest.mark.parametrize(
    "call",
    [
        lambda path: ingot.open([path]),
        ingot.Writer,
        ingot.recover,
        ingot.PackedFolder,
        lambda path: ingot.pack(path, "x.ingot"),
        lambda path: ingot.pack(".", path),
        ffrecord.FileWriter,
    ],
)
def test_invalid_paths_are_named(call, path):
    message = f"a path must be a str or an os.PathLike of one, got {type(path).__name__}$"
    with pytest.raises(TypeError, match=message):
        call(path)


def test_a_pattern_reaches_into_folders(folder):
    deep = folder / "a" / "b"
    deep.mkdir(parents=True)
    (folder / "part-4.ingot").rename(deep / "part-4.ingot")
    assert len(ingot.open(folder / "**" / "*.ingot")) == len(RECORDS)


def write_bag(path, records, limits=None):
    with BagWriter(path, limits) as writer:
        writer.extend(records)


def test_shards_are_named_by_their_number_or_a_star(tmp_path):
    for k in range(3):
        write_bag(tmp_path / f"x-{k:05}-of-00003.bag", PARTS[k])
    joined = PARTS[0] + PARTS[1] + PARTS[2]
    for name in ("x@3.bag", "x@*.bag"):
        assert list(ingot.open(tmp_path / name)) == joined
    with pytest.raises(FileNotFoundError, match=r"x-00000-of-00002\.bag"):
        ingot.open(tmp_path / "x@2.bag")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        ingot.open(tmp_path / "y@*.bag")
    write_bag(tmp_path / "y@2.bag", [b"one file"])
    assert list(ingot.open(tmp_path / "y@2.bag")) == [b"one file"]


def test_limits_are_not_taken_for_bags(tmp_path):
    for name in ("a.bag", "b.bag"):
        write_bag(tmp_path / name, [name.encode()], tmp_path / f"limits.{name}")
    for source in (tmp_path, tmp_path / "*.bag"):
        assert list(ingot.open(source)) == [b"a.bag", b"b.bag"]
    write_bag(tmp_path / "limits.c.bag", [b"a bag of this name"])
    for source in (tmp_path, tmp_path / "*.bag"):
        assert list(ingot.open(source)) == [b"a.bag", b"b.bag", b"a bag of this name"]


def test_the_limits_of_a_bag_are_not_those_of_its_compressed_neighbour(tmp_path):
    write_bag(tmp_path / "x.bag", [b"plain"], tmp_path / "x.idx")
    with BagWriter(tmp_path / "x.bagz", level=3) as writer:
        writer.append(b"compressed")
    assert list(ingot.open(tmp_path / "x.bag")) == [b"plain"]
    assert list(ingot.open(tmp_path / "x.bagz")) == [b"compressed"]


def test_a_tilde_is_the_home_directory_wherever_a_path_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home" / "raw").mkdir(parents=True)
    (tmp_path / "home" / "raw" / "a.txt").write_bytes(b"a")
    with ingot.Writer("~/x.ingot") as writer:
        writer.append(b"a")
    with ingot.DatasetWriter("~/rows", {"a": "int"}) as writer:
        writer.append({"a": 1})
    ingot.build("~/built", _row, [1, 2], spec={"a": "int"}, workers=0, progress=None)
    ingot.pack("~/raw", "~/raw.ingot")
    assert ingot.open("~/x.ingot")[0] == b"a"
    assert ingot.open(["~/x.ingot", "~/x.ingot"])[[0, 1]] == [b"a", b"a"]
    assert len(ingot.open("~/x*.ingot")) == 1
    assert ingot.open("~/rows").column("a").tolist() == [1]
    assert ingot.open("~/built").column("a").tolist() == [1, 2]
    assert ingot.PackedFolder("~/raw.ingot").read_one("a.txt") == b"a"
    assert ingot.recover("~/x.ingot").was_whole
    with ffrecord.FileWriter("~/x.ffr", 1) as writer:
        writer.write_one(b"a")
    assert bytes(ffrecord.FileReader("~/x.ffr").read_one(0)) == b"a"
    with bagz.Writer("~/x.bagz") as writer:
        writer.write(b"a")
    assert bagz.Reader("~/x.bagz")[0] == b"a"
    assert [entry.name for entry in tmp_path.iterdir()] == ["home"]


def _row(k):
    return {"a": k}


@pytest.mark.parametrize("name", ["x.ingot", "rows", "granular", "x.h5", "x.npy"])
def test_a_spec_is_rejected_where_rows_know_their_fields(tmp_path, name):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"n": "int"}) as writer:
        writer.append({"n": 1})
    for target, form in (("rows", None), ("granular", "granular"), ("x.h5", None)):
        ingot.convert(tmp_path / "x.ingot", tmp_path / target, format=form)
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(ValueError, match=r"know their fields: leave out spec="):
        ingot.open(tmp_path / name, spec={"n": "int"})


def test_paths_may_come_from_a_generator(tmp_path):
    for k in range(2):
        (tmp_path / f"{k}.jsonl").write_text(f'{{"k": {k}}}\n', encoding="utf-8")
    assert ingot.open(one for one in sorted(tmp_path.glob("*.jsonl"))).column("k").tolist() == [
        0,
        1,
    ]


def test_files_are_called_by_what_was_opened(tmp_path):
    for k in range(3):
        with ingot.Writer(tmp_path / f"log{k}.ingot", sync=False) as writer:
            writer.append(b"x")
        with ingot.DatasetWriter(tmp_path / f"row{k}.ingot", {"x": "int"}, sync=False) as rows:
            rows.append({"x": k})
        (tmp_path / f"{k}.jsonl").write_text('{"x": 1}\n')
        np.save(tmp_path / f"{k}.npy", np.arange(2))
    names = ["log*.ingot", "log{0..2}.ingot", "row*.ingot", "row{0..2}.ingot", "*.jsonl", "*.npy"]
    for name in names:
        opened = ingot.open(tmp_path / name)
        assert opened.path == str(tmp_path / name)
        assert len(opened.paths) == 3
        assert repr(str(tmp_path / name)) in repr(opened)
        assert f"{tmp_path.name}/{name}" in repr(opened.shuffle(0))
        assert pickle.loads(pickle.dumps(opened)).path == opened.path  # noqa: S301
    for name in names[2:]:
        with pytest.raises(KeyError, match=re.escape(f"{tmp_path / name}: there is no field 'y'")):
            ingot.open(tmp_path / name).select("y")
    for start in ("log", "row"):
        opened = ingot.open([tmp_path / f"{start}{k}.ingot" for k in range(3)])
        assert opened.path == str(tmp_path / f"{start}0.ingot")
        assert f"{start}0.ingot' and 2 more" in repr(opened)
        assert f"'{start}0.ingot and 2 more', " in repr(opened.shuffle(0))


def test_file_urls_are_paths(tmp_path):
    url = f"file://{tmp_path}"
    with ingot.Writer(f"{url}/a%20b.ingot") as writer:
        writer.append(b"x")
    assert ingot.open(tmp_path / "a b.ingot").paths == [str(tmp_path / "a b.ingot")]
    assert list(ingot.open(f"{url}/a%20b.ingot")) == [b"x"]
    assert list(ingot.open([f"file://localhost{tmp_path}/a%20b.ingot"])) == [b"x"]
    assert list(ingot.open(f"{url}/a*.ingot")) == [b"x"]
    with ingot.DatasetWriter(f"{url}/rows", {"x": "int"}) as rows:
        rows.append({"x": 1})
    assert ingot.open(f"{url}/rows").path == str(tmp_path / "rows")
    assert ingot.convert(f"{url}/rows", f"{url}/rows.parquet").path == f"{tmp_path}/rows.parquet"
    for wrong in ("file://other/x.ingot", "file://x.ingot"):
        with pytest.raises(ingot.FormatError, match="expected file:///PATH"):
            ingot.open(wrong)


def test_files_of_an_unknown_suffix_are_rejected_with_the_known_ones(tmp_path):
    (tmp_path / "x.xyz").write_bytes(b"hello" * 200)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "x.xyz").write_bytes(b"hello")
    for wrong in ("x.xyz", "odd"):
        with pytest.raises(ingot.FormatError, match=r"takes \.ingot, .*CSV, .*Parquet") as caught:
            ingot.open(tmp_path / wrong)
        assert caught.value.path == str(tmp_path / wrong)


@pytest.mark.parametrize(
    "name", ["x.npy", "x.parquet", "x.arrow", "x.jsonl", "x/dataset.json", "x/cat/a.png", "x/dog"]
)
def test_links_that_lead_to_each_other_are_rejected_by_name(tmp_path, name):
    link = tmp_path / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(link.name)
    with pytest.raises(ingot.StorageError, match=re.escape(f"{link}: ")) as caught:
        ingot.open(tmp_path / Path(name).parts[0])
    assert (caught.value.path, caught.value.errno) == (str(link), errno.ELOOP)


@pytest.mark.parametrize("open_it", [ingot.open, ingot.open_dataset, ingot.open_records])
@pytest.mark.parametrize("several", [False, True])
def test_a_name_that_is_too_long_is_rejected_by_name(tmp_path, open_it, several):
    path = tmp_path / ("a" * 300 + ".jsonl")
    with pytest.raises(ingot.StorageError, match="aaa") as caught:
        open_it([path, path] if several else path)
    assert (caught.value.path, caught.value.errno) == (str(path), errno.ENAMETOOLONG)


def test_a_data_set_with_a_name_that_is_too_long_is_rejected_by_name(tmp_path):
    with pytest.raises(ingot.StorageError, match="aaa") as caught:
        ingot.DatasetWriter(tmp_path / ("a" * 300), {"x": "int"})
    assert caught.value.errno == errno.ENAMETOOLONG


def test_the_files_that_a_path_expands_to_are_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.ingot", "b.ingot", "x-00000-of-00002.bagz", "x-00001-of-00002.bagz"):
        (tmp_path / name).touch()
    two = [str(tmp_path / "a.ingot"), str(tmp_path / "b.ingot")]
    assert ingot.list_files("*.ingot") == ingot.list_files(["a.ingot", tmp_path / "b.ingot"]) == two
    assert ingot.list_files("{a,b}.ingot") == two
    shards = [str(tmp_path / f"x-0000{k}-of-00002.bagz") for k in range(2)]
    assert ingot.list_files("x@2.bagz") == ingot.list_files("x@*.bagz") == shards
    assert ingot.list_files("missing.ingot") == [str(tmp_path / "missing.ingot")]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        ingot.list_files("*.csv")
    with pytest.raises(ingot.FormatError, match=r"\.bagz and \.ingot files"):
        ingot.list_files(tmp_path)
