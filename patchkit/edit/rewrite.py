"""From a match and a template to splices.

Every splice lies within the match's own lines, and no byte outside the edited nodes changes. What the splices must
make of the tree is proved afterwards, for the whole file, by :mod:`patchkit.edit.proof`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchkit.edit import blocks
from patchkit.edit.blocks import Run
from patchkit.edit.captures import Capture, end_of_line
from patchkit.edit.fill import fill_expression, fill_statements
from patchkit.edit.header import header_of
from patchkit.edit.indent import BLANKS, dedent
from patchkit.edit.matcher import find_pattern
from patchkit.edit.outline import Outline
from patchkit.edit.pattern import PARSE_ERRORS, Parse, Pattern, compile_pattern
from patchkit.edit.shape import dotted_name, is_definition, is_statement, name_of
from patchkit.edit.source import Source, Splice
from patchkit.edit.spans import Found, Span
from patchkit.edit.template import Builder, Piece, Template, check_names, compile_template, wrong
from patchkit.errors import PlanError
from patchkit.model.patch import Action

BODY = "BODY"
"""The metavariable of a ``wrap`` template that stands for what was matched."""


def rewrite(
    outline: Outline, found: Found, action: Action, template: str, *, parse: Parse, edit: int = 0
) -> list[Splice]:
    """The splices of one syntax edit at one match.

    Args:
        outline: The file that ``found`` was found in.
        found: A match of :func:`~patchkit.edit.matcher.find_pattern`.
        action: ``replace``, ``insert_before``, ``insert_after``, ``delete`` or ``wrap``.
        template: Its text as written in the patch file; not read for ``delete``.
        parse: The site's grammar.
        edit: The edit's number, for the splices.

    Raises:
        PlanError: ``template``: the template is wrong, or cannot stand here; ``place``: the match cannot be edited.
    """
    return _Rewriter(outline, found, action, template, parse).splices(edit)


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


def change_of(outline: Outline, found: Found, action: Action, template: str, parse: Parse) -> Change:
    """What the edit must make of the tree, without its text.

    Raises:
        PlanError: As :func:`rewrite`.
    """
    return _Rewriter(outline, found, action, template, parse).change()


def check_template(pattern: Pattern, action: Action, template: str, parse: Parse) -> None:
    """Refuse a template that no match of ``pattern`` could use; needs no file.

    Raises:
        PlanError: ``template``.
    """
    if action != "delete":
        compiled = compile_template(template, parse)
        check_names(compiled, _bound(pattern.names, action))
        _check_wrap(compiled, action)


def rewrite_text(before: str, pattern: str, action: Action, template: str, parse: Parse) -> str:
    """Apply an edit to every match in a snippet; ``lint`` runs ``[[edit.example]]`` with it.

    Raises:
        PatternError: The pattern is wrong.
        PlanError: The snippet does not parse, nothing in it matches, or as :func:`rewrite`.
    """
    from patchkit.edit.proof import lay, prove

    source = Source(dedent(before).encode(), path="<example>.py")
    try:
        outline = Outline(source, parse(source.text))
    except PARSE_ERRORS as error:
        raise PlanError(f"`before` does not parse: {error}", code="example", hint="correct the example") from None
    found = find_pattern(outline, compile_pattern(pattern, parse), [Span(0, len(source.text))])
    if not found:
        raise PlanError("`match` matches nowhere in `before`", code="example", hint="correct the example or `match`")
    splices = [splice for match in found for splice in rewrite(outline, match, action, template, parse=parse)]
    after = lay(source.text, splices)
    prove(outline, [(match, action, template) for match in found], after, parse)
    return after


def _bound(names: Mapping[str, bool], action: Action) -> dict[str, bool]:
    bound = dict(names)
    if action == "wrap":
        if BODY in bound:
            raise wrong("the pattern binds BODY, which stands for the matched code in `wrap`", "rename it in `match`")
        bound[BODY] = True
    return bound


def _check_wrap(template: Template, action: Action) -> None:
    if action == "wrap" and all(slot.name != BODY for slot in template.slots.values()):
        raise wrong("the template of `wrap` has no $$$BODY", "put $$$BODY where the matched code goes")


class _Rewriter:
    def __init__(self, outline: Outline, found: Found, action: Action, template: str, parse: Parse) -> None:
        self.outline = outline
        self.text = outline.source.text
        self.found = found
        self.action: Action = action
        self.parse = parse
        self.is_expression = not is_statement(found.nodes[0])
        self.template = compile_template("" if action == "delete" else template, parse)
        bound = {name: capture.many for name, capture in found.captures.items()}
        check_names(self.template, _bound(bound, action))
        if action in ("replace", "wrap") and self.is_expression and self.template.is_expression:
            self.run = None
        else:
            self.run = Run(outline, self._statements(), self._start())
        _check_wrap(self.template, action)
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
            indent = outline.indent_of(capture.nodes[0])
            if capture.kind == "statements" and outline.is_elif(capture.nodes[0]):
                text = text.removeprefix("el")
        elif capture.kind == "decorators":
            line = outline.source.line_start(span.start)
            indent = self.text[line : span.start]
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

    def splices(self, edit: int) -> list[Splice]:
        """The splices."""
        run = self.run
        if run is None:
            return self._expression(edit)
        if self.action == "delete" or (self.action == "replace" and not self.template.text.strip()):
            return blocks.delete(run, edit)
        if self.action != "replace":
            blocks.refuse_elif(run, f"`{self.action}`")
        if not self.template.text.strip():
            raise wrong("the template is empty", f"write what `{self.action}` puts there")
        filled = fill_statements(self.template, self.pieces, run.block_indent, run.unit, self.parse)
        if self.action == "insert_before":
            return blocks.insert_before(run, filled, edit)
        if self.action == "insert_after":
            return blocks.insert_after(run, filled, edit)
        self._check_decorators(filled.nodes)
        if run.elif_arm:
            if self.action == "replace" and not filled.nodes:
                return blocks.delete(run, edit)
            deeper = fill_statements(self.template, self.pieces, run.deeper, run.unit, self.parse)
            return blocks.replace_elif(run, filled, edit, self._end(), deeper.text)
        if not filled.nodes and run.is_whole_block and name_of(run.owner) != "Module":
            filled = filled._replace(text=f"{filled.text}\n{run.block_indent}pass")
        return blocks.replace(run, filled, edit, self._end())

    def _expression(self, edit: int) -> list[Splice]:
        """Replace an expression, in parentheses where its place asks for them."""
        found = self.found
        if not found.exact:
            self._inexact("the matched expression")
        source = self.outline.source
        begin = source.line_start(found.span.start)
        line = self.text[begin : found.span.start]
        indent = line[: len(line) - len(line.lstrip(BLANKS))]
        filled = fill_expression(self.template, self.pieces, indent, self.parse)
        wanted = filled.nodes[0].value
        header = header_of(self.outline, found.owner)
        text = filled.text.strip("\n")
        for new in (text, f"({text})", f"({text}\n{indent})"):
            if header.makes(found.span, new, {id(found.nodes[0]): wanted}, self.parse):
                return [Splice(found.span.start, found.span.end, new, edit)]
        inside = _in_literal(self.outline, found, self.parse)
        raise PlanError(
            f"the replacement does not fit into its place, with parentheses or without: {text}",
            code="template",
            hint="inside an f-string, quotes and backslashes of the replacement must differ from the literal's"
            if inside
            else "the matched code is assigned to or deleted here: match the statement"
            if name_of(getattr(found.nodes[0], "ctx", None)) in ("Store", "Del")
            else "match the whole statement and write it out in the template",
        )


def _in_literal(outline: Outline, found: Found, parse: Parse) -> bool:
    """True where the matched expression lies within an f-string."""
    source = outline.source
    start = source.line_start(found.span.start)
    line = source.text[start : source.line_end(found.span.end)]
    return any(quote in line for quote in ("f'", 'f"', "F'", 'F"', "t'", 't"'))


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
