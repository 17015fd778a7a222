"""What a patch file alone shows to be fragile, or said twice: anchors that will not last, edits beside each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from patchkit.edit.locate import place
from patchkit.edit.text import normalised
from patchkit.model.patch import Condition, Edit, Patch
from patchkit.model.requirement import parse_requirement
from patchkit.ops.memory import Memory, Running
from patchkit.ops.rules import Finding, Fix

MOST_KEPT = 10
"""Lines of an anchor that its edit leaves as they are; ``create`` begins with up to 5 on either side."""

MOST_COMPARED = 1000
"""Edits of one patch that are held against each other, which is some tenths of a second; of more, none are."""

_VERSION = re.compile(r"(?<![\w.])v?\d+\.\d+\.\d+(?:\.?(?:a|b|rc|dev|post)\d+)?(?![\w.]*\d)")
_VOLATILE = {
    "date": re.compile(r"(?<!\d)(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)"),
    "URL": re.compile(r"https?://[^\s'\"<>)\]]+"),
    "hash": re.compile(r"(?<!\w)(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{12,}(?!\w)"),
    "line number": re.compile(r"\blines? \d+\b"),
}
_IN_FUNCTION = re.compile(r"[ \t]+(?:return\b|yield\b|await\b|(?:self|cls)\.\w)", re.MULTILINE)
"""Lines that can only stand in a function."""


def at(patch: Patch, table: str, index: int, key: str, rule: str, message: str, fix: Fix | None = None) -> Finding:
    """A finding about one key of a table of an array."""
    found = place(patch, table, index, key)
    return Finding(
        found.details["patch_file"], found.details["patch_line"], rule, f"{table} {index}: {key}", message, fix
    )


def of_file(patch: Patch, rule: str, key: str, where: tuple[str, ...], message: str, fix: Fix | None = None) -> Finding:
    """A finding about a key that stands in no array; ``where`` is its path, or that of what is nearest to it."""
    return Finding(patch.path or patch.name, patch.line_of(*where), rule, key, message, fix)


def fragile(patch: Patch) -> Iterator[Finding]:
    """Anchors that the next release is likely to break, as far as the patch file tells."""
    for edit in patch.edits:
        anchor = edit.find if edit.find is not None else edit.match
        if anchor is None:
            continue
        if not _pinned(patch, edit):
            yield from _noise(patch, edit, anchor)
        if edit.find is not None:
            yield from _scopeless(patch, edit, edit.find)
            yield from _long(patch, edit, edit.find)


def _pinned(patch: Patch, edit: Edit) -> bool:
    """Whether the edit is for a single release: no other one can break its anchor."""
    from packaging.specifiers import SpecifierSet

    clauses = [*parse_requirement(patch.target.requirement).specifier, *SpecifierSet(edit.versions or "")]
    return any(one.operator in ("==", "===") and not one.version.endswith("*") for one in clauses)


def _kept(edit: Edit, anchor: str) -> str:
    """What the edit leaves of its anchor: all else of it is what the edit is about."""
    if edit.action == "replace":
        return edit.text
    return "" if edit.action == "delete" else anchor


def _noise(patch: Patch, edit: Edit, anchor: str) -> Iterator[Finding]:
    kept, key = _kept(edit, anchor), edit.anchor_key
    version = next((found for found in _VERSION.findall(anchor) if found in kept), None)
    if version is not None:
        yield at(patch, "edit", edit.index, key, "anchor-version", f"holds the version {version}")
    for what, pattern in _VOLATILE.items():
        found = next((text for text in pattern.findall(anchor) if text in kept), None)
        if found is not None:
            yield at(patch, "edit", edit.index, key, "anchor-volatile", f"holds the {what} {found}")
    if edit.find is None:
        return
    whole = normalised(anchor).split("\n")[:-1]
    blank = next((line for line in whole if line != line.rstrip(" \t") and f"{line}\n" in kept), None)
    if blank is not None:
        what = f"the line `{blank.strip()}`" if blank.strip() else "a blank line"
        yield at(patch, "edit", edit.index, key, "anchor-blanks", f"{what} ends in blanks")
    lines = [line.strip() for line in anchor.split("\n") if line.strip()]
    if _python(edit) and lines and all(line.startswith("#") for line in lines) and anchor in kept:
        yield at(patch, "edit", edit.index, key, "anchor-comment", "holds comments and no code")


def _python(edit: Edit) -> bool:
    return all(file.endswith((".py", ".pyi")) for file in edit.files)


def _scopeless(patch: Patch, edit: Edit, find: str) -> Iterator[Finding]:
    if edit.scope is None and _python(edit) and _IN_FUNCTION.match(find.lstrip("\n")):
        yield at(patch, "edit", edit.index, "find", "no-scope", "lies in a function, and the edit has no `scope`")


def _long(patch: Patch, edit: Edit, find: str) -> Iterator[Finding]:
    lines = find.splitlines()
    if edit.action == "replace":
        new = edit.text.splitlines()
        above = next((n for n, (a, b) in enumerate(zip(lines, new, strict=False)) if a != b), min(len(lines), len(new)))
        pairs = zip(reversed(lines[above:]), reversed(new[above:]), strict=False)
        rest = min(len(lines), len(new)) - above
        kept = above + next((n for n, (a, b) in enumerate(pairs) if a != b), rest)
    else:
        kept = 0 if edit.action in ("delete", "wrap") else len(lines)
    if kept > MOST_KEPT:
        what = f"{kept} of its {len(lines)} lines are only there to find the place"
        yield at(patch, "edit", edit.index, "find", "anchor-long", what)


def telling(patch: Patch) -> Iterator[Finding]:
    """What a reader of the patch will look for."""
    if not patch.links:
        yield of_file(patch, "no-links", "links", ("name",), "no links: name the issue or the pull request")
    if patch.upstreamed or patch.target.otherwise:
        return
    clauses = parse_requirement(patch.target.requirement).specifier
    bound = next((str(one) for one in clauses if one.operator in ("<", "<=", "~=")), None)
    if bound is not None:
        what = f"the requirement ends at {bound}, with neither an [[upstreamed]] nor an `otherwise`"
        yield of_file(patch, "no-upstreamed", "target: requirement", ("target", "requirement"), what)


def repeated(patch: Patch) -> Iterator[Finding]:
    """Edits that change nothing, say what another one says, or cannot land together with it."""
    for edit in patch.edits:
        # Of a text edit, the loader says so.
        if edit.action == "replace" and edit.match is not None and edit.match.strip() == edit.text.strip():
            yield at(patch, "edit", edit.index, "replace", "no-change", "is the anchor itself")
    if len(patch.edits) <= MOST_COMPARED:
        for number, edit in enumerate(patch.edits):
            yield from _beside_any(patch, edit, patch.edits[:number])
    for condition in patch.preconditions:
        asking = next((edit for edit in patch.edits if _asks(edit, condition)), None)
        if asking is not None:
            what = f"is the anchor of edit {asking.index}, with its count"
            fix = Fix("precondition", condition.index, sure=True)
            yield at(patch, "precondition", condition.index, condition.anchor_key, "condition-repeats", what, fix)


def _beside_any(patch: Patch, edit: Edit, earlier: Sequence[Edit]) -> Iterator[Finding]:
    """What an edit is beside those before it; of several such, beside the first."""
    files = set(edit.files)
    for first in earlier:
        if _alike(first, edit) and not files.isdisjoint(first.files) and _meet(patch, first.versions, edit.versions):
            finding = _beside(patch, first, edit)
            if finding is not None:
                yield finding
                return


def _alike(first: Edit, second: Edit) -> bool:
    """Whether the two may have anything to do with each other, told fast."""
    if first.find is not None and second.find is not None:
        return first.find in second.find or second.find in first.find
    return first.match == second.match and first.find == second.find


def _meet(patch: Patch, first: str | None, second: str | None) -> bool:
    """Whether two ``versions`` admit a version in common for sure: one that they or the requirement name."""
    if first == second or first is None or second is None:
        return True
    from packaging.specifiers import SpecifierSet

    both = SpecifierSet(f"{first},{second}") & parse_requirement(patch.target.requirement).specifier
    named = [one.version for one in both if not one.version.endswith("*") and one.operator != "==="]
    return any(both.contains(version, prereleases=True) for version in named)


def _beside(patch: Patch, first: Edit, second: Edit) -> Finding | None:
    if first.action == second.action == "add_import":
        again = [text for text in second.imports if text in first.imports]
        if not again:
            return None
        whole = len(again) == len(second.imports) and _covers(first, second)
        fix = Fix("edit", second.index, sure=True) if whole else None
        what = f"`{'`, `'.join(again)}` stands in edit {first.index} already"
        return at(patch, "edit", second.index, "add_import", "redundant", what, fix)
    if _same(first, second):
        what = f"is edit {first.index} once more"
        if first.action == "probe":
            return at(patch, "edit", second.index, "probe", "redundant", what)
        less = second if _covers(first, second) else first if _covers(second, first) else None
        fix = Fix("edit", less.index, sure=True, mends=True) if less is not None else None
        return at(patch, "edit", second.index, second.anchor_key, "overlap", what, fix)
    code = _clash(patch, first, second) or _clash(patch, second, first)
    if code is None:
        return None
    how = "their changes overlap" if code == "overlap" else "one anchor holds the other more than once"
    what = f"cannot land with edit {first.index}: {how}"
    return at(patch, "edit", second.index, second.anchor_key, "overlap", what)


def _covers(one: Edit, other: Edit) -> bool:
    """Whether ``one`` is for every file and release that ``other`` is for."""
    return set(other.files) <= set(one.files) and (one.versions is None or one.versions == other.versions)


def _same(first: Edit, second: Edit) -> bool:
    """Whether two edits differ in nothing but files, versions and examples."""
    return _alone(first)._replace(index=0) == _alone(second)._replace(index=0, files=first.files)


def _alone(edit: Edit) -> Edit:
    return edit._replace(versions=None, examples=())


def _narrowing(edit: Edit) -> tuple[str | None, ...]:
    return edit.scope, edit.inside, edit.after, edit.before


def _clash(patch: Patch, outer: Edit, inner: Edit) -> str | None:
    """Why two text edits, the anchor of one within that of the other, cannot both land; None where they can, perhaps.

    They are planned on a file that holds the longer anchor and nothing else.
    """
    if outer.find is None or inner.find is None or _narrowing(outer) != _narrowing(inner):
        return None
    if not outer.count == inner.count == 1 or inner.find not in outer.find:
        return None
    from patchkit.edit.plan import plan_patch
    from patchkit.errors import PatchkitError

    broken = inner.find.endswith("\n") and not outer.find.endswith("\n")
    text = "x" + outer.find if broken else outer.find  # where its first line begins is then not known
    edits = [
        edit._replace(files=("<anchor>",), scope=None, inside=None, after=None, before=None, versions=None, examples=())
        for edit in (outer, inner)
    ]
    both = Patch(patch.name, patch.summary, patch.target, edits=tuple(edits), path=patch.path, data=patch.data)
    try:
        plan_patch(both, Memory(text.encode("utf-8", "surrogateescape")), Running())
    except PatchkitError as error:
        return error.code if error.code in ("overlap", "anchor-count") else None
    return None


def _asks(edit: Edit, condition: Condition) -> bool:
    """Whether an edit is refused wherever a precondition does not hold."""
    anchor = (edit.find, edit.match, edit.scope, edit.inside)
    return (
        condition.file in edit.files
        and (edit.find or edit.match) is not None
        and edit.after is None
        and edit.before is None
        and anchor == (condition.find, condition.match, condition.scope, condition.inside)
        and (edit.versions is None or edit.versions == condition.versions)
        and condition.at_least <= edit.count
        and (condition.at_most is None or condition.at_most >= edit.count)
    )
