"""Record files are written and read by real pipelines of Apache Beam."""

import gc
import subprocess
import sys
from functools import partial

import apache_beam as beam
import pytest
from apache_beam.io import source_test_utils
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

import ingot
import ingot.beam
from ingot.beam import transforms
from ingot.beam.source import PatternSource, RecordSource
from ingot.compat import ffrecord
from ingot.formats.arrayrecord import ArrayRecordReader
from tests.frameworks.beam.pipelines import (
    CONTAINERS,
    RECORDS,
    check_read,
    contents,
    names,
    run,
    sorted_records,
    write,
)


@pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_written_rows_are_read(tmp_path, container, runner):
    write_to, read_from, suffix = CONTAINERS[container]
    write(tmp_path / "x", write_to=write_to, runner=runner, num_shards=3)
    assert names(tmp_path) == [f"x-0000{k}-of-00003{suffix}" for k in range(3)]
    assert sorted_records(tmp_path) == sorted(RECORDS)
    assert all(ingot.open(path).verify().ok for path in tmp_path.iterdir())
    check_read(read_from(tmp_path / "x-*"), RECORDS, runner)


def test_workers_in_processes_of_their_own_write(tmp_path):
    options = PipelineOptions(["--direct_running_mode=multi_processing", "--direct_num_workers=2"])
    write(tmp_path / "x", runner=FnApiRunner(), options=options, num_shards=2)
    assert sorted_records(tmp_path) == sorted(RECORDS)


def test_the_paths_of_the_files_come_out(tmp_path):
    def build(pipeline):
        paths = pipeline | beam.Create(RECORDS) | ingot.beam.WriteToIngot(tmp_path / "x", ".i", 2)
        assert_that(paths, equal_to([f"{tmp_path}/x-0000{k}-of-00002.i" for k in range(2)]))

    run(build)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["x-00000-of-00001.ingot"]),
        ({"shard_name_template": ""}, ["x.ingot"]),
        ({"shard_name_template": "", "file_name_suffix": ""}, ["x"]),
        ({"shard_name_template": "_SS", "num_shards": 2}, ["x_00.ingot", "x_01.ingot"]),
        ({"shard_name_template": ".N.S", "num_shards": 2}, ["x.2.0.ingot", "x.2.1.ingot"]),
    ],
)
def test_names_follow_the_template(tmp_path, arguments, expected):
    write(tmp_path / "x", **arguments)
    assert names(tmp_path) == expected


def test_templates_that_name_no_fixed_set_are_rejected(tmp_path):
    for template in ("-SSSSS-UUUUU", "-W-SSSSS", "-V-SSSSS"):
        with pytest.raises(ValueError, match="shard_name_template must consist of S and N"):
            ingot.beam.WriteToIngot(tmp_path / "x", shard_name_template=template)


@pytest.mark.parametrize("arguments", [{}, {"num_shards": 2}])
def test_an_empty_collection_makes_empty_files(tmp_path, arguments):
    write(tmp_path / "x", [], **arguments)
    assert list(contents(tmp_path).values()) == [[]] * arguments.get("num_shards", 1)
    check_read(ingot.beam.ReadFromIngot(tmp_path / "x-*"), [])


def test_text_is_written_as_utf8_and_buffers_as_their_bytes(tmp_path):
    write(tmp_path / "x", ["caf\xe9", b"\xff", bytearray(b"ab"), ""])
    assert sorted_records(tmp_path) == [b"", b"ab", b"caf\xc3\xa9", b"\xff"]


@pytest.mark.usefixtures("no_log")
@pytest.mark.parametrize("num_shards", [0, 2])
def test_other_sources_are_rejected(tmp_path, num_shards):
    with pytest.raises(TypeError, match="a record is bytes-like, not int"):
        write(tmp_path / "x", [b"a"] * 9 + [7], num_shards=num_shards)
    gc.collect()
    for name, records in contents(tmp_path).items():
        assert name.startswith("beam-temp-x-")
        assert records in ([b"a"] * 4, [b"a"] * 5)


def test_a_coder_makes_records_of_elements(tmp_path):
    write(tmp_path / "x", [3, 5], coder=beam.coders.VarIntCoder())
    assert sorted_records(tmp_path) == [b"\x03", b"\x05"]


def test_options_reach_the_writer(tmp_path):
    records = [b"abc" * 1000] * 10
    write(tmp_path / "x", records, compression="lz4", metadata={"k": 1}, sync=False)
    write(tmp_path / "y", records, compression=None)
    assert ingot.open(tmp_path / "x-00000-of-00001.ingot").metadata == {"k": 1}
    assert (tmp_path / "x-00000-of-00001.ingot").stat().st_size < 5000
    assert (tmp_path / "y-00000-of-00001.ingot").stat().st_size > 30000


def test_options_of_array_record_reach_the_writer(tmp_path):
    write_to = partial(ingot.beam.WriteToArrayRecord, group_size=4, compression=None)
    write(tmp_path / "x", write_to=write_to)
    reader = ArrayRecordReader(tmp_path / "x-00000-of-00001.array_record")
    assert reader.group_size(0) == 4
    assert "uncompressed" in reader.writer_options(0)
    with pytest.raises(TypeError, match="groupsize"):
        ingot.beam.WriteToArrayRecord(tmp_path / "x", groupsize=4)


def test_paths_may_be_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("x", num_shards=2)
    write("x", num_shards=1)
    assert names(tmp_path) == ["x-00000-of-00001.ingot"]
    check_read(ingot.beam.ReadFromIngot("x-*"), RECORDS)


def test_an_unbounded_collection_is_rejected(tmp_path):
    pipeline = beam.Pipeline("FnApiRunner")
    endless = pipeline | beam.Create(RECORDS)
    endless.is_bounded = False
    with pytest.raises(ValueError, match=r"x: record files require a bounded collection"):
        endless | ingot.beam.WriteToIngot(tmp_path / "x")


def test_patterns_in_a_collection_are_read(tmp_path):
    write(tmp_path / "x", [b"a"])
    write(tmp_path / "y", [b"b"])
    pairs = [
        (f"{tmp_path}/{name}-00000-of-00001.ingot", record)
        for name, record in (("x", b"a"), ("y", b"b"))
    ]
    patterns = [f"{tmp_path}/x-*", pairs[1][0]]

    def build(pipeline):
        named = pipeline | beam.Create(patterns)
        records = named | ingot.beam.ReadAllFromIngot()
        assert_that(records, equal_to([b"a", b"b"]), "records")
        with_names = named | "Named" >> ingot.beam.ReadAllFromIngot(with_filename=True)
        assert_that(with_names, equal_to(pairs), "pairs")

    run(build)


def test_other_containers_are_read_too(tmp_path):
    with ffrecord.FileWriter(tmp_path / "x.ffr") as writer:
        writer.write_one(b"abc")
    check_read(ingot.beam.ReadFromIngot(tmp_path / "x.ffr"), [b"abc"])


@pytest.mark.parametrize("name", ["x-*", "x"])
def test_a_pattern_must_match_a_file(tmp_path, name):
    with pytest.raises(OSError, match=f"{tmp_path}/x"):
        check_read(ingot.beam.ReadFromIngot(tmp_path / name), [])


def test_a_damaged_record_fails_the_pipeline_and_is_named(make):
    path = make(RECORDS, compression=None)
    content = bytearray(path.read_bytes())
    content[content.index(b"34-34-")] ^= 1
    path.write_bytes(content)
    with pytest.raises(ingot.CorruptFileError, match=f"{path}: record 34: offset"):
        check_read(ingot.beam.ReadFromIngot(path), [])


def test_a_file_is_split_by_records_into_about_the_size_that_is_wanted(make):
    path = make(RECORDS, compression=None)
    whole = RecordSource(str(path), path.stat().st_size)
    bundles = list(whole.split(whole.estimate_size() // 4))
    spans = [(bundle.start_position, bundle.stop_position) for bundle in bundles]
    assert spans == [(0, 24), (24, 48), (48, 72), (72, 96), (96, 100)]
    assert sum(bundle.weight for bundle in bundles) == pytest.approx(whole.estimate_size())
    spans = [(b.source, b.start_position, b.stop_position) for b in bundles]
    source_test_utils.assert_sources_equal_reference_source((whole, None, None), spans)


def test_ranges_can_be_split_at_every_point_while_they_are_read(tmp_path):
    write(tmp_path / "x", RECORDS[:12], num_shards=1)
    write(tmp_path / "y", RECORDS[12:20], num_shards=2)
    one = RecordSource(str(tmp_path / "x-00000-of-00001.ingot"), 1000)
    source_test_utils.assert_split_at_fraction_exhaustive(one)
    several = PatternSource(str(tmp_path / "*.ingot"))
    source_test_utils.assert_split_at_fraction_exhaustive(
        several, perform_multi_threaded_test=False
    )
    source_test_utils.assert_reentrant_reads_succeed((several, None, None))


def test_a_large_file_is_read_in_ranges_by_a_pipeline(make, monkeypatch):
    path = make(RECORDS, compression=None)
    monkeypatch.setattr("ingot.beam.transforms.SPLIT_BYTES", path.stat().st_size // 4)
    assert len(list(transforms._ranges(FileSystems.match([str(path)])[0].metadata_list[0]))) == 5
    check_read(beam.Create([str(path)]) | ingot.beam.ReadAllFromIngot(), RECORDS)


HIDE_BEAM = """
import sys

class Hidden:
    def find_spec(name, path, target=None):
        if name == "apache_beam":
            raise ModuleNotFoundError("No module named 'apache_beam'", name="apache_beam")

sys.meta_path.insert(0, Hidden)
"""


@pytest.mark.parametrize("module", ["ingot.beam", "ingot.compat.array_record.beam"])
def test_without_beam_the_import_says_how_to_install_it(module):
    outcome = subprocess.run(
        [sys.executable, "-c", f"{HIDE_BEAM}\nimport {module}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 1
    hint = "pip install 'ingot-data[beam]' (in a checkout: pip install '.[beam]')"
    message = f"ingot.beam requires Apache Beam: {hint}"
    assert outcome.stderr.splitlines()[-1] == f"ModuleNotFoundError: {message}"
