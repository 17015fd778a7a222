"""Templates: code with metavariables that is put in the place of a match, as text and as the tree it must make.

The tree comes first: a template's own tree with each metavariable replaced by what it matched. The text
(:mod:`patchkit.edit.fill`) is right when it parses to that tree.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from patchkit.edit.indent import dedent
from patchkit.edit.metavars import MetavariableError, Slot, encode
from patchkit.edit.parse import Parse
from patchkit.edit.pattern import PatternError, list_kind, lone_slot, parse_snippet
from patchkit.edit.shape import Group, dotted_name, is_expression, is_statement, name_of, parameters, view
from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple


class Template(NamedTuple):
    """A parsed template: its text with identifiers for metavariables, their slots, and its statements."""

    text: str
    slots: dict[str, Slot]
    body: list[Any]

    @property
    def is_expression(self) -> bool:
        """True where it is one expression."""
        return len(self.body) == 1 and name_of(self.body[0]) == "Expr"


class Piece(NamedTuple):
    """Captured code on its way into a template: what :class:`~patchkit.edit.captures.Capture` says, with its text.

    ``indent`` is the indentation of the line that it began on, ``outer`` the text of the capture's ``outer``.
    """

    kind: str
    nodes: tuple[Any, ...]
    text: str
    indent: str = ""
    outer: str | None = None


def wrong(message: str, hint: str | None = None) -> PlanError:
    """The error of a template that does not do."""
    return PlanError(message, code="template", hint=hint or "correct the template in the patch file")


@lru_cache(maxsize=64)
def compile_template(text: str, parse: Parse) -> Template:
    """Parse a template as it is written in TOML: its common indentation and one line break at its end do not count.

    Raises:
        PlanError: ``template``: it does not parse, or uses ``$_`` or ``$$$``, which stand for nothing.
    """
    try:
        encoded = encode(dedent(text.removesuffix("\n")))
        template = Template(encoded.text, encoded.slots, parse_snippet(encoded, parse))
    except MetavariableError as error:
        raise wrong(f"the template cannot be read: {error.message} (line {error.line})") from None
    except PatternError as error:
        raise wrong(f"the template cannot be used: {error.message}") from None
    for slot in template.slots.values():
        if slot.name is None:
            raise wrong(
                f"the template uses {slot.text} (line {slot.line}), which captures nothing",
                "give it a name, here and in `match`",
            )
    return template


def check_names(template: Template, bound: Mapping[str, bool]) -> None:
    """Refuse a template that uses what is not bound; ``bound`` has True for the names of ``$$$`` metavariables.

    Raises:
        PlanError: ``template``, with the nearest name.
    """
    for slot in template.slots.values():
        assert slot.name is not None
        if slot.name in bound:
            if bound[slot.name] != slot.many:
                right = ("$$$" if bound[slot.name] else "$") + slot.name
                raise wrong(f"the template uses {slot.text} (line {slot.line}), but the pattern binds {right}")
            continue
        names = [("$$$" if many else "$") + name for name, many in bound.items()]
        from difflib import get_close_matches

        near = get_close_matches(slot.name.lower(), [name.lower() for name in bound], 1, 0.5)
        meant = [name for name in names if near and name.lstrip("$").lower() == near[0]]
        raise wrong(
            f"the template uses {slot.text} (line {slot.line}), which the pattern does not bind"
            + (f"; did you mean {meant[0]}?" if meant else f"; it binds {', '.join(names)}" if names else ""),
        )


_COMMA = frozenset({"arguments", "elements"})


class Builder:
    """Makes the tree of a template. ``roles`` tells afterwards what each slot stands for, by its identifier.

    ``loose`` holds the identifiers of those that stand for one expression, which may need parentheses.
    """

    def __init__(self, template: Template, pieces: Mapping[str, Piece], only: Iterable[str] | None = None) -> None:
        """``only``: the identifiers of the slots to fill; the others stay as they are."""
        self.slots = template.slots
        self.template = template
        self.pieces = pieces
        self.only = None if only is None else frozenset(only)
        self.roles: dict[str, str] = {}
        self.loose: set[str] = set()

    def statements(self) -> list[Any]:
        """The template's statements, filled.

        Raises:
            PlanError: ``template``: a capture cannot stand where the template has it.
        """
        try:
            return self._list(self.template.body, "statements")
        except RecursionError:
            raise wrong("the template is nested too deeply", "put a metavariable for a part of it") from None

    def _piece(self, slot: Slot) -> Piece | None:
        assert slot.name is not None
        return self.pieces[slot.name] if self.only is None or slot.identifier in self.only else None

    def _unfit(self, slot: Slot, piece: Piece, wanted: str) -> PlanError:
        shown = piece.text if len(piece.text) <= 60 else piece.text[:57] + "..."
        return wrong(f"{slot.text} stands for {shown!r} here, and the template (line {slot.line}) has it as {wanted}")

    # -- single places -------------------------------------------------------------------------------------------

    def node(self, node: Any) -> Any:
        """A node of the template, filled."""
        label = name_of(node)
        if label == "Name" and node.id in self.slots:
            return self._expression(self.slots[node.id], node)
        if label == "MatchAs" and node.pattern is None and node.name in self.slots:
            return self._pattern(self.slots[node.name], node)
        special = getattr(self, f"_{label}", None)
        if special is not None:
            return special(node)
        return self._copy(node)

    def _copy(self, node: Any, leave: tuple[str, ...] = ()) -> Any:
        new = copy.copy(node)
        label = name_of(node)
        for field in node._fields:
            value = getattr(node, field, None)
            if field in leave or value is None:
                continue
            if isinstance(value, list):
                setattr(new, field, self._block(value, list_kind(label, field)))
            elif isinstance(value, ast.AST):
                setattr(new, field, self.node(value))
            elif isinstance(value, str) and label != "Constant":
                setattr(new, field, self._name(value, (label, field)))
        return new

    def _block(self, values: list[Any], kind: str | None) -> list[Any]:
        filled = self._list(values, kind)
        return [ast.Pass()] if kind == "statements" and values and not filled else filled

    def _expression(self, slot: Slot, node: Any) -> Any:
        self.roles[slot.identifier] = "expression"
        self.loose.add(slot.identifier)
        piece = self._piece(slot)
        if piece is None:
            return node
        if piece.kind == "pattern":
            value = getattr(piece.nodes[0], "value", None)
            if name_of(piece.nodes[0]) == "MatchValue":
                return value
            if name_of(piece.nodes[0]) == "MatchAs" and piece.nodes[0].pattern is None and piece.nodes[0].name:
                return ast.Name(id=piece.nodes[0].name, ctx=ast.Load())
        if piece.kind not in ("expression", "name"):
            raise self._unfit(slot, piece, "an expression")
        return piece.nodes[0]

    def _pattern(self, slot: Slot, node: Any) -> Any:
        self.roles[slot.identifier] = "pattern"
        piece = self._piece(slot)
        if piece is None:
            return node
        value: Any = piece.nodes[0] if piece.nodes else None
        if name_of(value).startswith("Match"):
            return value
        if name_of(value) == "Name":
            return ast.MatchAs(pattern=None, name=value.id)
        if name_of(value) == "Constant" and (value.value is None or isinstance(value.value, bool)):
            return ast.MatchSingleton(value=value.value)
        if is_expression(value):
            return ast.MatchValue(value=value)
        raise self._unfit(slot, piece, "a pattern")

    def _name(self, value: str, place: tuple[str, str]) -> str:
        dots = place in (("alias", "name"), ("ImportFrom", "module"))
        parts = value.split(".") if dots else [value]
        for index, part in enumerate(parts):
            slot = self.slots.get(part)
            if slot is None:
                continue
            self.roles[slot.identifier] = "name"
            piece = self._piece(slot)
            if piece is None:
                continue
            name = dotted_name(piece.nodes[0]) if len(piece.nodes) == 1 else None
            if name is None or ("." in name and not dots) or piece.kind.endswith("s"):
                raise self._unfit(slot, piece, "a name")
            parts[index] = name
        return ".".join(parts)

    # -- lists ---------------------------------------------------------------------------------------------------

    def _list(self, values: list[Any], kind: str | None) -> list[Any]:
        out: list[Any] = []
        for value in values:
            slot = lone_slot(value, self.slots)
            if slot is None:
                if isinstance(value, str):
                    out.append(self._name(value, ("", "")))
                else:
                    out.append(self._group(value) if isinstance(value, Group) else self.node(value))
            elif slot.many or kind in ("arguments", "parameters", "items", "type parameters", "patterns"):
                out += self._members(slot, kind, value)
            elif isinstance(value, str):
                out.append(self._name(value, ("", "")))
            else:
                out.append(self.node(value))
        return out

    def _group(self, group: Group) -> Group:
        if group.label == "param":
            default = group.get("default")
            arg = self.node(group.get("arg"))
            default = None if default is None else self.node(default)
            star, name = group.get("star"), arg.arg
            return Group("param", star=star, name=name, annotation=arg.annotation, default=default, arg=arg)
        parts: dict[str, Any] = {}
        for name, value in group.fields:
            if isinstance(value, str):
                parts[name] = self._name(value, ("", ""))
            else:
                parts[name] = None if value is None else self.node(value)
        return Group(group.label, **parts)

    def _members(self, slot: Slot, kind: str | None, value: Any) -> list[Any]:
        """What a metavariable contributes to a list."""
        if kind is None:
            raise wrong(f"{slot.text} (line {slot.line}) stands for several pieces where the template needs one")
        self.roles[slot.identifier] = kind
        piece = self._piece(slot)
        if piece is None:
            return [value]
        if kind == "patterns" and not piece.kind.endswith("s"):
            return [self._pattern(slot, value)]
        nodes = list(piece.nodes)
        if kind == "statements" and piece.kind == "expression":
            return [ast.Expr(value=nodes[0])]
        if kind == "parameters" and piece.kind == "name":
            name = nodes[0].id
            nodes = [Group("param", star="", name=name, annotation=None, default=None, arg=ast.arg(arg=name))]
        if kind == "type parameters" and piece.kind == "name":
            nodes = [copy.copy(value)]
            nodes[0].name = piece.nodes[0].id
        fitting = piece.kind == kind or len(nodes) < 2 or {piece.kind, kind} <= _COMMA
        if not fitting or not all(_fits(node, kind) for node in nodes):
            raise self._unfit(slot, piece, f"one of its {kind}" if not slot.many else kind)
        if len(nodes) == 1 and is_expression(nodes[0]) and name_of(nodes[0]) != "Starred":
            self.loose.add(slot.identifier)
        return nodes

    # -- nodes whose lists are merged in patterns ----------------------------------------------------------------

    def _Call(self, node: Any) -> Any:
        new = copy.copy(node)
        new.func = self.node(node.func)
        self._call_arguments(new, node, "args")
        return new

    def _ClassDef(self, node: Any) -> Any:
        new = self._copy(node, ("bases", "keywords"))
        self._call_arguments(new, node, "bases")
        return new

    def _call_arguments(self, new: Any, node: Any, field: str) -> None:
        merged = self._list(dict(view(node)[1])["arguments"], "arguments")
        setattr(new, field, [argument for argument in merged if name_of(argument) != "keyword"])
        new.keywords = [argument for argument in merged if name_of(argument) == "keyword"]

    def _arguments_node(self, groups: list[Group], node: Any) -> Any:
        new = copy.copy(node)
        new.posonlyargs, new.args, new.kwonlyargs = [], [], []
        new.defaults, new.kw_defaults = [], []
        new.vararg = new.kwarg = None
        keyword_only = False
        for group in groups:
            if group.label == "slash":
                new.posonlyargs, new.args = new.args, []
            elif group.label == "star":
                keyword_only = True
            elif group.get("star") == "*":
                new.vararg, keyword_only = group.get("arg"), True
            elif group.get("star") == "**":
                new.kwarg = group.get("arg")
            elif keyword_only:
                new.kwonlyargs.append(group.get("arg"))
                new.kw_defaults.append(group.get("default"))
            else:
                new.args.append(group.get("arg"))
                new.defaults += [] if group.get("default") is None else [group.get("default")]
        return new

    def _FunctionDef(self, node: Any) -> Any:
        new = self._copy(node, ("args",))
        new.args = self._arguments_node(self._list(parameters(node.args), "parameters"), node.args)
        return new

    _AsyncFunctionDef = _FunctionDef
    _Lambda = _FunctionDef

    def _Dict(self, node: Any) -> Any:
        new = copy.copy(node)
        items = self._list(view(node)[1][0][1], "items")
        new.keys = [item.get("key") for item in items]
        new.values = [item.get("value") for item in items]
        return new

    def _Set(self, node: Any) -> Any:
        slots = [lone_slot(element, self.slots) for element in node.elts]
        pieces = [self._piece(slot) for slot in slots if slot is not None and slot.many]
        filled = [piece for piece in pieces if piece is not None]
        if len(filled) == len(slots) and all(not piece.nodes or piece.kind == "items" for piece in filled):
            items = self._list(node.elts, "items")
            return ast.Dict(keys=[item.get("key") for item in items], values=[item.get("value") for item in items])
        return self._copy(node)

    def _MatchClass(self, node: Any) -> Any:
        new = copy.copy(node)
        new.cls = self.node(node.cls)
        merged = self._list(dict(view(node)[1])["patterns"], "patterns")
        named = [pattern for pattern in merged if isinstance(pattern, Group)]
        new.patterns = [pattern for pattern in merged if not isinstance(pattern, Group)]
        new.kwd_attrs = [pattern.get("name") for pattern in named]
        new.kwd_patterns = [pattern.get("value") for pattern in named]
        return new

    def _MatchMapping(self, node: Any) -> Any:
        new = copy.copy(node)
        items = self._list(view(node)[1][0][1], "items")
        named = [item for item in items if item.get("key") is not None]
        new.keys = [item.get("key") for item in named]
        new.patterns = [item.get("value") for item in named]
        new.rest = next((item.get("value") for item in items if item.get("key") is None), None)
        return new

    def _BoolOp(self, node: Any) -> Any:
        new = self._copy(node)
        if not new.values:
            raise wrong("the template has an `and` or `or` whose operands all stand for nothing here")
        return new.values[0] if len(new.values) == 1 else new

    def _Subscript(self, node: Any) -> Any:
        new = self._copy(node, ("slice",))
        slot = lone_slot(node.slice, self.slots)
        if slot is None or not slot.many:
            new.slice = self.node(node.slice)
            return new
        members = self._members(slot, "elements", node.slice)
        if not members:
            raise wrong(f"{slot.text} stands for nothing here, and the template has it as a subscript")
        alone = len(members) == 1 and name_of(members[0]) != "Starred"
        new.slice = members[0] if alone else ast.Tuple(elts=members, ctx=ast.Load())
        return new


def _fits(node: Any, kind: str) -> bool:
    match kind:
        case "arguments":
            return is_expression(node) or name_of(node) == "keyword"
        case "elements":
            return is_expression(node)
        case "operands" | "targets" | "decorators":
            return is_expression(node) and name_of(node) != "Starred"
        case "parameters":
            return isinstance(node, Group) and node.label in ("param", "slash", "star")
        case "items":
            return isinstance(node, Group) and node.label == "item"
        case "statements":
            return is_statement(node)
        case "names":
            return isinstance(node, str) or name_of(node) in ("alias", "Name")
        case "with items":
            return name_of(node) == "withitem"
        case "patterns":
            return isinstance(node, Group) or name_of(node).startswith("Match")
        case "cases":
            return name_of(node) == "match_case"
    return name_of(node) in ("TypeVar", "TypeVarTuple", "ParamSpec")
