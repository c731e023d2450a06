"""Object stores on this machine, and files to convert."""

import logging
import tempfile

import boto3
import pytest
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from gcp_storage_emulator.server import create_server
from moto.server import ThreadedMotoServer

from tests.frameworks.beam.pipelines import RECORDS, write_tfrecords

PLAIN = {"compression_type": CompressionTypes.UNCOMPRESSED}


class Store:
    """A bucket of an object store on this machine."""

    def __init__(self, url, options=()):
        self.url = url
        self.options = PipelineOptions(list(options))

    def names(self):
        FileSystems.set_options(self.options)
        (match,) = FileSystems.match([f"{self.url}/**"])
        return sorted(file.path.removeprefix(f"{self.url}/") for file in match.metadata_list)

    def put(self, name, content):
        FileSystems.set_options(self.options)
        with FileSystems.create(f"{self.url}/{name}", **PLAIN) as file:
            file.write(content)

    def get(self, name):
        FileSystems.set_options(self.options)
        with FileSystems.open(f"{self.url}/{name}", **PLAIN) as file:
            return file.read()


@pytest.fixture
def no_log():
    """Keep pytest from holding the frames of a failed bundle, with what it has open."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def s3():
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    account = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    session = boto3.session.Session(**account)
    session.client("s3", endpoint_url=endpoint).create_bucket(Bucket="bucket")
    with pytest.MonkeyPatch.context() as patch:
        # Beam makes a session for each call, which takes longer than the call.
        patch.setattr(boto3.session, "Session", lambda: session)
        yield Store("s3://bucket", [f"--s3_endpoint_url={endpoint}"])
    server.stop()


@pytest.fixture(scope="module")
def gcs():
    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
    server.start()
    with pytest.MonkeyPatch.context() as patch:
        port = server._api._httpd.server_port
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        yield Store("gs://bucket")
    server.stop()


@pytest.fixture(params=["s3", "gcs"])
def store(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def staging(tmp_path, monkeypatch):
    """Return the folder in which temporary files are made."""
    folder = tmp_path / "staging"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def tfrecords(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    write_tfrecords(folder / "a.tfrecord", RECORDS[:60])
    write_tfrecords(folder / "b.tfrecord", [])
    write_tfrecords(folder / "c.tfrecord.gz", RECORDS[60:])
    return folder
