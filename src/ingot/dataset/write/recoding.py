"""Values of sources that store them in another way than Ingot does, encoded again."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingot.codecs.signature import is_file_type
from ingot.dataset.read.plan import read
from ingot.dataset.read.selection import Selection
from ingot.dataset.read.source import Numbers, Source, Stored
from ingot.dataset.spec import Spec
from ingot.dataset.write import columnar
from ingot.dataset.write.copying import PackedRows, stored


def own_fields(spec: Spec) -> Spec:
    """Return fields with the codecs of Ingot."""
    fields = spec.fields.items()
    return Spec({name: replace(one, codec=one.codec.own) for name, one in fields})


def recoded(selection: Selection, spec: Spec) -> Iterator[PackedRows]:
    """Yield the rows of a selection, some at a time; images, audio and video stay as they are.

    Args:
        selection: The rows.
        spec: Its fields, with the codecs of Ingot.
    """
    return stored(selection, spec)


def encoded(
    source: Source, names: Sequence[str], numbers: Numbers, files: Source | None = None
) -> Sequence[Stored]:
    """Return values as an Ingot file stores them, as `Source.packed` does.

    Args:
        source: The rows.
        names: The fields.
        numbers: The row numbers.
        files: The same rows with values as bytes, if images, audio and video are stored so.
    """
    wanted = dict.fromkeys(name.removesuffix("?") for name in names)
    spec = own_fields(Spec({name: source.spec.fields[name] for name in wanted}))
    batch = {}
    if files is not None:
        kinds = {name: one.codec.name for name, one in spec.fields.items()}
        media = [name for name, kind in kinds.items() if is_file_type(kind) or kind == "bytes"]
        batch = read(files.plan(numbers, {name: wanted.pop(name) for name in media}))
    batch |= read(source.plan(numbers, wanted))
    rows = columnar.encode(spec, int(numbers[0]) if len(numbers) else 0, batch, check=False)
    found = dict(zip((name for name, *_ in spec.stored()), rows.fields, strict=True))
    return [found[name] for name in names]
