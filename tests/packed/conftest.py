"""A packed folder, and a look at how it is read."""

import pytest

import ingot
from tests.packed.packs import TREE, build


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packed") / "source"
    build(folder, TREE)
    return folder


@pytest.fixture(scope="module")
def packed_path(source):
    target = source.parent / "x.ingot"
    ingot.pack(source, target, metadata={"made": "here"})
    return target


@pytest.fixture(scope="module")
def folder(packed_path):
    with ingot.PackedFolder(packed_path) as folder:
        yield folder


@pytest.fixture
def native_reads(monkeypatch):
    """Return a list that grows by the rows of each call that reads records."""
    calls = []

    def wrap(name):
        original = getattr(ingot.Reader, name)

        def counted(self, rows, *others):
            calls.append(rows)
            return original(self, rows, *others)

        monkeypatch.setattr(ingot.Reader, name, counted)

    for name in ("__getitem__", "_read_buffer", "_sizes"):
        wrap(name)
    return calls
