"""The whole life of a patch, shown on a throwaway environment that holds the real released wheel.

Nothing outside of a temporary folder is touched. Every step is the library call behind the command that it names.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from patchkit.errors import GuardError, InternalError, SiteError
from patchkit.model.patch import Patch
from patchkit.ops.apply import apply_patches
from patchkit.ops.catalog import Catalog
from patchkit.ops.check import PatchState, check_site
from patchkit.ops.homes import common_home
from patchkit.ops.inspect import unified
from patchkit.ops.outcome import FileResult
from patchkit.ops.revert import revert_patches
from patchkit.ops.session import opened
from patchkit.ops.sync import sync_site
from patchkit.runtime.ledger import open_regular
from patchkit.site.distribution import find_distribution
from patchkit.site.environment import Site, resolve
from patchkit.site.guard import version_matches
from patchkit.site.wheel import fetch_wheel, pip_command, released_versions
from patchkit.tuples import NamedTuple

#: Seconds for making the environment, and for each install of the wheel.
PATIENCE = 600.0


class Step(NamedTuple):
    """One step of the trial: what a user would type, what came of it, and a diff where there is one."""

    command: str
    result: str
    diff: str = ""


class Proof(NamedTuple):
    """RECORD against the files at the end: how many were compared, and the paths that differ."""

    compared: int
    differing: tuple[str, ...]


class Trial(NamedTuple):
    """A finished trial: the release it ran on, its steps, and the proof; ``folder`` is None when it was removed."""

    name: str
    distribution: str
    version: str
    steps: tuple[Step, ...]
    proof: Proof
    folder: str | None


def run_trial(
    patch: Patch,
    *,
    version: str | None = None,
    keep: bool = False,
    progress: Callable[[str], None],
    report: Callable[[Step], None],
) -> Trial:
    """Apply, check, lose, sync and revert ``patch`` on the released wheel, and prove that every byte is back.

    Args:
        patch: The patch.
        version: The release to try it on; by default the newest one that the patch is for.
        keep: Leave the environment for a look around.
        progress: Told what takes long.
        report: Told every step as it is done.

    Raises:
        GuardError: The patch is not for that release.
        SiteError: The wheel cannot be fetched or installed (``fetch``, ``install``).
        PlanError: It does not fit there.
    """
    name = patch.target.name
    if version is None:
        progress(f"looking for the newest release of {name} that {patch.name} is for")
        version = newest_release(patch)
    progress(f"fetching {name} {version} (kept for the next time)")
    wheel = fetch_wheel(name, version, progress=progress)
    with _folder(keep) as folder:
        progress("making a throwaway environment and installing the wheel with pip")
        python = _environment(folder)
        _install(python, wheel)
        # Without the target's own dependencies: the wheel alone is what a patch is planned on.
        site = resolve(python, None, {"PATCHKIT_CACHE": os.path.join(folder, "cache")})
        steps: list[Step] = []

        def done(step: Step) -> None:
            steps.append(step)
            report(step)

        _live(patch, site, lambda: _install(python, wheel), done, progress)
        proof = prove_record(site, name)
        done(
            Step(
                "compare every file with RECORD",
                f"{proof.compared} files, "
                + (
                    "all as released" if not proof.differing else f"{len(proof.differing)} DIFFER: {proof.differing[0]}"
                ),
            )
        )
        return Trial(patch.name, name, version, tuple(steps), proof, folder if keep else None)


def newest_release(patch: Patch) -> str:
    """The newest final release that the patch's requirement and its edits' ``versions`` admit.

    Raises:
        GuardError: ``version``: none does.
        SiteError: ``fetch``: the index cannot be asked.
    """
    from packaging.requirements import Requirement
    from packaging.version import Version

    requirement = Requirement(patch.target.requirement)
    versions = sorted((Version(text) for text in released_versions(requirement.name)), reverse=True)
    parts = [edit.versions for edit in patch.edits]
    parts += [part.versions for own in (patch.adds, patch.removes) for part in own]
    for version in versions:
        fits = requirement.specifier.contains(version, prereleases=False)
        if fits and any(part is None or version_matches(part, version) for part in parts):
            return str(version)
    raise GuardError(
        f"no released version of {requirement.name} is {requirement.specifier}",
        code="version",
        hint="name one with --version",
    )


def _live(
    patch: Patch,
    site: Site,
    reinstall: Callable[[], None],
    done: Callable[[Step], None],
    progress: Callable[[str], None],
) -> None:
    catalog = Catalog(())
    name = patch.name
    here = site.at(common_home(site, [patch]) or site.home)
    with opened(here, write=True, notice=progress) as workspace:
        workspace.ignore_requires = True
        planned = apply_patches(workspace, [patch], dry_run=True, allow_known_bad=True)
        result = planned.patches[0]
        guards = f"{result.distribution} {result.version} is what it is for"
        if patch.target.requires:
            guards += f" ({', '.join(patch.target.requires)}: not installed here, checked on a real site)"
        done(Step(f"patchkit show {name}", guards))
        diff = "".join(unified(file.path, file.before, file.after) for file in planned.files)
        done(
            Step(
                f"patchkit apply {name} --dry-run --diff",
                _planned(result.files),
                diff,
            )
            if result.action == "applied"
            else Step(f"patchkit apply {name} --dry-run --diff", f"{result.action}: {result.reason}")
        )
        applied = apply_patches(workspace, [patch], allow_known_bad=True)
        done(Step(f"patchkit apply {name}", f"{applied.patches[0].action}, {_files(applied.written)} written"))
        if applied.patches[0].action != "applied":
            return
    done(Step("patchkit check", _states(_check(site, catalog))))
    progress("reinstalling the wheel with pip, as an upgrade or a rebuilt image would")
    reinstall()
    done(Step("pip install --force-reinstall", "the pristine files are back, nobody was told"))
    states = _check(site, catalog)
    if any(state.clean for state in states):
        raise InternalError("a reinstall went unnoticed by check")
    done(Step("patchkit check", _states(states)))
    healed = sync_site(site, catalog, allow_known_bad=True, ignore_requires=True, notice=progress)
    done(Step("patchkit sync", f"{healed.patches[0].action} again, {_files(healed.written)} written"))
    with opened(here, write=True, notice=progress) as workspace:
        back = revert_patches(workspace, [name])
        done(Step(f"patchkit revert {name}", f"{back.patches[0].action}, {_files(back.written)} written"))


def _planned(files: Sequence[FileResult]) -> str:
    """What a plan does, by the numbers."""
    edited = [file for file in files if file.edits]
    places = sum(len(edit.matches) for file in edited for edit in file.edits)
    added = sum(file.before_sha256 is None for file in files)
    gone = sum(file.after_sha256 is None for file in files)
    parts = []
    if edited:
        found = f"{places} place{'s' if places != 1 else ''} in {_files(len(edited))}"
        parts.append(f"{found}, found as often as the patch says")
    if added:
        parts.append(f"{added} new file{'s' if added != 1 else ''}")
    if gone:
        parts.append(f"{_files(gone)} taken away")
    return "; ".join(parts)


def _files(number: int) -> str:
    return f"{number} file{'s' if number != 1 else ''}"


def _check(site: Site, catalog: Catalog) -> list[PatchState]:
    return check_site(site, (), catalog).states


def _states(states: Sequence[PatchState]) -> str:
    return "; ".join(f"{s.state}" + (f" ({s.reason})" if s.reason else "") for s in states)


def prove_record(site: Site, name: str) -> Proof:
    """Compare every file of a distribution with the hash that RECORD has for it.

    Raises:
        GuardError: ``not-installed``.
    """
    distribution = find_distribution(site, name)
    if distribution is None:
        raise GuardError(f"{name} is not installed in {site.home}", code="not-installed")
    compared, differing = 0, []
    for path, entry in distribution.record.entries().items():
        if entry.digest is None:
            continue
        compared += 1
        try:
            with open_regular(os.path.join(distribution.base, *path.split("/"))) as file:
                if entry.matches(file.read()) is not True:
                    differing.append(path)
        except OSError:
            differing.append(path)
    return Proof(compared, tuple(differing))


@contextmanager
def _folder(keep: bool) -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="patchkit-try-")
    try:
        yield folder
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def _environment(folder: str) -> str:
    target = os.path.join(folder, "env")
    _run([sys.executable, "-m", "venv", "--without-pip", target])
    scripts = "Scripts" if os.name == "nt" else "bin"
    return os.path.join(target, scripts, "python.exe" if os.name == "nt" else "python")


def _install(python: str, wheel: str) -> None:
    options = ["install", "--no-deps", "--no-index", "--no-compile", "--force-reinstall", "--ignore-requires-python"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    _run([*pip_command(), "--python", python, *options, *quiet, wheel])


def _run(command: list[str]) -> None:
    """Run a step of setting up.

    Raises:
        SiteError: ``install``.
    """
    from patchkit.site.process import run

    shown = " ".join([os.path.basename(command[0]), *command[1:4]])
    try:
        done = run(command, timeout=PATIENCE)
    except OSError as error:
        problem = f"cannot be run: {error.strerror}"
    else:
        if done.status == 0:
            return
        problem = f"{done.ended()}; it said: {done.last_line() or 'nothing'}"
    raise SiteError(
        f"{shown}: {problem}",
        code="install",
        hint="`try` needs the venv module where patchkit runs, and a pip of 22.3 or later there or on PATH",
        details={"command": command},
    )
