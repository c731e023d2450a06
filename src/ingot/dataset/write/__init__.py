"""Writing data sets, and changing what is in a directory."""
