"""Opening a site for a command: the lock, what an interrupted command left, the ledger."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from patchkit.errors import SiteError
from patchkit.runtime.ledger import state_path
from patchkit.site.environment import EXPERIMENT, ledger_homes
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.ops.workspace import Workspace
    from patchkit.site.environment import Site
    from patchkit.state.journal import Journal
    from patchkit.state.lock import Holder
    from patchkit.state.transaction import Recovery


class Mended(NamedTuple):
    """What was found of interrupted commands: what was done, in words, and the error of each that still waits."""

    notices: list[str]
    waiting: dict[str, SiteError]


class Home(NamedTuple):
    """What was found in one directory: what was done, in words, and the journal of a command that is at work."""

    notices: list[str]
    running: Journal | None = None


@contextmanager
def opened(site: Site, *, write: bool, notice: Callable[[str], None]) -> Iterator[Workspace]:
    """The workspace of ``site.home``; for writing under the lock, from reading the ledger to the commit.

    Args:
        site: The site, at the home that is meant (:meth:`Site.at`).
        write: Whether the command may write; a reader takes no lock.
        notice: Told, in words, of an interrupted command that was mended and of a lock that is waited for.

    Raises:
        SiteError: ``locked``; the site cannot be written; the ledger is damaged or an interrupted command cannot be
            mended.
    """
    from patchkit.ops.workspace import Workspace

    ledger_homes(site)  # refuses what is no directory
    if not write:
        for told in mend_home(site, site.home, wait=False).notices:
            notice(told)
        yield Workspace(site)
        return
    from patchkit.state import fs
    from patchkit.state.lock import lock
    from patchkit.state.transaction import recover

    def waiting(holder: Holder) -> None:
        notice(waiting_text(holder))

    with fs.confined(site.home, *site.paths), lock(site.home, on_wait=waiting):
        recovery = recover(site.home)
        if recovery is not None:
            notice(_mended(site.home, recovery))
        pass_gate(site, site.home, notice)
        yield Workspace(site)


def pass_gate(site: Site, home: str, notice: Callable[[str], None]) -> None:
    """Before a directory is written: no experiment is at work in it, and what a dead one left is put back.

    Raises:
        SiteError: ``experiment-running``, or it cannot be put back.
    """
    if os.path.lexists(state_path(home, EXPERIMENT)):
        from patchkit.ops.experiment import gate

        gate(site, home, notice)


def waiting_text(holder: Holder) -> str:
    """Whom is waited for, as far as it wrote itself down."""
    who = "another patchkit" if holder.pid is None else f"patchkit with pid {holder.pid}{holder.elsewhere}"
    command = f" ({holder.command})" if holder.command else ""
    return f"waiting for {who}{command}, which has the lock"


def running_text(holder: Holder) -> str:
    """Who is at work, for those who do not wait long."""
    return "a command is running" + (f" (pid {holder.pid}{holder.elsewhere})" if holder.pid is not None else "")


def once(notice: Callable[[str], None]) -> Callable[[str], None]:
    """``notice`` for what is found out again with every look: the same words are told once."""
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:
            told.add(text)
            notice(text)

    return tell


def mend(site: Site, *, wait: bool, notice: Callable[[str], None] | None = None) -> Mended:
    """Finish or take back what interrupted commands left in any directory of the site's path, where that can be.

    Args:
        site: The site.
        wait: Whether a command that is at work is waited for (by those who want to write), or only told of.
        notice: Told of one that is waited for.

    Raises:
        SiteError: ``not-a-directory``.
    """
    found = Mended([], {})
    for home in ledger_homes(site):
        try:
            found.notices.extend(mend_home(site, home, wait=wait, notice=notice).notices)
            if wait:
                pass_gate(site, home, found.notices.append)
        except SiteError as error:
            found.waiting[home] = error
    return found


def mend_all(site: Site, notice: Callable[[str], None], *, wait: bool = False) -> None:
    """The same for a command that must not look at a half-written site.

    Raises:
        SiteError: An interrupted command cannot be mended.
    """
    mended = mend(site, wait=wait, notice=notice)
    for text in mended.notices:
        notice(text)
    for error in mended.waiting.values():
        raise error


def mend_home(site: Site, home: str, *, wait: bool, notice: Callable[[str], None] | None = None) -> Home:
    """Finish or take back what an interrupted command left in one directory.

    Args:
        site: The site, in whose other directories that command may have written as well: by a link.
        home: The directory.
        wait: Whether a command that is at work is waited for, or only told of.
        notice: Told of one that is waited for.

    Raises:
        SiteError: ``interrupted`` where that cannot be, ``locked``, ``corrupt``, or an error of the disk.
    """
    if not os.path.lexists(state_path(home, "journal.json")):
        return Home([])
    from contextlib import ExitStack

    from patchkit.state import fs, journal
    from patchkit.state.lock import Holder, lock, probe
    from patchkit.state.transaction import recover

    def waiting(holder: Holder) -> None:
        if notice is not None:
            notice(waiting_text(holder))

    with ExitStack() as stack:
        stack.enter_context(fs.confined(home, *site.paths))
        # Asked without a right to write: who may only read must not take a command at work for an interrupted one.
        by = None if wait else probe(home)
        if by is None:
            try:
                stack.enter_context(lock(home, timeout=None if wait else 0, on_wait=waiting))
            except SiteError as error:
                if error.code == "locked" and wait:
                    raise
                if error.code == "locked":
                    by = Holder(*(error.details[name] for name in ("pid", "command", "host", "space")))
                # Where nothing can be written, the lock cannot be had either: what that means is told below.
        if by is not None:
            running = journal.load(home)
            return Home([] if running is None else [running_text(by)], running)
        recovery = recover(home)
    return Home([] if recovery is None else [_mended(home, recovery)])


def _mended(home: str, recovery: Recovery) -> str:
    """What was done about an interrupted command, in words.

    Raises:
        SiteError: ``interrupted``: nothing could be, since the site cannot be written.
    """
    command = recovery.event.get("command") or "a command"
    count = f"{len(recovery.files)} file{'s' if len(recovery.files) != 1 else ''}"
    if recovery.outcome == "finished":
        return f"an interrupted `{command}` had been completed ({count}); it was tidied up"
    if recovery.outcome == "rolled-back":
        lost = f"; no longer there: {', '.join(recovery.missing)}" if recovery.missing else ""
        kept = f"; left as found: {', '.join(recovery.kept)}" if recovery.kept else ""
        return f"an interrupted `{command}` was taken back ({count}){lost}{kept}"
    raise SiteError(
        f"an interrupted `{command}` ({count}) waits to be taken back in {home}, and cannot be here: {recovery.reason}",
        code="interrupted",
        hint="run `patchkit check` as a user who may write there: that takes it back, or waits for that command if it "
        "is still at work",
        details={"path": state_path(home, "journal.json"), "paths": list(recovery.files)},
    )


def history(site: Site) -> list[dict[str, Any]]:
    """The events of every log of the site's path, oldest first, each with its directory as ``site``."""
    from patchkit.state.log import read_log

    events = [{**event, "site": home} for home in ledger_homes(site) for event in read_log(home)]
    return sorted(events, key=lambda event: str(event.get("time")))
