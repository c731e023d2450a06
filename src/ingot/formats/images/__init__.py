"""A directory of images, with classes from directories or a table of metadata."""
