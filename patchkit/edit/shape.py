"""Python's syntax trees as patterns see them: what a reader takes for one list is one list.

A call's arguments lie in two lists of the tree, a function's parameters in seven; a pattern such as ``f($$$, k=$V)``
means one sequence. :func:`view` gives every node as (label, fields) with such lists merged in source order, and pieces
that have no node of their own (a parameter with its default, an item of a dict) as a :class:`Group`.

Nodes are told apart by the NAME of their class, since the tree may be that of a newer Python than ours.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

IGNORED = frozenset({"ctx", "type_comment", "kind", "type_ignores"})
"""Fields that say nothing about what the code means; ``str`` of an Interpolation repeats its source text."""

BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")
"""Fields that may hold statements, handlers or cases, in source order."""

Fields = tuple[tuple[str, Any], ...]
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


class Group:
    """A piece of syntax that has no node: a parameter with its default, an item of a dict, ``name=pattern``.

    ``label`` is ``param``, ``slash``, ``star``, ``item`` or ``kwd``. Absent parts are None.
    """

    __slots__ = ("fields", "label")

    def __init__(self, label: str, **fields: Any) -> None:
        self.label = label
        self.fields: Fields = tuple(fields.items())

    def get(self, name: str) -> Any:
        """The part of that name."""
        return dict(self.fields).get(name)


def name_of(node: Any) -> str:
    """The name of a node's class."""
    return type(node).__name__


def is_statement(node: Any) -> bool:
    """True for statements, also of newer Pythons."""
    return isinstance(node, ast.stmt) or name_of(node) == "TypeAlias"


def is_expression(node: Any) -> bool:
    """True for expressions, also of newer Pythons."""
    return isinstance(node, ast.expr) or name_of(node) in ("TemplateStr", "Interpolation")


def is_compound(node: Any) -> bool:
    """True for a statement (handler, case) that has a block."""
    return any(isinstance(getattr(node, field, None), list) for field in BLOCKS)


def is_definition(node: Any) -> bool:
    """True for a def, async def or class."""
    return name_of(node) in ("FunctionDef", "AsyncFunctionDef", "ClassDef")


def blocks_of(node: Any) -> Iterator[tuple[str, list[Any]]]:
    """The lists of statements, handlers and cases directly below ``node``, with their fields, in source order."""
    for field in BLOCKS:
        value = getattr(node, field, None)
        if isinstance(value, list):
            yield field, value


def _place(node: Any) -> tuple[int, int]:
    line = getattr(node, "lineno", None)
    if line is None:  # keywords have no position before Python 3.9
        node = node.value
    return node.lineno, node.col_offset


def _call(node: Any) -> Fields:
    return (("func", node.func), ("arguments", _merged(node.args, node.keywords)))


def _merged(positional: list[Any], keywords: list[Any]) -> list[Any]:
    if not keywords or not positional:
        return positional or keywords
    if not any(name_of(argument) == "Starred" for argument in positional):
        return positional + keywords
    return sorted(positional + keywords, key=_place)


def _class(node: Any) -> Fields:
    return (
        ("decorator_list", node.decorator_list),
        ("name", node.name),
        ("type_params", getattr(node, "type_params", [])),
        ("arguments", _merged(node.bases, node.keywords)),
        ("body", node.body),
    )


def _function(node: Any) -> Fields:
    """A def's or lambda's parameters count as its own: ``ast.arguments`` has no place in the text."""
    return tuple(
        ("params", parameters(node.args)) if field == "args" else (field, getattr(node, field, None))
        for field in node._fields
        if field not in IGNORED
    )


def parameters(node: Any) -> list[Group]:
    """The parameters of an ``ast.arguments`` in source order; ``/`` and a bare ``*`` are pieces of their own."""
    out: list[Group] = []
    plain = [*node.posonlyargs, *node.args]
    defaults = [None] * (len(plain) - len(node.defaults)) + list(node.defaults)
    for index, (arg, default) in enumerate(zip(plain, defaults, strict=True)):
        out.append(_parameter("", arg, default))
        if index + 1 == len(node.posonlyargs):
            out.append(Group("slash"))
    if node.vararg is not None:
        out.append(_parameter("*", node.vararg, None))
    elif node.kwonlyargs:
        out.append(Group("star"))
    out += [_parameter("", arg, d) for arg, d in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
    if node.kwarg is not None:
        out.append(_parameter("**", node.kwarg, None))
    return out


def _parameter(star: str, arg: Any, default: Any) -> Group:
    return Group("param", star=star, name=arg.arg, annotation=arg.annotation, default=default, arg=arg)


def _match_mapping(node: Any) -> list[Group]:
    items = [Group("item", key=key, value=value) for key, value in zip(node.keys, node.patterns, strict=True)]
    return items if node.rest is None else [*items, Group("item", key=None, value=node.rest)]


_VIEWS: Mapping[str, Callable[[Any], Fields]] = {
    "Call": _call,
    "ClassDef": _class,
    "FunctionDef": _function,
    "AsyncFunctionDef": _function,
    "Lambda": _function,
    "Dict": lambda node: (
        ("items", [Group("item", key=key, value=value) for key, value in zip(node.keys, node.values, strict=True)]),
    ),
    "MatchClass": lambda node: (
        ("cls", node.cls),
        (
            "patterns",
            [
                *node.patterns,
                *(Group("kwd", name=n, value=p) for n, p in zip(node.kwd_attrs, node.kwd_patterns, strict=True)),
            ],
        ),
    ),
    "MatchMapping": lambda node: (("items", _match_mapping(node)),),
    "Interpolation": lambda node: tuple((f, getattr(node, f, None)) for f in node._fields if f != "str"),
}


def view(node: Any) -> tuple[str, Fields]:
    """A node's (or group's) label and fields as patterns see them."""
    if isinstance(node, Group):
        return node.label, tuple((name, value) for name, value in node.fields if name != "arg")
    label = name_of(node)
    special = _VIEWS.get(label)
    if special is not None:
        return label, special(node)
    return label, tuple((field, getattr(node, field, None)) for field in node._fields if field not in IGNORED)


def same(one: Any, other: Any, swapped: Callable[[Any], Any] | None = None) -> bool:
    """True where two trees (or groups, names, lists of them) are the same code. Never recursive.

    ``swapped`` is asked for every list and node of ``one`` and may give another to compare in its place (a list as a
    list), or its argument; what it gave is not asked for again.
    """
    return difference(one, other, swapped) is None


def difference(one: Any, other: Any, swapped: Callable[[Any], Any] | None = None) -> tuple[Any, Any] | None:
    """The first pair found to differ between two trees, None where they are the same code; see :func:`same`."""
    pairs: list[tuple[Any, Any, bool]] = [(one, other, swapped is not None)]
    while pairs:
        a, b, ask = pairs.pop()
        if ask and swapped is not None:
            given = swapped(a)
            if given is not a:
                if not isinstance(given, list):
                    a, ask = given, False
                elif not isinstance(b, list) or len(given) != len(b):
                    return given, b
                else:
                    # A list keeps its own members askable; those put into it are not.
                    own = {id(x) for x in a}
                    pairs += [(x, y, id(x) in own) for x, y in zip(given, b, strict=True)][::-1]
                    continue
        if isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return a, b
            pairs += [(x, y, ask) for x, y in zip(a, b, strict=True)][::-1]
        elif isinstance(a, ast.AST):
            if name_of(a) != name_of(b):
                return a, b
            fields = _compared(type(a))
            if type(b) is not type(a):  # of two Pythons, of which one knows a field that the other does not
                fields = tuple(dict.fromkeys((*fields, *_compared(type(b)))))
            for field in fields:
                x, y = getattr(a, field, None), getattr(b, field, None)
                # Most leaves are one object in both trees: None, operators, names (which are interned).
                if x is not y and not (x is None and y == []) and not (y is None and x == []):
                    pairs.append((x, y, ask))
        elif isinstance(a, Group):
            if not isinstance(b, Group) or a.label != b.label:
                return a, b
            pairs += [(x, y, ask) for (n, x), (_, y) in zip(a.fields, b.fields, strict=True) if n != "arg"][::-1]
        elif type(a) is not type(b):
            return a, b
        elif isinstance(a, (float, complex)):  # 0.0 == -0.0, and nan is not equal to itself
            if repr(a) != repr(b):
                return a, b
        elif a != b:
            return a, b
    return None


def fingerprint(value: Any) -> tuple[Any, ...]:
    """What two trees (or groups, names, lists of them) have in common if, and only if, they are the same code."""
    out: list[Any] = []
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            out += ("[", len(node))
            pending += node[::-1]
        elif isinstance(node, (ast.AST, Group)):
            if isinstance(node, Group):
                label, fields = node.label, [(name, part) for name, part in node.fields if name != "arg"]
            else:
                label = name_of(node)
                fields = [(name, getattr(node, name, None)) for name in sorted(_compared(type(node)))]
            fields = [(name, part) for name, part in fields if part is not None and part != []]
            out += (label, *(name for name, _ in fields), len(fields))
            pending += [part for _, part in fields][::-1]
        else:
            out += (type(node), repr(node) if isinstance(node, (float, complex)) else node)
    return tuple(out)


def _compared(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a class of nodes that mean something, last first."""
    fields = _FIELDS.get(kind)
    if fields is None:
        skip = {"str", *IGNORED} if kind.__name__ == "Interpolation" else IGNORED
        fields = _FIELDS[kind] = tuple(field for field in reversed(kind._fields) if field not in skip)
    return fields


def name_node(dotted: str) -> ast.expr:
    """A name as an expression, so that ``self.$X = $X`` compares; dots make attributes."""
    first, *rest = dotted.split(".")
    node: ast.expr = ast.Name(id=first, ctx=ast.Load())
    for part in rest:
        node = ast.Attribute(value=node, attr=part, ctx=ast.Load())
    return node


def dotted_name(node: Any) -> str | None:
    """The dotted name that an expression is, None where it is anything else."""
    parts: list[str] = []
    while name_of(node) == "Attribute":
        parts.append(node.attr)
        node = node.value
    if name_of(node) != "Name":
        return None
    return ".".join([node.id, *reversed(parts)])


def capture_kind(value: Any) -> str | None:
    """What a value of the tree can be captured as."""
    if isinstance(value, Group):
        return {"param": "parameter", "item": "item", "kwd": "pattern"}.get(value.label)
    if isinstance(value, str):
        return None if value == "*" else "name"
    if not isinstance(value, ast.AST):
        return None
    label = name_of(value)
    if label in ("keyword", "Starred"):
        return "argument"
    if is_expression(value):
        return "expression"
    if is_statement(value):
        return "statement"
    if label in ("TypeVar", "TypeVarTuple", "ParamSpec"):
        return "type parameter"
    return "pattern" if label.startswith("Match") else None


def plain_name(value: Any) -> tuple[str, Any] | None:
    """The name that a piece of code is and nothing more, and the node that it stands in (None: the one above)."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, Group):
        bare = value.label == "param" and not value.get("star")
        plain = bare and value.get("annotation") is None and value.get("default") is None
        return (value.get("name"), value.get("arg")) if plain else None
    label = name_of(value)
    if label == "MatchAs" and value.pattern is None and value.name is not None:
        return value.name, value
    if label == "TypeVar" and value.bound is None and getattr(value, "default_value", None) is None:
        return value.name, value
    return None
