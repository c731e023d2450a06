"""The examples of H5Record, and what its own tests try, with the line of the import changed."""

import numpy as np
import pytest
from PIL import Image as Picture

import ingot
from ingot.compat.h5record import (
    Float,
    Float16Sequence,
    FloatSequence,
    H5Dataset,
    Image,
    ImageSequence,
    Integer,
    Sequence,
    String,
)
from tests.compat.h5record.rows import expected, rows, same, schema


@pytest.fixture(params=["x.h5", "x.ingot"])
def path(request, tmp_path):
    return tmp_path / request.param


def test_sentence_pairs_of_the_readme(path):
    schema = (String(name="sentence1"), String(name="sentence2"), Float(name="label"))
    data = [["Sent 1.", "Sent 2", 0.1], ["Sent 3", "Sent 4", 0.2]]

    def pair_iter():
        for row in data:
            yield {"sentence1": row[0], "sentence2": row[1], "label": row[2]}

    dataset = H5Dataset(schema, str(path), pair_iter())
    assert [dataset[idx] for idx in range(len(dataset))] == [
        {"sentence1": "Sent 1.", "sentence2": "Sent 2", "label": np.float32(0.1)},
        {"sentence1": "Sent 3", "sentence2": "Sent 4", "label": np.float32(0.2)},
    ]


@pytest.mark.parametrize("data_length", [None, 3])
@pytest.mark.parametrize("kind", [list, tuple, dict])
@pytest.mark.parametrize("options", [{}, {"compression": "lzf"}, {"to_memory": True}])
def test_pictures_with_captions(path, tmp_path, kind, data_length, options):
    files = [tmp_path / f"{k}.png" for k in range(3)]
    modes = [("RGB", (10, 20, 30)), ("L", 40), ("RGB", (50, 60, 70))]
    for file, (mode, colour) in zip(files, modes, strict=True):
        Picture.new(mode, (50, 40), colour).save(file)
    columns = [Image(name="image", h=32, w=32), String(name="caption")]
    schema = {one.name: one for one in columns} if kind is dict else kind(columns)

    def picture_iter():
        for k, file in enumerate(files):
            yield {"image": columns[0].read_image(file), "caption": f"the {k}th photo 圖"}

    H5Dataset(schema, path, picture_iter(), data_length=data_length, **options)
    dataset = H5Dataset(schema, path, **options)
    assert len(dataset) == 3
    colours = [(10, 20, 30), (40, 40, 40), (50, 60, 70)]
    for k, row in enumerate(dataset):
        assert row["caption"] == f"the {k}th photo 圖"
        assert row["image"].shape == (3, 32, 32)
        assert row["image"].transpose(1, 2, 0).reshape(-1, 3).tolist() == [[*colours[k]]] * 1024


@pytest.mark.parametrize("to_memory", [False, True])
def test_ragged_sequences(path, to_memory):
    columns = [Sequence("a"), FloatSequence("b"), Float16Sequence("c")]
    data = [
        {"a": np.arange(n), "b": np.linspace(0, 1, n), "c": np.linspace(0, 1, n)} for n in (3, 1, 9)
    ]
    dataset = H5Dataset(columns, path, data, to_memory=to_memory)
    for found, given in zip(dataset, data, strict=True):
        assert found["a"][0].tolist() == given["a"].tolist()
        assert np.abs(found["b"][0] - given["b"]).max() < 1e-6
        assert np.abs(found["c"][0] - given["c"]).max() < 1e-3


@pytest.mark.parametrize("multiprocess", [False, True])
def test_an_image_sequence(path, tmp_path, multiprocess):
    frames = [Picture.new("RGB", (40, 30), (k, 255 - k, 7 * k)) for k in range(20)]
    frames[0].save(tmp_path / "x.gif", save_all=True, append_images=frames[1:])
    column = ImageSequence(name="film", h=32, w=32)
    H5Dataset([column], path, [{"film": column.read_gif(tmp_path / "x.gif")}])
    dataset = H5Dataset([column], path, multiprocess=multiprocess)
    assert (len(dataset), dataset[0]["film"].shape) == (1, (3, 32, 32, 20))


def test_rows_of_one_file_make_another(path, tmp_path):
    H5Dataset(schema(), path, rows(5))
    other = H5Dataset(schema(), tmp_path / "y.h5", ingot.open(path))
    again = H5Dataset(schema(), tmp_path / "y.ingot", ingot.open(tmp_path / "y.h5"))
    assert same(expected(schema(), rows(5)), list(other))
    assert same(list(other), list(again))


@pytest.mark.parametrize("data_length", [None, 7])
def test_sentence_pairs_with_a_label(path, data_length):
    schema = {"a": String(name="a"), "b": String(name="b"), "label": Integer(name="label")}
    data = [{"a": f"sentence {k}", "b": f"句子 {k}", "label": k % 2} for k in range(7)]
    dataset = H5Dataset(schema, path, iter(data), data_length=data_length)
    assert len(dataset) == 7
    assert [dataset[k] for k in range(7)] == data
