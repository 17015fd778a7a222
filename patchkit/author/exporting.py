"""``export``: a patch as a unified diff that ``git apply`` and GNU patch accept, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from patchkit.author.create import installed_plainly
from patchkit.author.original import Originals
from patchkit.edit.plan import FilePlan, plan_patch
from patchkit.edit.regions import line_hunks
from patchkit.errors import GuardError
from patchkit.ops.change import guard
from patchkit.ops.session import opened
from patchkit.site.environment import home_of
from patchkit.site.grammar import Grammar
from patchkit.site.guard import version_matches
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

CONTEXT = 3
"""Unchanged lines around a change, as diff and git have them."""


class Exported(NamedTuple):
    """A unified diff, and what it is relative to: the release that the patch was laid on."""

    data: bytes
    distribution: str
    version: str
    files: tuple[str, ...]


class _Released:
    """The released files of a distribution, for the planner, whatever the site's hold."""

    def __init__(self, distribution: Distribution, originals: Originals) -> None:
        self._originals = originals
        self._distribution = distribution
        self.version = distribution.version

    def read(self, path: str, *, wanted_by: Callable[[], str]) -> bytes:
        from patchkit.site.paths import resolve_file

        resolve_file(self._distribution, path)
        return self._originals.of(path)

    def matches(self, specifier: str) -> bool:
        return version_matches(specifier, self.version)

    def siblings(self) -> Iterator[tuple[str, bytes]]:
        return iter(())


def export(
    site: Site, patch: Patch, *, prefix: str = "", notice: Callable[[str], None], progress: Callable[[str], None]
) -> Exported:
    """The diff from the release that is installed to that release with ``patch``.

    Args:
        site: The site; that the patch is applied there, or another, makes no difference.
        patch: The patch.
        prefix: Put before every path, such as ``src/`` for a repository of that layout.
        notice: Told of an interrupted command that was mended.
        progress: Told of downloads.

    Raises:
        GuardError: The patch is not for what is installed.
        PlanError: It does not fit.
        SiteError: A file's original cannot be had.
    """
    found = site.find(patch.target.name)
    here = site if found is None else site.at(home_of(site, found))
    with opened(here, write=False, notice=notice) as workspace:
        workspace.ignore_requires = True
        distribution = installed_plainly(workspace, patch.target.name)
        guard(workspace, patch)
        originals = Originals(workspace.site.home, distribution, progress)
        plan = plan_patch(patch, _Released(distribution, originals), Grammar(workspace.site))
    if not plan.files:
        raise GuardError(
            f"{patch.name}: changes nothing in {distribution.name} {distribution.version}", code="versions"
        )
    files = sorted(plan.files, key=lambda file: file.path)
    data = b"".join(git_diff(file, prefix) for file in files)
    return Exported(data, distribution.name, distribution.version, tuple(file.path for file in files))


def git_diff(file: FilePlan, prefix: str = "") -> bytes:
    """The diff of one file, in git's format; b"" where nothing differs.

    Lines end at ``\\n`` alone, so carriage returns are part of them, and bytes of any encoding stay as they are.
    """
    if file.before == file.after:
        return b""
    old, new = _name(f"a/{prefix}{file.path}"), _name(f"b/{prefix}{file.path}")
    head = [f"diff --git {old} {new}"]
    if file.before is None:
        head.append("new file mode 100644")
    if file.before is not None or file.after:
        # GNU patch ends a name at a blank unless a tab follows it.
        tab = "\t" if " " in file.path else ""
        head += [f"--- {'/dev/null' if file.before is None else old + tab}", f"+++ {new}{tab}"]
    before, after = _lines(file.before or b""), _lines(file.after)
    return ("\n".join(head) + "\n").encode("ascii") + b"".join(_hunks(before, after))


def _name(path: str) -> str:
    """A path as git writes it: quoted, with escapes in octal, where it holds anything unusual."""
    if path.isascii() and path.isprintable() and '"' not in path and "\\" not in path:
        return path
    quoted = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\' else f"\\{byte:03o}" for byte in path.encode("utf-8")
    )
    return f'"{quoted}"'


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _hunks(before: Sequence[bytes], after: Sequence[bytes]) -> Iterator[bytes]:
    """The hunks, those joined whose contexts would meet."""
    changes = list(line_hunks(before, after))
    groups: list[list[tuple[int, int, int, int]]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    for group in groups:
        start, stop = max(group[0][0] - CONTEXT, 0), min(group[-1][1] + CONTEXT, len(before))
        new_start = group[0][2] - (group[0][0] - start)
        new_stop = group[-1][3] + (stop - group[-1][1])
        yield f"@@ -{_range(start, stop)} +{_range(new_start, new_stop)} @@\n".encode("ascii")
        at = start
        for low, high, new_low, new_high in group:
            yield from (_line(b" ", line) for line in before[at:low])
            yield from (_line(b"-", line) for line in before[low:high])
            yield from (_line(b"+", line) for line in after[new_low:new_high])
            at = high
        yield from (_line(b" ", line) for line in before[at:stop])


def _range(start: int, stop: int) -> str:
    """A range as POSIX has it (diff, "Diff -u Output Format"): an empty one names the line before it."""
    count = stop - start
    return f"{start + 1 if count else start}" + ("" if count == 1 else f",{count}")


def _line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"
