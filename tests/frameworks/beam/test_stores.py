"""Record files on object stores and on other file systems of Beam."""

import gc
import io
import shutil
from typing import ClassVar

import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

import ingot
import ingot.beam
from tests.frameworks.beam.pipelines import RECORDS, check_read, run, write


def test_buckets_are_written_and_read(store, staging):
    for num_shards in (2, 1):
        twice = FnApiRunner(bundle_repeat=1)
        write(f"{store.url}/out/x", runner=twice, options=store.options, num_shards=num_shards)
    found = [name for name in store.names() if name.startswith("out/")]
    assert found == ["out/x-00000-of-00001.ingot"]
    pattern = f"{store.url}/out/x-*"
    check_read(ingot.beam.ReadFromIngot(pattern), RECORDS, options=store.options)
    assert list(staging.iterdir()) == []


@pytest.mark.usefixtures("no_log")
def test_an_upload_that_fails_changes_nothing_under_the_names(store, staging, monkeypatch):
    write(f"{store.url}/fails/x", [b"old"], options=store.options)
    before = store.get("fails/x-00000-of-00001.ingot")

    def copy(source, target, _):
        target.write(source.read(100))
        raise OSError("the network is down")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", copy)
        with pytest.raises(OSError, match="the network is down"):
            write(f"{store.url}/fails/x", [b"new"], options=store.options)
    gc.collect()
    *rest, name = (name for name in store.names() if name.startswith("fails/"))
    assert name == "fails/x-00000-of-00001.ingot"
    assert all(name.startswith("fails/beam-temp-x-") for name in rest)
    assert store.get(name) == before
    assert list(staging.iterdir()) == []


@pytest.mark.usefixtures("no_log")
def test_a_writer_that_is_rejected_leaves_nothing(gcs, staging):
    with pytest.raises(ValueError, match="level"):
        write(f"{gcs.url}/refused/x", options=gcs.options, level=99)
    gc.collect()
    assert list(staging.iterdir()) == []
    assert [name for name in gcs.names() if name.startswith("refused/")] == []


def test_damage_in_a_bucket_names_the_object(store, make):
    content = bytearray(make(RECORDS, compression=None).read_bytes())
    content[content.index(b"34-34-")] ^= 1
    store.put("damaged.ingot", content)
    with pytest.raises(ingot.CorruptFileError, match=f"^{store.url}/damaged.ingot: record 34: "):
        check_read(ingot.beam.ReadFromIngot(f"{store.url}/damaged*"), [], options=store.options)


def test_conversion_works_from_bucket_to_bucket(store, tfrecords):
    (tfrecords / "b.tfrecord").unlink()  # Beam cannot make empty objects of S3
    for path in tfrecords.iterdir():
        store.put(f"tf/{path.name}", path.read_bytes())

    def build(pipeline):
        paths = pipeline | ingot.beam.ConvertTFRecord(
            f"{store.url}/tf/*", f"{store.url}/converted/x", to="array_record"
        )
        expected = [f"{store.url}/converted/x-0000{k}-of-00002.array_record" for k in range(2)]
        assert_that(paths, equal_to(expected))

    run(build, options=store.options)
    pattern = f"{store.url}/converted/x-*"
    check_read(ingot.beam.ReadFromArrayRecord(pattern), RECORDS, options=store.options)


class Refusing(FileSystem):
    """A file system in memory that renames nothing to a name that is taken, as HDFS does."""

    files: ClassVar[dict[str, bytes]] = {}

    @classmethod
    def scheme(cls):
        return "refusing"

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path):
        head, _, tail = path.rpartition("/")
        return head, tail

    def mkdirs(self, path):
        pass

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        for path, content in list(self.files.items()):
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(content))

    def create(self, path, *_):
        files = self.files

        class File(io.BytesIO):
            def close(self):
                files.setdefault(path, self.getvalue())
                super().close()

        return File()

    def open(self, path, *_):
        return io.BytesIO(self.files[path])

    def rename(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            if target in self.files:
                raise BeamIOError(f"{target} exists")
            self.files[target] = self.files.pop(source)

    def exists(self, path):
        return path in self.files

    def delete(self, paths):
        for path in paths:
            del self.files[path]

    copy = size = last_updated = checksum = metadata = None


def test_a_file_system_that_replaces_nothing_is_written_too():
    write("refusing://a/x", [b"old"], num_shards=2)
    write("refusing://a/x", [b"new"], num_shards=2)
    assert sorted(Refusing.files) == [f"refusing://a/x-0000{k}-of-00002.ingot" for k in range(2)]
    check_read(ingot.beam.ReadFromIngot("refusing://a/*"), [b"new"])
