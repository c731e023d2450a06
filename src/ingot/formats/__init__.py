"""Formats: a module or package for each.

`lines` has JSON lines and CSV, `npy` also `.npz`, `arrow` also Parquet, and `tar` is WebDataset's.
`table` lists all formats, `discovery` finds out which one is at a path, and `base` is what the
formats are built on.
"""
