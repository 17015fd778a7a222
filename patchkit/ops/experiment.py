"""An experiment at work on a site: the mark that it leaves there, who must wait for it, and how the site goes back.

``rebench`` has patches in and out of a site for hours. Its mark tells other commands so, and what the site was before:
whatever ends the experiment, it goes back to that, at the latest by the next command that writes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.errors import PatchkitError, SiteError
from patchkit.ops.session import mend_home
from patchkit.runtime.ledger import plain, read_regular, state_path
from patchkit.site.environment import EXPERIMENT
from patchkit.state import fs
from patchkit.state.ledger import Ledger
from patchkit.state.lock import POLL_SECONDS, Holder, lock, patience
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.ops.check import PatchState, Report
    from patchkit.site.environment import Site

SCHEMA = 1
_MOST = 64 << 20
_OWN: set[str] = set()
"""Tokens of the experiments that this process may work for."""


class Held(NamedTuple):
    """A patch that the site had before: its file's text and where that lies."""

    name: str
    text: str
    source: str | None


class Who(NamedTuple):
    """A process: its number and when it started, in clock ticks since boot (None: the system does not tell)."""

    pid: int
    ticks: int | None


class Mark(NamedTuple):
    """One experiment, as its mark tells.

    ``names`` are the patches that it puts in and out, ``before`` those that the site had, all of them, in order.
    ``guardian`` puts the site back when ``owner`` dies. ``host`` and ``space`` tell whether their numbers mean anything
    here.
    """

    token: str
    recipe: str
    folder: str
    started: str
    owner: Who
    guardian: Who | None
    host: str
    space: str
    names: tuple[str, ...]
    before: tuple[Held, ...]


def this_process() -> Who:
    """The running process."""
    return Who(os.getpid(), ticks_of(os.getpid()))


def ticks_of(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None where there is none, or the system does not tell."""
    try:
        fields = read_regular(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[19]) if len(fields) > 19 and fields[0] not in (b"Z", b"X") else None


def read_mark(home: str) -> Mark | None:
    """The mark in one directory; None where there is none.

    Raises:
        SiteError: ``experiment``: it cannot be read.
    """
    path = state_path(home, EXPERIMENT)
    try:
        value: Any = json.loads(read_regular(path, _MOST))
        if value["schema"] != SCHEMA:
            raise ValueError(f"schema {value['schema']}")
        del value["schema"]
        owner, guardian = Who(*value.pop("owner")), value.pop("guardian")
        before = tuple(Held(*one) for one in value.pop("before"))
        names = tuple(value.pop("names"))
        mark = Mark(
            owner=owner, guardian=None if guardian is None else Who(*guardian), names=names, before=before, **value
        )
        if not all(plain(name) for name in (*names, *(one.name for one in before))):
            raise ValueError("a name of a patch")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SiteError(
            f"{path}: an experiment left its mark here, which cannot be read: {error}",
            code="experiment",
            hint=f"look with `patchkit check` and `patchkit diff` what the site has; then remove {path}",
            details={"path": path},
        ) from None
    return mark


def write_mark(home: str, mark: Mark) -> None:
    """Leave a mark, or change it. The caller holds the lock where it is the first."""
    _OWN.add(mark.token)
    value = {"schema": SCHEMA, **mark._asdict()}
    with lock(home):
        data = json.dumps(value, indent=1).encode()
        fs.write_atomic(state_path(home, EXPERIMENT), data, fs.open_like(home))


def give_up(home: str, token: str) -> None:
    """Nobody works at the experiment any more, though the site is not as it was: the mark stays for a person."""
    mark = read_mark(home)
    if mark is not None and mark.token == token:
        write_mark(home, mark._replace(owner=Who(mark.owner.pid, -1), guardian=None))


def remove_mark(home: str, token: str) -> None:
    """Take the mark away, if it is that one."""
    with lock(home):
        found = read_mark(home)
        if found is not None and found.token == token:
            fs.unlink(state_path(home, EXPERIMENT), missing_ok=True)
            fs.fsync_dir(state_path(home))


@contextlib.contextmanager
def working_for(token: str) -> Iterator[None]:
    """Within the block this process is part of that experiment."""
    had = token in _OWN
    _OWN.add(token)
    try:
        yield
    finally:
        if not had:
            _OWN.discard(token)


def leave(token: str) -> None:
    """The running process is no part of that experiment any more."""
    _OWN.discard(token)


def is_own(mark: Mark) -> bool:
    """Whether this process is part of that experiment."""
    return mark.token in _OWN


def host() -> tuple[str, str]:
    """The machine and (Linux) the container, as a mark names them."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    try:
        return name, os.readlink("/proc/self/ns/pid")
    except OSError:
        return name, ""


def alive(mark: Mark, who: Who | None) -> bool:
    """Whether a process of the experiment is there; of another machine's or container's, nobody can tell: yes."""
    if who is None:
        return False
    name, space = host()
    if sys.platform == "win32" or mark.host != name or mark.space != space:
        return True
    if who.ticks is not None:
        return ticks_of(who.pid) == who.ticks
    try:
        os.kill(who.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's
    return True


def running_text(mark: Mark) -> str:
    """That an experiment is at work, for those who only look."""
    where = Holder(mark.owner.pid, "", mark.host, mark.space).elsewhere
    return (
        f"an experiment is running: `rebench {mark.recipe}` (pid {mark.owner.pid}{where}, since {mark.started}) has "
        f"{', '.join(mark.names)} in and out"
    )


def busy(home: str, mark: Mark) -> SiteError:
    """The error of who wants to write meanwhile."""
    return SiteError(
        f"{home}: {running_text(mark)}",
        code="experiment-running",
        hint=f"wait for it to end, or end it (it puts the site back): kill {mark.owner.pid}",
        details={"path": home, "pid": mark.owner.pid, "recipe": mark.recipe, "since": mark.started},
    )


def left(mark: Mark) -> SiteError:
    """What an experiment that nobody puts back any more means, for those who only look."""
    return SiteError(
        f"the experiment `rebench {mark.recipe}` of {mark.started} was ended before it could put the site back: "
        f"{', '.join(mark.names)} may be in or out",
        code="experiment",
        hint="patchkit rebench --restore puts it back; so does the next command that writes. The runs are kept: "
        f"patchkit rebench {mark.recipe} --resume {mark.folder}",
        details={"recipe": mark.recipe, "since": mark.started, "folder": mark.folder, "patches": list(mark.names)},
    )


def seen(home: str, report: Report) -> list[Mark]:
    """What ``check`` says of the mark in a directory; the experiment, where it is at work.

    Args:
        home: The directory.
        report: Takes a notice of one that is at work, and the error of one that was left.
    """
    try:
        mark = read_mark(home)
    except SiteError as error:
        report.left.append(error)
        return []
    if mark is None or is_own(mark):
        return []
    if not alive(mark, mark.owner) and not alive(mark, mark.guardian):
        report.left.append(left(mark))
        return []
    report.notices.append(running_text(mark))
    return [mark]


def as_before(states: Iterable[PatchState], marks: Sequence[Mark]) -> list[PatchState]:
    """States in which what an experiment has in and out at this moment counts as it was before: it is no drift."""
    names = {name for mark in marks for name in mark.names}
    before = {one.name for mark in marks for one in mark.before}
    found = []
    for state in states:
        if state.name in names and state.name in before and state.state == "absent":
            reason = "an experiment has it in and out, and puts it back"
            found.append(state._replace(state="applied", files=(), reason=reason))
        elif state.name not in names or state.name in before or state.state != "applied":
            found.append(state)
    return found


def gate(site: Site, home: str, notice: Callable[[str], None]) -> None:
    """Let a command that writes pass; what a dead experiment left is put back first, and its guardian waited for.

    Raises:
        SiteError: ``experiment-running``; or the site cannot be put back.
    """
    import time

    mark, began, told = read_mark(home), time.monotonic(), False
    while mark is not None and not is_own(mark):
        if alive(mark, mark.owner) or time.monotonic() - began > patience():
            raise busy(home, mark)
        if not alive(mark, mark.guardian):
            settle(site.at(home), mark, notice)
            return
        if not told:
            notice(f"waiting for the site to be put back after `rebench {mark.recipe}`")
            told = True
        time.sleep(POLL_SECONDS)
        mark = read_mark(home)


def settle(site: Site, mark: Mark, notice: Callable[[str], None], *, force: bool = False) -> None:
    """Put the site back as the mark says it was, and take the mark away.

    Args:
        site: The site, at the home with the mark.
        mark: The mark.
        notice: Told of it.
        force: Discard hand edits that are in the way; a copy is kept.

    Raises:
        PatchkitError: It cannot be: a hand edit, a reinstall. The mark stays.
    """
    with working_for(mark.token), lock(site.home):
        found = read_mark(site.home)
        if found is None or found.token != mark.token:
            return
        try:
            changed = put_back(site, mark.before, notice, force=force)
        except PatchkitError as error:
            error.message = f"the site cannot be put back after `rebench {mark.recipe}`: {error.message}"
            error.hint = (
                "patchkit rebench --restore --force discards the hand edit and keeps a copy; "
                "patchkit rebench --forget leaves the site as it is"
            )
            raise
        remove_mark(site.home, mark.token)
    what = "is as it was before" if changed else "was as before already"
    notice(f"the experiment `rebench {mark.recipe}` of {mark.started} had been ended: the site {what}")


def put_back(
    site: Site, before: Sequence[Held], notice: Callable[[str], None] = lambda text: None, *, force: bool = False
) -> bool:
    """Make the ledger of ``site.home`` hold exactly these patches, in this order; whether anything had to be done.

    Raises:
        PatchkitError: A hand edit or a reinstall is in the way.
    """
    from patchkit.model.load import parse_patch

    for text in mend_home(site, site.home, wait=True).notices:  # a swap that was killed halfway
        notice(text)
    wanted = [parse_patch(one.text.encode("utf-8"), one.source or f"{one.name}.toml") for one in before]
    return arrange(site, wanted, notice, force=force, in_order=True)


def arrange(
    site: Site,
    wanted: Sequence[Patch],
    notice: Callable[[str], None],
    *,
    among: Sequence[str] | None = None,
    force: bool = False,
    in_order: bool = False,
) -> bool:
    """Put patches in and out until the ledger of ``site.home`` holds those wanted; whether anything had to be done.

    Args:
        site: The site.
        wanted: The patches.
        notice: Told of what is waited for.
        among: Others than these are not taken out; None: all.
        force: Discard hand edits that are in the way; a copy is kept.
        in_order: They are to stand in the ledger in that order, so that overlapping ones give the very same bytes.

    Raises:
        PatchkitError: As ``apply`` and ``revert``.
    """
    from patchkit.ops.apply import apply_site
    from patchkit.ops.revert import revert_site

    ledger = Ledger.load(site.home)
    current = [(entry.name, entry.digest) for entry in ledger.patches]
    goal = [(patch.name, patch.digest) for patch in wanted]
    if in_order:
        same = 0
        while same < min(len(current), len(goal)) and current[same] == goal[same]:
            same += 1
        off, on = [name for name, _ in current[same:]], list(wanted[same:])
    else:
        names = {name for name, _ in goal}
        off = [name for name, _ in current if name not in names and (among is None or name in among)]
        on = [patch for patch in wanted if (patch.name, patch.digest) not in current]
    if off:
        revert_site(fresh(site), off, force=force, notice=notice)
    if on:
        apply_site(fresh(site), on, allow_known_bad=True, notice=notice)
    return bool(off or on)


def fresh(site: Site) -> Site:
    """The site without what was read of it before: an installer may have been there."""
    from patchkit.site.environment import Site

    return Site(
        home=site.home,
        paths=site.paths,
        interpreter=site.interpreter,
        python_version=site.python_version,
        label=site.label,
    )


def held(home: str) -> tuple[Held, ...]:
    """The patches that a directory's ledger has, in order, with their texts.

    Raises:
        SiteError: The ledger is damaged, or has lost the text of one.
    """
    from patchkit.state import blobs

    return tuple(
        Held(entry.name, blobs.get(home, entry.digest, what=f"the patch {entry.name}").decode("utf-8"), entry.source)
        for entry in Ledger.load(home).patches
    )
