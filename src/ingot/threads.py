"""How many threads work on one batch."""

from ingot._core import set_threads as _set


def set_threads(n: int) -> None:
    """Set how many threads work on one batch, the calling thread included.

    With 1, the calling thread works alone, and Ingot starts no thread that computes. Threads
    that wait for a device, read ahead or write are not counted. The setting takes effect from
    the next batch on, and processes that are forked later inherit it. The default is the value
    of the environment variable INGOT_THREADS. Without the variable it is the number of cores that
    this process may use, and 1 in the workers of PyTorch's data loader.

    Args:
        n: The number of threads.

    Raises:
        ValueError: It is not positive.

    Example:
        >>> ingot.set_threads(4)  # doctest: +SKIP
    """
    if not isinstance(n, int) or isinstance(n, bool):
        message = f"expected a number of threads, got {n!r:.50}"
        raise TypeError(message)
    if not 1 <= n < 1 << 63:
        message = f"expected a positive number of threads, got {n!r:.50}"
        raise ValueError(message)
    _set(n)
