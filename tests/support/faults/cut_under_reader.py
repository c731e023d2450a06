"""Cut a file short under a reader: reads of what is gone must raise, nothing else may happen."""

import faulthandler
import os
import sys
import threading

import ingot

path, how = sys.argv[1:]
ROWS, SIZE = 2000, 4096
records = [k.to_bytes(2, "big") * (SIZE // 2) for k in range(ROWS)]
with ingot.Writer(path, compression=None) as writer:
    writer.extend(records)
reader = ingot.open(path)
assert reader[list(range(0, ROWS, 3))] == records[::3]
faulthandler.enable()

KEPT = ROWS // 2
GONE = range(KEPT + 10, ROWS)
failures = []


def expect(read):
    """Call `read`, which must raise for a record that is gone."""
    try:
        read()
    except ingot.CorruptFileError as error:
        assert error.path == path  # noqa: PT017
        assert error.offset is not None  # noqa: PT017
    else:
        failures.append("no error")


def hammer():
    """Read all over the file, before, while and after it is cut."""
    for k in range(4000):
        row = k * 7919 % ROWS
        try:
            if reader[row] != records[row]:
                failures.append("wrong bytes")
            if reader[[row, KEPT // 2]] != [records[row], records[KEPT // 2]]:
                failures.append("wrong bytes")
        except ingot.CorruptFileError:
            if row < KEPT - 10:
                failures.append(f"record {row} was not cut")


threads = [threading.Thread(target=hammer) for _ in range(2)] if how == "threads" else []
for thread in threads:
    thread.start()
os.truncate(path, KEPT * SIZE + 100)
for thread in threads:
    thread.join()

if how == "one":
    for k in GONE[::50]:
        expect(lambda k=k: reader[k])
elif how == "batch":
    expect(lambda: reader[list(GONE)])
    expect(lambda: reader.read([0, 1, *GONE]))
elif how == "iterate":
    expect(lambda: list(reader))
    expect(lambda: list(reader.iter(GONE)))
elif how == "verify":
    found = reader.verify()
    bad = [range(one.record, one.record + one.records) for one in found.damaged if one.records]
    assert all(any(k in rows for rows in bad) for k in GONE)
assert reader[: KEPT - 10][-1] == records[KEPT - 11]
assert reader[list(range(0, KEPT - 10, 5))] == records[: KEPT - 10 : 5]
if failures:
    sys.exit("\n".join(failures[:10]))
sys.stdout.write("ok")
