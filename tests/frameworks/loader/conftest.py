"""The data sets of the loader's own tests."""

from tests.loader.conftest import cats, dogs, folder, logs, no_ranks  # noqa: F401
