"""Flush twice; the second sync fails. The error must stay, and the first flush must hold."""

import errno
import sys

import ingot

path = sys.argv[1]
writer = ingot.Writer(path)
writer.append(b"safe")
writer.flush()
writer.append(b"not safe")
messages = set()
for call, *arguments in [
    (writer.flush,),
    (writer.flush,),
    (writer.append, b"more"),
    (writer.close,),
    (writer.append, b"more"),
]:
    try:
        call(*arguments)
    except ingot.StorageError as error:
        messages.add(str(error))
        number, place = error.errno, (error.path, error.offset)
    else:
        sys.exit(f"{call.__name__} raised nothing")
assert number == errno.EIO
assert place[0] == path
assert place[1] > 0
assert len(messages) == 1
assert "sync failed" in messages.pop()
with ingot.open(path, partial=True) as reader:
    assert reader[0] == b"safe"
