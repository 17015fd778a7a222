"""Ending a transaction whose journal is on the disk: clean up behind a committed one, or take another back.

Everything here may itself be stopped at any point and started again: it decides by what is on the disk alone, and the
journal goes last.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection, Mapping
from typing import Any

from patchkit.errors import SiteError
from patchkit.runtime.ledger import file_path, read, sha256_hex, state_path
from patchkit.state import blobs, bytecode, fs, log
from patchkit.state import journal as journals
from patchkit.state.journal import Before, Journal, JournalFile
from patchkit.state.ledger import Ledger
from patchkit.tuples import NamedTuple


class Settled(NamedTuple):
    """How it ended. ``missing`` and ``neither`` are keys of files somebody else removed or changed meanwhile.

    ``waits`` is why a committed one could not be tidied up behind: its journal is still there.
    """

    finished: bool
    missing: tuple[str, ...] = ()
    neither: tuple[str, ...] = ()
    waits: OSError | None = None


def settle(home: str, journal: Journal, *, keep: bool = False) -> Settled:
    """Finish the journal's transaction if the ledger carries its id, else take it back.

    Raises:
        OSError: With its path. The journal is still there.
        SiteError: ``interrupted`` or ``corrupt``. The journal is still there.
    """
    recorded = read(home)
    if recorded is not None and recorded.get("tx") == journal.tx:
        return Settled(finished=True, waits=finish(home, journal, again=True))
    return _roll_back(home, journal, keep)


def finish(home: str, journal: Journal, *, again: bool = False) -> OSError | None:
    """Clean up behind a committed transaction. A failing disk leaves the journal, so that the next command goes on.

    ``again`` says that an earlier attempt may have written the log.

    Returns:
        What failed, if anything.
    """
    directory = state_path(home)
    try:
        if again:
            fs.fsync_dir(directory)  # the ledger's rename must last before the journal goes
            _clear(home, journal)
        _remove_dirs(home, journal)
        with contextlib.suppress(OSError):  # a history that cannot be written is no reason to stop
            if not (again and any(event.get("tx") == journal.tx for event in log.read_log(home))):
                _record(home, journal, {"result": "done", **journal.event})
        fs.unlink(journals.journal_path(home), missing_ok=True)
        fs.fsync_dir(directory)  # before any blob goes: with the journal back, they would be needed
        _collect(home, journal.spared)
    except OSError as error:
        return error
    return None


def abandon(home: str, tx: str, spared: Collection[str]) -> None:
    """Undo the preparations of a transaction that changed no file yet: its journal, and blobs nobody refers to."""
    with contextlib.suppress(OSError, SiteError):
        path = journals.journal_path(home)
        fs.unlink(path + ".tmp", missing_ok=True)
        found = journals.load(home)
        if found is not None and found.tx == tx:
            fs.unlink(path)
            fs.fsync_dir(os.path.dirname(path))
        _collect(home, spared)


def _record(home: str, journal: Journal, event: Mapping[str, Any]) -> None:
    log.append(home, log.stamped(event, files=len(journal.files), tx=journal.tx))


def _collect(home: str, spared: Collection[str]) -> None:
    """Remove what no ledger refers to and nobody spares; the ledger itself when it is empty (the log stays)."""
    ledger = Ledger.load(home)
    blobs.collect(home, ledger.blobs().union(spared))
    if ledger.empty:
        fs.unlink(state_path(home, "ledger.json"), missing_ok=True)


def _clear(home: str, journal: Journal) -> None:
    for file in journal.files:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            fs.unlink(journal.temp(home, file), missing_ok=True)
        _drop_bytecode(home, journal, file)


def _drop_bytecode(home: str, journal: Journal, file: JournalFile) -> None:
    legacy = file.before is None or file.after is None
    with contextlib.suppress(
        OSError, SiteError
    ):  # the cause of a failure may be just that; Python compares times besides
        bytecode.remove_stale(journal.path(home, file), pycache_prefixes=journal.prefixes, legacy=legacy)


def _remove_dirs(home: str, journal: Journal) -> None:
    """Remove the directories that went with removed files, innermost first, where nothing is in them."""
    keys = {*journal.remove_dirs, *(key for file in journal.files for key in file.remove_dirs)}
    _rmdirs({file_path(home, key) for key in keys})


def _rmdirs(paths: set[str]) -> None:
    for path in sorted(paths, key=len, reverse=True):
        if os.path.isdir(path) and not os.path.islink(path):
            cache = os.path.join(path, "__pycache__")
            if os.path.isdir(cache):
                fs.rmdir(cache)
            if fs.rmdir(path):
                fs.fsync_dir(os.path.dirname(path))


def _roll_back(home: str, journal: Journal, keep: bool) -> Settled:
    states = [_now(home, journal, file) for file in journal.files]
    _make_room(home, journal)
    touched: set[str] = set()
    failures: list[OSError | SiteError] = []
    for file, state in zip(reversed(journal.files), reversed(states), strict=True):
        path = journal.path(home, file)
        if state == "after":
            try:
                _put_back(home, path, journal.temp(home, file), file)
            except (OSError, SiteError) as error:  # the others can be put back all the same
                failures.append(error)
            touched.add(os.path.dirname(path))
        _drop_bytecode(home, journal, file)  # of every file: an earlier attempt may have been stopped right before this
    if failures:
        raise failures[0]
    for directory in touched:
        fs.fsync_dir(directory)
    _rmdirs(set(journal.create_dirs))
    missing = tuple(file.key for file, state in zip(journal.files, states, strict=True) if state == "missing")
    neither = tuple(file.key for file, state in zip(journal.files, states, strict=True) if state == "neither")
    if neither and not keep:
        raise _interrupted(home, journal, neither)
    fs.unlink(journals.journal_path(home), missing_ok=True)
    fs.fsync_dir(state_path(home))
    with contextlib.suppress(OSError):
        _record(home, journal, {**journal.event, "result": "rolled back"})
        _collect(home, journal.spared)
    return Settled(False, missing, neither)


def _make_room(home: str, journal: Journal) -> None:
    """Remove all that the transaction took of the disk and that taking it back does not need.

    First of all, since a full disk may be why it is taken back, and putting files back takes room as well.
    """
    for file in journal.files:
        temp = journal.temp(home, file)
        if os.path.isdir(os.path.dirname(temp)):
            fs.unlink(temp, missing_ok=True)
    fs.unlink(state_path(home, "ledger.json.tmp"), missing_ok=True)
    needed = {file.before.sha256 for file in journal.files if file.before is not None}
    with contextlib.suppress(OSError, SiteError):
        blobs.collect(home, Ledger.load(home).blobs().union(needed, journal.spared))


def _now(home: str, journal: Journal, file: JournalFile) -> str:
    """What ``file`` is on the disk: ``before``, ``after``, ``missing`` or ``neither``."""
    path = journal.path(home, file)
    try:
        own = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        if file.before is None:
            return "before"
        # Where its directory is gone as well, somebody uninstalled the package: there is nothing to put back into.
        return "after" if file.after is None and os.path.isdir(os.path.dirname(path)) else "missing"
    if not stat.S_ISREG(own.st_mode) and not stat.S_ISLNK(own.st_mode):
        return "neither"
    try:
        sha256 = sha256_hex(fs.read_file(path))
    except FileNotFoundError:  # a dangling link
        return "neither"
    before = file.before
    if before is not None and sha256 == before.sha256 and (sha256 != file.after or _same(own, before)):
        return "before"
    if sha256 == file.after and stat.S_ISLNK(own.st_mode) == (file.link is not None):
        return "after"
    return "before" if sha256 == file.pristine else "neither"  # reinstalled meanwhile: as good as before


def _same(own: os.stat_result, before: Before) -> bool:
    """Where a change leaves the bytes alone, whether mode, time and kind are still as before."""
    if stat.S_ISLNK(own.st_mode):
        return before.link is not None
    return before.link is None and (stat.S_IMODE(own.st_mode), own.st_mtime_ns) == (before.mode, before.mtime_ns)


def _put_back(home: str, path: str, temp: str, file: JournalFile) -> None:
    """Make ``path`` again what it was before: absent, a link, or a file with its bytes, mode, owner and time.

    Raises:
        SiteError: ``corrupt``: the bytes are lost; ``verify``: the disk gives back others.
        OSError: With its path.
    """
    before = file.before
    if before is None:
        fs.unlink(path, missing_ok=True)
        return
    if before.link is not None:
        fs.symlink(before.link, temp)
        fs.replace(temp, path)
        return
    try:
        data = blobs.get(home, before.sha256, what=f"{file.key} before the interrupted run")
    except SiteError as error:
        from patchkit.state import salvage

        error.hint = f"bring it back with: {salvage.reinstall(home, [file.key])}, and run the command again"
        raise
    exists = os.path.lexists(path)
    meta = fs.Meta(before.mode, before.mtime_ns, before.uid, before.gid, path if exists else None)
    fs.write_new(temp, data, meta)
    fs.replace(temp, path)
    if fs.read_file(path) != data:
        raise SiteError(
            f"{path}: reads back other bytes than were written",
            code="verify",
            hint="look at the disk, or for a program that changes files there at the same time",
            details={"path": path},
        )


def _interrupted(home: str, journal: Journal, neither: tuple[str, ...]) -> SiteError:
    command = journal.event.get("command", "a run")
    files = {file.key: file for file in journal.files}
    lines = [f"{command} was interrupted, and since then somebody changed what it was working on:"]
    ways = []
    for key in neither:
        file = files[key]
        path = journal.path(home, file)
        lines.append(f"  {path}: its bytes are neither those before nor those intended; left alone")
        ways.append(f"rm {path}" if file.before is None else f"cp {blobs.blob_path(home, file.before.sha256)} {path}")
    lines.append("every other file is as it was before that run")
    paths = [journal.path(home, files[key]) for key in neither]
    return SiteError(
        "\n".join(lines),
        code="interrupted",
        hint="keep a copy of what you need, put back what was there, and run the command again: " + "; ".join(ways),
        details={"path": paths[0], "paths": paths},
    )
