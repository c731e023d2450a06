"""The syntax tree of an expression, turned into functions over the columns of many rows.

Only the nodes that are named here are understood. Python evaluates none of them: a name is looked
up among the fields, and a call is one of the functions in the tables below.
"""

import ast
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from ingot.dataset.read.expression import number
from ingot.dataset.read.expression.comparison import (
    Comparison,
    changed,
    compared,
    contained,
    listed,
    matching,
    measured,
    tested,
)
from ingot.dataset.read.expression.number import Arithmetic, computed
from ingot.dataset.read.expression.text import Text
from ingot.dataset.read.expression.value import (
    Elements,
    Value,
    both,
    condition,
    constant,
    either,
    missing,
    negated,
)

_DEPTH_MAX = 100
_PATTERN_MAX = 1000

_ARITHMETIC: dict[type[ast.operator], Arithmetic] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_SIGNS: dict[type[ast.unaryop], Callable[[Value], Value]] = {
    ast.USub: number.opposite,
    ast.UAdd: number.unchanged,
}
_COMPARISON: dict[type[ast.cmpop], Comparison] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_OF_ONE: dict[str, Callable[[Value], Value]] = {
    "abs": number.absolute,
    "isnan": number.is_nan,
    "lower": partial(changed, str.lower),
    "upper": partial(changed, str.upper),
}
_OF_PATTERNS: dict[str, Callable[[tuple[str, ...]], Callable[[str], object]]] = {
    "startswith": lambda texts: lambda one: one.startswith(texts),
    "endswith": lambda texts: lambda one: one.endswith(texts),
    "glob": matching,
}
_FUNCTIONS = ("len", *_OF_ONE, *_OF_PATTERNS, "field")
_INSTEAD = {
    "between": "1 <= label <= 5",
    "col": 'field("my name")',
    "column": 'field("my name")',
    "contains": '"cat" in caption',
    "isin": "label in (1, 2)",
    "isna": "score is None",
    "isnull": "score is None",
    "length": "len(caption)",
    "like": 'glob(caption, "*cat*")',
    "notnull": "score is not None",
    "size": "len(caption)",
}

What: TypeAlias = Literal["value", "length", "presence", "container"]
"""What is used of a field: its values, its lengths, which rows have one, or what is in it."""


class Use(NamedTuple):
    """What an expression uses of a field."""

    name: str
    what: What


Block: TypeAlias = Mapping[Use, Value | Elements]
"""What some rows have for each use."""

Evaluate: TypeAlias = Callable[[Block], Any]


class Tree:
    """An expression that can be evaluated.

    Raises:
        ValueError: Something in it is not part of the language.

    Attributes:
        text: Its text.
        uses: What it uses of fields, and where in the text.
        evaluate: Returns the value in some rows, given what they have for each use.
    """

    def __init__(self, text: Text) -> None:
        self.text = text
        self.uses: dict[Use, ast.expr] = {}
        self.evaluate = self._condition(text.parse(), 0)

    def _condition(self, node: ast.expr, depth: int) -> Evaluate:
        return self._applied(condition, node, self._made(node, depth))

    def _made(self, node: ast.expr, depth: int) -> Evaluate:
        if depth > _DEPTH_MAX:
            raise self.text.error(f"it is nested more than {_DEPTH_MAX} deep", node)
        match node:
            case ast.BoolOp():
                return self._boolean(node, depth + 1)
            case ast.UnaryOp() | ast.BinOp():
                return self._operation(node, depth + 1)
            case ast.Compare():
                return self._comparison(node, depth + 1)
            case ast.Call():
                return self._call(node, depth + 1)
            case ast.Name() | ast.Attribute():
                return self._use(node, self._name(node), "value")
        return self._constant(node)

    def _boolean(self, node: ast.BoolOp, depth: int) -> Evaluate:
        join = both if isinstance(node.op, ast.And) else either
        return _joined(join, [self._condition(one, depth) for one in node.values])

    def _operation(self, node: ast.UnaryOp | ast.BinOp, depth: int) -> Evaluate:
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            operands = (self._made(one, depth) for one in (node.left, node.right))
            return self._applied(partial(computed, _ARITHMETIC[type(node.op)]), node, *operands)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._applied(negated, node.operand, self._condition(node.operand, depth))
        if isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
            function = _SIGNS[type(node.op)]
            return self._applied(function, node.operand, self._made(node.operand, depth))
        raise self.text.error("this is not part of the language", node)

    def _applied(
        self, function: Callable[..., Value], node: ast.expr, *operands: Evaluate
    ) -> Evaluate:
        """Return what applies a function to values, with errors that point at a node."""

        def applied(block: Block) -> Value:
            given = [one(block) for one in operands]
            try:
                return function(*given)
            except (TypeError, ValueError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise self.text.error(str(error), node, kind) from None

        return applied

    def _constant(self, node: ast.expr) -> Evaluate:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            raise self.text.error("a list goes after in: write label in (1, 2)", node)
        if not isinstance(node, ast.Constant):
            raise self.text.error("this is not part of the language", node)
        value = constant(self._literal(node))
        return lambda _: value

    def _use(self, node: ast.expr, name: str, what: What) -> Evaluate:
        use = Use(name, what)
        self.uses.setdefault(use, node)
        return lambda block: block[use]

    def _name(self, node: ast.expr) -> str:
        """Return the name of the field that a node names."""
        name = self._name_in(node)
        if name is None:
            raise self.text.error("a dot joins the names of nested fields only", node)
        return name

    def _name_in(self, node: ast.expr) -> str | None:
        """Return the name of the field that a node names, if it does."""
        match node:
            case ast.Call(func=ast.Name(id="field"), args=[ast.Constant(value=str() as name)]):
                return None if node.keywords else name
            case ast.Name():
                return self.text.written(node)
            case ast.Attribute(value=inner):
                while isinstance(inner, ast.Attribute):
                    inner = inner.value
                return self.text.written(node) if isinstance(inner, ast.Name) else None
        return None

    def _comparison(self, node: ast.Compare, depth: int) -> Evaluate:
        sides = [node.left, *node.comparators]
        pairs = zip(sides, node.ops, sides[1:], strict=False)
        found = [self._compared(node, *pair, depth) for pair in pairs]
        return found[0] if len(found) == 1 else _joined(both, found)

    def _compared(
        self, node: ast.expr, left: ast.expr, sign: ast.cmpop, right: ast.expr, depth: int
    ) -> Evaluate:
        match sign:
            case ast.Is() | ast.IsNot():
                found = self._missing(left, right, depth)
            case ast.In() | ast.NotIn():
                found = self._contained(left, right, depth)
            case _:
                for one in (left, right):
                    if _is_none(one):
                        raise self.text.error("write is None or is not None", one)
                operands = (self._made(one, depth) for one in (left, right))
                return self._applied(partial(compared, _COMPARISON[type(sign)]), node, *operands)
        if isinstance(sign, ast.Is | ast.In):
            return found
        return lambda block: negated(found(block))

    def _missing(self, left: ast.expr, right: ast.expr, depth: int) -> Evaluate:
        if not _is_none(right):
            raise self.text.error("only None goes after is; write == to compare", right)
        name = self._name_in(left)
        if name is None:
            return self._applied(missing, left, self._made(left, depth))
        return self._applied(missing, left, self._use(left, name, "presence"))

    def _contained(self, left: ast.expr, right: ast.expr, depth: int) -> Evaluate:
        value = self._made(left, depth)
        if isinstance(right, ast.List | ast.Tuple | ast.Set):
            contents = [self._literal(one) for one in right.elts]
            return self._applied(lambda given: listed(given, contents), right, value)
        name = self._name_in(right)
        if name is None:
            return self._applied(contained, right, value, self._made(right, depth))
        return self._applied(contained, right, value, self._use(right, name, "container"))

    def _literal(self, node: ast.expr) -> Any:
        """Return the content of a constant."""
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as content)):
                return -content
            case ast.Constant(value=str() as text):
                if not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text):
                    raise self.text.error("the text has characters that are not valid", node)
                return text
            case ast.Constant(value=int() | float() as content):
                return content
            case ast.Constant(value=None):
                raise self.text.error("None goes after is: write score is None", node)
        raise self.text.error("expected a number or a text in quotes", node)

    def _call(self, node: ast.Call, depth: int) -> Evaluate:
        """Return a call of a function; `name.lower()` is `lower(name)`."""
        match node.func:
            case ast.Name(id=name):
                arguments = node.args
            case ast.Attribute(attr=name, value=first):
                arguments = [first, *node.args]
            case _:
                raise self.text.error("this is not a function", node.func)
        if name not in _FUNCTIONS:
            known = f"there is no function {name}; there are {', '.join(_FUNCTIONS)}"
            message = f"write {_INSTEAD[name]}" if name in _INSTEAD else known
            raise self.text.error(message, node.func)
        if node.keywords or len(arguments) != 1 + (name in _OF_PATTERNS):
            wanted = f'{name}(caption, "cat")' if name in _OF_PATTERNS else f"{name}(caption)"
            raise self.text.error(f"write {wanted}", node)
        if name == "field":
            if (field := self._name_in(node)) is None:
                raise self.text.error('write field("my name")', node)
            return self._use(node, field, "value")
        if name == "len":
            return self._length(arguments[0], depth)
        value = self._made(arguments[0], depth)
        if name in _OF_ONE:
            return self._applied(_OF_ONE[name], arguments[0], value)
        return self._patterns(name, arguments, value)

    def _length(self, node: ast.expr, depth: int) -> Evaluate:
        name = self._name_in(node)
        if name is not None:
            return self._use(node, name, "length")
        return self._applied(measured, node, self._made(node, depth))

    def _patterns(self, name: str, arguments: list[ast.expr], value: Evaluate) -> Evaluate:
        """Return whether text begins, ends or matches as one of several texts says."""
        given = arguments[1]
        listed = given.elts if isinstance(given, ast.List | ast.Tuple | ast.Set) else [given]
        for one in [*listed] or [given]:
            if not (isinstance(one, ast.Constant) and isinstance(one.value, str)):
                raise self.text.error(f"{name} expects a text in quotes, or a list of them", one)
        texts = tuple(self._literal(one) for one in listed)
        if name == "glob" and sum(map(len, texts)) > _PATTERN_MAX:
            message = f"the patterns have more than {_PATTERN_MAX:,} characters"
            raise self.text.error(message, given)
        test = _OF_PATTERNS[name](texts)
        return self._applied(partial(tested, test), arguments[0], value)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _joined(join: Callable[[Value, Value], Value], parts: list[Evaluate]) -> Evaluate:
    """Return what joins conditions one after another, so that few are held at once."""

    def joined(block: Block) -> Value:
        found: Value = parts[0](block)
        for part in parts[1:]:
            found = join(found, part(block))
        return found

    return joined
