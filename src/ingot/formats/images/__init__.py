"""A directory of images, with classes from directories or a file of metadata."""

from ingot.formats.images.opening import open_directory

__all__ = ["open_directory"]
