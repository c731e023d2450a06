"""The readers that an object holds."""

from ingot.compat.ffrecord.reader import FileReader


class ReaderRegistry:
    """An object that finds the readers among its attributes.

    It needs no constructor: `ffreaders` looks at the attributes when it is called.
    """

    __module__ = "ingot.compat.ffrecord.torch"

    def ffreaders(self) -> list[FileReader]:
        """Return the readers among its attributes, then those of the registries among them.

        Readers inside lists and dicts are not found.
        """
        attributes = vars(self).values()
        own = [one for one in attributes if isinstance(one, FileReader)]
        nested = [one for one in attributes if isinstance(one, ReaderRegistry)]
        return own + [reader for one in nested for reader in one.ffreaders()]
