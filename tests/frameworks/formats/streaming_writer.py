"""A program that writes MDS with Streaming, which needs other versions than these tests have.

It takes pickled arguments of `MDSWriter` and lists of samples from its input, and answers each.
"""

import pickle
import sys

from streaming import MDSWriter


def write(options, samples):
    """Write the samples in the order given."""
    with MDSWriter(**options) as writer:
        for sample in samples:
            writer.write(sample)


def main():
    """Write what is asked for until the input ends; answer None or the error."""
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    while True:
        try:
            options, samples = pickle.load(sys.stdin.buffer)  # noqa: S301 -- the test asks
        except EOFError:
            return
        try:
            answer = write(options, samples)
        except Exception as error:  # noqa: BLE001 -- the test raises it
            answer = error
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
