"""Read ArrayRecord files in every way with little memory to spare; print what is not refused.

Reading a file that lies must be a MemoryError or a CorruptFileError.
"""

import resource
import sys

import ingot
from ingot.compat.array_record.array_record_data_source import ArrayRecordDataSource
from ingot.compat.array_record.array_record_module import ArrayRecordReader

with open("/proc/self/statm") as statm:  # noqa: PTH123
    in_use = int(statm.read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (in_use + (512 << 20),) * 2)
calls = {
    "one": lambda path: ingot.open(path)[0],
    "batch": lambda path: ingot.open(path)[[0, 0, 0]],
    "read": lambda path: ingot.open(path).read([0]),
    "iterate": lambda path: list(ingot.open(path)),
    "next": lambda path: ArrayRecordReader(path).read(),
    "source": lambda path: ArrayRecordDataSource(path)[[0]],
    "verify": lambda path: ingot.open(path).verify(),
}
for path in sys.argv[1:]:
    for name, call in calls.items():
        try:
            found = call(path)
        except (MemoryError, ingot.FormatError):
            continue
        if not isinstance(found, ingot.Verification) or found.ok:
            sys.stdout.write(f"{path}: {name}\n")
sys.stdout.write("done\n")
