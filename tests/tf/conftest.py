"""TensorFlow has an environment of its own, which `make tensorflow` sets up."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("tensorflow") else ["test_*.py"]
