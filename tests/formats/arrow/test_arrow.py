"""Parquet and Arrow files as data sets: what they hold, read as pyarrow reads it."""

import io
import json
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from operator import methodcaller

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from PIL import Image

import ingot
from ingot.formats.arrow.blocks import CACHE, Cache
from tests.support import DATA
from tests.support.arrow_tables import plain, record_hash, tables, write

GOLDEN = DATA / "arrow"
PARQUET = json.loads((GOLDEN / "parquet" / "manifest.json").read_text())
SAVED = json.loads((GOLDEN / "saved" / "manifest.json").read_text())
KINDS = {"parquet": ".parquet", "feather": ".feather", "file": ".arrow", "stream": ".arrow"}


def read_by_pyarrow(path, kind):
    if kind == "parquet":
        return pa.parquet.ParquetFile(path).read()
    opened = pa.ipc.open_stream if kind == "stream" else pa.ipc.open_file
    with pa.memory_map(str(path)) as file:
        return opened(file).read_all()


def jpg(k, mode="JPEG"):
    stream = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), 10 * k, np.uint8)).save(stream, mode)
    return stream.getvalue()


@pytest.mark.parametrize("name", PARQUET["variants"])
def test_golden_parquet_files_read_as_their_manifest_says(name):
    ds = ingot.open(GOLDEN / "parquet" / name)
    expected = [one["record_sha256"] for one in PARQUET["records"]]
    assert [record_hash(plain(row)) for row in ds] == expected
    order = np.random.default_rng(3).integers(-len(ds), len(ds), 90)
    assert [record_hash(plain(row)) for row in ds.__getitems__(order)] == [
        expected[k] for k in order
    ]
    assert [record_hash(plain(ds[k])) for k in range(len(ds))] == expected
    assert ds.verify().damaged == []


def test_golden_folder_of_hugging_face_reads_as_its_manifest_says():
    ds = ingot.open(GOLDEN / "saved")
    assert ds.spec["image"] == "jpg"
    assert ds.spec["arr"] == "array(float32,3,4)"
    files = ds.select("image").stored()
    rows = [plain(row) for row in ds]
    for row, file in zip(rows, files, strict=True):
        row["image"] = {"bytes": file["image"], "path": None}
    assert [record_hash(row) for row in rows] == [one["record_sha256"] for one in SAVED["records"]]
    assert ds.metadata["labels"] == {"label": [str(k) for k in range(10)]}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables(), kind=st.sampled_from(sorted(KINDS)), data=st.data())
def test_random_rows_are_those_that_pyarrow_takes(table, kind, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / f"x{KINDS[kind]}"
    write(table, path, kind)
    try:
        expected = read_by_pyarrow(path, kind)
    except pa.ArrowInvalid as error:  # It cannot read its own lists of one size, if one is null.
        assume("Expected all lists to be of size" not in str(error))
        raise
    ds = ingot.open(path)
    assert len(ds) == len(table)
    rows = st.lists(st.integers(0, len(ds) - 1), max_size=30) if len(ds) else st.just([])
    numbers = data.draw(rows)
    taken = ds.take(numbers).to_arrow()
    wanted = expected.to_pylist()
    assert taken.schema.types == expected.schema.types
    assert taken.to_pylist() == [wanted[k] for k in numbers]
    batch = ds.__getitems__(numbers)
    assert plain(batch) == plain([ds[k] for k in numbers])
    assert plain(list(ds.iter(numbers))) == plain(batch)
    ds.close()


@pytest.mark.parametrize("kind", KINDS)
def test_nulls_make_a_field_optional_and_their_absence_does_not(kind, tmp_path):
    table = pa.table({"full": [1, 2, 3], "some": [1.5, None, 2.5], "text": ["a", None, "c"]})
    ds = ingot.open(write(table, tmp_path / f"x{KINDS[kind]}", kind))
    assert dict(ds.spec) == {"full": "int", "some": "float?", "text": "utf8?"}
    assert ds[[0, 1]]["full"].tolist() == [1, 2]
    assert ds[[0, 1]]["some"] == [1.5, None]
    assert ds.column("some").tolist() == [1.5, 0, 2.5]
    assert ds.present("some").tolist() == [True, False, True]
    assert list(ds.column("text")) == ["a", None, "c"]
    assert ds.available(1) == {"full": True, "some": False, "text": False}
    assert len(ds.where(lambda some: some > 0, "some")) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_of_sequences_are_read(kind, tmp_path):
    runs = [list(range(k, k + 5 + k % 2)) for k in range(40)]
    words = [[str(one) for one in run] for run in runs]
    boxes = pa.array([[[one, 0.5]] * len(run) for run in runs for one in [0.25]])
    table = pa.table({"runs": runs, "words": words})
    table = table.append_column("boxes", boxes.cast(pa.list_(pa.list_(pa.float32(), 2))))
    ds = ingot.open(write(table, tmp_path / f"x{KINDS[kind]}", kind))
    assert dict(ds.spec) == {"runs": "int[]", "words": "utf8[]", "boxes": "array(float32,2)[]"}
    assert ds.lengths("runs").tolist() == [len(run) for run in runs]
    assert ds.available(1)["words"] == range(6)
    assert ds[7, {"words": range(1, 3)}] == {"words": words[7][1:3]}
    mask = {"runs": [range(2), range(2, 5)], "words": [range(1, 4, 2), range(1)]}
    found = ds[[30, 3], mask]
    assert plain(found["runs"]) == [runs[30][:2], runs[3][2:5]]
    assert found["words"] == [words[30][1:4:2], words[3][:1]]
    assert ds[[2, 4], {"boxes": range(3)}]["boxes"].shape == (2, 3, 2)


def test_exact_floats_come_back_bit_for_bit(tmp_path):
    values = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324], np.float64)
    pa.parquet.write_table(pa.table({"x": values}), tmp_path / "x.parquet")
    assert ingot.open(tmp_path / "x.parquet").column("x").tobytes() == values.tobytes()


def test_times_are_numbers_and_decimals_are_text(tmp_path):
    kinds = {"when": pa.timestamp("us", "UTC"), "day": pa.date32()}
    table = pa.table({name: pa.array([19_000], kind) for name, kind in kinds.items()})
    table = table.append_column("price", pa.array(["1.50"]).cast(pa.decimal128(9, 2)))
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    ds = ingot.open(tmp_path / "x.parquet")
    assert dict(ds.spec) == {"when": "int", "day": "array(int32)", "price": "utf8"}
    assert plain(ds[0]) == {"when": 19_000, "day": 19_000, "price": "1.50"}
    assert ds.to_arrow().equals(table)


def test_random_rows_of_maps_are_read(tmp_path):
    pairs = [[("a", 1)], [("b", 2), ("c", None)], []]
    table = pa.table({"m": pa.array(pairs, pa.map_(pa.string(), pa.int32()))})
    ds = ingot.open(write(table, tmp_path / "x.parquet", "parquet"))
    assert ds[[2, 0, 1, 2]]["m"] == [pairs[k] for k in [2, 0, 1, 2]]


@pytest.mark.parametrize("lists", [pa.list_, pa.large_list])
@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_lists_are_read(lists, kind, tmp_path):
    pairs = [[("a", [1, 2])], [("b", []), ("c", None)], None]
    nested = [[[("a", {"x": [1]})]], None, []]
    table = pa.table(
        {
            "m": pa.array(pairs, pa.map_(pa.string(), lists(pa.int32()))),
            "n": pa.array(
                nested,
                lists(pa.map_(pa.string(), pa.struct([("x", lists(pa.int64()))]))),
            ),
        }
    )
    ds = ingot.open(write(table, tmp_path / f"x{KINDS[kind]}", kind))
    assert dict(ds.spec) == {"m": "tree?", "n": "tree[]?"}
    assert ds[[2, 0, 1]]["m"] == [pairs[k] for k in [2, 0, 1]]
    assert [row["n"] for row in ds] == nested


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_list_of_structs_of_numbers_are_read(kind, tmp_path):
    boxes = [[{"x": 1, "y": 0.5}], None, [], [{"x": 2, "y": 1.5}] * 2]
    of_boxes = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.float32())]))
    table = pa.table(
        {
            "boxes": pa.array(boxes, of_boxes),
            "deep": pa.array([None if one is None else {"boxes": one} for one in boxes]),
        },
    ).cast(pa.schema([("boxes", of_boxes), ("deep", pa.struct([("boxes", of_boxes)]))]))
    ds = ingot.open(write(table, tmp_path / f"x{KINDS[kind]}", kind))
    assert dict(ds.spec) == {"boxes": "tree[]?", "deep.boxes": "tree[]?"}
    assert [row["boxes"] for row in ds] == boxes
    assert [row["deep"]["boxes"] for row in ds] == boxes
    assert ds[[1, 3]]["boxes"] == [None, boxes[3]]
    assert ds.present("boxes").tolist() == [True, False, True, True]


def test_arrays_of_a_batch_are_writable(tmp_path):
    table = pa.table(
        {"x": [1, 2], "runs": [[1], [2]], "v": pa.array([[1.0]] * 2, pa.list_(pa.float32(), 1))}
    )
    ds = ingot.open(write(table, tmp_path / "x.arrow", "stream"))
    for value in [*ds[[0, 1]].values(), ds[1]["runs"], ds[1]["v"]]:
        value[:] = 0
    assert ds.column("x").tolist() == [1, 2]


def test_large_row_groups_are_read_in_parts_that_the_cache_bounds(tmp_path):
    count = 60_000
    table = pa.table({"k": range(count), "text": [f"row {k}" for k in range(count)]})
    pa.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=count)
    ds = ingot.open(tmp_path / "x.parquet")
    numbers = [59_999, 3, 40_000, 3, 20_000]
    assert ds[numbers]["text"] == [f"row {k}" for k in numbers]
    assert ds[[17_000]]["k"].tolist() == [17_000]
    assert ds.column("k").tolist() == list(range(count))
    assert sum(row["k"] for row in ds) == count * (count - 1) // 2
    held = CACHE.nbytes
    ds.close()
    assert 0 <= CACHE.nbytes < held <= 256 << 20


def test_the_cache_keeps_what_was_used_last_within_its_limit():
    cache = Cache(10_000)
    for k in range(5):
        cache.put((0, k), k, 4000)
        cache.get((0, 0))
    assert [cache.get((0, k)) for k in range(5)] == [0, None, None, None, 4]
    cache.put((1, 0), "large", 20_000)
    assert cache.get((1, 0)) is None
    assert cache.nbytes == 8000
    cache.drop(0)
    assert cache.nbytes == 0


@pytest.mark.parametrize("source", ["folder", "pattern", "list"])
def test_several_files_are_one_data_set(source, tmp_path):
    parts = [[1, 2], [None, 4], [5]]
    paths = [
        write(pa.table({"x": pa.array(one, pa.int64())}), tmp_path / f"{k}.parquet", "parquet")
        for k, one in enumerate(parts)
    ]
    given = {"folder": tmp_path, "pattern": str(tmp_path / "*.parquet"), "list": paths}[source]
    ds = ingot.open(given)
    assert ds.spec["x"] == "int?"
    assert ds[[4, 2, 0, 3]]["x"] == [5, None, 1, 4]
    assert ds.paths == [str(path) for path in paths]


def test_files_whose_columns_differ_are_rejected_by_name(tmp_path):
    one = write(pa.table({"x": [1]}), tmp_path / "1.parquet", "parquet")
    two = write(pa.table({"x": ["a"]}), tmp_path / "2.parquet", "parquet")
    with pytest.raises(
        ingot.FormatError, match=r"2\.parquet: column 'x' is string, but in .*int64"
    ):
        ingot.open([one, two])


def test_a_file_without_a_known_suffix_is_recognised_by_its_first_bytes(tmp_path):
    table = pa.table({"x": [1, 2]})
    assert ingot.open(write(table, tmp_path / "a", "parquet"))[1] == {"x": 2}
    assert ingot.open(write(table, tmp_path / "b.data", "file"))[1] == {"x": 2}


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_view(pa.int64()),
        pa.month_day_nano_interval(),
        pa.dense_union([pa.field("i", pa.int64())]),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.map_(pa.string(), pa.timestamp("s")),
    ],
)
def test_a_type_that_no_field_can_have_is_rejected_by_name(kind, tmp_path):
    schema = pa.schema([pa.field("odd", kind), pa.field("n", pa.int64())])
    with pa.ipc.new_stream(tmp_path / "x.arrow", schema) as writer:
        writer.write(pa.record_batch([pa.nulls(2, kind), pa.array([3, 4])], schema=schema))
    with pytest.raises(
        ingot.FormatError,
        match=r"x\.arrow: column 'odd' is .*cast it with pyarrow, or leave the column out: name",
    ):
        ingot.open(tmp_path / "x.arrow")
    ds = ingot.open(tmp_path / "x.arrow", spec={"n": "int"})
    assert [*ds] == [{"n": 3}, {"n": 4}]
    with pytest.raises(ingot.FormatError, match="no field 'no', only 'odd', 'n'"):
        ingot.open(tmp_path / "x.arrow", spec={"no": "int"})


def test_a_map_of_times_in_a_parquet_file_can_be_left_out(tmp_path):
    times = pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.timestamp("s")))
    table = pa.table({"odd": times, "s": [{"odd": 1, "n": 2}] * 2, "x?": [5, 6]})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    ds = ingot.open(tmp_path / "x.parquet", spec={"s.n": "int"})
    assert [*ds] == [{"s": {"n": 2}}] * 2
    with pytest.raises(ingot.FormatError, match="name the others with spec="):
        ingot.open(tmp_path / "x.parquet")


def test_names_that_fields_cannot_have_are_rejected(tmp_path):
    for name, table in {
        "x?": pa.table({"x?": [1]}),
        "a.b": pa.table({"a.b": [1], "a": [{"b": 2}]}),
    }.items():
        write(table, tmp_path / "x.arrow", "stream")
        with pytest.raises(ingot.FormatError, match=r"x\.arrow: .*rename"):
            ingot.open(tmp_path / "x.arrow")
        assert name


def test_a_null_element_of_a_list_is_rejected_with_its_row(tmp_path):
    table = pa.table({"x": [[1], [2, None], [3]]})
    ds = ingot.open(write(table, tmp_path / "x.arrow", "stream"))
    assert ds[2]["x"].tolist() == [3]
    with pytest.raises(ingot.FormatError, match=r"row 1: field 'x' .*element of the list is null"):
        ds[[0, 1, 2]]


def test_a_null_struct_is_a_struct_whose_fields_are_missing(tmp_path):
    table = pa.table({"s": [{"a": 1, "b": "x"}, None]})
    ds = ingot.open(write(table, tmp_path / "x.parquet", "parquet"))
    assert ds[1] == {"s": {"a": None, "b": None}}
    assert ds.to_arrow().equals(table)


def test_a_path_without_bytes_is_not_followed(tmp_path):
    (tmp_path / "secret.jpg").write_bytes(jpg(1))
    table = pa.table({"image": [{"bytes": None, "path": str(tmp_path / "secret.jpg")}]})
    features = {"image": {"_type": "Image"}}
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = table.cast(pa.schema([("image", kind)])).replace_schema_metadata(told)
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ingot.FormatError, match=r"row 0: .*no bytes, but the path .*from_dataset"):
        ingot.open(tmp_path / "x.parquet")[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_children_of_any_start_method_read_the_same_rows(kind, start, tmp_path):
    table = pa.table({"k": range(100), "text": ["a"] * 100})
    ds = ingot.open(write(table, tmp_path / f"x{KINDS[kind]}", kind))
    read = methodcaller("__getitems__", [7, 60, 33])
    expected = read(ds)
    with get_context(start).Pool(2) as pool:
        assert pool.map(read, [ds] * 4) == [expected] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_threads_read_the_same_rows_at_the_same_time(kind, tmp_path):
    table = pa.table({"k": range(1000), "text": [f"row {k}" for k in range(1000)]})
    ds = ingot.open(write(table, tmp_path / f"x{KINDS[kind]}", kind))
    numbers = np.random.default_rng(0).integers(0, 1000, (50, 16))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda some: ds[some]["text"], numbers))
    assert found == [[f"row {k}" for k in some] for some in numbers]


def test_a_data_set_pickles_small_and_rejects_other_files(tmp_path):
    path = write(pa.table({"k": range(100)}), tmp_path / "x.parquet", "parquet")
    stored = pickle.dumps(ingot.open(path))
    assert len(stored) < 1000
    assert pickle.loads(stored)[9] == {"k": 9}  # noqa: S301
    write(pa.table({"k": range(101)}), path, "parquet")
    with pytest.raises(ingot.FormatError, match="changed since this data set was pickled"):
        pickle.loads(stored)  # noqa: S301


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_replaced_or_removed_is_rejected(kind, tmp_path):
    path = write(pa.table({"k": range(100)}), tmp_path / f"x{KINDS[kind]}", kind)
    ds = ingot.open(path)
    write(pa.table({"k": range(5)}), tmp_path / "other", kind)
    shutil.move(tmp_path / "other", path)
    with pytest.raises(ingot.FormatError, match="changed or removed after it was opened"):
        ds[50]
    path.unlink()
    with pytest.raises(ingot.FormatError, match="changed or removed after it was opened"):
        ds[50]


def test_a_closed_data_set_says_so(tmp_path):
    ds = ingot.open(write(pa.table({"k": [1]}), tmp_path / "x.arrow", "file"))
    ds.close()
    ds.close()
    with pytest.raises(ingot.ClosedError, match="closed"):
        ds[0]


def test_a_loader_goes_over_parquet_and_resumes_at_any_step(tmp_path):
    table = pa.table(
        {"k": range(100), "v": pa.array([[k, k] for k in range(100)], pa.list_(pa.int16(), 2))}
    )
    ds = ingot.open(write(table, tmp_path / "x.parquet", "parquet"))
    loader = ingot.Loader(ds.shuffle(seed=3), batch_size=10)
    batches = [plain(batch) for batch in loader]
    assert sorted(k for batch in batches for k in batch["k"]) == sorted(range(100))
    loader = ingot.Loader(ds.shuffle(seed=3), batch_size=10)
    running = iter(loader)
    for _ in range(5):
        next(running)
    state = loader.state_dict()
    again = ingot.Loader(ds.shuffle(seed=3), batch_size=10)
    again.load_state_dict(state)
    assert [plain(batch) for batch in again] == batches[5:]


def test_without_pyarrow_the_error_tells_how_to_install_it(tmp_path):
    path = write(pa.table({"k": [1]}), tmp_path / "x.parquet", "parquet")
    script = (
        "import sys; sys.modules['pyarrow'] = sys.modules['pyarrow.parquet'] = None\n"
        f"import ingot; ingot.open({str(path)!r})"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "pip install 'ingot-data[arrow]'" in found.stderr


def test_opening_ingot_files_does_not_import_pyarrow():
    script = "import sys, ingot; assert not {'pyarrow', 'pandas', 'datasets'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_writer_rejects_the_names_of_parquet_and_arrow_files(tmp_path):
    for name in ["x.parquet", "x.arrow", "x.feather"]:
        with pytest.raises(ingot.FormatError, match="other programs would take an Ingot file for"):
            ingot.Writer(tmp_path / name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_spec_chooses_fields_and_says_what_bytes_are(kind, tmp_path):
    table = pa.table({"n": [1, 2], "picture": [jpg(1), jpg(2)], "note": ['{"a": 1}', "[]"]})
    path = write(table, tmp_path / f"x{KINDS[kind]}", kind, rows=2)
    ds = ingot.open(path, spec={"picture": "jpg", "note": "json"})
    assert dict(ds.spec) == {"picture": "jpg", "note": "json"}
    assert ds[0]["picture"].shape == (8, 8, 3)
    assert ds.select("note")[[0, 1]]["note"] == [{"a": 1}, []]
    again = pickle.loads(pickle.dumps(ds))  # noqa: S301
    assert dict(again.spec) == dict(ds.spec)
    with pytest.raises(ingot.FormatError, match="no field 'm', only 'n', 'picture', 'note'"):
        ingot.open(path, spec={"m": "int"})
    with pytest.raises(ingot.FormatError, match="field 'n' is int, which cannot be read as utf8"):
        ingot.open(path, spec={"n": "utf8"})
    with pytest.raises(ingot.FormatError, match="allow_pickle=True"):
        ingot.open(path, spec={"picture": "pickle"})[0]


@pytest.mark.parametrize("first", [49_999, 32_768, 20_000, 0])
def test_a_large_row_group_is_read_from_anywhere(tmp_path, first):
    pa.parquet.write_table(pa.table({"k": range(50_000)}), tmp_path / "x.parquet")
    ds = ingot.open(tmp_path / "x.parquet")
    assert ds[first]["k"] == first
    asked = np.random.default_rng(first).integers(0, 50_000, 500)
    assert ds[asked]["k"].tolist() == asked.tolist()
    assert ds[-1]["k"] == 49_999
