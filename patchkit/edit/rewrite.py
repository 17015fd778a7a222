"""From a match and a template to splices.

Every splice lies within the match's own lines, and no byte outside the edited nodes changes. What the splices must
make of the tree is proved afterwards, for the whole file, by :mod:`patchkit.edit.proof`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from patchkit.edit import together
from patchkit.edit.outline import Outline
from patchkit.edit.parse import Parse
from patchkit.edit.pattern import Pattern
from patchkit.edit.rewriter import Change, Rewriter, bound_names, check_wrap
from patchkit.edit.source import Source, Splice
from patchkit.edit.spans import Found, Span
from patchkit.edit.template import check_names, compile_template
from patchkit.edit.together import Part, Touch
from patchkit.errors import PlanError
from patchkit.model.patch import Action


def rewrite_all(outline: Outline, edits: Sequence[tuple[Found, Action, str, int]], *, parse: Parse) -> list[Splice]:
    """The splices of all syntax edits of one file, in source order; no two of them overlap.

    Edits of statements that share lines are laid out together, and so are those that leave nothing of a block.

    Args:
        outline: The file that every match was found in.
        edits: Match, action, template and the edit's number of each; a number may come several times. A splice of
            several edits carries the lowest.
        parse: The site's grammar.

    Raises:
        PlanError: ``overlap``, with ``edits`` (two numbers), ``path`` and ``line`` in its details: two replace the same
            code, insert at the same place, or one copies code that another changes. ``template``: a template is wrong,
            or cannot stand there; ``place``: a match cannot be edited; both with ``edit`` and ``line`` in details.
    """
    source = outline.source
    splices: list[tuple[Splice, int]] = []  # each with the depth of its block's indentation
    of_block: dict[int, list[tuple[Rewriter, Part]]] = {}
    copies: list[tuple[Span, int]] = []
    touches: list[Touch] = []
    for found, action, template, edit in edits:
        with _told(source, found, edit):
            rewriter = Rewriter(outline, found, action, template, parse, edit)
            part = rewriter.part()
            if part is not None:
                of_block.setdefault(id(part.run.siblings), []).append((rewriter, part))
                copies += rewriter.copied()
                touches.append(part.touch)
            elif rewriter.run is None:
                splices += [(splice, 0) for splice in rewriter.splices()]
                touches.append(Touch(found.span.start, found.span.end, edit))
    for pairs in of_block.values():
        parts = [part for _, part in pairs]
        rewriters = {id(part): rewriter for rewriter, part in pairs}
        together.check_claims(source, parts)
        together.settle(parts)
        depth = len(parts[0].run.block_indent)
        for first, last, members in together.chains(parts):
            if len(members) > 1 and together.share_lines(members[0].run, first, last):
                splices += [(splice, depth) for splice in together.lay_chain(first, last, members)]
                continue
            for part in members:
                rewriter = rewriters[id(part)]
                with _told(source, rewriter.found, rewriter.edit):
                    splices += [(splice, depth) for splice in rewriter.splices()]
    together.check_copies(source, copies, touches)
    return _ordered(source, splices)


@contextmanager
def _told(source: Source, found: Found, edit: int) -> Iterator[None]:
    """Have errors say which edit and match they are of."""
    try:
        yield
    except PlanError as error:
        error.details.setdefault("edit", edit)
        error.details.setdefault("line", source.line(found.span.start))
        raise


def _ordered(source: Source, splices: list[tuple[Splice, int]]) -> list[Splice]:
    """The splices in order; of insertions below one line, those of inner blocks come first.

    Raises:
        PlanError: ``overlap``.
    """
    out: list[Splice] = []
    last = 0
    for splice, depth in sorted(splices, key=lambda s: (s[0].start, s[0].end, s[0].side, -s[1], s[0].edit)):
        if out:
            above = out[-1]
            if splice.start < above.end:
                raise together.overlap(source, above.edit, splice.edit, splice.start)
            if splice.start == splice.end == above.start == above.end and splice.side == above.side:
                if splice.side != -1 or depth == last:
                    raise together.overlap(source, above.edit, splice.edit, splice.start, "insert at the same place")
                out.pop()
                splice = above._replace(new=above.new + splice.new, edit=min(above.edit, splice.edit))
        out.append(splice)
        last = depth
    return out


def change_of(outline: Outline, found: Found, action: Action, template: str, parse: Parse) -> Change:
    """What the edit must make of the tree, without its text.

    Raises:
        PlanError: ``template`` or ``place``, as :func:`rewrite_all`.
    """
    return Rewriter(outline, found, action, template, parse).change()


def check_template(pattern: Pattern, action: Action, template: str, parse: Parse) -> None:
    """Refuse a template that no match of ``pattern`` could use; needs no file.

    Raises:
        PlanError: ``template``.
    """
    if action != "delete":
        compiled = compile_template(template, parse)
        check_names(compiled, bound_names(pattern.names, action))
        check_wrap(compiled, action)
