"""Formats: a module or package for each, and the table of all of them."""
