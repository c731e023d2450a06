"""Opening and reading data sets."""
