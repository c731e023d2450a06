"""Hand a used reader, a view of it and a closed-over one to processes of every start method."""

import multiprocessing
import sys

import ingot


def work(reader, view, queue):
    queue.put((reader[7], reader[[1, 99]], list(view), sum(map(len, reader))))


def main(path):
    records = [b"%d." % k * k for k in range(100)]
    with ingot.Writer(path) as writer:
        writer.extend(records)
    reader = ingot.open(path)
    expected = (records[7], [records[1], records[99]], records[10:90:7], sum(map(len, records)))
    assert list(reader) == records
    for method in ["fork", "spawn", "forkserver"]:
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        workers = [
            context.Process(target=work, args=(reader, reader[10:90:7], queue), daemon=True)
            for _ in range(2)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            assert queue.get(timeout=200) == expected
            assert reader[[3, 4]] == records[3:5]
            worker.join(30)
        assert [worker.exitcode for worker in workers] == [0, 0]
        sys.stdout.write(f"{method} ")


if __name__ == "__main__":
    main(sys.argv[1])
