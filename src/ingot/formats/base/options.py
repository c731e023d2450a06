"""How a data set is opened: the options of `ingot.open`."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingot.dataset.spec import SpecLike

_SHOWN = 8
_CHOICES = ("auto", "folder", "parent", "path", "none")


@dataclass(frozen=True, slots=True)
class Labels:
    """How images get their classes.

    Attributes:
        by: "auto", or what names the class of an image: "folder", the first directory below the
            root; "parent", the directory that the image is in; "path", all directories. "none"
            for no classes.
        classes: The names of the classes, in the order of their numbers; None for those there
            are, sorted.

    Raises:
        TypeError: A class is not a name.
        ValueError: There is no such choice, or the classes are not distinct.
    """

    by: str = "auto"
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.by not in _CHOICES:
            known = ", ".join(repr(one) for one in _CHOICES if one != "none")
            message = f"labels={self.by!r}: expected one of {known}, or None for no classes"
            raise ValueError(message)
        if self.classes is None:
            return
        if not all(isinstance(name, str) for name in self.classes):
            message = f"classes={list(self.classes)!r}: expected names of directories"
            raise TypeError(message)
        if self.by == "none" or not self.classes or len(set(self.classes)) < len(self.classes):
            problem = "expected distinct names of classes" if self.by != "none" else "no labels"
            message = f"classes={listed(self.classes)}, labels={self.by!r}: {problem}"
            raise ValueError(message)

    @classmethod
    def of(cls, by: str | None, classes: Sequence[str] | None) -> "Labels":
        """Return the choice that a user has made."""
        if isinstance(classes, str):
            message = f"classes={classes!r}: expected a list of names"
            raise TypeError(message)
        return cls("none" if by is None else by, None if classes is None else tuple(classes))

    @property
    def is_given(self) -> bool:
        """Whether a user has made a choice."""
        return self != AUTO


AUTO = Labels()
"""What holds if a user has made no choice."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to open a data set, as for `ingot.open`."""

    partial: bool = False
    allow_pickle: bool = False
    skip_damaged: bool = False
    spec: SpecLike | None = None
    index_dir: str | None = None
    labels: Labels = AUTO
    separator: str | None = None
    allow_external: bool = False


def listed(names: Sequence[str]) -> str:
    """Return names for an error message, of many only the first."""
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return f"[{shown}]" if len(names) <= _SHOWN else f"[{shown}, ... {len(names)} in all]"
