"""The text of an expression: its tokens, its syntax tree, and errors that point into it."""

import ast
import keyword
import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

_TEXT_MAX = 100_000
_NUMBER_MAX = 100
_PARTS_MAX = 1000
_NESTED_MAX = 50
_SHOWN = 100
_BEFORE = 60

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<number>\.?[0-9](?:[eE][-+]|[\w.])*)
    | (?P<name>[^\W\d]\w*)
    | (?P<operator>[=!<>]=|<>|<<|>>|//|\*\*|&&|\|\||:=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIGITS = r"[0-9](?:_?[0-9])*"
_NUMBER = re.compile(
    rf"(?:0|[1-9](?:_?[0-9])*)|(?:{_DIGITS}\.(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][-+]?{_DIGITS})?"
    rf"|{_DIGITS}[eE][-+]?{_DIGITS}"
)
_PREFIX = re.compile(r"[bfrtu]{1,2}", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = frozenset("\\'\"abfnrtvxuUN")

_OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%")
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_ALLOWED = {*_OPERATORS, *_BRACKETS, ",", "."}
_WORDS = frozenset({"and", "or", "not", "in", "is", "None", "True", "False"})
_BEFORE_VALUES = frozenset({"+", "-", "not", "(", "[", "{"})
_INSTEAD = {
    "=": "write == to compare",
    "<>": "write != instead of <>",
    "&&": "write and instead of &&",
    "&": "write and instead of &",
    "||": "write or instead of ||",
    "|": "write or instead of |",
    "!": "write not instead of !",
    "~": "write not instead of ~",
    "**": "there are no powers; write x * x instead of x ** 2",
    "`": 'write field("my name") for a name that is not an identifier',
    '"': "the text is not closed: a quotation mark is missing",
    "'": "the text is not closed: a quotation mark is missing",
}
_WORDS_INSTEAD = {
    "AND": "write and",
    "OR": "write or",
    "NOT": "write not",
    "IN": "write in",
    "IS": "write is None or is not None",
    "NULL": "write None",
    "LIKE": 'write glob(name, "*.jpg")',
    "ILIKE": 'write glob(lower(name), "*.jpg")',
    "BETWEEN": "write 1 <= label <= 5",
    "CONTAINS": 'write "cat" in caption',
}
"""What to write for words of SQL; looked at if the text is not an expression."""

Place: TypeAlias = range | ast.expr
"""A part of the text: characters, or a node of the syntax tree."""


class Token(NamedTuple):
    """A word, a number, a quoted text or an operator.

    Attributes:
        kind: Which of these.
        text: How it is written.
        place: Where.
    """

    kind: str
    text: str
    place: range


class Text:
    """The text of an expression, of which the tokens are checked before Python parses them.

    So it has no token that the language does not have, and cannot be nested deeper than a
    parser can bear.

    Raises:
        TypeError: It is not text.
        ValueError: It is too long, or has something in it that the language does not have.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"an expression is text, got {type(text).__name__}")
        if len(text) > _TEXT_MAX:
            raise ValueError(
                f"an expression has at most {_TEXT_MAX:,} characters, got {len(text):,}; "
                "where(numpy.isin(ds.column(name), values)) compares with many values"
            )
        self.text = text
        self._tokens = list(self._checked())
        plain = "".join(one.text.ljust(len(one.place)) for one in self._spaced())
        self._start = len(plain) - len(plain.lstrip())
        self._source = plain.strip()
        self._bytes = self._source.encode()

    def parse(self) -> ast.expr:
        """Return the syntax tree.

        Raises:
            ValueError: The text is not an expression.
        """
        if not self._source:
            raise ValueError("expected an expression such as label == 3, got an empty text")
        try:
            return ast.parse(self._source, mode="eval").body
        except SyntaxError as error:
            for token in self._tokens:
                hint = _WORDS_INSTEAD.get(token.text.upper()) if token.kind == "name" else None
                if hint is not None and token.text not in _WORDS:
                    raise self.error(f"{hint} instead of {token.text}", token.place) from None
            at = min(self._start + max(0, (error.offset or 1) - 1), len(self.text))
            message = "an operator or a value is missing, or there is one too many"
            if "closed" in error.msg or "unmatched" in error.msg or "does not match" in error.msg:
                message = error.msg
            raise self.error(message, range(at, at + 1)) from None
        except (RecursionError, MemoryError):
            raise ValueError("the expression is nested too deeply") from None

    def written(self, node: ast.expr) -> str:
        """Return how a node is written, without spaces: Python changes some letters of names."""
        part = self._bytes[node.col_offset : node.end_col_offset].decode()
        return "".join(part.split())

    def error(
        self, message: str, place: Place, kind: type[Exception] = ValueError, *, path: str = ""
    ) -> Exception:
        """Return an error that points at a part of the text.

        Args:
            message: What is wrong, and what to write.
            place: Where.
            kind: The class of the error.
            path: The data set, if it is wrong for this one only.
        """
        chars = self._chars(place)
        first = max(0, chars.start - _BEFORE)
        shown = "".join(
            one if one.isprintable() else " " for one in self.text[first : first + _SHOWN]
        )
        width = max(1, min(chars.stop, first + _SHOWN) - chars.start)
        before = f"{path}: " if path else ""
        error = kind(f"{before}column {chars.start + 1} of the expression: {message}")
        error.add_note(shown)
        error.add_note(" " * (chars.start - first) + "^" * width)
        return error

    def _chars(self, place: Place) -> range:
        if isinstance(place, range):
            return place
        ends = (place.col_offset, place.end_col_offset)
        return range(*(self._start + len(self._bytes[:end].decode()) for end in ends))

    def _split(self) -> Iterator[Token]:
        for found in _TOKEN.finditer(self.text):
            if found.lastgroup != "space":
                yield Token(found.lastgroup or "", found[0], range(*found.span()))

    def _spaced(self) -> Iterator[Token]:
        """Yield the tokens with blanks between them, so that lines and tabs do not matter."""
        end = 0
        for token in self._tokens:
            yield Token("space", "", range(end, token.place.start))
            yield token
            end = token.place.stop

    def _checked(self) -> Iterator[Token]:
        """Yield the tokens; the first one that is wrong ends it, so that it takes linear time."""
        depth = run = parts = 0
        before: Token | None = None
        for token in self._split():
            self._check_token(token, before)
            depth += _BRACKETS.get(token.text, 0) if token.kind == "operator" else 0
            run = run + 1 if token.text in _BEFORE_VALUES else 0
            parts += token.kind in {"name", "operator"} and token.text != ","
            if depth + run > _NESTED_MAX:
                raise self.error(f"it is nested more than {_NESTED_MAX} deep", token.place)
            if parts > _PARTS_MAX:
                message = f"an expression has at most {_PARTS_MAX:,} names and operators"
                raise self.error(message, token.place)
            yield token
            before = token

    def _check_token(self, token: Token, before: Token | None) -> None:
        match token.kind:
            case "text":
                self._check_text(token, before)
            case "number":
                self._check_number(token)
            case "name":
                self._check_name(token)
            case _:
                self._check_operator(token)

    def _check_text(self, token: Token, before: Token | None) -> None:
        if before is not None and before.kind == "text":
            raise self.error("a comma or an operator is missing between two texts", token.place)
        is_adjacent = before is not None and before.place.stop == token.place.start
        if before is not None and is_adjacent and _PREFIX.fullmatch(before.text):
            raise self.error(f"write the text without {before.text}", before.place)
        for found in _ESCAPE.finditer(token.text):
            if found[1] not in _ESCAPES:
                start = token.place.start + found.start()
                raise self.error(r"write \\ for a backslash", range(start, start + 2))
        try:
            token.text.encode()
        except UnicodeEncodeError:
            raise self.error("the text has characters that are not valid", token.place) from None

    def _check_number(self, token: Token) -> None:
        if len(token.text) > _NUMBER_MAX:
            raise self.error(f"a number has at most {_NUMBER_MAX} digits", token.place)
        if _NUMBER.fullmatch(token.text) is None:
            message = f"{token.text!r} is not a number such as 3, 0.5 or 1e-3"
            raise self.error(message, token.place)

    def _check_name(self, token: Token) -> None:
        if keyword.iskeyword(token.text) and token.text not in _WORDS:
            message = f'{token.text} is not allowed; field("{token.text}") is a field of that name'
            raise self.error(message, token.place)
        if not token.text.isidentifier():
            raise self.error(f'write field("{token.text}") for this name', token.place)

    def _check_operator(self, token: Token) -> None:
        if token.text not in _ALLOWED:
            known = f"{token.text!r} is not an operator; these are {' '.join(_OPERATORS)}"
            raise self.error(_INSTEAD.get(token.text, known), token.place)
