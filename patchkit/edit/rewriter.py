"""One syntax edit at one match: what it does to the tree, and the splices that do it to the text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from patchkit.edit import blocks
from patchkit.edit.blocks import Run
from patchkit.edit.captures import Capture, end_of_line
from patchkit.edit.fill import Filled, ends_in_comment, fill_expression, fill_statements
from patchkit.edit.header import header_of
from patchkit.edit.indent import file_unit, indentation, reindent
from patchkit.edit.outline import Outline
from patchkit.edit.parse import BLANKS, PARSE_ERRORS, Parse
from patchkit.edit.shape import dotted_name, is_definition, is_statement, name_of
from patchkit.edit.source import Splice
from patchkit.edit.spans import Found, Span
from patchkit.edit.template import Builder, Piece, Template, check_names, compile_template, wrong
from patchkit.edit.together import Part
from patchkit.errors import PlanError
from patchkit.model.patch import Action

BODY = "BODY"
"""The metavariable of a ``wrap`` template that stands for what was matched."""

_FSTRING = re.compile(r"""\b(?:[ft]r?|r[ft])['"]""", re.IGNORECASE)


class Change:
    """What an edit does to the tree: ``nodes`` take the place of, or stand beside, the matched ones.

    ``statements`` is True where whole statements are changed, ``target`` then being the run and otherwise the
    expression.
    """

    __slots__ = ("nodes", "statements", "target")

    def __init__(self, target: tuple[Any, ...], nodes: list[Any], statements: bool) -> None:
        self.target = target
        self.nodes = nodes
        self.statements = statements


def bound_names(names: Mapping[str, bool], action: Action) -> dict[str, bool]:
    """The names that a template may use, True for those of ``$$$``.

    Raises:
        PlanError: ``template``: the pattern binds what `wrap` binds itself.
    """
    bound = dict(names)
    if action == "wrap":
        if BODY in bound:
            raise wrong("the pattern binds BODY, which stands for the matched code in `wrap`", "rename it in `match`")
        bound[BODY] = True
    return bound


def check_wrap(template: Template, action: Action) -> None:
    """Refuse a `wrap` that has no place for what it wraps.

    Raises:
        PlanError: ``template``.
    """
    if action == "wrap" and all(slot.name != BODY for slot in template.slots.values()):
        raise wrong("the template of `wrap` has no $$$BODY", "put $$$BODY where the matched code goes")


class Rewriter:
    """One edit at one match.

    Raises:
        PlanError: As :func:`patchkit.edit.rewrite.rewrite`.
    """

    def __init__(
        self, outline: Outline, found: Found, action: Action, template: str, parse: Parse, edit: int = 0
    ) -> None:
        """Check that the edit can be done, but for its text."""
        self.edit = edit
        self.outline = outline
        self.text = outline.source.text
        self.found = found
        self.action: Action = action
        self.parse = parse
        self.is_expression = not is_statement(found.nodes[0])
        self.template = compile_template("" if action == "delete" else template, parse)
        bound = {name: capture.many for name, capture in found.captures.items()}
        check_names(self.template, bound_names(bound, action))
        self._known: tuple[Filled | None, ...] = ()
        if action in ("replace", "wrap") and self.is_expression and self.template.is_expression:
            self.run = None
        else:
            self.run = Run(outline, self._statements(), self._start())
        check_wrap(self.template, action)
        self.pieces = {name: self._piece(capture) for name, capture in found.captures.items() if self._used(name)}
        if action == "wrap":
            self.pieces[BODY] = self._body()
        for name in self.pieces:
            if name in found.captures and not found.captures[name].exact:
                self._inexact(f"what ${name} stands for")

    # -- what is changed -----------------------------------------------------------------------------------------

    def _used(self, name: str) -> bool:
        return any(slot.name == name for slot in self.template.slots.values())

    def _start(self) -> int | None:
        """Where the run begins: behind decorators that the pattern does not name, when it is replaced."""
        replacing = self.action == "replace" and not self.is_expression
        return self.found.span.start if replacing and self.template.body else None

    def _statements(self) -> tuple[Any, ...]:
        """The matched statements; those of an expression are the statement that it wholly is.

        Raises:
            PlanError: ``place``: the expression is only a part of its statement.
        """
        found = self.found
        if not self.is_expression:
            return found.nodes
        owner = found.owner
        if name_of(owner) == "Expr" and owner.value is found.nodes[0]:  # type: ignore[union-attr]
            return (owner,)
        start = self.text.rfind("\n", 0, found.span.start) + 1
        line = self.text[start : self.outline.source.line_end(found.span.start)].strip()
        by_template = self.action in ("replace", "wrap")
        what = "the template is a statement" if by_template else f"`{self.action}` is for statements"
        raise PlanError(
            f"the pattern matches an expression within a statement, and {what}",
            code="place",
            hint=f"match the whole statement, for example `{_suggestion(owner) or line}`",
            details={"statement": line},
        )

    def _inexact(self, what: str) -> None:
        raise PlanError(
            f"{what} lies within an f-string at a place that this Python does not tell exactly",
            code="place",
            hint="match the whole f-string or statement, or use a text edit (`find`)",
        )

    def _piece(self, capture: Capture) -> Piece:
        outline, span = self.outline, capture.span
        if capture.kind == "name":
            return Piece("name", capture.nodes, dotted_name(capture.nodes[0]) or "")
        text = self.text[span.start : span.end]
        indent = ""
        if capture.kind in ("statements", "cases") and capture.nodes:
            indent = indentation(outline.indent_of(capture.nodes[0]))
            if capture.kind == "statements" and outline.is_elif(capture.nodes[0]):
                text = text.removeprefix("el")
        elif capture.kind == "decorators":
            line = outline.source.line_start(span.start)
            indent = indentation(self.text[line : span.start])
        outer = None if capture.outer is None else self.text[capture.outer.start : capture.outer.end]
        return Piece(capture.kind, capture.nodes, text, indent, outer)

    def _body(self) -> Piece:
        """What ``$$$BODY`` stands for in ``wrap``: the matched code, statements with the comment on their last line."""
        run = self.run
        if run is None:
            return Piece("expression", self.found.nodes, self.text[self.found.span.start : self.found.span.end])
        return Piece("statements", run.nodes, self.text[run.start : self._end()], run.indent)

    def _end(self) -> int:
        """Where what is replaced ends: behind the comments, where they are part of what the template takes along."""
        run = self.run
        assert run is not None
        end = run.end
        if self.action == "wrap" and run.next_start is None:
            end = end_of_line(self.text, end, run.line_end)
            below = len(self.text[: blocks.behind(run)].rstrip("\n"))
            end = below if below > run.line_end else end
        for name, capture in self.found.captures.items():
            if self._used(name) and capture.kind in ("statements", "cases"):
                end = max(end, capture.span.end)
        return end

    def change(self) -> Change:
        """The change to the tree."""
        nodes = Builder(self.template, self.pieces).statements()
        if self.run is None:
            return Change(self.found.nodes, [nodes[0].value], False)
        self._check_decorators(nodes)
        return Change(self.run.nodes, nodes, True)

    def _check_decorators(self, nodes: list[Any]) -> None:
        """Decorators that the pattern leaves alone must have a definition below them afterwards."""
        run = self.run
        assert run is not None
        if run.start != run.full_start and not (nodes and is_definition(nodes[0])):
            raise PlanError(
                "the matched definition has decorators, which `replace` leaves where they are, and the template does "
                "not begin with a definition for them",
                code="place",
                hint="take the decorators into the pattern: `@$$$D` on the line above the def",
            )

    # -- splices -------------------------------------------------------------------------------------------------

    def splices(self) -> list[Splice]:
        """The splices."""
        run, edit = self.run, self.edit
        if run is None:
            return self._expression()
        filled = self._filled()
        if filled is None:
            return blocks.delete(run, edit) if self._role() == "instead" else []
        if self.action == "insert_before":
            return blocks.insert_before(run, filled, edit)
        if self.action == "insert_after":
            return blocks.insert_after(run, filled, edit)
        if run.elif_arm:
            if self.action == "replace" and not filled.nodes:
                return blocks.delete(run, edit)
            deeper = self._fill(run.deeper)
            return blocks.replace_elif(run, filled, edit, self._end(), deeper.text)
        if not filled.nodes and run.empties:
            filled = filled._replace(text=f"{filled.text}\n{run.block_indent}pass")
        return blocks.replace(run, filled, edit, self._end())

    def part(self) -> Part | None:
        """The edit as one of several of its block; None for one of an expression, and for one that does nothing."""
        if self.run is None:
            return None
        filled, role = self._filled(), self._role()
        if filled is None and role != "instead":
            return None
        return Part(self.run, role, filled, self.edit, self._end())

    def copied(self) -> list[tuple[Span, int]]:
        """The places of the statements that an insertion copies, each with the edit's number."""
        if self._role() == "instead":
            return []
        captures = [capture for name, capture in self.found.captures.items() if self._used(name)]
        outline = self.outline
        return [
            (Span(outline.span(c.nodes[0]).start, outline.span(c.nodes[-1]).end), self.edit)
            for c in captures
            if c.kind in ("statements", "cases") and c.nodes
        ]

    def _role(self) -> str:
        return {"insert_before": "before", "insert_after": "after"}.get(self.action, "instead")

    def _filled(self) -> Filled | None:
        """The filled template, None where it comes to nothing."""
        if not self._known:
            self._known = (self._fill_in(),)
        return self._known[0]

    def _fill_in(self) -> Filled | None:
        run = self.run
        assert run is not None
        empty = not self.template.text.strip()
        if self.action == "delete" or (self.action == "replace" and empty):
            return None
        if self.action != "replace":
            blocks.refuse_elif(run, f"`{self.action}`")
        if empty:
            raise wrong("the template is empty", f"write what `{self.action}` puts there")
        filled = self._fill(run.block_indent)
        if self._role() == "instead":
            self._check_decorators(filled.nodes)
        return filled if filled.text.strip() else None

    def _fill(self, indent: str) -> Filled:
        assert self.run is not None
        with self._reasons() as parse:
            return fill_statements(self.template, self.pieces, indent, self.run.unit, parse)

    @contextmanager
    def _reasons(self) -> Iterator[Parse]:
        """Have the error of a filled template say what the parser says of it."""
        reasons: list[str | None] = []  # of every attempt; the first is the template as it is written

        def parse(text: str) -> ast.Module:
            try:
                tree = self.parse(text)
            except PARSE_ERRORS as error:
                reasons.append(getattr(error, "msg", None) or str(error) or type(error).__name__)
                raise
            reasons.append(None)
            return tree

        try:
            yield parse
        except PlanError as error:
            if not reasons or reasons[0] is None:
                raise
            hint = "write the template so that it is Python with what was captured"
            if _FSTRING.search(error.message):
                hint += "; within an f-string, quotes and backslashes must differ from the literal's"
            raise PlanError(
                f"{error.message}\nwhich does not parse: {reasons[0]}",
                code=error.code,
                hint=hint,
                details=error.details,
            ) from None

    def _expression(self) -> list[Splice]:
        """Replace an expression, in parentheses where its place asks for them."""
        found = self.found
        if not found.exact:
            self._inexact("the matched expression")
        source = self.outline.source
        begin = source.line_start(found.span.start)
        indent = indentation(self.text[begin : found.span.start])
        unit = file_unit(self.outline)
        template = self.template
        if unit is not None and "\n" in template.text:
            template = template._replace(text=reindent(template.text, "", unit))
        with self._reasons() as parse:
            filled = fill_expression(template, self.pieces, indent, parse)
        wanted = filled.nodes[0].value
        header = header_of(self.outline, found.owner)
        text = filled.text.strip("\n")
        # A comment at its end would swallow the next statement of the line, which no header holds.
        shared = self.text[found.span.end : source.line_end(found.span.end)].lstrip(BLANKS).startswith(";")
        for new in (text, f"({text})", f"({text}\n{indent})"):
            if shared and ends_in_comment(new):
                continue
            if header.makes(found.span, new, {id(found.nodes[0]): wanted}, self.parse):
                return [Splice(found.span.start, found.span.end, new, self.edit)]
        if _shows_itself(found):
            raise PlanError(
                "the pattern matches code in an f-string whose `=` shows that code's own text, so that the string "
                "would change with it",
                code="place",
                hint="match the whole f-string or statement and write it out in the template, or use a text edit "
                "(`find`)",
            )
        raise PlanError(
            f"the replacement does not fit into its place, with parentheses or without: {text}",
            code="template",
            hint="inside an f-string, quotes and backslashes of the replacement must differ from the literal's"
            if _in_literal(self.outline, found)
            else "the matched code is assigned to or deleted here: match the statement"
            if name_of(getattr(found.nodes[0], "ctx", None)) in ("Store", "Del")
            else "match the whole statement and write it out in the template",
        )


def _shows_itself(found: Found) -> bool:
    """True where the matched expression lies in a replacement field with ``=``, such as ``f"{f(a)=}"``.

    Such a field makes two pieces of the tree: its text with the ``=`` (at the end of a constant), and its value.
    """
    for literal in ast.walk(found.owner) if found.owner is not None else ():
        if name_of(literal) not in ("JoinedStr", "TemplateStr"):
            continue
        values = literal.values  # type: ignore[attr-defined]
        for before, field in pairwise(values):
            if any(node is found.nodes[0] for node in ast.walk(field)) and name_of(before) == "Constant":
                shown = before.value.rstrip()
                if shown.endswith("=") and _is_code_of(shown[:-1], field.value):
                    return True
    return False


def _is_code_of(text: str, value: ast.expr) -> bool:
    """True where ``text`` ends with the code of ``value``, but for its layout."""
    blank = str.maketrans("", "", " \t\f\n\\()'\"")
    return text.translate(blank).endswith(ast.unparse(value).translate(blank))


def _in_literal(outline: Outline, found: Found) -> bool:
    """True where the matched expression lies within an f-string."""
    source = outline.source
    start = source.line_start(found.span.start)
    return _FSTRING.search(source.text[start : source.line_end(found.span.end)]) is not None


def _suggestion(owner: Any) -> str | None:
    """A pattern for the whole of a statement."""
    match name_of(owner):
        case "Assign":
            return "$_ = ..."
        case "AugAssign":
            return "$_ += ..."
        case "AnnAssign":
            return "$_: $_ = ..."
        case "Return":
            return "return ..."
    return None
