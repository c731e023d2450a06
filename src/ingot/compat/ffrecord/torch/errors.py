"""What FFRecord's PyTorch classes raise where FFRecord asserts."""


class MisuseError(AssertionError, ValueError):
    """An argument that makes no sense, or a call that this object cannot answer."""
