"""Answers what Granular 0.21 does: a pickled question on standard input, a pickled answer."""

import inspect
import pickle
import sys

import granular
import plans


def signatures():
    """Return the parameters of every public class and function."""
    found = {}
    for module in (granular, granular.bag, granular.dataset, granular.sharded, granular.sources):
        for name, item in vars(module).items():
            if inspect.isclass(item) and item.__module__.startswith("granular"):
                found[name] = {
                    method: list(inspect.signature(function).parameters)
                    for method, function in vars(item).items()
                    if inspect.isfunction(function) and (method == "__init__" or method[0] != "_")
                }
    return found


def write(folder, spec, rows, shardlen=None):
    """Write a data set."""
    if shardlen is None:
        writer = granular.DatasetWriter(folder, spec, granular.encoders)
    else:
        writer = granular.ShardedDatasetWriter(folder, spec, granular.encoders, shardlen)
    with writer:
        for row in rows:
            writer.append(row)
        return len(writer), writer.size


def read(folder, sharded=False):  # noqa: FBT002
    """Read a data set whole, once row by row and once by what is available."""
    kind = granular.ShardedDatasetReader if sharded else granular.DatasetReader
    with kind(folder, granular.decoders) as reader:
        rows = [reader[index] for index in range(len(reader))]
        available = [reader.available(index) for index in range(len(reader))]
        again = [reader[index, mask] for index, mask in enumerate(available)]
        return reader.spec, reader.size, rows, available, again


def write_bag(path, records, version):
    """Write a bag."""
    with granular.BagWriter(path, version) as writer:
        for record in records:
            writer.append(record, flush=False)


def read_bag(path):
    """Read a bag."""
    with granular.BagReader(path) as reader:
        return [reader[index] for index in range(len(reader))], reader.size


def load(plan, folder, start, count, options):
    """Return batches of a loader, and its state after them."""
    source = plans.made(granular, plan, folder)
    return plans.theirs(granular, source, start, count, options)


def main():
    """Answer until there are no more questions."""
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            name, arguments = pickle.load(source)  # noqa: S301 -- the tests ask
        except EOFError:
            return
        try:
            answer = globals()[name](*arguments)
        except Exception as error:  # noqa: BLE001 -- it is the answer
            answer = error
        pickle.dump(answer, target)
        target.flush()


if __name__ == "__main__":
    main()
