"""Options of readers and writers, as in Bagz."""

import operator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias


class _Choice(Enum):
    def __repr__(self) -> str:
        return str(self)


class ShardingLayout(_Choice):
    """How the records of several files are numbered."""

    CONCATENATED = 0
    """File by file."""
    INTERLEAVED = 1
    """Interleaved: the first record of each file, then the second of each."""


class LimitsPlacement(_Choice):
    """Where the limits of a bag are."""

    TAIL = 0
    """At its end."""
    SEPARATE = 1
    """In a separate file, `limits.x.bag` beside `x.bag`."""


class LimitsStorage(_Choice):
    """Where limits are kept while a bag is read. Ingot keeps in memory those it has used."""

    ON_DISK = 0
    IN_MEMORY = 1


@dataclass(eq=False)
class CompressionAutoDetect:
    """Compression by suffix: records of a `.bagz` are compressed, others are not."""


@dataclass(eq=False)
class CompressionNone:
    """No compression, whatever the suffix."""


@dataclass(eq=False)
class CompressionZstd:
    """Each record is compressed on its own with zstd, whatever the suffix.

    Attributes:
        level: The level of zstd; 0 means the default level.
        dictionary: The dictionary; empty for none.
    """

    level: int = 0
    dictionary: str | bytes = ""

    def __post_init__(self) -> None:
        self.level = operator.index(self.level)
        if not isinstance(self.dictionary, str | bytes):
            message = f"dictionary is str or bytes, not {type(self.dictionary).__name__}"  # type: ignore[unreachable]
            raise TypeError(message)


Compression: TypeAlias = CompressionAutoDetect | CompressionNone | CompressionZstd


def _check_compression(compression: object) -> None:
    if not isinstance(compression, Compression):
        message = (
            "compression must be CompressionAutoDetect(), CompressionNone() or CompressionZstd(), "
            f"got {compression!r}"
        )
        raise TypeError(message)


@dataclass(eq=False)
class ReaderOptions:
    """`Reader.Options`.

    Attributes:
        sharding_layout: How the records of several files are numbered.
        limits_placement: Where the limits of the files are.
        compression: How the records are stored.
        limits_storage: Ignored: limits are loaded once, when they are needed.
        max_parallelism: Ignored: the threads of the engine read batches.
    """

    sharding_layout: ShardingLayout = ShardingLayout.CONCATENATED
    limits_placement: LimitsPlacement = LimitsPlacement.TAIL
    compression: Compression = field(default_factory=CompressionAutoDetect)
    limits_storage: LimitsStorage = LimitsStorage.ON_DISK
    max_parallelism: int = 100

    def __post_init__(self) -> None:
        self.sharding_layout = ShardingLayout(self.sharding_layout)
        self.limits_placement = LimitsPlacement(self.limits_placement)
        self.limits_storage = LimitsStorage(self.limits_storage)
        _check_compression(self.compression)


@dataclass(eq=False)
class WriterOptions:
    """`Writer.Options`.

    Attributes:
        limits_placement: Where the limits go.
        compression: How records are stored.
    """

    limits_placement: LimitsPlacement = LimitsPlacement.TAIL
    compression: Compression = field(default_factory=CompressionAutoDetect)

    def __post_init__(self) -> None:
        self.limits_placement = LimitsPlacement(self.limits_placement)
        _check_compression(self.compression)
