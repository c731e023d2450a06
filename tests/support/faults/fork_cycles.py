"""Fork many times with a reader in use, and read in parent and child at once."""

import os
import random
import signal
import sys
import threading

import ingot

path, cycles = sys.argv[1:]
records = [b"%d." % k * (k % 900) for k in range(5_000)]
with ingot.Writer(path) as writer:
    writer.extend(records)
reader = ingot.open(path)


def read(seed):
    rng = random.Random(seed)
    indices = rng.choices(range(5_000), k=60)
    expected = [records[k] for k in indices]
    assert reader[indices] == expected
    assert list(reader.iter(indices)) == expected
    assert [bytes(one) for one in reader.read(indices)] == expected
    assert reader[indices[0]] == expected[0]


def keep_reading(done):
    seed = 0
    while not done.is_set():
        seed += 1
        read(seed)


def run_child(stream, seed):
    signal.alarm(30)
    try:
        read(seed)
        assert next(stream) == records[3]
        assert sum(1 for _ in stream) == 1996
        if seed % 10 == 0 and (inner := os.fork()) == 0:
            signal.alarm(30)
            read(seed + 1)
            os._exit(0)
        elif seed % 10 == 0:
            assert os.waitpid(inner, 0)[1] == 0
    except BaseException as error:  # noqa: BLE001
        os.write(2, repr(error).encode())
        os._exit(1)
    os._exit(0)


read(0)
done = threading.Event()
background = threading.Thread(target=keep_reading, args=(done,))
background.start()
failed = 0
for cycle in range(int(cycles)):
    stream = reader.iter(range(2_000))
    assert [next(stream) for _ in range(3)] == records[:3]
    child = os.fork()
    if child == 0:
        run_child(stream, cycle)
    read(cycle)
    assert next(stream) == records[3]
    failed += os.waitpid(child, 0)[1] != 0
done.set()
background.join()
sys.stdout.write(f"{failed} failed")
