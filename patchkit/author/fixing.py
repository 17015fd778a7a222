"""``lint --fix``: findings healed in the text of a patch file, each proved to leave what the patch does as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from patchkit.author.matrix import plan_release
from patchkit.author.published import WheelFiles
from patchkit.author.splice import PatchText
from patchkit.edit.plan import upstreamed_by
from patchkit.errors import PatchFileError, PatchkitError, SiteError
from patchkit.model.load import parse_patch
from patchkit.model.patch import Patch
from patchkit.ops.lint import in_order, lint_patch
from patchkit.ops.rules import NOTE, Finding, Fix
from patchkit.tuples import NamedTuple

_ROUNDS = 50
"""A fix may make room for the next one (a scope for a shorter anchor); far more rounds than any file needs."""

Outcome = tuple[str, object]
"""What becomes of a patch on a release: "plan" and the bytes by path, "refused" and the error's code, "upstreamed"."""


class Fixed(NamedTuple):
    """A patch file after its fixes: what was fixed, and what was not, each with the reason."""

    patch: Patch
    done: tuple[Finding, ...]
    refused: tuple[tuple[Finding, str], ...]


def fix(patch: Patch, find: Callable[[Patch], Sequence[Finding]], releases: Sequence[WheelFiles]) -> Fixed:
    """Heal what can be healed, until nothing more can.

    Args:
        patch: The patch, with its file's bytes.
        find: The findings of a patch.
        releases: What each fix is proved on. Without any, only what is sure whatever the release is gets fixed.
    """
    prover = _Prover(releases)
    done: list[Finding] = []
    refused: dict[object, tuple[Finding, str]] = {}
    for _ in range(_ROUNDS):
        before = patch
        touched: set[tuple[str, int]] = set()
        healed: list[Finding] = []
        # What is dropped last, from the end: the numbers of the others stay.
        findings = [f for f in find(patch) if f.fix is not None]
        findings.sort(key=lambda f: (_drops(f), -f.fix.index if f.fix is not None and _drops(f) else 0))
        for finding in findings:
            assert finding.fix is not None
            one = finding.fix
            name = _name(before, finding.rule, one)
            if (one.table, one.index) in touched or name in refused:
                continue
            try:
                fixed = changed(patch, one)
                prover.prove(patch, fixed, one)
            except (PatchFileError, _Unproved) as error:
                message = error.message if isinstance(error, PatchkitError) else str(error)
                refused[name] = (finding, message)
                continue
            touched.add((one.table, one.index))
            healed.append(finding)
            patch = fixed
        if not healed:
            break
        done += in_order(healed)
    return Fixed(patch, tuple(done), tuple(refused.values()))


def _drops(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.edit is None and finding.fix.requirement is None


def _name(patch: Patch, rule: str, one: Fix) -> object:
    """What tells a fix from another one, also when the tables are numbered anew."""
    parts = patch.edits if one.table == "edit" else patch.preconditions if one.table == "precondition" else ()
    part = parts[one.index - 1]._replace(index=0) if parts else None
    return rule, part, one.edit and one.edit._replace(index=0), one.requirement


def changed(patch: Patch, one: Fix) -> Patch:
    """The patch with a fix written into its file's text, every other byte as it was.

    Raises:
        PatchFileError: The text is not laid out so that it can be changed for sure.
    """
    text = PatchText(patch.data)
    if one.requirement is not None:
        text.set_string(("target", "requirement"), one.requirement)
        expected = patch._replace(target=patch.target._replace(requirement=one.requirement))
    elif one.edit is not None:
        old, new, at = patch.edits[one.index - 1], one.edit, ("edit", one.index)
        if new.find is not None and new.find != old.find:
            text.set_text((*at, "find"), new.find)
        if (new.action, new.text) != (old.action, old.text):
            text.set_text((*at, old.action), new.text, rename=new.action)
        if new.scope is not None and new.scope != old.scope:
            text.set_string((*at, "scope"), new.scope)
        edits = tuple(new if edit.index == one.index else edit for edit in patch.edits)
        expected = patch._replace(edits=edits)
    else:
        text.drop(one.table, one.index)
        expected = _without(patch, one.table, one.index)
    try:
        fixed = parse_patch(text.data(), patch.path)
    except PatchFileError:
        fixed = None
    if fixed is None or _said(fixed) != _said(expected):
        raise PatchFileError("the file is not laid out so that it can be changed for sure", hint="change it by hand")
    return fixed


def _without(patch: Patch, table: str, index: int) -> Patch:
    if table == "edit":
        edits = [edit for edit in patch.edits if edit.index != index]
        return patch._replace(edits=tuple(edit._replace(index=n) for n, edit in enumerate(edits, 1)))
    kept = [condition for condition in patch.preconditions if condition.index != index]
    return patch._replace(preconditions=tuple(one._replace(index=n) for n, one in enumerate(kept, 1)))


def _said(patch: Patch) -> Patch:
    """A patch without the text that it was read from."""
    return patch._replace(data=b"", digest="")


class _Unproved(Exception):
    """A fix that is not shown to leave everything as it is; says why."""


class _Prover:
    def __init__(self, releases: Sequence[WheelFiles]) -> None:
        self._releases = releases
        self._known: dict[tuple[str, str], Outcome] = {}

    def prove(self, before: Patch, after: Patch, one: Fix) -> None:
        """Refuse a fix after which the patch does another thing to a release, or has a new mistake.

        Raises:
            _Unproved: It is such a one, or there is nothing to prove it on.
        """
        if not self._releases and not one.sure:
            raise _Unproved("there is no release to prove it on")
        for files in self._releases:
            was, now = self._outcome(before, files), self._outcome(after, files)
            if was != now and not (one.mends and was == ("refused", "overlap")):
                raise _Unproved(f"on {files.name} {files.version} the patch would do something else")
        old, new = ([f.rule for f in lint_patch(p) if f.level != NOTE] for p in (before, after))
        worse = next((rule for rule in dict.fromkeys(new) if new.count(rule) > old.count(rule)), None)
        if worse is not None:
            raise _Unproved(f"the patch would not pass the rule {worse}")

    def _outcome(self, patch: Patch, files: WheelFiles) -> Outcome:
        name = (patch.digest, files.version)
        if name not in self._known:
            self._known[name] = outcome(patch, files)
        return self._known[name]


def outcome(patch: Patch, files: WheelFiles) -> Outcome:
    """What becomes of a patch on a release, whatever its requirement says.

    Raises:
        SiteError: A file of the release cannot be had.
    """
    try:
        if upstreamed_by(patch, files, files.grammar) is not None:
            return "upstreamed", None
        return "plan", {plan.path: plan.after for plan in plan_release(patch, files).files}
    except SiteError:
        raise
    except PatchkitError as error:
        # A condition that repeats an anchor is refused as that anchor is.
        code = "anchor-missing" if error.code in ("precondition", "anchor-count", "scope-missing") else error.code
        return "refused", code
