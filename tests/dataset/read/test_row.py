"""One row at a time: values that the engine makes itself, and values that a codec decodes."""

import numpy as np
import pytest

import ingot
from ingot.codecs.text import Utf8

VALUES = {
    "int": [-(2**63), 2**63 - 1, 0],
    "float": [0.5, float("-inf"), -0.0],
    "bool": [True, False, True],
    "bytes": [b"", b"\0\xff", b"x" * 100_000],
    "utf8": ["", "a\0b", "日本 🦀" * 9],
    "json": [[], {"a": [1]}, 2],
    "utf8[]": [[], ["é"], ["a", "", "b"]],
    "int[]": [[], [1], [2, 3]],
}


class Loud(Utf8):
    """Text that comes back louder."""

    name = "loud"

    def decode(self, data):
        text = super().decode(data)
        if text == "?":
            raise ValueError("nothing to say")
        if text == "!":
            raise RuntimeError("too loud")
        return text.upper()


LOUD = Loud()


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("missing", [[], [None]])
def test_a_row_has_what_was_written(path, kind, missing):
    values = VALUES[kind] + missing
    with ingot.DatasetWriter(path, {"x": kind + "?" * len(missing), "n": "int"}) as writer:
        writer.extend({"x": one, "n": k} for k, one in enumerate(values))
    ds = ingot.open(path)
    for k, expected in enumerate(values):
        found = ds[k]
        assert list(found) == ["x", "n"]
        if kind == "int[]" and expected is not None:
            found["x"] = found["x"].tolist()
        assert (type(found["x"]), repr(found["x"])) == (type(expected), repr(expected))
        assert (type(found["n"]), found["n"]) == (int, k)


@pytest.fixture
def loud(path):
    ingot.codecs.register(LOUD)
    with ingot.DatasetWriter(path, {"x": "loud", "y": "utf8"}) as writer:
        writer.extend({"x": x, "y": "quiet"} for x in ["hello", "?", "!"])
    return ingot.open(path)


def test_a_codec_made_of_text_decodes_its_own_values(loud):
    assert loud[0] == {"x": "HELLO", "y": "quiet"}


def test_errors_of_a_codec_are_raised_with_their_cause(loud):
    with pytest.raises(ingot.FormatError, match="row 1: field 'x' is not valid loud") as caught:
        loud[1]
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value.__cause__) == "nothing to say"


def test_a_mistake_of_a_codec_is_raised_as_it_is(loud):
    with pytest.raises(RuntimeError, match="too loud"):
        loud[2]


def test_elements_of_sequences_and_of_numbers_are_read_alone(path):
    with ingot.DatasetWriter(path, {"s": "utf8[]", "v": "int[]?", "t": "utf8"}) as writer:
        writer.append({"s": ["a", "b", "c"], "v": [1, 2, 3], "t": "text"})
        writer.append({"s": ["a"], "v": None, "t": "text"})
    ds = ingot.open(path)
    found = ds[0, {"s": range(1, 3), "v": range(2)}]
    assert found["s"] == ["b", "c"]
    assert found["v"].tolist() == [1, 2]
    assert ds[1, {"v": range(2)}] == {"v": None}
    assert ds[0, ["t"]] == {"t": "text"}


@pytest.mark.parametrize("kind", ["array", "array?", "tree", "tree?"])
def test_arrays_without_dimensions_are_arrays_however_they_are_read(tmp_path, kind):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"v": kind}) as writer:
        writer.extend({"v": np.array(k / 3, np.float32)} for k in range(3))
    ds = ingot.open(tmp_path / "x.ingot")
    ways = [ds[1], list(ds)[1], ds.__getitems__([0, 1])[1], next(iter(ds[1:]))]
    for value in [one["v"] for one in ways]:
        assert isinstance(value, np.ndarray)
        assert (value.shape, value.dtype, float(value)) == ((), np.float32, np.float32(1 / 3))
