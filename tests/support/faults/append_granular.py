"""Append numbered rows for ever, and tell how many there are after each."""

import os
import sys

from ingot.compat import granular

kinds = {"a": "utf8", "b": "int", "c": "utf8"}
writer = granular.DatasetWriter(sys.argv[1], kinds, granular.encoders)
while True:
    k = len(writer)
    writer.append({"a": f"a{k}", "b": k, "c": "c" * (k % 999)})
    os.write(1, b"%d\n" % (k + 1))
