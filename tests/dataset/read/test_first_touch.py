"""What a newcomer tries first on a data set, and what it says if that was wrong."""

import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ingot

SPEC = {"image": "array(uint8,4,4)", "label": "int", "text": "utf8", "note": "utf8?"}


def row(k):
    image = np.full((4, 4), k % 256, np.uint8)
    note = None if k % 2 else f"note {k}"
    return {"image": image, "label": k, "text": f"text {k}", "note": note}


@pytest.fixture
def path(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x", SPEC, shard_rows=300) as writer:
        writer.extend(map(row, range(1000)))
    return tmp_path / "x"


class Counted:
    """A source that counts its reads."""

    def __init__(self, source):
        self.source, self.single, self.many = source, 0, []

    def __getattr__(self, name):
        return getattr(self.source, name)

    def __len__(self):
        return len(self.source)

    def read_row(self, number, wanted):
        self.single += 1
        return self.source.read_row(number, wanted)

    def plan(self, numbers, wanted):
        self.many.append(len(numbers))
        return self.source.plan(numbers, wanted)


def counted(path):
    source = Counted(ingot.open(path)._selection.source)
    return ingot.Dataset(source), source


def label_of(row):
    return row["label"]


def test_iteration_reads_blocks_that_grow(path):
    ds, source = counted(path)
    assert [one["label"] for one in ds] == list(range(1000))
    assert source.single == 0
    assert source.many[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    ds, source = counted(path)
    next(iter(ds))
    assert source.many in ([1], [1, 2])


def test_blocks_are_counted_in_bytes(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x", {"a": "bytes"}, compression=None) as writer:
        writer.extend({"a": bytes(3 << 20)} for _ in range(20))
    ds, source = counted(tmp_path / "x")
    assert len(list(ds)) == 20
    assert max(source.many) == 2


def test_a_row_that_was_iterated_keeps_no_others_alive(path):
    first, *_, last = ingot.open(path)
    for one in (first, last):
        base = one["image"]
        while isinstance(base.base, np.ndarray):
            base = base.base
        assert base.nbytes == 16


def test_iteration_yields_what_comes_before_a_damaged_row(tmp_path):
    path = tmp_path / "x.ingot"
    with ingot.DatasetWriter(path, {"a": "utf8"}, compression=None) as writer:
        writer.extend({"a": f"value {k:04}"} for k in range(600))
    data = bytearray(path.read_bytes())
    data[data.index(b"value 0500")] ^= 1
    path.write_bytes(data)
    found = []
    with pytest.raises(ingot.CorruptFileError, match="record 500"):
        found.extend(one["a"] for one in ingot.open(path))
    assert found == [f"value {k:04}" for k in range(500)]
    with pytest.raises(ingot.CorruptFileError, match="record 500"):
        ingot.open(path).column("a")


def test_iterators_in_threads_do_not_disturb_each_other(path):
    ds = ingot.open(path)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: [one["label"] for one in ds], range(16)))
    assert found == [list(range(1000))] * 16


def test_sequences_of_the_same_length_are_stacked(tmp_path):
    spec = {"frames": "array(uint8,2,3)[]", "ids": "int[]", "may": "int[]?"}
    with ingot.DatasetWriter(tmp_path / "x", spec) as writer:
        for k in range(20):
            frames = [np.full((2, 3), j, np.uint8) for j in range(5 + k % 2)]
            writer.append({"frames": frames, "ids": range(k % 3), "may": [1, 2]})
    ds = ingot.open(tmp_path / "x")
    batch = ds[[0, 2, 4], {"frames": range(1, 4), "ids": True, "may": True}]
    assert batch["frames"].shape == (3, 3, 2, 3)
    assert batch["frames"][:, :, 0, 0].tolist() == [[1, 2, 3]] * 3
    assert isinstance(batch["ids"], list)
    assert isinstance(batch["may"], list)
    assert ds[[0, 3, 6]]["ids"].shape == (3, 0)
    assert ds[[0, 2]]["frames"].shape == (2, 5, 2, 3)
    assert isinstance(ds[[0, 1]]["frames"], list)
    strided = ds[[0, 1], {"frames": range(0, 5, 2)}]["frames"]
    assert strided[:, :, 0, 0].tolist() == [[0, 2, 4]] * 2
    assert [one[0, 0] for one in ds[1, {"frames": slice(1, None, 3)}]["frames"]] == [1, 4]
    assert ds.lengths("frames").tolist() == [5, 6] * 10
    assert ds[3:6].lengths("ids").tolist() == [0, 1, 2]
    assert ds.concat(ds).lengths("ids").tolist() == [0, 1, 2] * 6 + [0, 1] + [0, 1, 2] * 6 + [0, 1]


def test_fields_that_are_not_sequences_have_no_lengths(path):
    with pytest.raises(TypeError, match="'label' is int, expected a sequence"):
        ingot.open(path).lengths("label")


def test_text_and_arrays_have_columns_too(path):
    ds = ingot.open(path)
    texts = ds.column("text")
    assert texts.shape == (1000,)
    assert texts.tolist() == [f"text {k}" for k in range(1000)]
    assert [one["label"] for one in ds.where(texts == "text 77")] == [77]
    notes = ds[:4].column("note").tolist()
    assert notes == ["note 0", None, "note 2", None]
    images = ds[[3, 4]]["image"]
    assert np.array_equal(ds.column("image")[3:5], images)
    assert ds[10:12].column("image").shape == (2, 4, 4)


def test_a_data_set_is_continued_without_its_types(path, tmp_path):
    with ingot.DatasetWriter(path, append=True) as writer:
        writer.append(row(1000))
        assert dict(writer.spec) == SPEC
    assert ingot.open(path)[1000]["text"] == "text 1000"
    with ingot.DatasetWriter(tmp_path / "y.ingot", {"a": "int", "b": "utf8?"}) as writer:
        writer.append({"a": 1})
    with ingot.DatasetWriter(tmp_path / "y.ingot", append=True) as writer:
        writer.append({"a": 2, "b": "x"})
    assert ingot.open(tmp_path / "y.ingot").column("a").tolist() == [1, 2]
    with pytest.raises(TypeError, match="only with append=True may you omit it"):
        ingot.DatasetWriter(tmp_path / "z")
    with pytest.raises(FileNotFoundError):
        ingot.DatasetWriter(tmp_path / "z", append=True)
    with pytest.raises(FileNotFoundError):
        ingot.DatasetWriter(tmp_path / "z.ingot", append=True)
    assert not (tmp_path / "z").exists()


def test_the_kind_of_source_can_be_stated(path, tmp_path):
    with ingot.Writer(tmp_path / "x.ingot") as writer:
        writer.append(b"1")
    assert isinstance(ingot.open_dataset(path), ingot.Dataset)
    assert isinstance(ingot.open_records(tmp_path / "x.ingot"), ingot.Reader)
    with pytest.raises(ingot.FormatError, match=r"open with ingot\.open_dataset"):
        ingot.open_records(path)
    with pytest.raises(ingot.FormatError, match=r"open with ingot\.open_records"):
        ingot.open_dataset(tmp_path / "x.ingot")


def test_messages_say_what_to_do(path, tmp_path):
    ds = ingot.open(path)
    with pytest.raises(TypeError, match=r"where\(mask\)"):
        ds[np.ones(1000, bool)]
    with pytest.raises(ValueError, match=r"\[-5:\] is the last 5"):
        ds.take(-5)
    with ingot.DatasetWriter(tmp_path / "p", {"image": "jpg"}) as writer:
        for name in ("a.jpg", Path("a.jpg")):
            with pytest.raises(TypeError, match=r"Path\('a\.jpg'\)\.read_bytes\(\)"):
                writer.append({"image": name})
    with pytest.raises(ValueError, match="for arrays of varying shape, use array"):
        ingot.DatasetWriter(tmp_path / "q", {"a": "array(float32,-1,3)"})
    for call in (ingot.open, ingot.Writer, ingot.Reader):
        with pytest.raises(ingot.FormatError, match=r"s3://bucket/x\.ingot: Ingot .* local files"):
            call("s3://bucket/x.ingot")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.WAV").write_bytes(b"x")
    with pytest.raises(ingot.FormatError, match=r"such as cat\.WAV.*ingot\.build"):
        ingot.open(tmp_path / "photos")


def test_progress_in_a_log_has_lines_and_no_control_characters(path, capsys):
    ingot.open(path).verify(progress=True)
    ingot.compact(path, progress=True)
    with ingot.DatasetWriter(path, append=True, progress=True) as writer:
        writer.append(row(0))
    err = capsys.readouterr().err
    assert "verified 1,000 of 1,000 rows\n" in err
    assert not any(ord(one) < 32 for one in err.replace("\n", ""))


def test_a_data_set_that_is_iterated_pickles(path):
    ds = ingot.open(path)
    iterator = iter(ds)
    next(iterator)
    assert len(pickle.loads(pickle.dumps(ds))) == 1000  # noqa: S301
    assert next(iterator)["label"] == 1


def test_pictures_as_any_bytes(tmp_path):
    stream = io.BytesIO()
    Image.new("RGB", (8, 6)).save(stream, "JPEG")
    data = stream.getvalue()
    with ingot.DatasetWriter(tmp_path / "x", {"image": "jpg"}) as writer:
        writer.extend({"image": kind(data)} for kind in (bytes, bytearray, memoryview))
    assert ingot.open(tmp_path / "x")[[0, 1, 2]]["image"].shape == (3, 6, 8, 3)


def test_a_misspelt_name_is_answered_by_the_one_that_was_meant(path, tmp_path):
    ds = ingot.open(path)
    for read in (lambda: ds.column("lable"), lambda: ds[0, ["lable"]], lambda: ds.select("lable")):
        with pytest.raises(KeyError, match=r"no field .lable. among .*did you mean .label."):
            read()
    many = {f"field{k}": "int" for k in range(500)}
    with ingot.DatasetWriter(tmp_path / "many", many) as writer:
        writer.append(dict.fromkeys(many, 0))
    with pytest.raises(KeyError, match="and 490 more") as caught:
        ingot.open(tmp_path / "many").column("x")
    assert len(str(caught.value)) < 500
