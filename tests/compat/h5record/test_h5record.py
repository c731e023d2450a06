"""`H5Dataset` on HDF5 files and on Ingot files: schemas, indices, options, and what it is."""

import pickle
import sys
import threading
from pathlib import Path

import h5py
import numpy as np
import pytest

import ingot
from ingot.compat import h5record
from ingot.compat.h5record import (
    AtomicFile,
    Float,
    FloatSequence,
    H5Dataset,
    Image,
    ImageSequence,
    Integer,
    Sequence,
    String,
)
from tests.compat.h5record.rows import expected, rows, same, schema

PAIR = [Integer("i"), String("t")]


@pytest.fixture(params=["x.h5", "x.ingot"])
def path(request, tmp_path):
    return tmp_path / request.param


def pairs(count, start=0):
    return [{"i": k, "t": f"text {k}"} for k in range(start, start + count)]


@pytest.fixture
def eager_threads():
    """Have threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def left(path):
    return sorted(one.name for one in path.parent.iterdir())


class TestSchema:
    @pytest.mark.parametrize("given", [PAIR, tuple(PAIR), {one.name: one for one in PAIR}])
    def test_a_schema_is_a_list_a_tuple_or_a_dict(self, path, given):
        dataset = H5Dataset(given, path, pairs(3))
        assert list(dataset) == pairs(3)
        assert dataset.schema == {one.name: one for one in PAIR}

    @pytest.mark.parametrize(
        ("given", "error"),
        [
            ([Integer("i"), String("i")], ValueError),
            ({"other": Integer("i")}, ValueError),
            ([], ValueError),
            ({}, ValueError),
            (set(PAIR[:1]), TypeError),
            (Integer("i"), TypeError),
            ([Integer], TypeError),
            (["i"], TypeError),
            ("i", TypeError),
        ],
        ids=str,
    )
    def test_invalid_schemas_are_rejected(self, path, given, error):
        with pytest.raises(error):
            H5Dataset(given, path, pairs(3))
        assert left(path) == []

    def test_some_columns_are_enough_to_read(self, path):
        H5Dataset(schema(), path, rows(4))
        some = [String("string"), Integer("integer")]
        dataset = H5Dataset(some, path)
        assert list(dataset) == [
            {"string": one["string"], "integer": one["integer"]} for one in rows(4)
        ]
        assert list(dataset[0]) == ["string", "integer"]

    def test_a_column_that_is_not_there_is_named(self, path):
        H5Dataset(PAIR, path, pairs(3))
        with pytest.raises(
            ingot.FormatError, match=r"x\.\w+: there is no column 'label' in \['i', 't'\]"
        ):
            H5Dataset([Integer("i"), Float("label")], path)

    def test_without_a_schema_that_of_the_file_is_used(self, path):
        H5Dataset(schema(), path, rows(4))
        dataset = H5Dataset(None, path)
        assert same(expected(schema(), rows(4)), list(dataset))
        assert [repr(one) for one in dataset.schema.values()] == [repr(one) for one in schema()]
        H5Dataset(schema(), path, rows(1), append_mode=True)
        assert len(H5Dataset(None, path)) == 5

    def test_a_file_that_has_no_schema_asks_for_one(self, tmp_path):
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file["i"] = np.arange(4)
        with pytest.raises(ingot.FormatError, match="no schema is stored in the file; pass one"):
            H5Dataset(None, tmp_path / "x.h5")
        assert H5Dataset([Integer("i")], tmp_path / "x.h5")[3] == {"i": 3}

    def test_a_schema_of_your_own_classes_is_asked_for(self, path):
        class Label(Integer):
            pass

        H5Dataset([Label("i")], path, [{"i": 3}])
        with pytest.raises(ingot.FormatError, match="pass one"):
            H5Dataset(None, path)
        assert H5Dataset([Label("i")], path)[0] == {"i": 3}


class TestRows:
    def test_a_row_is_found_by_its_index(self, path):
        dataset = H5Dataset(PAIR, path, pairs(700))
        assert len(dataset) == dataset.num_entries == 700
        assert [dataset[k] for k in (0, 299, 300, 699, -1, -700)] == [
            pairs(700)[k] for k in (0, 299, 300, 699, -1, -700)
        ]
        assert list(dataset) == pairs(700)

    def test_texts_of_many_rows_are_a_list(self, path):
        dataset = H5Dataset(PAIR, path, pairs(10))
        assert dataset[2:5]["t"] == ["text 2", "text 3", "text 4"]
        assert dataset[[7, 1, 7]]["t"] == ["text 7", "text 1", "text 7"]
        assert dataset[[7, 1, 7]]["i"].tolist() == [7, 1, 7]
        assert dataset[::-1]["i"].tolist() == list(range(9, -1, -1))

    def test_rows_read_together_are_those_read_alone(self, path):
        dataset = H5Dataset(schema(), path, rows(20), compression="gzip")
        order = [7, 0, 7, -1, 19, 3]
        assert same([dataset[k] for k in order], dataset.__getitems__(order))
        assert dataset.__getitems__([]) == []
        with pytest.raises(IndexError):
            dataset.__getitems__([0, 20])

    def test_rows_pickle(self, path):
        dataset = H5Dataset(schema(), path, rows(3))
        assert same(pickle.loads(pickle.dumps(dataset[2])), dataset[2])  # noqa: S301
        assert same(pickle.loads(pickle.dumps(dataset[1:])), dataset[1:])  # noqa: S301

    def test_a_transform_has_the_last_word(self, path):
        H5Dataset(PAIR, path, pairs(10))
        for to_memory in (False, True):
            dataset = H5Dataset(PAIR, path, transform=lambda row: row["t"], to_memory=to_memory)
            assert (dataset[3], dataset[2:4]) == ("text 3", ["text 2", "text 3"])
            assert dataset.__getitems__([1, 5]) == ["text 1", "text 5"]
            assert list(dataset) == [one["t"] for one in pairs(10)]

    def test_rows_in_memory_need_no_file(self, path):
        H5Dataset(schema(), path, rows(12), compression="lzf")
        dataset = H5Dataset(schema(), path, to_memory=True)
        copied = pickle.dumps(dataset)
        path.unlink()
        assert same(expected(schema(), rows(12)), list(dataset))
        assert same(dataset[3], dataset.__getitems__([3])[0])
        assert dataset[2:4]["string"] == [one["string"] for one in rows(2, start=2)]
        assert same(list(dataset), list(pickle.loads(copied)))  # noqa: S301

    @pytest.mark.usefixtures("eager_threads")
    @pytest.mark.parametrize("to_memory", [False, True])
    @pytest.mark.parametrize("compression", [None, "gzip"])
    def test_eight_threads_read_at_once(self, path, to_memory, compression):
        H5Dataset(schema(), path, rows(60), compression=compression)
        wanted, wrong = expected(schema(), rows(60)), []
        for _ in range(6):
            dataset = H5Dataset(schema(), path, to_memory=to_memory)
            start = threading.Barrier(8)

            def work(seed, dataset=dataset, start=start):
                order = np.random.default_rng(seed).integers(0, 60, 20).tolist()
                start.wait()
                try:
                    wrong.extend(k for k in order if not same(wanted[k], dataset[k]))
                except Exception as error:  # noqa: BLE001
                    wrong.append(error)

            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert wrong == []


class TestWriting:
    def test_a_file_that_exists_ignores_the_rows(self, path):
        H5Dataset(PAIR, path, pairs(3))
        before = path.read_bytes()
        assert list(H5Dataset(PAIR, path, iter(pairs(99)))) == pairs(3)
        assert path.read_bytes() == before

    def test_without_file_and_rows_there_is_nothing_to_open(self, path):
        for options in ({}, {"append_mode": True}, {"to_memory": True}):
            with pytest.raises(FileNotFoundError, match=r"pass schema and data_iter"):
                H5Dataset(PAIR, path, **options)
        with pytest.raises(FileNotFoundError):
            H5Dataset(None, path)
        with pytest.raises((FileNotFoundError, ingot.StorageError)):
            H5Dataset(PAIR, path.parent / "no" / path.name, pairs(1))
        assert left(path) == []

    def test_no_rows_make_a_file_without_rows(self, path):
        dataset = H5Dataset(schema(), path, iter(()))
        assert (len(dataset), list(dataset)) == (0, [])
        with pytest.raises(IndexError):
            dataset[0]
        dataset = H5Dataset(schema(), path, rows(3), append_mode=True)
        assert same(expected(schema(), rows(3)), list(dataset))

    def test_rows_are_appended_after_the_others(self, path):
        H5Dataset(PAIR, path, pairs(350), append_mode=True)
        assert len(H5Dataset(PAIR, path, append_mode=True)) == 350
        dataset = H5Dataset(PAIR, path, iter(pairs(350, start=350)), append_mode=True)
        assert list(dataset) == list(H5Dataset(PAIR, path)) == pairs(700)
        assert left(path) == [path.name]

    def test_appended_rows_need_all_columns_of_the_file(self, path):
        H5Dataset(PAIR, path, pairs(3))
        before = path.read_bytes()
        for columns in ([Integer("i")], [*PAIR, Float("f")], [Integer("i"), String("u")]):
            with pytest.raises(
                ValueError, match=r"the file has the columns \['i', 't'\], the schema"
            ):
                H5Dataset(columns, path, [{}], append_mode=True)
        assert path.read_bytes() == before
        assert left(path) == [path.name]

    @pytest.mark.parametrize(
        ("old", "new", "value"),
        [
            (Integer("a"), Float("a"), 0.5),
            (Float("a"), Integer("a"), 2**24 + 1),
            (h5record.Float16("a"), Float("a"), 1e5),
            (Sequence("a"), FloatSequence("a"), [0.5, 1.5]),
            (Sequence("a"), String("a"), "text"),
            (String("a"), Sequence("a"), [1, 2]),
            (ImageSequence(2, 2, 1, "a"), ImageSequence(3, 3, 1, "a"), list(range(9))),
        ],
        ids=repr,
    )
    def test_appended_values_of_another_class_are_not_made_to_fit(self, path, old, new, value):
        zero = {"String": "", "Integer": 0, "Float": 0, "Float16": 0}.get(type(old).__name__, [])
        H5Dataset([old], path, [{"a": zero}])
        with pytest.raises((TypeError, ValueError), match="a"):
            H5Dataset([new], path, [{"a": value}], append_mode=True)
        if path.suffix == ".h5":
            assert len(H5Dataset([old], path)) == 1
            assert left(path) == [path.name]

    @pytest.mark.parametrize("chunk_size", [1, 7, 300, 5000])
    def test_chunks_have_the_requested_number_of_rows(self, path, chunk_size):
        dataset = H5Dataset(PAIR, path, pairs(1000), chunk_size=chunk_size)
        assert list(dataset) == pairs(1000)
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                assert file["i"].chunks == (chunk_size,)
                assert file["t"].chunks == (chunk_size, 1)

    def test_data_length_is_a_limit(self, path):
        H5Dataset(PAIR, path, pairs(3), data_length=3)
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                assert file["i"].maxshape == (3,)
        with pytest.raises(ValueError, match="row 3: more rows than data_length=3"):
            H5Dataset(PAIR, path.parent / f"y{path.suffix}", pairs(4), data_length=3)
        with pytest.raises(ValueError, match=r"3 rows|at most 3"):
            H5Dataset(PAIR, path, pairs(4), data_length=3, append_mode=True)
        assert list(H5Dataset(PAIR, path)) == pairs(3)

    @pytest.mark.parametrize("compression", ["zip", 4, "", "GZIP"])
    def test_an_unknown_compression_is_rejected(self, path, compression):
        with pytest.raises(ValueError, match="compression must be one of None, 'gzip'"):
            H5Dataset(PAIR, path, pairs(3), compression=compression)
        assert left(path) == []

    def test_verbose_says_how_far_it_is(self, path, capsys):
        H5Dataset(PAIR, path, pairs(1234), verbose=1)
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(f"{path}: 1,234 rows, ")
        assert said.err.endswith("\n")
        H5Dataset(PAIR, path, pairs(3))
        assert capsys.readouterr() == ("", "")

    def test_a_value_may_be_changed_once_it_was_given(self, path):
        columns = [Image(2, 2, 1), Sequence("s"), ImageSequence(1, 1, 3, "film"), Integer("i")]
        picture, run = np.empty((1, 2, 2), np.uint8), np.empty(3, np.int32)
        film, number = np.empty(3, np.uint8), np.empty((), np.int64)

        def one_buffer():
            for k in range(5):
                for array in (picture, run, film, number):
                    array[...] = k
                yield {"image": picture, "s": run, "film": film, "i": number}

        found = list(H5Dataset(columns, path, one_buffer()))
        assert [one["i"] for one in found] == [0, 1, 2, 3, 4]
        assert [one["image"].max() for one in found] == [0, 1, 2, 3, 4]
        assert [one["s"][0].tolist() for one in found] == [[k] * 3 for k in range(5)]
        assert [one["film"].max() for one in found] == [0, 1, 2, 3, 4]

    def test_a_relative_path_is_that_of_the_moment(self, path, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        dataset = H5Dataset(PAIR, path.name, pairs(3))
        assert dataset.save_filename == path.name
        monkeypatch.chdir("/")
        assert list(dataset) == pairs(3)
        assert list(pickle.loads(pickle.dumps(dataset))) == pairs(3)  # noqa: S301

    def test_appending_keeps_the_mode_of_a_file_and_the_link_to_it(self, path):
        H5Dataset(PAIR, path, pairs(3))
        path.chmod(0o640)
        link = path.parent / f"link{path.suffix}"
        link.symlink_to(path.name)
        assert list(H5Dataset(PAIR, link, pairs(2, start=3), append_mode=True)) == pairs(5)
        assert link.is_symlink()
        assert path.stat().st_mode & 0o777 == 0o640
        assert list(H5Dataset(PAIR, path)) == pairs(5)

    def test_rows_may_be_large(self, path):
        columns = [Sequence("s"), String("t")]
        data = [{"s": np.full(3_000_000, k, np.int32), "t": str(k) * 9_000_000} for k in range(3)]
        dataset = H5Dataset(columns, path, data)
        for k in range(3):
            assert same(dataset[k]["s"][0], data[k]["s"])
            assert dataset[k]["t"] == data[k]["t"]

    @pytest.mark.parametrize("compression", ["gzip", "lzf", "szip"])
    def test_compressed_pictures_are_smaller(self, path, compression):
        pictures = [{"image": np.full((3, 32, 32), k, np.uint8)} for k in range(100)]
        H5Dataset([Image(32, 32)], path, pictures, compression=compression)
        assert path.stat().st_size < 100 * 3 * 32 * 32 / 4
        assert same(pictures, list(H5Dataset([Image(32, 32)], path)))

    @pytest.mark.parametrize(
        "stem", ["tr[0]", "a*b", "what?", "x%20y", "@", "-x", "ä", "no suffix"]
    )
    def test_a_file_may_have_any_name(self, path, stem):
        name = stem if stem == "no suffix" else stem + path.suffix
        assert list(H5Dataset(PAIR, path.parent / name, pairs(3))) == pairs(3)
        assert left(path) == [name]


class TestObject:
    def test_it_can_be_closed(self, path):
        with H5Dataset(PAIR, path, pairs(3)) as dataset:
            assert dataset[1] == pairs(3)[1]
        dataset.close()
        assert len(dataset) == 3
        with pytest.raises(ingot.ClosedError):
            dataset[1]

    def test_its_repr_describes_it(self, path):
        dataset = H5Dataset(PAIR, path, pairs(3))
        columns = "[Integer(name='i'), String(name='t')]"
        assert repr(dataset) == f"<H5Dataset of 3 rows of {columns} in {str(path)!r}>"
        assert repr(Image(2, 3, 1)) == "Image(h=2, w=3, c=1, name='image')"

    def test_its_attributes_are_what_it_was_given(self, path):
        dataset = H5Dataset(PAIR, path, pairs(3), 5, 7, "gzip", str, append_mode=True)
        found = (dataset.data_length, dataset.chunk_size, dataset.compression)
        assert (*found, dataset.transform, dataset.append_mode) == (5, 7, "gzip", str, True)

    @pytest.mark.parametrize("multiprocess", [False, True])
    def test_its_reader_has_the_columns(self, path, multiprocess):
        H5Dataset(PAIR, path, pairs(3))
        dataset = H5Dataset(PAIR, path, multiprocess=multiprocess)
        if path.suffix == ".h5":
            assert isinstance(dataset.reader, h5py.File)
            assert dataset.reader["i"][:].tolist() == [0, 1, 2]
            assert dataset.reader["t"][1, 0] == b"text 1"
        else:
            assert isinstance(dataset.reader, ingot.Dataset)
        in_memory = H5Dataset(PAIR, path, to_memory=True)
        assert in_memory.reader["i"].tolist() == [0, 1, 2]

    def test_many_of_them_leave_no_open_files(self, path, open_files):
        H5Dataset(PAIR, path, pairs(3))
        before = open_files(path.parent)
        for _ in range(20):
            dataset = H5Dataset(PAIR, path, multiprocess=True)
            assert dataset[2] == pairs(3)[2]
            assert len(open_files(path.parent)) > len(before)
            dataset.close()
        assert len(open_files(path.parent)) <= len(before)

    def test_a_file_that_was_replaced_is_not_read_as_the_old_one(self, path):
        H5Dataset(PAIR, path, pairs(1000))
        used, fresh = H5Dataset(PAIR, path), H5Dataset(PAIR, path)
        assert used[5] == pairs(6)[5]
        other = path.parent / f"other{path.suffix}"
        H5Dataset(PAIR, other, [{"i": -k, "t": "other" * k} for k in range(1000)])
        other.replace(path)
        for dataset in (used, fresh):
            try:
                assert dataset[5] == pairs(6)[5]
            except ingot.FormatError as error:
                assert "open it again" in str(error)  # noqa: PT017


def test_an_atomic_file_is_a_file_for_h5py(tmp_path):
    H5Dataset(PAIR, tmp_path / "x.h5", pairs(3))
    content = (tmp_path / "x.h5").read_bytes()
    file = AtomicFile(tmp_path / "x.h5")
    with h5py.File(file, "r") as opened:
        assert opened["i"][:].tolist() == [0, 1, 2]
    assert (file.seek(8), file.tell(), file.read(4)) == (8, 8, content[8:12])
    assert (file.seek(-4, 1), file.read(2), file.seek(-3, 2)) == (
        8,
        content[8:10],
        len(content) - 3,
    )
    assert (file.read(100), file.read(100)) == (content[-3:], b"")
    file.close()
    file.close()
    with pytest.raises(FileNotFoundError):
        AtomicFile(Path(tmp_path, "none"))
