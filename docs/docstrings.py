# ruff: noqa: INP001
"""An extension of Griffe: what it cannot see in the Python sources, or takes for something else."""

import re
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Any

import griffe

BINDING = Path(__file__).parent.parent / "crates" / "ingot-python" / "src"
CLASS = re.compile(r'#\[pyclass\(.*?name = "(\w+)".*?\)\]\s+pub struct (\w+)', re.DOTALL)
METHOD = re.compile(r"((?:^ +///.*\n)+)(?:^ +#\[.*\]\n)*^ +fn (\w+)", re.MULTILINE)


@cache
def native_docstrings() -> dict[str, str]:
    """Return the doc comments of the binding's methods by class and name: `Writer.append`."""
    found = {}
    for path in BINDING.glob("*.rs"):
        text = path.read_text(encoding="utf-8")
        for name, struct in CLASS.findall(text):
            start = text.find(f"#[pymethods]\nimpl {struct} ")
            end = text.find("\n}\n", start)
            for comment, method in METHOD.findall(text[start:end]):
                lines = [line.strip().removeprefix("///") for line in comment.splitlines()]
                found[f"{name}.{method}"] = cleandoc("\n".join(lines))
    return found


class Docstrings(griffe.Extension):
    """Give native methods their docstrings, and classes the parameters of their `__new__`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: ANN401
        """Name the section of examples as Griffe expects it."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE
            )

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:  # noqa: ANN401
        """Complete the members of `cls`."""
        if cls.parent.path == "ingot._core":
            for name, member in cls.members.items():
                text = native_docstrings().get(f"{cls.name}.{name}")
                if text is not None:
                    member.docstring = griffe.Docstring(text, parent=member)
        made = cls.members.get("__new__")
        if isinstance(made, griffe.Function) and "__init__" not in cls.members:
            cls["__init__"] = griffe.Function("__init__", parameters=made.parameters)
