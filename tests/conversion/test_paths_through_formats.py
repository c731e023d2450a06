import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ingot

RECORD_TARGETS = (
    *("a.ingot", "a.ffr", "a.array_record", "a.bag", "a.bagz"),
    *("folder", "granular", "a.h5", "a.parquet"),
)
ROW_TARGETS = (
    ("a.ingot", "folder", "granular", "a.h5"),
    ("a.ingot", "folder", "a.parquet", "a.h5"),  # Granular has no fixed types to come back from.
)
SLOW = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=True, width=32)
row = st.fixed_dictionaries(
    {
        "text": texts,
        "number": numbers,
        "real": floats,
        "flag": st.booleans(),
        "array": st.lists(floats, min_size=3, max_size=3),
        "run": st.lists(numbers, max_size=4),
        "data": st.binary(max_size=20),
    }
)
SPEC = {
    "text": "utf8",
    "number": "int",
    "real": "float",
    "flag": "bool",
    "array": "array(float32,3)",
    "run": "int[]",
    "data": "bytes",
}


def through(source, targets, folder):
    """Convert through all targets; return the last."""
    for number, name in enumerate(targets):
        place = folder / str(number)
        place.mkdir()
        form = "granular" if name == "granular" else None
        ingot.convert(source, place / name, format=form, sync=False)
        source = place / name
    return source


@SLOW
@given(st.lists(st.binary(max_size=300), max_size=30), st.data())
def test_any_path_through_three_formats_gives_back_the_same_records(records, data):
    targets = [data.draw(st.sampled_from(RECORD_TARGETS)) for _ in range(3)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ingot.Writer(folder / "x.ingot", sync=False) as writer:
            writer.extend(records)
        last = through(folder / "x.ingot", targets, folder)
        # An Ingot file holds rows too, and keeps those that it is given.
        ingot.convert(last, folder / "end.bag", sync=False)
        assert list(ingot.open(folder / "end.bag")) == records


@SLOW
@given(st.lists(row, max_size=12), st.data())
def test_any_path_through_three_formats_gives_back_the_same_rows(rows, data):
    known = data.draw(st.sampled_from(ROW_TARGETS))
    targets = [data.draw(st.sampled_from(known)) for _ in range(3)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ingot.DatasetWriter(folder / "x.ingot", SPEC, sync=False) as writer:
            for one in rows:
                writer.append({**one, "array": np.array(one["array"], np.float32)})
        with ingot.open(through(folder / "x.ingot", targets, folder)) as found:
            assert len(found) == len(rows)
            for one, other in zip(rows, found, strict=True):
                assert other["text"] == one["text"]
                assert other["number"] == one["number"]
                assert np.array_equal(other["real"], one["real"], equal_nan=True)
                assert bool(other["flag"]) == one["flag"]
                array = np.array(one["array"], np.float32)
                assert np.array_equal(other["array"], array, equal_nan=True)
                assert list(other["run"]) == one["run"]
                assert bytes(other["data"]) == one["data"]
