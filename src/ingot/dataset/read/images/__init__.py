"""A directory of images, with classes from directories or a file of metadata."""

from ingot.dataset.read.images.classes import AUTO, Labels
from ingot.dataset.read.images.listing import is_images
from ingot.dataset.read.images.opening import open_images
from ingot.dataset.read.images.source import ImageRows

__all__ = ["AUTO", "ImageRows", "Labels", "is_images", "open_images"]
