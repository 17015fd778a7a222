"""``export``: a patch as a unified diff that ``git apply`` and GNU patch accept, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from patchkit.author.original import Originals
from patchkit.author.target import opened_for
from patchkit.edit.plan import FilePlan, plan_patch
from patchkit.edit.unified import file_names, hunks, quoted
from patchkit.errors import GuardError, SiteError
from patchkit.ops.change import guard
from patchkit.site.grammar import Grammar
from patchkit.site.guard import version_matches
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site


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
        from patchkit.site.paths import resolve_file, resolve_gone

        try:
            resolve_file(self._distribution, path)
        except SiteError as error:  # the patch itself may have taken it away
            if error.code != "missing" or resolve_gone(self._distribution, path) is None:
                raise
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
    with opened_for(site, patch.target.name, write=False, notice=notice) as (workspace, distribution):
        workspace.ignore_requires = True
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
    """The diff of one file, in git's format; b"" where nothing differs."""
    if file.before == file.after:
        return b""
    before, after = file_names(file.path, file.before, file.after, prefix)
    head = [f"diff --git {quoted(f'a/{prefix}{file.path}')} {quoted(f'b/{prefix}{file.path}')}"]
    if file.before is None:
        head.append("new file mode 100644")
    elif file.after is None:
        head.append("deleted file mode 100644")
        head += [] if file.before else ["index e69de29..0000000"]  # GNU patch takes no file away without a word of it
    if file.before or file.after:
        head += [f"--- {before}", f"+++ {after}"]
    text = "\n".join(head) + "\n"
    return text.encode("utf-8", "surrogateescape") + b"".join(hunks(file.before or b"", file.after or b""))
