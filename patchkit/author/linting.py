"""What only releases show of a patch: anchors longer than they need be, scopes to have, what it does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from patchkit.author.derive import innermost, shortest
from patchkit.author.hunks import hunks, lines_of, merged
from patchkit.author.matrix import Verdict, judge_release, short_reason
from patchkit.author.published import Progress, WheelFiles
from patchkit.author.ranges import least_changed, propose
from patchkit.edit.lay import PYTHON
from patchkit.edit.locate import locate
from patchkit.edit.narrow import regions
from patchkit.edit.parse import BLANKS
from patchkit.edit.plan import plan_patch
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text, text_splices
from patchkit.errors import PatchFileError, PatchkitError
from patchkit.model.patch import Edit, Patch
from patchkit.model.requirement import parse_requirement
from patchkit.ops.habits import at, of_file
from patchkit.ops.lint import in_order, lint_patch
from patchkit.ops.rules import ERROR, Finding, Fix

if TYPE_CHECKING:
    from patchkit.author.releases import Releases

CLEARLY = 0.75
"""A shorter anchor is told of where it has fewer lines, and at most this share of the characters."""

TELLING = 12
"""Letters and digits that a new text has at least, for a release that holds it to be said to have the change."""

_HEADER = re.compile(r"(?:@|(?:async[ \t]+)?def\b|class\b)")


def lint_on(patch: Patch, releases: Releases, progress: Progress | None = None) -> list[Finding]:
    """Everything that is wrong with, or could be better in, a patch, held against releases, by line.

    Args:
        patch: The patch.
        releases: Releases of its target.
        progress: Told how far it is: every edit counts as one, and so does every release.

    Raises:
        SiteError: ``fetch``: a wheel cannot be read.
    """
    own = lint_patch(patch)
    if any(finding.rule == "pattern" for finding in own):
        return own
    total = len(patch.edits) + len(releases.files)
    judged = {edit.index for edit in patch.edits if any(_effect(patch, edit, files) for files in releases.files)}
    # What the text alone suggests of an anchor gives way to what the releases show.
    guessed = {f"edit {index}: find" for index in judged}
    own = [f for f in own if not (f.rule in ("no-scope", "anchor-long") and f.key in guessed)]
    found: list[Finding] = []
    for edit in patch.edits:
        if progress is not None:
            progress(edit.index - 1, total, f"edit {edit.index} of {patch.name}")
        found += _anchor(patch, edit, releases.files)
    if not any(finding.level == ERROR or finding.rule == "never-matches" for finding in (*own, *found)):
        found += _requirement(patch, releases, progress)
    return in_order([*own, *found])


# -- anchors -----------------------------------------------------------------------------------------------------------


def _anchor(patch: Patch, edit: Edit, releases: Sequence[WheelFiles]) -> Iterator[Finding]:
    active = [files for files in releases if edit.versions is None or files.matches(edit.versions)]
    if not active or (edit.find is None and edit.match is None):
        return
    effects = [_effect(patch, edit, files) for files in active]
    fitting = [files for files, effect in zip(active, effects, strict=True) if effect is not None]
    own = parse_requirement(patch.target.requirement).specifier
    wanted = [files for files in active if own.contains(files.version, prereleases=True)]
    if wanted and not fitting:
        names = _few([files.version for files in wanted])
        what = f"fits none of the releases that it is for ({names}): {_reason(patch, edit, wanted[-1])}"
        yield at(patch, "edit", edit.index, edit.anchor_key, "never-matches", what)
    if edit.find is None or not fitting:
        return
    scope = _scope(patch, edit, fitting)
    scoped = edit._replace(scope=scope)
    if scope is not None and [_effect(patch, scoped, files) for files in active] == effects:
        what = f'could have scope = "{scope}", on {_few([files.version for files in fitting])}'
        yield at(patch, "edit", edit.index, "find", "no-scope", what, Fix("edit", edit.index, scoped))
        return  # within it, a shorter anchor may do: that is told when it is there
    shorter = _shorter(patch, edit, active, effects)
    if shorter is not None:
        assert shorter.find is not None
        place = f" in {shorter.scope}" if shorter.scope is not None and shorter.scope != edit.scope else ""
        shown = "\n".join(f"    | {line}".rstrip() for line in shorter.find.splitlines())
        what = (
            f"is {_size(edit.find)}; on {_few([files.version for files in fitting])} the same change is made by "
            f"{_size(shorter.find)}{place}:\n{shown}"
        )
        yield at(patch, "edit", edit.index, "find", "anchor-long", what, Fix("edit", edit.index, shorter))


def _size(text: str) -> str:
    lines = len(text.splitlines())
    return f"{lines} line{'s' if lines != 1 else ''} ({len(text)} characters)"


def _few(names: Sequence[str], most: int = 4) -> str:
    """Versions in words: ``1.0, 1.1``, or the first and the last of many."""
    return ", ".join(names) if len(names) <= most else f"{names[0]} to {names[-1]} ({len(names)} releases)"


def _reason(patch: Patch, edit: Edit, files: WheelFiles) -> str:
    """Why an edit does not fit a release, in a line."""
    alone = patch._replace(edits=(edit,), adds=(), preconditions=(), postconditions=(), upstreamed=())
    try:
        plan_patch(alone, files, files.grammar)
    except PatchkitError as error:
        return short_reason(error)
    return "it does with others only"


def _effect(patch: Patch, edit: Edit, files: WheelFiles) -> list[bytes] | None:
    """What a text edit alone makes of its files in a release; for a syntax edit nothing but that it fits; else None."""
    if edit.find is None and edit.match is None:
        return None
    out = []
    for path in edit.files:
        if not files.has(path):
            return None
        text = files.text(path)
        try:
            found = locate(text, edit, patch).found
            if len(found) != edit.count:
                return None
            if edit.find is None:
                continue
            meant = found if edit.nth is None else [found[edit.nth - 1]]
            splices = [s for f in meant for s in text_splices(text.source, f.span, edit.action, edit.text, edit.index)]
            out.append(text.source.render(splices)[0])
        except PatchFileError:
            raise
        except PatchkitError:
            return None
    return out


def _scope(patch: Patch, edit: Edit, releases: Sequence[WheelFiles]) -> str | None:
    """The one definition that the anchor of an edit without ``scope`` lies in, wherever it fits."""
    assert edit.find is not None
    if edit.scope is not None or not all(path.endswith(PYTHON) for path in edit.files):
        return None
    if edit.action in ("insert_before", "insert_after") and _at_module_level(edit.text):
        return None  # in a scope it would read as if the code came to lie in there
    names = set()
    for files in releases:
        for path in edit.files:
            text = files.text(path)
            for found in locate(text, edit, patch).found:
                name = innermost(text.source, text.outline_or_none(), found.span)[0]
                if _HEADER.match(edit.find.lstrip(BLANKS + "\n")):
                    name = name.rpartition(".")[0]  # the head of a definition lies in what is around it
                names.add(name)
    return names.pop() or None if len(names) == 1 else None


def _at_module_level(text: str) -> bool:
    first = next((line for line in text.split("\n") if line.strip(BLANKS)), "")
    return bool(first) and first[0] not in BLANKS


def _shorter(
    patch: Patch, edit: Edit, active: Sequence[WheelFiles], effects: Sequence[list[bytes] | None]
) -> Edit | None:
    """The edit with the shortest anchor that does the same on every release; None where none is clearly shorter."""
    narrowed = (edit.inside, edit.after, edit.before, edit.nth)
    if edit.find is None or edit.count != 1 or edit.action == "wrap" or any(one is not None for one in narrowed):
        return None
    best: Edit | None = None
    tried: set[Edit] = set()
    for files, effect in zip(active, effects, strict=True):
        for path, after in zip(edit.files, effect or (), strict=False):
            for candidate in _candidates(edit, files, path, after):
                anchor = candidate.find or ""
                if candidate in tried or not _clearly(anchor, edit.find):
                    continue
                if best is not None and len(anchor) >= len(best.find or ""):
                    continue
                tried.add(candidate)
                if [_effect(patch, candidate, one) for one in active] == effects:
                    best = candidate
    return best


def _clearly(anchor: str, than: str) -> bool:
    fewer = len(anchor.splitlines()) < len(than.splitlines())
    return fewer and len(anchor) <= CLEARLY * len(than)


def _candidates(edit: Edit, files: WheelFiles, path: str, after: bytes) -> Iterator[Edit]:
    """The edits with the shortest anchors for the change that ``edit`` makes to one file of a release."""
    text = files.text(path)
    lines = lines_of(text.source.text)
    changes = merged(lines, hunks(lines, lines_of(Source(after, path=path).text)), lambda _first, _second: True)
    if len(changes) != 1:
        return
    for above in (True, False):
        found = shortest(text.source, text.outline_or_none(), changes[0], above=above)
        if found is None:
            continue
        # The author's own action, where that can say the same.
        action = "replace" if found.action == "delete" and edit.action == "replace" else found.action
        for scope in dict.fromkeys((edit.scope or found.scope, found.scope)):
            yield edit._replace(find=found.find, text=found.text, action=action, scope=scope)


# -- the requirement ---------------------------------------------------------------------------------------------------


def _requirement(patch: Patch, releases: Releases, progress: Progress | None) -> Iterator[Finding]:
    own = parse_requirement(patch.target.requirement)
    verdicts = []
    for done, files in enumerate(releases.files, len(patch.edits)):
        if progress is not None:
            progress(done, len(patch.edits) + len(releases.files), f"{patch.name} on {files.name} {files.version}")
        admitted = own.specifier.contains(files.version, prereleases=True)
        verdicts.append(judge_release(patch, files, admitted))
    yield from _has_it(patch, releases, [v for v in verdicts if v.state == "fails"])
    failing = [v for v in verdicts if v.admitted and v.state in ("fails", "no-edits")]
    if failing:
        yield _wide(patch, releases, verdicts, failing)
        return
    outside = [v.version for v in verdicts if not v.admitted and v.state == "applies"]
    if outside and releases.listing is not None:
        proposed = _proposed(patch, releases, verdicts, [v.version for v in verdicts if v.state == "applies"])
        what = f"leaves out {_few(outside)}, which the patch fits: {proposed}"
        fix = None
        if patch.target.otherwise is not None:
            what += " (on purpose, perhaps: `otherwise` says what to do there)"
        elif releases.every and not releases.missing:
            fix = Fix("target", requirement=proposed)
        else:
            missing = [version for version, _ in releases.missing]
            why = (
                f"{_few(missing)} could not be looked at" if missing else "only `--against all` looks at every release"
            )
            what += f"; --fix leaves it, since {why}"
        yield of_file(patch, "requirement-narrow", "target: requirement", ("target", "requirement"), what, fix)


def _wide(patch: Patch, releases: Releases, verdicts: Sequence[Verdict], failing: Sequence[Verdict]) -> Finding:
    first = failing[-1]
    where = f"{first.part}: " if first.part else ""
    names = _few([v.version for v in failing])
    what = f"admits {names}, which the patch does not fit ({first.version}: {where}{first.reason})"
    fits = [v.version for v in verdicts if v.admitted and v.state == "applies"]
    fix = None
    if releases.listing is not None and fits:
        proposed = _proposed(patch, releases, verdicts, fits)
        what += f": {proposed}"
        own = parse_requirement(patch.target.requirement).specifier
        unseen = [version for version, _ in releases.missing if own.contains(version, prereleases=True)]
        fix = None if unseen else Fix("target", requirement=proposed)
        if unseen:
            what += f"; --fix leaves it, since {_few(unseen)} could not be looked at"
    return of_file(patch, "requirement-wide", "target: requirement", ("target", "requirement"), what, fix)


def _proposed(patch: Patch, releases: Releases, verdicts: Sequence[Verdict], fits: Sequence[str]) -> str:
    """The requirement that admits ``fits``, and of the releases that were not looked at those that it admits now."""
    assert releases.listing is not None
    own = parse_requirement(patch.target.requirement)
    published = releases.listing.versions
    seen = {v.version for v in verdicts}
    kept = [v for v in published if v not in seen and own.specifier.contains(v)]
    fails = [v.version for v in verdicts if v.state in ("fails", "no-edits")]
    marker = f"; {own.marker}" if own.marker is not None else ""
    found = propose(fits, fails, published, kept=kept)
    specifier = found.specifier
    if not found.left_out:
        specifier = least_changed(own.specifier, specifier, {*fits, *kept}, fails)
    return f"{own.name}{specifier}{marker}"


def _has_it(patch: Patch, releases: Releases, failing: Sequence[Verdict]) -> Iterator[Finding]:
    """Releases that the patch does not fit because they hold what it would write."""
    names = {v.version for v in failing}
    having = [files for files in releases.files if files.version in names and _holds_all(patch, files)]
    if having:
        edit = next(edit for edit in patch.edits if edit.find is not None)
        what = (
            f"{_few([files.version for files in having])} holds the new text of every edit already: say so in an "
            f"[[upstreamed]] with the text of edit {edit.index}"
        )
        yield of_file(patch, "upstream-has-it", "upstreamed", ("target",), what)


def _holds_all(patch: Patch, files: WheelFiles) -> bool:
    edits = [edit for edit in patch.edits if edit.versions is None or files.matches(edit.versions)]
    removes = [remove for remove in patch.removes if remove.versions is None or files.matches(remove.versions)]
    if patch.adds or any(files.has(path) for remove in removes for path in remove.files):
        return False
    return bool(edits) and all(_holds(edit, files) for edit in edits)


def _holds(edit: Edit, files: WheelFiles) -> bool:
    """Whether a release has the new text of a replacement, once, where its anchor was, and the anchor no more."""
    if edit.find is None or edit.action != "replace" or sum(char.isalnum() for char in edit.text) < TELLING:
        return False
    for path in edit.files:
        if not files.has(path):
            return False
        text = files.text(path)
        outline = text.outline_or_none()
        if outline is None and edit.scope is not None:
            return False
        whole = [Span(0, len(text.source.text))]
        where = whole if outline is None else regions(outline, edit.scope, None, text.parse)
        if find_text(text.source, edit.find, where, limit=1):
            return False
        if len(find_text(text.source, edit.text, where)) != edit.count:
            return False
    return True
