"""`bagz.beam`'s names over Ingot, in real pipelines of Apache Beam."""

import inspect

import apache_beam as beam
import bagz as real
import pytest
from apache_beam.coders.coders import StrUtf8Coder
from apache_beam.testing.util import assert_that, equal_to
from bagz.beam import bagzio as real_bagzio

from ingot.compat import bagz
from ingot.compat.bagz.beam import bagzio

RECORDS = [b"%d-" % k * (k % 7) for k in range(40)]
IN_PROCESS = ["--runner=FnApiRunner"]


def write(path, records, **options):
    with beam.Pipeline(argv=IN_PROCESS) as pipeline:
        pipeline | beam.Create(records) | bagzio.WriteToBagz(path, **options)


def test_signatures_match_the_original():
    for name in ("WriteToBagz", "ReadFromBagz"):
        theirs, mine = getattr(real_bagzio, name), getattr(bagzio, name)
        assert list(inspect.signature(mine).parameters) == list(
            inspect.signature(theirs).parameters
        )


@pytest.mark.parametrize("name", ["x@2.bagz", "x@3.data.bag", "x@*.bagz", "x.bag@0", "x@0.bagz"])
def test_bags_are_written_and_read(tmp_path, name):
    write(tmp_path / name, RECORDS)
    spec = str(tmp_path / name).replace("@0", "")
    assert sorted(bagz.Reader(spec).read()) == sorted(real.Reader(spec).read()) == sorted(RECORDS)
    with beam.Pipeline(argv=IN_PROCESS) as pipeline:
        assert_that(pipeline | bagzio.ReadFromBagz(spec), equal_to(RECORDS))


def test_coders_turn_elements_into_records_and_back(tmp_path):
    texts = ["a", "", "é"]
    write(tmp_path / "x@1.bagz", texts, coder=StrUtf8Coder())
    assert sorted(bagz.Reader(tmp_path / "x@1.bagz").read()) == sorted(map(str.encode, texts))
    with beam.Pipeline(argv=IN_PROCESS) as pipeline:
        found = pipeline | bagzio.ReadFromBagz(tmp_path / "x@1.bagz", coder=StrUtf8Coder())
        assert_that(found, equal_to(texts))


@pytest.mark.parametrize("name", ["x.txt", "x@2", "x@2.bagzext", "x.bagz"])
def test_paths_of_another_form_are_rejected(name):
    with pytest.raises(ValueError, match=f'File path "{name}" must be in the form'):
        bagzio.WriteToBagz(name)


def test_files_that_do_not_exist_are_rejected(tmp_path):
    with pytest.raises(FileNotFoundError):
        bagzio.ReadFromBagz(tmp_path / "x@2.bagz")
