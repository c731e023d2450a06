"""What `help()` and editors are told about public functions, classes and methods."""

import inspect
from importlib import import_module

import pytest

import ingot

MODULES = [
    "ingot",
    "ingot.codecs",
    "ingot.compat.bagz",
    "ingot.compat.h5record",
    "ingot.fsspec",
    "ingot.loader",
    "ingot.order",
]


def public_callables(module):
    """Yield the functions and classes of a module, and the methods that Ingot gives the classes."""
    for name in module.__all__:
        one = getattr(module, name)
        yield f"{module.__name__}.{name}", one
        if inspect.isclass(one):
            for owner in one.__mro__:
                if owner.__module__.startswith("ingot"):
                    for key in vars(owner):
                        member = getattr(one, key)
                        if key[0] != "_" and inspect.isroutine(member):
                            yield f"{module.__name__}.{name}.{key}", member


def check_signatures(name):
    """Check that nothing public takes just any arguments, as far as `inspect` knows."""
    found = 0
    for called, one in public_callables(import_module(name)):
        kinds = [parameter.kind for parameter in inspect.signature(one).parameters.values()]
        anything = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
        assert set(kinds) != anything, called
        found += 1
    assert found


@pytest.mark.parametrize("module", MODULES)
def test_public_callables_have_real_signatures(module):
    check_signatures(module)


def test_help_shows_the_options_of_a_writer():
    signature = str(inspect.signature(ingot.Writer))
    assert signature.startswith("(path:")
    assert "compression:" in signature
    assert "sync: bool = True" in signature
