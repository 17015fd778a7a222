"""Guards: what a patch requires to be installed, checked before any file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchkit.errors import GuardError, PatchFileError
from patchkit.model.patch import Target
from patchkit.model.requirement import ParsedRequirement, parse_requirement
from patchkit.site.distribution import Distribution, find_distribution, misnamed, normalize
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from packaging.version import Version

    from patchkit.site.environment import Site


class Guarded(NamedTuple):
    """A target that passed its guards."""

    distribution: Distribution
    version: Version


def version_matches(specifier: str, version: str | Version) -> bool:
    """Whether a version satisfies a PEP 440 specifier set; prereleases count as any other version does.

    Raises:
        PatchFileError: The specifier is not valid.
        ValueError: The version is not valid (``packaging.version.InvalidVersion``).
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    try:
        wanted = SpecifierSet(specifier)
    except InvalidSpecifier:
        raise PatchFileError(
            f"{specifier!r} is not a version specifier",
            hint='write it as in ">=0.23,<0.33"',
            details={"value": specifier},
        ) from None
    return wanted.contains(version if isinstance(version, Version) else Version(version), prereleases=True)


def check_guards(target: Target, site: Site) -> Guarded:
    """The installed distribution that the target means, when each of its guards holds.

    Raises:
        GuardError: ``marker``, ``not-installed``, ``editable``, ``zipped``, ``version`` or ``requires``; the hint of
            ``marker``, ``version`` and ``requires`` is the target's ``otherwise`` where it has one.
        PatchFileError: A requirement is not valid PEP 508, or its marker cannot be evaluated.
        SiteError: ``duplicate``: the site holds two installations of the distribution.
    """
    requirement = _requirement(target.requirement, "target.requirement")
    name = requirement.name
    if not _applies(requirement, site, "target.requirement"):
        raise _refused(
            target,
            "marker",
            f"the patch is for {requirement.marker}, which does not hold in {site.label}",
            hint="it is not meant for this environment",
            details={"distribution": name, "marker": str(requirement.marker)},
        )
    distribution = find_distribution(site, name)
    if distribution is None:
        # Where its absence is expected, nothing is misspelled, and `check` shall not read all the others' metadata.
        rest = misnamed(site, name) if not target.optional else None
        near = None if target.optional or rest is not None else _nearest(name, site)
        meant = f" (did you mean {near}?)" if near else ""
        hint = f"install {name} there, or name the environment that has it with --python"
        if rest is not None:
            meant, hint = f": {rest.what}", f"{rest.cure}; then apply again"
        raise _refused(
            target,
            "not-installed",
            f"{name} is not installed in {site.label}{meant}; required: {_wanted(requirement)}",
            hint=hint,
            otherwise=False,  # it tells what to do with another release, which says nothing here
            details={"distribution": name, "installed": None, "required": _wanted(requirement), "nearest": near},
        )
    if distribution.editable:
        source = distribution.editable_source
        raise _refused(
            target,
            "editable",
            f"{distribution.name} {distribution.version} is installed in editable mode: {distribution.editable_reason}",
            hint=f"edit it there: {source}" if source else "edit its source directly",
            otherwise=False,
            details={"distribution": distribution.name, "source": source},
        )
    if distribution.zipped:
        raise _refused(
            target,
            "zipped",
            f"{distribution.name} {distribution.version} is installed as a zipped egg: {distribution.base} is one "
            "file, and there are no source files to patch",
            hint=f"install it as files: `{distribution.reinstall}`; then remove the egg, and apply again",
            otherwise=False,
            details={"distribution": distribution.name, "path": distribution.base},
        )
    version = _version(target, distribution)
    if not requirement.specifier.contains(version, prereleases=True):
        raise _refused(
            target,
            "version",
            f"{distribution.name} {distribution.version} is installed; required: {_wanted(requirement)}",
            hint=f"install {_wanted(requirement)}, or a patch for {distribution.version}: `patchkit port NAME --to "
            f"{distribution.version}` carries this one there, `patchkit matrix NAME` shows where it fits",
            details={
                "distribution": distribution.name,
                "installed": distribution.version,
                "required": str(requirement.specifier),
            },
        )
    failing = [problem for text in target.requires if (problem := _unmet(text, site)) is not None]
    if failing:
        raise _refused(
            target,
            "requires",
            f"the patch requires more than {site.label} has:\n" + "\n".join(f"  {line}" for line, _ in failing),
            hint="install what is required beside it",
            details={"distribution": distribution.name, "failing": [data for _, data in failing]},
        )
    return Guarded(distribution, version)


def _requirement(text: str, key: str) -> ParsedRequirement:
    try:
        return parse_requirement(text)
    except ValueError as error:
        first = str(error).partition("\n")[0]
        raise PatchFileError(
            f"{key} = {text!r} is not a requirement: {first}",
            hint='write it as in "jax>=0.10" (PEP 508)',
            details={"key": key, "value": text},
        ) from None


def _applies(requirement: ParsedRequirement, site: Site, key: str) -> bool:
    if requirement.marker is None:
        return True
    try:
        return requirement.marker.evaluate({**site.markers, "extra": ""})
    except ValueError as error:  # packaging's UndefinedComparison, among others
        first = str(error).partition("\n")[0]
        raise PatchFileError(
            f"{key}: the marker {str(requirement.marker)!r} cannot be evaluated: {first}",
            hint="compare texts with == and !=, versions also with < and >=, as in \"sys_platform == 'linux'\"",
            details={"key": key, "value": str(requirement.marker)},
        ) from None


def _nearest(name: str, site: Site) -> str | None:
    """The installed distribution whose name resembles ``name`` most, if any does."""
    import difflib

    names = {one.normalized: one.name for one in site.distributions()}
    found = difflib.get_close_matches(normalize(name), names, 1, 0.75)
    return names[found[0]] if found else None


def _wanted(requirement: ParsedRequirement) -> str:
    """Name and specifiers in a form to show, the lower bound first."""
    parts = sorted((str(one) for one in requirement.specifier), key=lambda text: (text[0] == "<", text))
    return requirement.name + ",".join(parts)


def _version(target: Target, distribution: Distribution) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(distribution.version)
    except InvalidVersion:
        raise _refused(
            target,
            "version",
            f"{distribution.name} says that its version is {distribution.version!r}, which is no PEP 440 version",
            hint="install a release whose version is one, as today's installers demand; no specifier can be held "
            "against this one",
            details={"distribution": distribution.name, "installed": distribution.version},
        ) from None


def _unmet(text: str, site: Site) -> tuple[str, dict[str, str | None]] | None:
    """One failing ``requires``: what to say and the data; None where it holds or its marker does not apply."""
    requirement = _requirement(text, "target.requires")
    if not _applies(requirement, site, "target.requires"):
        return None
    distribution = find_distribution(site, requirement.name)
    installed = None if distribution is None else distribution.version
    data = {"required": text, "installed": installed}
    if installed is None:
        return f"{_wanted(requirement)}: not installed", data
    try:
        if version_matches(str(requirement.specifier), installed):
            return None
    except ValueError:
        return f"{_wanted(requirement)}: installed is {installed!r}, which is no PEP 440 version", data
    return f"{_wanted(requirement)}: {installed} is installed", data


def _refused(
    target: Target, code: str, message: str, *, hint: str, details: dict[str, object], otherwise: bool = True
) -> GuardError:
    return GuardError(message, code=code, hint=(target.otherwise if otherwise else None) or hint, details=details)
