"""The guide to TensorFlow, and the reference."""

import ingot.tf
from tests.package.test_signatures import check_signatures
from tests.support.pages import TENSORFLOW, names_in_reference, run_examples


def test_the_examples_of_the_guide_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples(TENSORFLOW)


def test_the_reference_has_every_public_name():
    assert {f"ingot.tf.{name}" for name in ingot.tf.__all__} <= names_in_reference()


def test_public_callables_have_real_signatures():
    check_signatures("ingot.tf")
