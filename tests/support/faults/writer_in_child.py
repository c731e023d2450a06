"""Use a writer in a forked child, where every call must be refused, then go on in the parent."""

import os
import signal
import sys

import ingot


def child(writer):
    signal.alarm(20)
    for call, *arguments in [(writer.append, b"child"), (writer.flush,), (writer.close,)]:
        try:
            call(*arguments)
        except ValueError as error:
            assert "belongs to the parent process" in str(error)  # noqa: PT017
        else:
            os._exit(1)
    writer.abandon()
    os._exit(0)


writer = ingot.Writer(sys.argv[1])
writer.append(b"parent")
writer.flush()
pid = os.fork()
if pid == 0:
    child(writer)
if os.waitpid(pid, 0)[1] != 0:
    sys.exit("the child could use the writer")
writer.append(b"parent again")
writer.close()
