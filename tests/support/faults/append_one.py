"""Append one record to the file that is named."""

import sys

import ingot

with ingot.Writer(sys.argv[1], append=True) as writer:
    writer.append(b"other")
