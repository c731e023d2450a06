"""Fields inside of fields."""

import numpy as np
import pytest

import ingot

SPEC = {
    "obs": {"image": "array(uint8,2,2)", "state": {"arm": "array(float32,3)", "grip": "float?"}},
    "act": "int",
    "info": "json",
    "obs.frames": "bytes[]",
}
FLAT = {
    "obs.image": "array(uint8,2,2)",
    "obs.state.arm": "array(float32,3)",
    "obs.state.grip": "float?",
    "act": "int",
    "info": "json",
    "obs.frames": "bytes[]",
}


def row(k):
    state = {"arm": np.full(3, k, np.float32)} | ({"grip": k / 2} if k % 2 else {})
    return {
        "obs": {
            "image": np.full((2, 2), k, np.uint8),
            "state": state,
            "frames": [b"%d" % j for j in range(k)],
        },
        "act": k,
        "info": {"obs": {"image": k}},
    }


@pytest.fixture(params=["x.ingot", "x"])
def ds(request, tmp_path):
    path = tmp_path / request.param
    with ingot.DatasetWriter(path, SPEC) as writer:
        writer.extend(row(k) for k in range(6))
    return ingot.open(path)


def test_rows_and_batches_are_nested(ds):
    assert dict(ds.spec) == FLAT
    found = ds[3]
    assert list(found) == ["obs", "act", "info"]
    assert list(found["obs"]) == ["image", "state", "frames"]
    assert found["obs"]["image"].tolist() == [[3, 3], [3, 3]]
    assert found["obs"]["state"]["grip"] == 1.5
    assert ds[2]["obs"]["state"]["grip"] is None
    assert found["info"] == {"obs": {"image": 3}}
    batch = ds[[5, 0]]
    assert batch["obs"]["image"].shape == (2, 2, 2)
    assert batch["obs"]["state"]["arm"].tolist() == [[5] * 3, [0] * 3]
    assert batch["obs"]["state"]["grip"] == [2.5, None]
    assert batch["act"].tolist() == [5, 0]


def test_the_name_of_a_group_selects_all_fields_in_it(ds):
    assert list(ds.select("obs.state", "act").spec) == ["obs.state.arm", "obs.state.grip", "act"]
    assert list(ds.select("obs.frames", "obs").spec)[:2] == ["obs.frames", "obs.image"]
    assert ds.select("obs.state.grip")[1] == {"obs": {"state": {"grip": 0.5}}}
    assert ds[4, ["obs.frames"]] == {"obs": {"frames": [b"0", b"1", b"2", b"3"]}}
    assert ds[4, {"obs.frames": range(1, 3)}] == {"obs": {"frames": [b"1", b"2"]}}
    assert list(ds[4, {"obs": True, "obs.image": False}]["obs"]) == ["image", "state", "frames"]
    assert list(ds[[1, 2], ["obs.state"]]["obs"]["state"]) == ["arm", "grip"]
    assert ds.column("obs.state.grip").tolist() == [0, 0.5, 0, 1.5, 0, 2.5]
    assert ds.present("obs.state.grip").tolist() == [False, True] * 3
    assert ds.available(2)["obs.frames"] == range(2)
    for name in ("ob", "obs.", "obs.stat", "obs.state.arm.x"):
        with pytest.raises(KeyError, match="there is no field"):
            ds.select(name)


def test_a_notebook_shows_each_field_by_its_full_name(ds):
    shown = ds._repr_html_()
    assert "obs.state.grip<br>" in shown
    assert shown.count("<td") == 5 * len(FLAT)


def test_rows_may_be_given_flat(tmp_path, ds):
    with ingot.DatasetWriter(tmp_path / "y.ingot", ds.spec) as writer:
        for k in range(6):
            one = row(k)
            one |= {f"obs.{name}": value for name, value in one.pop("obs").items()}
            writer.append(one)
    again = ingot.open(tmp_path / "y.ingot")
    assert again.spec == ds.spec
    assert again[5]["obs"]["state"]["arm"].tolist() == [5] * 3
    assert ds.concat(again)[[5, 11]]["obs"]["frames"][0] == ds[5]["obs"]["frames"]


def test_nested_rows_that_do_not_fit_are_rejected(tmp_path):
    writer = ingot.DatasetWriter(tmp_path / "x.ingot", {"a": {"b": "int", "c": "int?"}})
    for bad, words in (
        ({"a": {"b": "x"}}, "row 0: field 'a.b': expected an int, got str"),
        ({"a": {}}, "field 'a.b' is missing"),
        ({"a": None}, "field 'a.b' is missing"),
        ({"a": 3}, "unknown field 'a'"),
        ({"a": {"b": 1, "d": 2}}, "unknown field 'a.d'"),
        ({"a": {"b": {"x": 1}}}, "field 'a.b': expected an int, got dict"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            writer.append(bad)
    writer.append({"a": {"b": 1}})
    writer.close()
    assert ingot.open(tmp_path / "x.ingot")[0] == {"a": {"b": 1, "c": None}}


@pytest.mark.parametrize(
    "spec",
    [
        {"a": "int", "a.b": "int"},
        {"a": {"b": "int"}, "a.b": "int"},
        {"a": {"b": "int", "b.c": "int"}},
        {"a": {}},
        {"a": {"": "int"}},
        {"a.": "int"},
        {".a": "int"},
        {"a..b": "int"},
        {"a": {1: "int"}},
        {"a": {"b?": "int"}},
    ],
)
def test_invalid_names_are_rejected(tmp_path, spec):
    with pytest.raises(ValueError, match=r"field|name"):
        ingot.DatasetWriter(tmp_path / "x.ingot", spec)


def test_data_sets_whose_fields_would_hold_each_other_are_not_zipped(tmp_path):
    parts = []
    for k, spec in enumerate(({"a": "int"}, {"a": {"b": "int"}})):
        with ingot.DatasetWriter(tmp_path / f"{k}.ingot", spec) as writer:
            writer.append({"a": 1 if k == 0 else {"b": 1}})
        parts.append(ingot.open(tmp_path / f"{k}.ingot"))
    with pytest.raises(ValueError, match="both a field and a group"):
        parts[0].zip(parts[1])
