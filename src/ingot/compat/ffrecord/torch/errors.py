"""The exception of FFRecord's PyTorch classes where FFRecord uses an assertion."""


class MisuseError(AssertionError, ValueError):
    """An invalid argument, or a call that this object does not support."""
