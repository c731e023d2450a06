"""The writer that owns a path in this process."""

import os
from typing import TypeAlias
from weakref import WeakValueDictionary

from ingot.compat.granular.paths import AnyPath
from ingot.compat.granular.utils import Closing

_Key: TypeAlias = tuple[int, str]

_owners: WeakValueDictionary[_Key, Closing] = WeakValueDictionary()


def take(path: AnyPath, owner: Closing) -> None:
    """Give a path to a writer, before it opens its files.

    If another writer of this process has the path, it is closed, with everything appended to
    it: a notebook cell that runs again continues where its first run ended. Writers of other
    processes are not affected; their files are locked.
    """
    key = (os.getpid(), str(path))
    former = _owners.get(key)
    if former is not None:
        former.close()
    _owners[key] = owner
