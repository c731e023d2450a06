"""Making the shards of a chunk of inputs."""

from collections.abc import Callable, Iterable, Mapping, MutableSequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ingot.dataset.manifest import Shard
from ingot.dataset.spec import Spec
from ingot.dataset.write.columns import pieces
from ingot.dataset.write.encoder import Encoder
from ingot.dataset.write.packed import PackedRows
from ingot.dataset.write.shards import Encodings, Options, ShardWriter, names_of


class Task(NamedTuple):
    """A chunk of inputs.

    Attributes:
        number: The number of the chunk.
        first: The number of the first input.
        inputs: The inputs.
        digest: A digest that identifies them.
    """

    number: int
    first: int
    inputs: list[Any]
    digest: str


@dataclass(frozen=True, slots=True)
class Maker:
    """Everything needed to make rows from inputs, in this process or in another.

    Attributes:
        fn: Returns a row, None, or any number of rows for an input.
        folder: The directory of the shards.
        token: The end of their names.
        spec: The fields.
        metadata: The metadata from the user, as JSON.
        options: The options of the shards.
        encodings: What the first shard in this process decided.
    """

    fn: Callable[[Any], Any]
    folder: Path
    token: str
    spec: Spec
    metadata: str
    options: Options
    encodings: Encodings = field(default_factory=Encodings)

    def make(
        self, task: Task, state: MutableSequence[int], tell: Callable[[], object]
    ) -> tuple[Shard, ...]:
        """Write the rows of a chunk; return its shards.

        Args:
            task: The inputs.
            state: Updated with the number of the input, the rows and the bytes so far.
            tell: Called after each row, or after many rows of a list.
        """
        shards, encoder = self.writer(task.number), Encoder(self.spec)
        state[:] = [task.first, 0, 0]
        try:
            for number, one in enumerate(task.inputs, task.first):
                state[0] = number
                first = shards.num_rows
                for some in self._pieces(self.fn(one)):
                    if isinstance(some, PackedRows):
                        shards.extend(some)
                    else:
                        shards.append(encoder.encode(shards.num_rows - first, some))
                    state[1:] = [shards.num_rows, shards.nbytes]
                    tell()
            shards.finish()
        except BaseException as error:
            for name in shards.abandon():
                (self.folder / name).unlink(missing_ok=True)
            error.add_note(place_of(task, state[0]))
            raise
        return tuple(shards.finished)

    def _pieces(self, found: Any) -> Iterable[Any]:
        rows = _rows(found)
        return pieces(self.spec, rows) if isinstance(rows, list | tuple) else rows

    def writer(self, number: int) -> ShardWriter:
        """Return a writer for the shards of a chunk."""
        names = names_of(self.token, number, 0)
        what = (self.spec, self.metadata, self.options)
        return ShardWriter(self.folder, names, *what, encodings=self.encodings)


def place_of(task: Task, number: int) -> str:
    """Return a description of an input."""
    return f"at input {number}: {task.inputs[number - task.first]!r:.200}"


def _rows(found: Any) -> Iterable[Any]:
    if found is None:
        return ()
    if isinstance(found, Mapping):
        return (found,)
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        message = f"fn must return a row, None, or a list of rows, got {type(found).__name__}"
        raise TypeError(message)
    return found
