"""Write an ArrayRecord file larger than the system allows; print what each call raises."""

import random
import resource
import sys

from ingot.compat.array_record.array_record_module import ArrayRecordWriter

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
writer = ArrayRecordWriter(sys.argv[1])


def write_much() -> None:
    for _ in range(1000):
        writer.write(random.randbytes(100_000))


for call in (write_much, write_much, writer.close, writer.close):
    try:
        call()
    except RuntimeError as error:
        sys.stdout.write(f"{writer.ok()} {writer.is_open()} {error}\n")
