"""Names and links that come from files: they neither reach a terminal raw nor lead elsewhere."""

import json

import granular
import h5py
import pytest

import ingot

ESCAPE = "\x1b[31mred\x07"


def is_plain(text):
    return all(one.isprintable() or one in "\n\t" for one in text)


def test_control_characters_in_names_are_spelled_out_in_errors(tmp_path):
    path = tmp_path / f"x{ESCAPE}.ingot"
    path.write_bytes(b"nothing of ours")
    with pytest.raises(ingot.FormatError) as caught:
        ingot.open(path)
    assert is_plain(str(caught.value))
    assert caught.value.path == str(path)


def test_control_characters_in_a_manifest_are_spelled_out(tmp_path):
    path = tmp_path / "x"
    with ingot.DatasetWriter(path, {"a": "int"}) as writer:
        writer.append({"a": 1})
    manifest = json.loads((path / "dataset.json").read_text())
    for wrong in (
        manifest | {"spec": {f"a{ESCAPE}": "int"}},
        manifest | {"shards": [manifest["shards"][0] | {"name": f"{ESCAPE}.ingot"}]},
        manifest | {"version": ESCAPE},
        manifest | {f"{ESCAPE}": 1, "shards": [{ESCAPE: 1}]},
    ):
        (path / "dataset.json").write_text(json.dumps(wrong))
        with pytest.raises(ingot.FormatError) as caught:
            ingot.open(path)
        assert is_plain(str(caught.value))


def test_control_characters_in_hdf5_names_are_spelled_out(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["a"] = [1, 2, 3]
        file[f"b{ESCAPE}"] = [1, 2]
    with ingot.open(path) as ds:
        assert is_plain(repr(ds))
        assert is_plain(ds._repr_html_())


def test_control_characters_do_not_reach_a_progress_line(tmp_path, capsys):
    path = tmp_path / f"x{ESCAPE}"
    with ingot.DatasetWriter(path, {"a": "int"}, progress=True) as writer:
        writer.append({"a": 1})
    assert is_plain(capsys.readouterr().err)


def test_deep_and_wide_values_are_shown_short(tmp_path):
    wide = 1
    for _ in range(12):
        wide = [wide] * 5
    deep = []
    for _ in range(400):
        deep = [deep]
    with ingot.DatasetWriter(tmp_path / "x", {"a": "json"}) as writer:
        writer.append({"a": deep})
        writer.append({"a": wide[0]})
        writer.append({"a": [ESCAPE]})
    text = ingot.open(tmp_path / "x")._repr_html_()
    assert len(text) < 5000
    assert is_plain(text)


@pytest.mark.parametrize("name", ["a.bag", "b.idx"])
def test_a_column_of_granular_that_is_a_link_elsewhere_is_rejected(tmp_path, name):
    folder = tmp_path / "x"
    with granular.DatasetWriter(str(folder), {"a": "int", "b": "bytes"}, granular.encoders) as w:
        w.append({"a": 1, "b": b"1"})
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret" * 100)
    if not (folder / name).exists():
        name = name.replace(".idx", ".bag")
    (folder / name).unlink()
    (folder / name).symlink_to(secret)
    with pytest.raises(ingot.FormatError, match=r"links to .*secret"):
        ingot.open(folder)


def test_a_link_elsewhere_in_a_directory_of_bags_is_rejected(tmp_path):
    folder = tmp_path / "bags"
    folder.mkdir()
    (tmp_path / "passwd").write_bytes(b"root" + bytes(8))
    (folder / "x.bag").symlink_to(tmp_path / "passwd")
    with pytest.raises(ingot.FormatError, match=r"link.* to .*passwd"):
        ingot.open(folder)


def test_overwriting_a_link_replaces_files_of_ingot_alone(tmp_path):
    target, link = tmp_path / "notes.txt", tmp_path / "x.ingot"
    target.write_text("mine")
    link.symlink_to(target)
    with pytest.raises(ingot.FormatError, match="not an Ingot file and is kept"):
        ingot.Writer(link, overwrite=True)
    assert target.read_text() == "mine"
    real = tmp_path / "real.ingot"
    with ingot.Writer(real) as writer:
        writer.append(b"old")
    link.unlink()
    link.symlink_to(real)
    with ingot.Writer(link, overwrite=True) as writer:
        writer.append(b"new")
    assert link.is_symlink()
    assert list(ingot.open(real)) == [b"new"]
