"""Pickle: written when asked for, and read by those who say that they trust it."""

import pickle
import sys
from pathlib import Path

import pytest

import ingot
from ingot._core import Writer as NativeWriter
from ingot.codecs import Pickle, codec_of


class Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


def write(path, values):
    with ingot.DatasetWriter(path, {"p": Pickle(), "k": "int"}) as writer:
        writer.extend({"p": value, "k": k} for k, value in enumerate(values))


@pytest.mark.parametrize("name", ["x.ingot", "x"])
def test_nothing_is_run_unless_it_is_allowed(tmp_path, name):
    mark = tmp_path / "mark"
    write(tmp_path / name, [Trap(mark)])
    ds = ingot.open(tmp_path / name)
    assert ds.spec["p"] == "pickle"
    assert ds[0, ["k"]] == {"k": 0}
    assert ds.column("k").tolist() == [0]
    for read in (lambda: ds[0], lambda: ds[[0]], lambda: list(ds), lambda: ds.select("p")[-1]):
        with pytest.raises(ingot.FormatError, match=r"row 0: field 'p'.*allow_pickle=True"):
            read()
    assert ds.verify().damaged == []
    assert not mark.exists()
    ingot.open(tmp_path / name, allow_pickle=True)[0]
    assert mark.exists()


def test_objects_are_unpickled_from_trusted_files(tmp_path):
    values = [{1, 2}, 1j, None, ["text", (b"x",)]]
    write(tmp_path / "x.ingot", values)
    ds = ingot.open(tmp_path / "x.ingot", allow_pickle=True)
    assert [row["p"] for row in ds] == values
    assert ds[[3, 0]]["p"] == [values[3], values[0]]
    for again in (pickle.loads(pickle.dumps(ds)), ds.concat(ds), ds[1:].select("p")):  # noqa: S301
        assert again[-1]["p"] == values[-1]
    shut = pickle.loads(pickle.dumps(ingot.open(tmp_path / "x.ingot")))  # noqa: S301
    with pytest.raises(ingot.FormatError, match="allow_pickle"):
        shut[0]


def test_pickle_has_to_be_made_known_to_be_called_by_name(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"field 'p': pickle.*register\(ingot.codecs.Pickle\(\)\)"):
        ingot.DatasetWriter(tmp_path / "x.ingot", {"p": "pickle"})
    monkeypatch.setattr(sys.modules["ingot.codecs.registry"], "_CODECS", {})
    ingot.codecs.register(Pickle())
    assert isinstance(codec_of("pickle"), Pickle)
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"p": "pickle[]?"}) as writer:
        writer.append({"p": [{1}]})
    with pytest.raises(ingot.FormatError, match="allow_pickle=True"):
        ingot.open(tmp_path / "x.ingot")[0]
    assert ingot.open(tmp_path / "x.ingot", allow_pickle=True)[0]["p"] == [{1}]


def test_values_that_cannot_be_pickled_are_rejected(tmp_path):
    writer = ingot.DatasetWriter(tmp_path / "x.ingot", {"p": Pickle()})
    with pytest.raises(TypeError, match="row 0: field 'p': the object cannot be pickled"):
        writer.append({"p": lambda: 0})
    writer.abandon()


def test_damaged_pickles_are_named(tmp_path):
    path = str(tmp_path / "x.ingot")
    fields = [("p", "cell", None, "pickle")]
    native = NativeWriter(path, "create", "{}", None, 3, False, fields)  # noqa: FBT003
    cells = [b"", b"\x80\x05not a pickle", b"cno_such_module\nx\n.", b"."]
    for cell in cells:
        native.append_row([cell])
    native.close()
    ds = ingot.open(path, allow_pickle=True)
    for k in range(len(cells)):
        with pytest.raises(ingot.FormatError, match=f"row {k}: field 'p' is not valid pickle"):
            ds[k]
