"""Files that compat writers write where there is something already: a link, a mode, a handle."""

import os
import tempfile

import pytest

import ingot
from ingot.compat import bagz, ffrecord
from ingot.compat.array_record import array_record_module
from ingot.formats.bag import BagWriter

RECORDS = [b"one", b"", b"three"]


def write_bagz(path):
    with bagz.Writer(path) as writer:
        for record in RECORDS:
            writer.write(record)


def write_ffrecord(path):
    writer = ffrecord.FileWriter(str(path), len(RECORDS))
    for record in RECORDS:
        writer.write_one(record)
    writer.close()


def write_array_record(path):
    writer = array_record_module.ArrayRecordWriter(str(path), "group_size:1")
    for record in RECORDS:
        writer.write(record)
    writer.close()


WRITERS = [(".bag", write_bagz), (".ffr", write_ffrecord), (".array_record", write_array_record)]


@pytest.mark.parametrize(("suffix", "write"), WRITERS, ids=["bagz", "ffrecord", "array_record"])
class TestIdentity:
    def test_a_temporary_file_can_be_read_through_its_handle(self, tmp_path, suffix, write):
        with tempfile.NamedTemporaryFile(suffix=suffix, dir=tmp_path) as file:
            write(file.name)
            assert list(ingot.open(file.name)) == RECORDS
            with open(file.name, "rb") as other:  # noqa: PTH123
                assert file.read() == other.read() != b""
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("content", [b"", b"old"])
    def test_the_mode_of_a_file_that_is_replaced_stays(self, tmp_path, suffix, write, content):
        path = tmp_path / f"x{suffix}"
        path.write_bytes(content)
        path.chmod(0o600)
        write(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert list(ingot.open(path)) == RECORDS

    @pytest.mark.parametrize("content", [None, b"", b"old"])
    def test_a_link_stays_and_leads_to_the_new_file(self, tmp_path, suffix, write, content):
        link, path = tmp_path / f"link{suffix}", tmp_path / f"x{suffix}"
        link.symlink_to(path.name)
        if content is not None:
            path.write_bytes(content)
        write(link)
        assert link.is_symlink()
        assert list(ingot.open(path)) == RECORDS

    def test_a_link_to_itself_is_rejected(self, tmp_path, suffix, write):
        link = tmp_path / f"x{suffix}"
        link.symlink_to(link.name)
        with pytest.raises((OSError, ValueError, RuntimeError)):
            write(link)


def test_a_bag_can_be_followed_while_it_is_written(tmp_path):
    path = tmp_path / "x.bag"
    writer = bagz.Writer(path)
    writer.write(b"one")
    writer.flush()
    assert os.path.getsize(path) == 3  # noqa: PTH202
    assert list(ingot.open(path)) == [b"one"]
    writer.write(b"two")
    writer.close()
    assert list(ingot.open(path)) == [b"one", b"two"]
    assert [one.name for one in tmp_path.iterdir()] == ["x.bag"]


def test_an_old_bag_stays_until_the_new_one_is_closed(tmp_path):
    path = tmp_path / "x.bag"
    write_bagz(path)
    writer = bagz.Writer(path)
    writer.write(b"new")
    writer.flush()
    assert list(ingot.open(path)) == RECORDS
    writer.close()
    assert list(ingot.open(path)) == [b"new"]


def test_files_of_a_killed_bag_writer_are_replaced(tmp_path):
    path, limits = tmp_path / "x.bag", tmp_path / "limits.x.bag"
    path.write_bytes(b"onetwo")
    limits.write_bytes((3).to_bytes(8, "little") + (6).to_bytes(8, "little"))
    assert list(ingot.open(path)) == [b"one", b"two"]
    write_bagz(path)
    assert list(ingot.open(path)) == RECORDS
    assert not limits.exists()


def test_limits_of_a_bag_that_was_replaced_are_not_taken_for_its_own(tmp_path):
    one, two = tmp_path / "x.bag", tmp_path / "y.bag"
    new = [b"c%d" % k for k in range(5)]
    with BagWriter(one, tmp_path / "x.idx") as writer:
        writer.extend([b"aaa", b"bbb"])
    with bagz.Writer(one) as writer:
        for record in new:
            writer.write(record)
    assert list(ingot.open(one)) == new
    options = bagz.Writer.Options(limits_placement=bagz.LimitsPlacement.SEPARATE)
    with bagz.Writer(two, options) as writer:
        writer.write(b"aaa")
    with BagWriter(two) as writer:
        writer.extend(new)
    assert list(ingot.open(two)) == new


def test_limits_behind_a_link_are_not_written(tmp_path):
    other = tmp_path / "other"
    other.touch()
    (tmp_path / "limits.x.bag").symlink_to(other)
    with pytest.raises((ingot.FormatError, ValueError, OSError)):
        bagz.Writer(tmp_path / "x.bag")
    assert other.read_bytes() == b""
