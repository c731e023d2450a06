"""How the files of one data set are compressed: as the first of them has decided."""

import itertools
import json
import random
from pathlib import Path

import pytest

import ingot
from ingot.dataset.spec import Spec
from ingot.dataset.write.shards import Encodings, Options, ShardWriter, names_of

ROWS = 8000
SHARDS = 5
NONE, ZSTD = 0, 1
DICTIONARY = bytes.fromhex("37a430ec")
"""How a dictionary of zstd begins."""

_WORDS = [random.Random(k).randbytes(6).hex() for k in range(400)]


def text(k):
    return " ".join(random.Random(k).choices(_WORDS, k=14))


def noise(k):
    return random.Random(k).randbytes(180)


def files(path):
    manifest = json.loads((path / "dataset.json").read_text())
    return [path / shard["name"] for shard in manifest["shards"]]


def dictionary(path):
    content = path.read_bytes()
    start = content.find(DICTIONARY)
    return None if start < 0 else content[start : start + 1024]


@pytest.fixture
def encodings():
    return Encodings()


@pytest.fixture
def write(tmp_path, encodings):
    """Return a function that writes lists of values as shards, reads them and returns them."""

    def _write(rows, compression="auto"):
        spec, options = Spec.of({"id": "int", "value": "bytes"}), Options(compression, sync=False)
        names = names_of("token", 0)
        writer = ShardWriter(tmp_path, names, spec, "{}", options, encodings=encodings)
        for shard in rows:
            for k, value in enumerate(shard):
                stored = [k.to_bytes(8, "little"), value]
                writer.append(stored)
            writer.finish()
        found = ingot.open([tmp_path / shard.name for shard in writer.finished])
        assert [row["value"] for row in found] == list(itertools.chain(*rows))
        return writer.finished

    return _write


def test_a_data_set_of_many_files_decides_once(write, encodings, tmp_path):
    rows = [[text(k + ROWS * n).encode() for k in range(ROWS)] for n in range(SHARDS)]
    shards = write(rows)
    column, (codec, learned, tries, _) = encodings.known
    assert (column, codec, tries) == (None, ZSTD, 1)
    assert learned.startswith(DICTIONARY)
    for shard in shards:
        assert learned in (tmp_path / shard.name).read_bytes()
        assert shard.nbytes < 0.6 * sum(map(len, rows[0]))
        assert shard.nbytes < 1.02 * shards[0].nbytes


def test_noise_is_tried_once_and_stored_as_it_is(write, encodings):
    rows = [[noise(k + ROWS * n) for k in range(ROWS)] for n in range(SHARDS)]
    shards = write(rows)
    assert encodings.known[1][:3] == (NONE, b"", 1)
    assert all(shard.nbytes > sum(map(len, rows[0])) for shard in shards)


def test_a_noisy_file_among_others_is_stored_as_it_is(write, encodings):
    rows = [
        [text(k).encode() for k in range(ROWS)],
        [noise(k) for k in range(ROWS)],
        [text(-k).encode() for k in range(ROWS)],
    ]
    first, noisy, last = write(rows)
    assert encodings.known[1][2] == 1
    assert sum(map(len, rows[1])) < noisy.nbytes
    assert last.nbytes < 1.02 * first.nbytes


def test_small_files_decide_until_they_have_seen_enough(write, encodings):
    size = ROWS // 10
    rows = [[text(k + size * n).encode() for k in range(size)] for n in range(30)]
    shards = write(rows)
    _, _, tries, evidence = encodings.known[1]
    assert 1 < tries < len(rows)
    assert evidence >= 1 << 20
    assert shards[-1].nbytes < 1.1 * shards[0].nbytes


@pytest.mark.parametrize("compression", ["lz4", None])
def test_a_given_compression_holds_for_all_files(write, compression):
    rows = [[text(k).encode() for k in range(500)] for _ in range(3)]
    shards = write(rows, compression)
    assert len({shard.nbytes for shard in shards}) == 1


def test_all_files_of_a_writer_have_one_dictionary(tmp_path):
    path, rows = tmp_path / "x", [{"text": text(k)} for k in range(SHARDS * ROWS)]
    with ingot.DatasetWriter(path, {"text": "utf8"}, shard_rows=ROWS, sync=False) as writer:
        writer.extend(rows)
    assert [row["text"] for row in ingot.open(path)] == [row["text"] for row in rows]
    assert len(files(path)) == SHARDS
    assert len({dictionary(file) for file in files(path)} - {None}) == 1
    assert all(map(dictionary, files(path)))


def texts(start):
    return [{"text": text(k)} for k in range(start, start + ROWS // 4)]


@pytest.mark.parametrize("workers", [0, 1])
def test_all_files_that_a_process_builds_have_one_dictionary(tmp_path, workers):
    starts = range(0, 3 * ROWS, ROWS // 4)
    built = ingot.build(
        tmp_path / "x",
        texts,
        starts,
        spec={"text": "utf8"},
        workers=workers,
        chunk=4,
        progress=False,
        sync=False,
    )
    assert len(built) == 3 * ROWS
    found = [dictionary(Path(file)) for file in files(tmp_path / "x")]
    assert len(found) == 3
    assert found == found[:1] * 3
    assert found[0] is not None
