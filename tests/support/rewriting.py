"""One syntax edit at every match of a snippet, proved: what tests of patterns and templates are written with."""

from __future__ import annotations

from patchkit.edit.indent import dedent
from patchkit.edit.matcher import find_pattern
from patchkit.edit.outline import Outline
from patchkit.edit.parse import Parse
from patchkit.edit.pattern import compile_pattern
from patchkit.edit.proof import prove
from patchkit.edit.rewrite import rewrite_all
from patchkit.edit.source import Source, lay
from patchkit.edit.spans import Span
from patchkit.model.patch import Action


def rewrite_text(before: str, pattern: str, action: Action, template: str, parse: Parse) -> str:
    source = Source(dedent(before).encode(), path="<example>.py")
    outline = Outline(source, parse(source.text))
    found = find_pattern(outline, compile_pattern(pattern, parse), [Span(0, len(source.text))])
    assert found, f"{pattern} matches nowhere"
    splices = rewrite_all(outline, [(match, action, template, 0) for match in found], parse=parse)
    after = lay(source.text, splices)
    prove(outline, [(match, action, template) for match in found], after, parse)
    return after
