"""Arrays, schemas and streams of producers that break Arrow's C interface, or ask for too much."""

import ctypes
import signal
import subprocess
import sys

import pyarrow as pa
import pytest

import ingot
from ingot import _core

VAST = 2**50

CAPSULE = ctypes.pythonapi.PyCapsule_GetPointer
CAPSULE.restype, CAPSULE.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Schema(ctypes.Structure):
    pass


Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
]


class Array(ctypes.Structure):
    pass


Array._fields_ = [
    *(
        (name, ctypes.c_int64)
        for name in ["length", "null_count", "offset", "n_buffers", "n_children"]
    ),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
]


def struct_in(capsule, name, kind):
    return ctypes.cast(CAPSULE(capsule, name), ctypes.POINTER(kind)).contents


class Producer:
    """Hands over a batch whose structs are changed first."""

    def __init__(self, batch, schema=None, array=None):
        self.batch, self.schema, self.array = batch, schema, array
        self.kept = []

    def __arrow_c_schema__(self):
        capsule = self.batch.schema.__arrow_c_schema__()
        if self.schema is not None:
            self.schema(struct_in(capsule, b"arrow_schema", Schema))
        self.kept.append(capsule)
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        _, array = self.batch.__arrow_c_array__()
        if self.array is not None:
            self.array(struct_in(array, b"arrow_array", Array))
        return self.__arrow_c_schema__(), array


def column_of(kind):
    return pa.record_batch({"x": pa.array([], kind)})


def with_format(kind, text):
    def change(schema):
        schema.children[0].contents.format = text

    return Producer(column_of(kind), change)


def with_children(kind, count):
    def change(schema):
        schema.children[0].contents.n_children = count

    return Producer(column_of(kind), change)


def vast(array):
    array.length = VAST
    array.children[0].contents.length = VAST


def batch_of_nothing(array):
    return pa.RecordBatch.from_arrays([array], ["x"])


def test_questions_about_nulls_take_no_memory_for_values_without_validity():
    empty = pa.Array.from_buffers(pa.binary(0), 2**45, [None, pa.py_buffer(b"")])
    batch = _core.ArrowArray(batch_of_nothing(empty))
    assert batch.nulls_and_values(["x"]) == (False, True)
    assert batch.nbytes == 0
    nulls = _core.ArrowArray(Producer(column_of(pa.null()), array=vast))
    assert len(nulls) == VAST
    assert nulls.nulls_and_values(["x"]) == (True, False)


def test_values_that_no_memory_holds_are_a_memory_error():
    optional = check = True
    empty = pa.Array.from_buffers(pa.binary(0), 2**45, [None, pa.py_buffer(b"")])
    for batch in [
        _core.ArrowArray(batch_of_nothing(empty)),
        _core.ArrowArray(Producer(column_of(pa.null()), array=vast)),
    ]:
        with pytest.raises(MemoryError):
            batch.valid(["x"])
        with pytest.raises(MemoryError, match=r"Arrow data: out of memory for \d+ bytes"):
            batch.take(["x"], ("bytes", (), "one"), optional, None, check)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float16(), pa.list_(pa.int8())])
def test_lengths_beyond_all_memory_are_rejected(kind, tmp_path):
    with pytest.raises(ingot.FormatError, match=f"column 'x': .* a length of {VAST}"):
        ingot.from_arrow(Producer(column_of(kind), array=vast), tmp_path / "x")
    with ingot.DatasetWriter(tmp_path / "y", {"x": "int"}) as writer:
        with pytest.raises(ingot.FormatError, match=f"column 'x': .* a length of {VAST}"):
            writer.extend(Producer(column_of(kind), array=vast))
        writer.append({"x": 1})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"ts",
        b"tsq",
        b"tsq:",
        b"tD",
        b"w:-1",
        b"d:5,2,0",
        b"d:5,2,7",
        b"d:5,2,9223372036854775800",
    ],
)
def test_formats_that_arrow_does_not_have_are_rejected_by_column(text, tmp_path):
    expected = f"column 'x': Arrow has no type \"{text.decode()}\""
    with pytest.raises(ingot.FormatError, match=expected):
        ingot.from_arrow(with_format(pa.int64(), text), tmp_path / "x")


@pytest.mark.parametrize("text", [b"f", b"b", b"u"])
def test_dictionaries_have_integers_as_indices(text, tmp_path):
    given = with_format(pa.dictionary(pa.int32(), pa.string()), text)
    with pytest.raises(ingot.FormatError, match="column 'x': the indices of a dictionary"):
        ingot.from_arrow(given, tmp_path / "x")


LISTS = [pa.list_(pa.int8()), pa.list_(pa.int8(), 6), pa.map_(pa.string(), pa.int8())]


@pytest.mark.parametrize("kind", LISTS)
def test_lists_without_elements_are_rejected_by_column(kind, tmp_path):
    expected = "column 'x': type .* must have 1 types inside, but has 0"
    with pytest.raises(ingot.FormatError, match=expected):
        ingot.from_arrow(with_children(kind, 0), tmp_path / "x")


def test_lists_of_two_types_and_maps_without_pairs_are_rejected_by_column(tmp_path):
    pair = pa.struct([("a", pa.int8()), ("b", pa.int8())])
    with pytest.raises(ingot.FormatError, match="must have 1 types inside, but has 2"):
        ingot.from_arrow(with_format(pair, b"+l"), tmp_path / "x")
    with pytest.raises(ingot.FormatError, match="entries of a map must be structs"):
        ingot.from_arrow(with_format(pa.list_(pa.int8()), b"+m"), tmp_path / "x")


def test_a_requested_schema_is_checked_too(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"x": "array(float32,6)"}) as writer:
        writer.extend({"x": [[0.0] * 6] * 3})
    ds = ingot.open(tmp_path / "x.ingot")
    for kind in LISTS:
        with pytest.raises(ingot.FormatError, match="must have 1 types inside, but has 0"):
            ds.__arrow_c_stream__(with_children(kind, 0).__arrow_c_schema__())

    def widen(schema):
        outer = schema.children[0].contents
        outer.format = outer.children[0].contents.format = b"+w:4294967296"

    wide = Producer(column_of(pa.list_(pa.list_(pa.float32(), 2), 3)), widen)
    stream = ds.__arrow_c_stream__(wide.__arrow_c_schema__())
    reader = pa.RecordBatchReader._import_from_c_capsule(stream)
    assert reader.schema.field("x").type == pa.list_(pa.float32(), 6)


NESTED = {
    "text": pa.array(["a", "b"]),
    "list": pa.array([[1], [2]]),
    "fixed": pa.array([[1], [2]], pa.list_(pa.int8(), 1)),
    "struct": pa.array([{"a": "b"}, {"a": "c"}]),
}


@pytest.mark.parametrize("name", NESTED)
def test_columns_shorter_than_their_batch_are_rejected(name, tmp_path):
    def lengthen(array):
        array.length = 9

    for change in [lengthen, lambda array: setattr(array, "offset", 7)]:
        given = Producer(pa.record_batch({"x": NESTED[name]}), array=change)
        with pytest.raises(ingot.FormatError, match="has 2 values, but 9 are used"):
            ingot.from_arrow(given, tmp_path / "x")


@pytest.mark.parametrize("name", ["list", "fixed", "struct"])
def test_elements_shorter_than_their_lists_are_rejected_by_column(name, tmp_path):
    def shorten(array):
        array.children[0].contents.children[0].contents.length = 1

    given = Producer(pa.record_batch({"x": NESTED[name]}), array=shorten)
    with pytest.raises(ingot.FormatError, match=r"column 'x': .* has 1 values, but 2 are used"):
        ingot.from_arrow(given, tmp_path / "x")


def test_counts_below_zero_are_named(tmp_path):
    for field, noun in [("n_buffers", "buffers"), ("n_children", "children")]:
        given = Producer(
            pa.record_batch({"x": [1]}), array=lambda one, field=field: setattr(one, field, -1)
        )
        with pytest.raises(ingot.FormatError, match=f"a negative number of {noun}"):
            ingot.from_arrow(given, tmp_path / "x")


class Stream:
    """A stream of ours over any iterator of batches."""

    def __init__(self, batches):
        self.batches = batches

    def __arrow_c_stream__(self, requested_schema=None):
        kind = _core.arrow_kind(pa.schema([("k", pa.int64())]))
        return _core.arrow_stream(kind, self.batches)


def test_a_stream_that_failed_keeps_failing():
    def batches():
        yield _core.ArrowArray(pa.record_batch({"k": [1]}))
        message = "the disk is gone"
        raise OSError(message)

    reader = pa.RecordBatchReader.from_stream(Stream(batches()))
    assert reader.read_next_batch().num_rows == 1
    for _ in range(3):
        with pytest.raises(OSError, match="OSError: the disk is gone"):
            reader.read_next_batch()
    done = pa.RecordBatchReader.from_stream(Stream(iter([])))
    for _ in range(3):
        with pytest.raises(StopIteration):
            done.read_next_batch()


def test_a_malformed_batch_names_the_row_at_which_it_begins(tmp_path):
    def batches():
        yield _core.ArrowArray(pa.record_batch({"k": [1, 2, 3]}))
        yield _core.ArrowArray(pa.record_batch({"other": [1], "k": [1]}))

    with pytest.raises(ingot.FormatError, match=r"the batch that begins at row 3: .* 2 children"):
        ingot.from_arrow(Stream(batches()), tmp_path / "x")


INTERRUPTED = """
import sys, pyarrow, ingot
ds = ingot.open(sys.argv[1])
pyarrow.table(ds)
print("ready", flush=True)
while True:
    try:
        pyarrow.table(ds)
    except Exception:
        pass
"""


def test_an_interrupt_in_a_stream_ends_the_program(tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"k": "int", "text": "utf8"}) as writer:
        writer.extend({"k": range(100_000), "text": ["some text"] * 100_000})
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "x.ingot")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGINT)
        try:
            _, report = program.communicate(timeout=60)
        finally:
            program.kill()
    assert report.splitlines()[-1] == "KeyboardInterrupt"
    assert program.returncode == -signal.SIGINT
