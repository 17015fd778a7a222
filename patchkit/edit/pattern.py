"""Patterns: Python with metavariables, compiled to what :mod:`patchkit.edit.matcher` compares trees with.

A pattern is parsed by the site's own grammar, with identifiers in place of its metavariables; so it can say whatever
the site's Python can. See DESIGN section 3, "Syntax anchors".
"""

from __future__ import annotations

import ast
from typing import Any

from patchkit.edit.indent import dedent
from patchkit.edit.metavars import Encoded, MetavariableError, Slot, encode
from patchkit.edit.parse import PARSE_ERRORS, Parse
from patchkit.edit.shape import Group, is_definition, name_of, view
from patchkit.tuples import NamedTuple

_KINDS = {
    "arguments": "arguments",
    "params": "parameters",
    "elts": "elements",
    "values": "operands",
    "targets": "targets",
    "decorator_list": "decorators",
    "names": "names",
    "body": "statements",
    "orelse": "statements",
    "finalbody": "statements",
    "patterns": "patterns",
    "type_params": "type parameters",
    "cases": "cases",
}
"""What ``$$$`` stands for in the fields that it may stand in; ``items`` depends on the node."""

LONGEST = 100_000
"""Characters of a pattern; each is parsed, compiled and compared, which takes seconds for a million."""
_LONGEST_SHOWN = 100  # characters of a line that does not parse
_NO_LIST = frozenset({"JoinedStr", "TemplateStr"})


class PatternError(ValueError):
    """A pattern that cannot be compiled: ``message`` for a person, ``line`` (1-based) within the pattern."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class One(NamedTuple):
    """Matches one piece of code; ``kind`` is what it may be. Unnamed ones bind nothing."""

    name: str | None
    kind: str


class Many(NamedTuple):
    """Matches any number of neighbours in a sequence."""

    name: str | None
    kind: str


class Sequence(NamedTuple):
    """Matches a whole list. ``rest[i]`` is how many elements ``items[i:]`` need at least."""

    items: tuple[Any, ...]
    rest: tuple[int, ...]
    not_empty: bool = False


class Index(NamedTuple):
    """Matches what stands in a subscript, ``a[1, 2]`` as two elements and ``a[1]`` as one."""

    sequence: Sequence


class Display(NamedTuple):
    """``{$$$}``: matches a dict's items as well as a set's elements."""

    sequence: Sequence


class Node(NamedTuple):
    """Matches a node of that label whose fields match."""

    label: str
    fields: tuple[tuple[str, Any], ...]


class Dotted(NamedTuple):
    """Matches a dotted name of an import part by part; the first metavariable may stand for several parts."""

    parts: tuple[str | One, ...]


class Value(NamedTuple):
    """Matches that very constant, name or None."""

    value: Any


class Pattern:
    """A compiled pattern.

    ``items`` are the matchers of its statements (one, of an expression, where ``is_expression``), ``labels`` the
    classes of node that the first can match (empty: any), ``names`` its metavariables, with True for ``$$$`` ones.
    """

    __slots__ = ("is_expression", "items", "labels", "names", "parse", "text")

    def __init__(
        self,
        text: str,
        parse: Parse,
        items: Sequence,
        is_expression: bool,
        labels: tuple[str, ...],
        names: dict[str, bool],
    ) -> None:
        """Hold the parts; :func:`compile_pattern` is what makes them."""
        self.text = text
        self.parse = parse
        self.items = items
        self.is_expression = is_expression
        self.labels = labels
        self.names = names


def parse_snippet(encoded: Encoded, parse: Parse) -> list[Any]:
    """The statements of an encoded text; an expression that needs parentheses to span lines may lack them.

    Raises:
        PatternError: It does not parse.
    """
    try:
        return parse(encoded.text).body
    except (RecursionError, MemoryError):
        raise _too_deep() from None
    except PARSE_ERRORS as error:
        try:
            body = parse(f"(\n{encoded.text}\n)").body
        except PARSE_ERRORS:
            body = []
        if len(body) == 1 and name_of(body[0]) == "Expr" and "\n" in encoded.text:
            return body
        line = getattr(error, "lineno", None) or 1
        shown = encoded.text.split("\n")[line - 1].strip() if line <= encoded.text.count("\n") + 1 else ""
        shown = shown if len(shown) <= _LONGEST_SHOWN else shown[:_LONGEST_SHOWN] + "..."
        for slot in encoded.slots.values():
            shown = shown.replace(slot.code, slot.text)
        reason = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise PatternError(f"it does not parse: {reason} (line {line}: {shown})", line) from None


def compile_pattern(text: str, parse: Parse) -> Pattern:
    """Compile ``text``, Python with metavariables, by the grammar of ``parse``.

    Raises:
        PatternError: It is no Python, holds nothing, would match anything, or is longer than :data:`LONGEST`.
    """
    if len(text) > LONGEST:
        raise PatternError(f"it is longer than {LONGEST:,} characters; look for a part of it, or use `find`")
    try:
        encoded = encode(dedent(text).rstrip("\n"))
    except MetavariableError as error:
        raise PatternError(error.message, error.line) from None
    body = parse_snippet(encoded, parse)
    try:
        return _compile(text, encoded, body, parse)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> PatternError:
    return PatternError("it is nested too deeply (a long `a + b + c + ...` nests as well); put $X for a part of it")


def _compile(text: str, encoded: Encoded, body: list[Any], parse: Parse) -> Pattern:
    compiler = _Compiler(encoded.slots)
    names = _names(encoded.slots)
    if not body:
        raise PatternError("it holds no code")
    only = lone_slot(body[0], encoded.slots) if len(body) == 1 else None
    if only is not None:
        raise PatternError(f"{only.text} alone would match everything; write some code around it", only.line)
    if len(body) == 1 and name_of(body[0]) == "Expr":
        root = compiler.compile(body[0].value)
        labels = ("Set", "Dict") if isinstance(root, Display) else (root.label,)
        return Pattern(text, parse, Sequence((root,), (1, 0)), True, labels, names)
    for edge, slot in ((0, lone_slot(body[0], encoded.slots)), (-1, lone_slot(body[-1], encoded.slots))):
        if slot is not None and slot.many:
            end = "begin" if edge == 0 else "end"
            raise PatternError(
                f"a pattern cannot {end} with {slot.text}: nothing says how many statements that is; leave it out",
                slot.line,
            )
    sequence = compiler.sequence(body, "statements", False, top=True)
    first = sequence.items[0]
    return Pattern(text, parse, sequence, False, (first.label,) if isinstance(first, Node) else (), names)


def _names(slots: dict[str, Slot]) -> dict[str, bool]:
    names: dict[str, bool] = {}
    for slot in slots.values():
        if slot.name is not None and names.setdefault(slot.name, slot.many) != slot.many:
            raise PatternError(f"${slot.name} and $$${slot.name} are both used; give them different names", slot.line)
    return names


def lone_slot(element: Any, slots: dict[str, Slot]) -> Slot | None:
    """The metavariable that an element of a list wholly is, None where it is anything else."""
    name: Any = None
    wrapped = False
    match name_of(element):
        case "str":
            name = element
        case "Expr":
            return lone_slot(element.value, slots) if name_of(element.value) == "Name" else None
        case "Name":
            name = element.id
        case "Starred":
            name, wrapped = getattr(element.value, "id", None), True
        case "keyword" if element.arg is None:
            name, wrapped = getattr(element.value, "id", None), True
        case "alias" if element.asname is None:
            name = element.name
        case "withitem" if element.optional_vars is None:
            name = getattr(element.context_expr, "id", None)
        case "MatchAs" if element.pattern is None:
            name = element.name
        case "TypeVar" if element.bound is None and getattr(element, "default_value", None) is None:
            name = element.name
        case "match_case" if name_of(element.pattern) == "MatchAs" and element.guard is None:
            name, wrapped = element.pattern.name, True
        case "Group":
            return _lone_group(element, slots)
    slot = slots.get(name) if isinstance(name, str) else None
    return slot if slot is not None and slot.wrapped == wrapped else None


def _lone_group(group: Group, slots: dict[str, Slot]) -> Slot | None:
    if group.label == "param" and group.get("annotation") is None:
        slot = slots.get(group.get("name"))
        plain = not group.get("star") and group.get("default") is None
        return slot if slot is not None and (slot.wrapped or plain) else None
    if group.label == "item" and group.get("key") is None:
        value = group.get("value")
        slot = slots.get(value if isinstance(value, str) else getattr(value, "id", ""))
        return slot if slot is not None and slot.wrapped else None
    return None


def list_kind(label: str, field: str) -> str | None:
    """What ``$$$`` stands for in that field of a node, None where it cannot stand."""
    if field == "items":
        return "items" if label in ("Dict", "MatchMapping") else "with items"
    return None if label in _NO_LIST else _KINDS.get(field)


class _Compiler:
    def __init__(self, slots: dict[str, Slot]) -> None:
        self.slots = slots

    def compile(self, value: Any, label: str = "", field: str = "") -> Any:
        """The matcher of one value of a field."""
        if isinstance(value, list):
            return self.sequence(value, list_kind(label, field), field in ("orelse", "finalbody"))
        if isinstance(value, str):
            return self._name(value, label, field)
        if not isinstance(value, (ast.AST, Group)):
            return Value(value)
        if name_of(value) == "Name" or (name_of(value) == "MatchAs" and value.pattern is None):  # type: ignore[union-attr]
            slot = lone_slot(value, self.slots)
            if slot is not None:
                return One(self._single(slot).name, "expression" if name_of(value) == "Name" else "pattern")
        own, fields = view(value)
        if own == "Constant":
            return Node(own, tuple((name, Value(part)) for name, part in fields))
        if own == "Set" and all(self._is_many(element) for element in fields[0][1]):
            return Display(self.sequence(fields[0][1], "elements", False))
        if own == "Subscript":
            index = self._index(value.slice)  # type: ignore[union-attr]
            if index is not None:
                return Node(own, (("value", self.compile(value.value)), ("slice", index)))  # type: ignore[union-attr]
        return Node(own, tuple((name, self.compile(part, own, name)) for name, part in fields))

    def _is_many(self, element: Any) -> bool:
        slot = lone_slot(element, self.slots)
        return slot is not None and slot.many

    def _index(self, node: Any) -> Index | None:
        elements = node.elts if name_of(node) == "Tuple" else [node]
        if not any(self._is_many(element) for element in elements):
            return None
        return Index(self.sequence(elements, "elements", True))

    def _single(self, slot: Slot) -> Slot:
        if slot.many:
            raise PatternError(
                f"{slot.text} stands for any number of arguments, elements or statements, and here is one expression "
                f"or name; write ${slot.name or '_'}",
                slot.line,
            )
        return slot

    def _name(self, value: str, label: str, field: str) -> Any:
        slot = self.slots.get(value)
        if slot is not None:
            return One(self._single(slot).name, "name")
        if "." in value and (label, field) in (("alias", "name"), ("ImportFrom", "module")):
            parts = tuple(
                One(self._single(self.slots[part]).name, "name") if part in self.slots else part
                for part in value.split(".")
            )
            if any(isinstance(part, One) for part in parts):
                return Dotted(parts)
        return Value(value)

    def sequence(self, elements: list[Any], kind: str | None, not_empty: bool, *, top: bool = False) -> Sequence:
        """The matcher of a list whose ``$$$`` stand for ``kind``; ``top``: the pattern's own statements."""
        items = [self._element(element, kind) for element in elements]
        if top and isinstance(items[0], Node) and is_definition(elements[0]) and not elements[0].decorator_list:
            fields = tuple(part for part in items[0].fields if part[0] != "decorator_list")
            items[0] = Node(items[0].label, fields)
        rest = [0]
        for item in reversed(items):
            rest.append(rest[-1] + (not isinstance(item, Many)))
        return Sequence(tuple(items), tuple(reversed(rest)), not_empty)

    def _element(self, element: Any, kind: str | None) -> Any:
        slot = lone_slot(element, self.slots)
        if slot is None:
            return self.compile(element)
        if slot.many:
            if kind is None:
                self._single(slot)
            return Many(slot.name, str(kind))
        match kind:
            case "arguments" | "parameters" | "type parameters" | "patterns":
                return One(slot.name, kind[:-1])
            case "items":
                return One(slot.name, "item")
            case "statements" if slot.name is None:
                return One(None, "statement")
            case "names" if isinstance(element, str):
                return One(slot.name, "name")
            case "cases":
                raise PatternError(f"write $$${slot.name or ''} for the cases of a match", slot.line)
        return self.compile(element)


def metavariables(item: Any) -> list[str]:
    """The metavariables of a part of a pattern, once for each place."""
    names: list[str] = []
    pending = [item]
    while pending:
        part = pending.pop()
        if isinstance(part, One | Many):
            names += [part.name] if part.name is not None else []
        elif isinstance(part, Sequence):
            pending += part.items
        elif isinstance(part, Index | Display):
            pending.append(part.sequence)
        elif isinstance(part, Dotted):
            pending += part.parts
        elif isinstance(part, Node):
            pending += [value for _, value in part.fields]
    return names


def is_sure(item: Any) -> bool:
    """True where the item matches a piece of code in one way only: no list in it has two ``$$$``."""
    pending = [item]
    while pending:
        part = pending.pop()
        if isinstance(part, Sequence):
            if sum(isinstance(element, Many) for element in part.items) > 1:
                return False
            pending += part.items
        elif isinstance(part, Index | Display):
            pending.append(part.sequence)
        elif isinstance(part, Node):
            pending += [value for _, value in part.fields]
    return True
