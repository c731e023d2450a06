"""Read each record alone, then all at once, and print what went wrong with which."""

import json
import sys

import ingot

reader = ingot.open(sys.argv[1])
troubles = []
for k in range(len(reader)):
    try:
        assert reader[k] == b"%d." % k * 500
    except (ingot.StorageError, ingot.CorruptFileError) as error:
        kind = type(error).__name__
        number = getattr(error, "errno", None)
        troubles.append([k, kind, error.record, error.offset, number, error.path, str(error)])
good = list(reader) == [b"%d." % k * 500 for k in range(len(reader))]
sys.stdout.write(json.dumps({"rows": len(reader), "good": good, "troubles": troubles}))
