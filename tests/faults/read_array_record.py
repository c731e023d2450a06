"""Read an ArrayRecord file in every way with little memory to spare; print what comes of it.

Reading a file that lies must be a MemoryError or a CorruptFileError.
"""

import resource
import sys

import ingot
from ingot.compat.array_record.array_record_data_source import ArrayRecordDataSource
from ingot.compat.array_record.array_record_module import ArrayRecordReader

path = sys.argv[1]
with open("/proc/self/statm") as statm:  # noqa: PTH123
    in_use = int(statm.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (in_use + (512 << 20),) * 2)
calls = {
    "one": lambda: ingot.open(path)[0],
    "batch": lambda: ingot.open(path)[[0, 0, 0]],
    "read": lambda: ingot.open(path).read([0]),
    "iterate": lambda: list(ingot.open(path)),
    "next": lambda: ArrayRecordReader(path).read(),
    "source": lambda: ArrayRecordDataSource(path)[[0]],
    "verify": lambda: ingot.open(path).verify(),
}
for name, call in calls.items():
    try:
        found = call()
    except (MemoryError, ingot.CorruptFileError):
        sys.stdout.write(f"{name}: refused\n")
    else:
        is_damaged = isinstance(found, ingot.Verification) and not found.ok
        sys.stdout.write(f"{name}: {'refused' if is_damaged else 'read'}\n")
