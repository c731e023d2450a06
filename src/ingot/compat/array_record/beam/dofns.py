"""`array_record.beam.dofns`: functions that Beam runs in parallel."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from uuid import uuid4

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems

from ingot.beam import Shard, absolute, read_tfrecord
from ingot.formats.arrayrecord import ArrayRecordWriter


class ConvertToArrayRecordGCS(beam.DoFn):
    """Writes a pair of a file name and its records to an ArrayRecord file in a folder.

    The file appears under its name when it is finished, and replaces an existing file.
    """

    _WRITE_DIR = tempfile.gettempdir()

    def process(
        self,
        element: tuple[str, Iterable[bytes]],
        path: str,
        write_dir: str = _WRITE_DIR,
        file_path_suffix: str = ".arrayrecord",
        overwrite_extension: bool = False,
    ) -> Iterator[str]:
        """Write the file and yield its path.

        Args:
            element: The name and the records.
            path: The folder to write to, in a bucket or on a disk.
            write_dir: The folder of the temporary file that is uploaded to a bucket.
            file_path_suffix: The suffix of the new name.
            overwrite_extension: Replace everything after the last dot, instead of appending.
        """
        filename, records = element
        name = PurePosixPath(filename).name
        if overwrite_extension:
            name = PurePosixPath(name).stem
        folder = absolute(path)
        if not FileSystems.get_scheme(folder) and not FileSystems.exists(folder):
            FileSystems.mkdirs(folder)
        final = FileSystems.join(folder, name + file_path_suffix)
        temporary = FileSystems.join(folder, f"beam-temp-{uuid4().hex}-{name}{file_path_suffix}")
        shard = Shard(temporary, ArrayRecordWriter, {}, write_dir)
        for record in records:
            shard.append(record)
        shard.close()
        FileSystems.rename([temporary], [final])
        yield final


class ConvertFile(beam.DoFn):
    """Writes the records of a TFRecord file, in order, to an ArrayRecord file in a folder."""

    def process(
        self,
        element: str,
        path: str,
        file_path_suffix: str = ".arrayrecord",
        overwrite_extension: bool = False,
    ) -> Iterator[str]:
        """Write the file and yield its path; see `ConvertToArrayRecordGCS`."""
        return ConvertToArrayRecordGCS().process(
            (element, read_tfrecord(element)),
            path,
            file_path_suffix=file_path_suffix,
            overwrite_extension=overwrite_extension,
        )
