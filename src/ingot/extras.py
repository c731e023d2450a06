"""Packages that only parts of Ingot require, and how to install them."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

_EXTRAS = {
    "PIL": ("Pillow", "image"),
    "apache_beam": ("Apache Beam", "beam"),
    "av": ("PyAV", "video"),
    "datasets": ("Hugging Face's datasets", "hf"),
    "fsspec": ("fsspec", "fsspec"),
    "grain": ("Grain", "grain"),
    "h5py": ("h5py", "hdf5"),
    "jax": ("JAX", "jax"),
    "msgpack": ("msgpack", "msgpack"),
    "pandas": ("pandas", "pandas"),
    "pyarrow": ("pyarrow", "arrow"),
    "rich": ("rich", "cli"),
    "soundfile": ("soundfile", "audio"),
    "tensorflow": ("TensorFlow", "tf"),
    "torch": ("PyTorch", "torch"),
    "typer": ("typer", "cli"),
}
"""Packages by the name they are imported by: what they are called, and the extra they are in."""


def is_installed(extra: str) -> bool:
    """Return whether all packages of an extra are there; true for what is not an extra."""
    return all(find_spec(name) for name, (_, one) in _EXTRAS.items() if one == extra)


@contextmanager
def requirement(package: str, user: str) -> Iterator[None]:
    """Have an import that fails for want of a package say how to install it.

    Args:
        package: The package that is imported inside.
        user: What requires it, as the message names it.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        called, extra = _EXTRAS[package]
        message = (
            f"{user} requires {called}: "
            f"pip install 'ingot-data[{extra}]' (in a checkout: pip install '.[{extra}]')"
        )
        raise ModuleNotFoundError(message, name=missing) from error


def require(module: str, user: str) -> ModuleType:
    """Return a module of a package that need not be installed.

    Args:
        module: The package, or a module in it.
        user: What requires it, as the message names it.

    Raises:
        ModuleNotFoundError: The package is not installed; the message says how to install it.
    """
    with requirement(module.partition(".")[0], user):
        return import_module(module)
