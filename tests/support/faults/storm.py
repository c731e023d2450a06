"""Write and read under a thousand signals a second."""

import random
import signal
import sys

import ingot

caught = 0


def count(*_):
    global caught  # noqa: PLW0603
    caught += 1


path = sys.argv[1]
rng = random.Random(0)
records = [rng.randbytes(rng.randrange(20_000)) for _ in range(3000)]
signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
with ingot.Writer(path) as writer:
    for k, record in enumerate(records):
        writer.append(record)
        if k % 300 == 0:
            writer.flush()
reader = ingot.open(path)
indices = rng.choices(range(3000), k=500)
while caught < 500:
    assert reader[indices] == [records[k] for k in indices]
    assert list(reader) == records
    assert [reader[k] for k in indices] == [records[k] for k in indices]
    assert reader.verify().ok
signal.setitimer(signal.ITIMER_REAL, 0)
sys.stdout.write("ok")
