"""Which releases a patch fits: planned on each released wheel, in memory, without an environment.

What a release's own metadata and the patch's ``requires`` ask of an environment is not looked at: there is none.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing

from patchkit.author.published import (
    Listing,
    Progress,
    WheelFiles,
    get_wheels,
    list_versions,
    opened_wheel,
    select,
)
from patchkit.author.ranges import Range, propose
from patchkit.edit.lay import check_parses
from patchkit.edit.plan import PatchPlan, plan_patch, upstreamed_by
from patchkit.errors import GuardError, PatchFileError, PatchkitError, SiteError
from patchkit.model.patch import Patch
from patchkit.model.requirement import ParsedRequirement, parse_requirement
from patchkit.site.distribution import normalize
from patchkit.tuples import NamedTuple

NO_WHEEL = "No matching distribution found"
"""What pip says where the index answers, and has no wheel of a release that it lists."""


class Verdict(NamedTuple):
    """What becomes of a patch on one release.

    ``state`` is "applies", "upstreamed", "fails", "no-edits" (it has no edit for that version), "no-wheel" (the index
    has none) or "unavailable" (it cannot be had now). ``part`` names the part of the patch that fails ("edit 2"),
    ``edit`` its number where it is an edit, ``line`` its line in the patch file. ``admitted``: the patch's own
    requirement admits the release. ``note`` is a remark of the judge's.
    """

    version: str
    state: str
    admitted: bool
    code: str | None = None
    part: str | None = None
    edit: int | None = None
    line: int | None = None
    reason: str | None = None
    note: str | None = None


class Column(NamedTuple):
    """One patch over the releases of its target, newest first; ``proposed`` is None where nothing fits."""

    patch: Patch
    listing: Listing
    verdicts: tuple[Verdict, ...]
    proposed: Range | None

    @property
    def requirement(self) -> ParsedRequirement:
        """The patch's own requirement."""
        return parse_requirement(self.patch.target.requirement)

    @property
    def failing(self) -> list[Verdict]:
        """The releases that the requirement admits and that the patch does not fit."""
        return [v for v in self.verdicts if v.admitted and v.state in ("fails", "no-edits")]

    @property
    def fits(self) -> list[Verdict]:
        """The releases that it applies to."""
        return [v for v in self.verdicts if v.state == "applies"]

    @property
    def exact(self) -> bool | None:
        """Whether the requirement admits exactly the tried releases that the patch fits; None where none was judged."""
        decided = [v for v in self.verdicts if v.state in ("applies", "fails", "no-edits")]
        return all(v.admitted == (v.state == "applies") for v in decided) if decided else None

    def proposal(self) -> str | None:
        """The proposed requirement, with the marker of the one that there is."""
        return None if self.proposed is None else self.requirement.with_specifier(self.proposed.specifier)


def run_matrix(
    patches: Sequence[Patch],
    *,
    versions: str | None = None,
    pre: bool = False,
    limit: int = 20,
    offline: bool = False,
    newer_only: bool = False,
    progress: Progress | None = None,
) -> Generator[Column, None, None]:
    """Plan each patch on the releases of its target.

    Args:
        patches: The patches.
        versions: Only releases that satisfy this specifier.
        pre: Prereleases as well.
        limit: The newest so many releases, and the newest so many within the requirement; 0: all.
        offline: Use the wheels of the cache only.
        newer_only: Leave out releases older than those of the requirement.
        progress: Told how far it is.

    Raises:
        SiteError: ``fetch``: no releases can be listed.
        UsageError: No release satisfies ``versions``.
    """
    listings: dict[str, Listing] = {}
    chosen: list[list[str]] = []
    for patch in patches:
        name = normalize(patch.target.name)
        if name not in listings:
            if progress is not None:
                progress(0, 0, f"asking for the releases of {patch.target.name}")
            listings[name] = list_versions(patch.target.name, offline=offline)
        own = str(parse_requirement(patch.target.requirement).specifier)
        chosen.append(
            select(listings[name], versions=versions, pre=pre, limit=limit, requirement=own, newer_only=newer_only)
        )
    wanted = [(p.target.name, v) for p, picked in zip(patches, chosen, strict=True) for v in picked]
    # Closed here and now: left to the collector, the pool is shut down in whichever thread that runs in, and locks up.
    with closing(get_wheels(wanted, offline=offline, progress=progress)) as wheels:
        for patch, picked in zip(patches, chosen, strict=True):
            verdicts = []
            for _ in picked:
                name, version, wheel = next(wheels)
                verdicts.append(judge_wheel(patch, name, version, wheel))
            listing = listings[normalize(patch.target.name)]
            fits = [v.version for v in verdicts if v.state == "applies"]
            fails = [v.version for v in verdicts if v.state in ("fails", "no-edits")]
            specifier = parse_requirement(patch.target.requirement).specifier
            # Told here, since `packaging` admits prereleases by itself where nobody says whether they count.
            prereleases = pre or bool(specifier.prereleases)
            kept = [v for v in listing.versions if v not in picked and specifier.contains(v, prereleases=prereleases)]
            looked_at = [v.version for v in verdicts if v.state == "upstreamed"]
            found = propose(fits, fails, listing.versions, kept=kept, looked_at=looked_at, pre=pre) if fits else None
            yield Column(patch, listing, tuple(verdicts), found)


def judge_wheel(patch: Patch, name: str, version: str, wheel: str | PatchkitError) -> Verdict:
    """What becomes of ``patch`` on one release, whose wheel is at the path ``wheel`` or could not be had.

    Raises:
        PatchFileError: The patch is wrong whatever the release is.
    """
    admitted = parse_requirement(patch.target.requirement).specifier.contains(version, prereleases=True)
    if isinstance(wheel, PatchkitError):
        state = "no-wheel" if NO_WHEEL in wheel.message else "unavailable"
        return Verdict(version, state, admitted, wheel.code, reason=wheel.message.partition("\n")[0])
    try:
        with opened_wheel(wheel, name, version) as files:
            return judge_release(patch, files, admitted)
    except SiteError as error:
        return Verdict(version, "unavailable", admitted, error.code, reason=error.message.partition("\n")[0])


def judge_release(patch: Patch, files: WheelFiles, admitted: bool, pristine: WheelFiles | None = None) -> Verdict:
    """What becomes of ``patch`` on one release; ``pristine`` is it as released, where patches are laid on ``files``."""
    try:
        held = upstreamed_by(patch, pristine or files, files.grammar)
        if held is not None:
            why = f"[[upstreamed]] {held.index}: " + (f"in {held.file}" if held.file else f"version {held.versions}")
            return Verdict(files.version, "upstreamed", admitted, reason=why)
        plan_release(patch, files)
    except PatchFileError:
        raise
    except GuardError as error:  # `versions`
        known = error.details.get("known") or []
        return Verdict(
            files.version, "no-edits", admitted, error.code, reason=f"it has edits for {' and '.join(known)}"
        )
    except SiteError:
        raise
    except PatchkitError as error:
        details = error.details
        table, index = details.get("table"), details.get("index")
        return Verdict(
            files.version,
            "fails",
            admitted,
            error.code,
            f"{table} {index}" if table is not None else None,
            index if table == "edit" else None,
            details.get("patch_line"),
            short_reason(error),
            files.foreign_python(),
        )
    return Verdict(files.version, "applies", admitted, note=files.foreign_python())


def plan_release(patch: Patch, files: WheelFiles) -> PatchPlan:
    """Plan ``patch`` on a release as ``apply`` would on its install.

    Raises:
        PatchkitError: Whatever does not fit.
    """
    from patchkit.errors import PlanError

    plan = plan_patch(patch, files, files.grammar)
    for add in patch.adds:
        if (add.versions is None or files.matches(add.versions)) and files.has(add.file):
            raise PlanError(
                f"add {add.index}: {files.name} {files.version} has a file {add.file} of its own",
                code="exists",
                details={
                    "table": "add",
                    "index": add.index,
                    "patch_line": patch.line_of("add", add.index, "file"),
                    "path": add.file,
                },
            )
    check_parses(patch, plan.files, files.grammar.judge)
    return plan


def short_reason(error: PatchkitError) -> str:
    """The first line of an error without the place in the patch file, and the best of what it says of other places."""
    details = error.details
    text = error.message.partition("\n")[0]
    table, index = details.get("table"), details.get("index")
    if table is not None:
        head, found, rest = text.partition(f"{table} {index}: ")
        text = rest if found and head.count("`") == 0 else text
    hint = _best(details)
    return f"{text}; {hint}" if hint else text


def _best(details: Mapping[str, object]) -> str | None:
    """The one place of a diagnosis that is most likely meant."""

    def first(key: str) -> Mapping[str, object]:
        given = details.get(key)
        return given[0] if isinstance(given, list) and given and isinstance(given[0], dict) else {}

    outside, elsewhere, near, hint = first("outside"), first("elsewhere"), first("candidates"), first("suggestions")
    if details.get("found") == 0 and outside:
        scope = outside.get("scope")
        return f"it stands at line {outside['line']}" + (f" in {scope}" if scope else "")
    if elsewhere.get("whole"):
        return f"it stands in {elsewhere['path']}:{elsewhere['line']}"
    if near:
        return f"nearest is line {near['line']} ({near['similarity']} % alike)"
    if hint.get("scope") and hint.get("line"):
        return f"perhaps {hint['scope']} (line {hint['line']})"
    return None
