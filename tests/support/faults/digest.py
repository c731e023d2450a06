"""Read a file in every way the API has and print a digest that they agree on."""

import hashlib
import random
import sys

import ingot

reader = ingot.open(sys.argv[1])
records = list(reader)
indices = random.Random(0).choices(range(len(reader)), k=1000)
expected = [records[k] for k in indices]
assert reader[indices] == expected
assert list(reader.iter(indices)) == expected
assert [bytes(one) for one in reader.read(indices)] == expected
assert [reader[k] for k in indices] == expected
assert reader.verify().ok
digest = hashlib.sha256()
for record in records:
    digest.update(len(record).to_bytes(8, "little"))
    digest.update(record)
sys.stdout.write(digest.hexdigest())
