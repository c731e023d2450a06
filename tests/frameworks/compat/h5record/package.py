"""The real package as a writer."""

import warnings

import h5record as real


def write_real(columns, path, data, **options):
    """Have the real package write, which warns of an option that it passes itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "swmr=True only affects read", UserWarning)
        return real.H5Dataset(columns, path, data, **options)
