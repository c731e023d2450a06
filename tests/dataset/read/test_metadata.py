"""What users store with a data set, and change later."""

import json
import pickle

import pytest

import ingot


def test_metadata_of_a_directory_can_be_replaced_later(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}, metadata={"v": 1}) as writer:
        writer.extend({"a": k} for k in range(3))
    ingot.set_metadata(path, {"v": 2, "note": ["π", None]})
    with ingot.open(path) as ds:
        assert ds.metadata == {"v": 2, "note": ["π", None]}
        assert pickle.loads(pickle.dumps(ds)).metadata == ds.metadata  # noqa: S301
        assert ds.stored().metadata == ds.metadata
        ds.save(tmp_path / "y")
    assert ingot.open(tmp_path / "y").metadata == {"v": 2, "note": ["π", None]}
    with ingot.DatasetWriter(path, {"a": "int"}, append=True) as writer:
        writer.append({"a": 3})
    assert ingot.open(path).metadata["v"] == 2
    assert ingot.open(path).column("a").tolist() == [0, 1, 2, 3]


def test_metadata_that_cannot_be_replaced_say_why(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"a": "int"}) as writer:
        writer.append({"a": 1})
    with pytest.raises(NotADirectoryError, match=r"ds\.save\(path, metadata=\.\.\.\)"):
        ingot.set_metadata(tmp_path / "x.ingot", {})
    with pytest.raises(FileNotFoundError):
        ingot.set_metadata(tmp_path / "missing", {})
    with pytest.raises(TypeError, match="metadata must be a dict"):
        ingot.set_metadata(tmp_path, [1])
    with pytest.raises(ValueError, match="JSON"):
        ingot.set_metadata(tmp_path, {"a": float("nan")})


@pytest.mark.parametrize("text", ["NaN", "Infinity", "[1]", '"x"', "null"])
def test_a_manifest_whose_metadata_cannot_be_is_rejected(tmp_path, text):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}, metadata={"v": 1}) as writer:
        writer.append({"a": 1})
    manifest = path / "dataset.json"
    wrong = json.dumps(json.loads(manifest.read_text()) | {"metadata": 17})
    content = f'{{"v": {text}}}' if text in ("NaN", "Infinity") else text
    manifest.write_text(wrong.replace("17", content))
    with pytest.raises(ingot.FormatError, match=r"dataset\.json"):
        ingot.open(path)
