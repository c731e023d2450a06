"""Rows of sources that store values in another way than Ingot does, encoded again."""

from collections.abc import Iterator
from dataclasses import replace

from ingot.codecs.granular import own_codec
from ingot.codecs.signature import is_file_type
from ingot.dataset.read.chain import Chain
from ingot.dataset.read.dataset import raw
from ingot.dataset.read.iteration import blocks
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Source, Storing
from ingot.dataset.read.zipped import Zipped
from ingot.dataset.spec import Spec
from ingot.dataset.write import columnar
from ingot.dataset.write.copying import PackedRows


def own_fields(spec: Spec) -> Spec:
    """Return fields with the codecs of Ingot."""
    fields = spec.fields.items()
    return Spec({name: replace(one, codec=own_codec(one.codec)) for name, one in fields})


def recoded(selection: Selection, spec: Spec) -> Iterator[PackedRows]:
    """Yield the rows of a selection, some at a time; images, audio and video stay as they are.

    Args:
        selection: The rows.
        spec: Its fields, with the codecs of Ingot.
    """
    files: tuple[str, ...] = ()
    if _is_storing(selection.source):
        kinds = {name: one.codec.name for name, one in spec.fields.items()}
        files = tuple(name for name, kind in kinds.items() if is_file_type(kind) or kind == "bytes")
    values = tuple(name for name in selection.names if name not in files)
    stored = Selection(raw(selection.source), files, selection.rows) if files else selection
    leading = selection if values else stored
    first = 0
    for numbers, found in blocks(leading, values or files):
        batch = found
        if batch is None:  # Reading the first damaged row again raises its error.
            batch = leading.read(numbers, dict.fromkeys(values or files))
        if values and files:
            batch = {**batch, **stored.read(numbers, dict.fromkeys(files))}
        yield columnar.encode(spec, first, batch, check=False)
        first += len(numbers)


def _is_storing(source: Source) -> bool:
    if isinstance(source, Chain | Zipped):
        return all(_is_storing(one.source) for one in source.parts)
    return isinstance(source, Storing)
