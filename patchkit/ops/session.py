"""Opening a site for a command: the lock, what an interrupted command left, the ledger."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from patchkit.errors import SiteError
from patchkit.runtime.ledger import read, state_path

if TYPE_CHECKING:
    from patchkit.ops.workspace import Workspace
    from patchkit.site.environment import Site
    from patchkit.state.lock import Holder
    from patchkit.state.transaction import Recovery


@contextmanager
def opened(
    site: Site, *, write: bool, notice: Callable[[str], None], force_recovery: bool = False
) -> Iterator[Workspace]:
    """The site's workspace; for writing under the lock, from reading the ledger to the commit.

    Args:
        site: The site.
        write: Whether the command may write; a reader takes no lock.
        notice: Told, in words, of an interrupted command that was mended and of a lock that is waited for.
        force_recovery: Close an interrupted transaction even where somebody else changed its files since.

    Raises:
        SiteError: ``locked``; the site cannot be written; the ledger is damaged or an interrupted command cannot be
            mended.
    """
    from patchkit.ops.workspace import Workspace

    if not write:
        for text in mend(site):
            notice(text)
        yield Workspace(site)
        return
    from patchkit.state.lock import lock
    from patchkit.state.transaction import recover

    def waiting(holder: Holder) -> None:
        notice(f"waiting for patchkit with pid {holder.pid} ({holder.command}), which has the lock")

    with lock(site.home, on_wait=waiting):
        recovery = recover(site.home, keep=force_recovery)
        if recovery is not None:
            notice(recovered(recovery))
        yield Workspace(site)


def mend(site: Site) -> list[str]:
    """Finish or take back what an interrupted command left, where the site can be written; and say so."""
    if not os.path.lexists(state_path(site.home, "journal.json")):
        return []
    from patchkit.state.transaction import recover

    try:
        recovery = recover(site.home)
    except SiteError as error:
        hint = f"\n{error.hint}" if error.hint else ""
        return [f"an interrupted command could not be taken back: {error.message}{hint}"]
    return [] if recovery is None else [recovered(recovery)]


def recovered(recovery: Recovery) -> str:
    """What was done about an interrupted command, in words."""
    command = recovery.event.get("command") or "a command"
    count = f"{len(recovery.files)} file{'s' if len(recovery.files) != 1 else ''}"
    if recovery.outcome == "finished":
        return f"an interrupted `{command}` had been completed ({count}); it was tidied up"
    if recovery.outcome == "rolled-back":
        lost = f"; no longer there: {', '.join(recovery.missing)}" if recovery.missing else ""
        kept = f"; left as found: {', '.join(recovery.kept)}" if recovery.kept else ""
        return f"an interrupted `{command}` was taken back ({count}){lost}{kept}"
    return f"an interrupted `{command}` ({count}) waits to be taken back, and cannot be here: {recovery.reason}"


def read_ledger(site: Site) -> tuple[dict[str, Any] | None, list[str]]:
    """The raw ledger for ``check``, and notices of an interrupted command."""
    notices = mend(site)
    return read(site.home), notices


def history(site: Site) -> list[dict[str, Any]]:
    """The events of the site's log, oldest first."""
    from patchkit.state.log import read_log

    return read_log(site.home)
