"""The rules of ``lint``: what each is called, how much it weighs, why it matters; and what one finding is."""

from __future__ import annotations

from patchkit.model.patch import Edit
from patchkit.tuples import NamedTuple

ERROR, WARNING, NOTE = "error", "warning", "note"


class Rule(NamedTuple):
    """A rule: its level ("error", "warning" or "note"), and why it matters, in a sentence."""

    level: str
    reason: str


RULES: dict[str, Rule] = {
    "load": Rule(ERROR, "no command takes a patch file that does not load"),
    "pattern": Rule(ERROR, "`apply` refuses what is not Python with metavariables"),
    "example": Rule(ERROR, "the edit does something else than its author wrote down"),
    "overlap": Rule(ERROR, "`apply` refuses edits that touch the same text"),
    "never-matches": Rule(WARNING, "the edit is refused on every release that was looked at"),
    "requirement-wide": Rule(WARNING, "the guard lets releases through on which `apply` then fails"),
    "redundant": Rule(WARNING, "what is said twice is changed once"),
    "no-change": Rule(
        WARNING, "an edit that changes nothing only looks like one; a precondition says what must be there"
    ),
    "anchor-short": Rule(WARNING, "a new release may well hold such a text once more"),
    "anchor-version": Rule(WARNING, "the next release has another version in that line, and the anchor is gone"),
    "line-break": Rule(WARNING, "where only one of anchor and text ends in a line break, lines are joined or torn"),
    "invisible": Rule(WARNING, "such code may show otherwise than it runs (CVE-2021-42574)"),
    "no-description": Rule(WARNING, "whoever meets the patch later cannot tell whether it is still needed"),
    "placeholder": Rule(WARNING, "the summary is what `list` shows of the patch"),
    "requirement-narrow": Rule(NOTE, "the guard refuses releases that the patch fits"),
    "upstream-has-it": Rule(NOTE, "without `[[upstreamed]]` the patch fails on a release that does not need it"),
    "anchor-long": Rule(NOTE, "every line of an anchor is one that a new release may change"),
    "anchor-volatile": Rule(NOTE, "dates, URLs, hashes and line numbers change without a change of the code"),
    "anchor-blanks": Rule(NOTE, "formatters and editors strip blanks at the ends of lines"),
    "anchor-comment": Rule(NOTE, "comments are reworded and moved more freely than code"),
    "no-scope": Rule(NOTE, "with a `scope`, the same text elsewhere in the file cannot make the anchor ambiguous"),
    "condition-repeats": Rule(NOTE, "the edit's own anchor asks the same already"),
    "no-links": Rule(NOTE, "a link to the issue or pull request says when the patch can go"),
    "no-upstreamed": Rule(NOTE, "who upgrades past the upper bound is refused, and not told what then"),
}
"""Every rule by its code."""


class Fix(NamedTuple):
    """A change of a patch file that heals a finding.

    ``table`` and ``index`` name what is changed: an edit becomes ``edit``, the target gets ``requirement``; with
    neither, the table is dropped. ``sure``: it cannot change what the patch does, whatever the release is; else it must
    be proved on releases. ``mends``: the patch is refused without it, so that a plan may take the place of a refusal.
    """

    table: str
    index: int = 0  # type: ignore[assignment]
    edit: Edit | None = None
    requirement: str | None = None
    sure: bool = False
    mends: bool = False


class Finding(NamedTuple):
    """Something that ``lint`` says of a patch file: ``rule`` is one of :data:`RULES`, ``key`` a place in the file."""

    path: str
    line: int | None
    rule: str
    key: str | None
    message: str
    fix: Fix | None = None

    @property
    def level(self) -> str:
        """The level of its rule."""
        return RULES[self.rule].level

    @property
    def reason(self) -> str:
        """Why it matters."""
        return RULES[self.rule].reason
