"""The guide to TensorFlow, and the reference."""

import pytest

import ingot.tf
from pages import TENSORFLOW, names_in_reference, script_of

pytestmark = pytest.mark.tensorflow


def test_the_examples_of_the_guide_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(script_of(TENSORFLOW), str(TENSORFLOW), "exec"), {"__name__": "__main__"})  # noqa: S102


def test_the_reference_has_every_public_name():
    assert {f"ingot.tf.{name}" for name in ingot.tf.__all__} <= names_in_reference()
