"""Checks that the engine's modules use only those below them, and that it knows no Python.

It also checks that `ingot.compat` uses the public API of Ingot alone, as packages of others do.

Run as `check_layers.py [ROOT]`; prints each violation and fails if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ALLOWED = {
    "error": set(),
    "crc": set(),
    "hash": set(),
    "limit": set(),
    "reserve": set(),
    "process": set(),
    "pool": {"error", "limit", "process"},
    "background": {"limit", "process"},
    "picture": {"hash", "limit", "pool"},
    "order": {"error", "hash"},
    "storage": {"error", "process", "crc", "limit", "pool", "background"},
    "compression": {"error", "limit"},
    "format": {"error", "crc", "compression"},
    "arrow": {"format"},
    "records": {
        "error",
        "process",
        "crc",
        "pool",
        "background",
        "limit",
        "storage",
        "format",
        "compression",
    },
}
"""What each module of the engine may use besides itself."""

PUBLIC = {
    "ingot",
    "ingot.beam",
    "ingot.codecs",
    "ingot.dataset",
    "ingot.errors",
    "ingot.formats.arrayrecord",
    "ingot.formats.bag",
    "ingot.formats.ffrecord",
    "ingot.formats.granular",
    "ingot.formats.granular.codecs",
    "ingot.formats.hdf5",
    "ingot.loader",
    "ingot.locks",
    "ingot.order",
    "ingot.torch",
}
"""The modules whose `__all__` is public; docs/reference lists what is in them."""

NO_FILES = {"arrow", "format", "compression", "order"}
NO_STREAMS = {"arrow", "format", "order"}

_NOISE = re.compile(
    r"""
    //[^\n]*                              # line comment
    | /\*.*?\*/                           # block comment
    | \bb?r(?P<hashes>\#*)".*?"(?P=hashes)  # raw string
    | b?"(?:\\.|[^"\\])*"                 # string
    | b?'(?:\\[^\n]{1,10}?|[^'\\\n])'     # character, but not a lifetime
    """,
    re.DOTALL | re.VERBOSE,
)
_TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?mod\s+(\w+)\s*([{;])")
_PATH = re.compile(r"(?<![\w:$])(crate|(?:super::)*super)\s*::\s*(\w+|\{)")
_FILES = re.compile(r"\bstd::fs\b|\bstd::\{[^;]*\bfs\b")
_STREAMS = re.compile(r"\bio::(?:Read|Write|Seek)\b|\bio::\{[^;]*\b(?:Read|Write|Seek)\b")
_RE_EXPORT = re.compile(r"\bpub use (?:crate::|self::)?(\w+)::([^;]+);")


def blank(text: str) -> str:
    """Return spaces in place of `text`, so that line numbers stay."""
    return re.sub(r"[^\n]", " ", text)


def end_of_braces(code: str, start: int) -> int:
    """Return the position after the brace that closes the one at `start`."""
    depth = 0
    for position in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[position], 0)
        if depth == 0:
            return position + 1
    return len(code)


def read_code(path: Path) -> tuple[str, set[str]]:
    """Return the code of a file without comments, strings and test modules.

    The second value names the test modules that are files of their own.
    """
    code = _NOISE.sub(lambda match: blank(match[0]), path.read_text(encoding="utf-8"))
    test_files = set()
    while match := _TEST_MODULE.search(code):
        if match[2] == ";":
            test_files.add(match[1])
            end = match.end()
        else:
            end = end_of_braces(code, match.end() - 1)
        code = code[: match.start()] + blank(code[match.start() : end]) + code[end:]
    return code, test_files


def top_level_names(group: str) -> Iterator[str]:
    """Yield the first name of each path in `{a::b, c::{d, e}}`."""
    depth, expected = 0, False
    for part in re.findall(r"\w+|[{},]", group):
        if part == "{":
            depth += 1
            expected = depth == 1
        elif part == "}":
            depth -= 1
        elif part == ",":
            expected = depth == 1
        elif expected:
            yield part
            expected = False


def names_at_root(code: str, depth: int) -> Iterator[tuple[int, str]]:
    """Yield position and name of what a module at `depth` takes from the crate's root."""
    for match in _PATH.finditer(code):
        if match[1] != "crate" and match[1].count("super") < depth:
            continue
        if match[2] == "{":
            group = code[match.end() - 1 : end_of_braces(code, match.end() - 1)]
            yield from ((match.start(), name) for name in top_level_names(group))
        else:
            yield match.start(), match[2]


def re_exports(source: Path) -> dict[str, str]:
    """Return the module behind each name that `lib.rs` exports again."""
    code, _ = read_code(source / "lib.rs")
    found = {}
    for module, names in _RE_EXPORT.findall(code):
        found.update(dict.fromkeys(re.findall(r"\w+", names), module))
    return found


def module_path(source: Path, path: Path) -> tuple[str, ...]:
    """Return the names of the module in `path`, from the crate's root."""
    parts = path.relative_to(source).with_suffix("").parts
    return parts[:-1] if parts[-1] == "mod" else parts


def check_file(source: Path, path: Path, code: str, exports: dict[str, str]) -> Iterator[str]:
    """Yield what the code of one file may not do."""
    modules = module_path(source, path)
    module = modules[0]
    if module not in ALLOWED:
        yield f"{path}: module `{module}` has no place among the layers"
        return
    for position, name in names_at_root(code, len(modules)):
        used = exports.get(name, name)
        if used in ALLOWED and used != module and used not in ALLOWED[module]:
            yield f"{path}:{line(code, position)}: `{module}` may not use `{used}`"
    for banned, pattern in ((NO_FILES, _FILES), (NO_STREAMS, _STREAMS)):
        if module in banned:
            for match in pattern.finditer(code):
                yield f"{path}:{line(code, match.start())}: `{module}` may do no I/O"


def line(code: str, position: int) -> int:
    """Return the number of the line at `position`."""
    return code.count("\n", 0, position) + 1


def check_source(source: Path) -> Iterator[str]:
    """Yield the violations of all modules under `source`."""
    exports = re_exports(source)
    files = {path: read_code(path) for path in sorted(source.rglob("*.rs"))}
    tests = {
        (*module_path(source, path), name) if path.name != "lib.rs" else (name,)
        for path, (_, names) in files.items()
        for name in names
    }
    for path, (code, _) in files.items():
        if path.name != "lib.rs" and module_path(source, path) not in tests:
            yield from check_file(source, path, code, exports)


def check_dependencies(manifest: Path) -> Iterator[str]:
    """Yield the dependencies that would bring Python into the engine."""
    content = tomllib.loads(manifest.read_text(encoding="utf-8"))
    for table in (content, *content.get("target", {}).values()):
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name in table.get(kind, {}):
                if name.startswith("pyo3") or name == "numpy":
                    yield f"{manifest}: the engine may not depend on {name}"


def names_of(package: Path, module: str) -> set[str]:
    """Return the names that a public module lists in its `__all__`."""
    place = package.parent.joinpath(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def imported(tree: ast.Module) -> Iterator[tuple[int, str, str, str]]:
    """Yield what a module imports: line, module, name in it or "", and the name it gets here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            above = "ingot" + "." * node.level if node.level else ""  # Never public.
            for one in node.names:
                yield node.lineno, above + (node.module or ""), one.name, one.asname or one.name
        elif isinstance(node, ast.Import):
            for one in node.names:
                yield node.lineno, one.name, "", one.asname or one.name.partition(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            is_known = isinstance(node.args[0], ast.Constant)
            yield node.lineno, str(node.args[0].value) if is_known else "ingot", "?", ""


def check_compat(package: Path) -> Iterator[str]:
    """Yield what modules of `ingot.compat` use of Ingot that is not public."""
    paths = sorted((package / "compat").rglob("*.py"))
    public = {module: names_of(package, module) for module in PUBLIC} if paths else {}
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {}
        for number, module, name, here in imported(tree):
            if module.partition(".")[0] != "ingot" or f"{module}.".startswith("ingot.compat."):
                continue
            whole = f"{module}.{name}".rstrip(".")
            if whole in public:
                modules[here] = whole
            elif name not in public.get(module, ()):
                yield f"{path}:{number}: `{whole}` is not public"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = modules.get(node.value.id)
                if used is not None and node.attr not in public[used]:
                    yield f"{path}:{node.lineno}: `{used}.{node.attr}` is not public"


def main() -> int:
    """Check the tree that the command line names, or the one around this file."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    engine = root / "crates" / "ingot"
    violations = [*check_source(engine / "src"), *check_dependencies(engine / "Cargo.toml")]
    violations += check_compat(root / "src" / "ingot")
    sys.stdout.writelines(f"{violation}\n" for violation in violations)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
