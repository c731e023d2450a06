"""Fork many times while threads read a file of HDF5, and read in parent and child at once."""

import os
import signal
import sys
import threading

import h5py
import numpy as np

import ingot

path, compression, cycles = sys.argv[1:]
ROWS = 2000
IMAGES = np.arange(ROWS * 10).reshape(ROWS, 10)
TEXTS = [f"row {k}" for k in range(ROWS)]
with h5py.File(path, "w") as file:
    options = {"chunks": (10, 10), "compression": None if compression == "none" else compression}
    file.create_dataset("image", data=IMAGES, **options)
    file["text"] = TEXTS
ds = ingot.open(path)


def read(rng):
    order = rng.integers(0, ROWS, 50)
    batch = ds[order]
    assert (batch["image"] == IMAGES[order]).all()
    assert batch["text"] == [TEXTS[k] for k in order]
    row = ds.select("text")[int(order[0])]
    assert row == {"text": TEXTS[order[0]]}


def keep_reading(seed):
    rng = np.random.default_rng(seed)
    try:
        while not done.is_set():
            read(rng)
    except BaseException as error:  # noqa: BLE001
        failures.append(repr(error))


def run_child(rng):
    signal.alarm(30)
    try:
        read(rng)
    except BaseException as error:  # noqa: BLE001
        os.write(2, repr(error).encode())
        os._exit(1)
    os._exit(0)


read(np.random.default_rng(0))
done, failures = threading.Event(), []
threads = [threading.Thread(target=keep_reading, args=(seed,)) for seed in (1, 2)]
for thread in threads:
    thread.start()
for cycle in range(int(cycles)):
    rng = np.random.default_rng(cycle)
    child = os.fork()
    if child == 0:
        run_child(rng)
    read(rng)
    if status := os.waitpid(child, 0)[1]:
        failures.append(f"child {cycle}: {status}")
done.set()
for thread in threads:
    thread.join()
sys.stdout.write(f"{failures}")
