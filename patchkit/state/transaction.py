"""Every change of a site, all or nothing: also under ``kill -9``, a full disk, or a power cut.

The order is what makes it so. Blobs of all bytes before and after, then the journal (what is meant to be done), each
flushed; then every new file is prepared beside its target, and only when all are, they are renamed over their targets;
flushed, read back; then the ledger is renamed into place. That rename decides: a journal whose id the ledger carries
belongs to a finished transaction and is cleaned up, any other is taken back from the blobs. The same function does that
after an exception in this process and, called by the next command, after a crash.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from patchkit.errors import InternalError, SiteError
from patchkit.runtime.ledger import file_path, key_of, sha256_hex, state_path
from patchkit.state import blobs, bytecode, fs, settle
from patchkit.state import journal as journals
from patchkit.state import ledger as ledgers
from patchkit.state.access import check_writable
from patchkit.state.journal import Before, Journal, JournalFile
from patchkit.state.ledger import Ledger, Stat
from patchkit.state.lock import lock
from patchkit.tuples import NamedTuple

_SECOND = 1_000_000_000


class Change(NamedTuple):
    """One file to change.

    Args:
        key: Its ledger key.
        path: Its absolute path, ``file_path(home, key)``.
        before: Its bytes now; None: it must not exist.
        after: Its bytes then; None: remove it.
        mode: Permission bits of the result; None: as they are (a new file: by the umask).
        mtime_ns: Modification time of the result; None: now.
        create_dirs: Directories (absolute, outermost first) that are made for an added file, or that go, when empty,
            with a removed one. Missing parents and what the ledger knows count without being named here.
    """

    key: str
    path: str
    before: bytes | None
    after: bytes | None
    mode: int | None = None
    mtime_ns: int | None = None
    create_dirs: tuple[str, ...] = ()


class Recovery(NamedTuple):
    """What :func:`recover` did about an interrupted transaction.

    ``outcome`` is ``finished`` (it had been committed), ``rolled-back``, or ``pending`` (nothing can be written here,
    see ``reason``). ``files`` are its keys, ``missing`` those that somebody else removed meanwhile, ``kept`` those left
    with bytes that are neither (only with ``keep``), ``event`` what it was doing.
    """

    outcome: Literal["finished", "rolled-back", "pending"]
    files: tuple[str, ...]
    event: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    reason: str = ""


class _Original(NamedTuple):
    """What is known of a file before it is changed: its own stat (not a link's target), and the journal's part."""

    own: os.stat_result
    before: Before


def pending(home: str) -> bool:
    """Whether an interrupted transaction (or one that is running right now) left its journal. Needs no lock."""
    return os.path.lexists(journals.journal_path(home))


def commit(
    home: str,
    changes: Sequence[Change],
    ledger: Ledger,
    event: Mapping[str, Any],
    *,
    extra_blobs: Iterable[bytes] = (),
    pycache_prefixes: Sequence[str] | None = None,
) -> Ledger:
    """Make ``changes`` and record ``ledger``, wholly or not at all. Takes the lock unless this thread holds it.

    Args:
        home: The site-packages directory.
        changes: The files, each once.
        ledger: What is to be recorded; its files' ``stat`` and ``created_dirs`` are filled in here.
        event: What the log is to say (``command``, ``patches``, ...).
        extra_blobs: Further bytes the ledger refers to: the patch files, and pristine bytes that are no file's present
            ones.
        pycache_prefixes: Where bytecode may lie besides ``__pycache__``; None: where this process knows of.

    Returns:
        The ledger as written.

    Raises:
        SiteError: ``changed`` (a file is not as ``before`` says), ``interrupted`` (:func:`recover` comes first),
            ``locked``, or ``no-space``, ``read-only``, ``permission``, ``io``, ``os-error``, ``verify``. Nothing is
            changed then, unless ``details["committed"]``; a ``rolled_back`` of False there means that the next command
            must take it back.
    """
    prefixes = bytecode.default_prefixes() if pycache_prefixes is None else tuple(pycache_prefixes)
    with lock(home):
        if pending(home):
            raise SiteError(
                f"{journals.journal_path(home)}: a run was interrupted and has not been taken back yet",
                code="interrupted",
                hint="run the command again",
            )
        old = Ledger.load(home)
        # Copies that no ledger vouches for may be those of one that was lost, and the only originals that there are.
        lost = not os.path.lexists(state_path(home, "ledger.json"))
        spared = tuple(blobs.names(home)) if lost else old.spared
        ledger = ledger._replace(spared=tuple(sorted(set(spared) - ledger._replace(spared=()).blobs())))
        _check_distinct(changes)
        originals = _verify(changes)
        check_writable(change.path for change in changes)
        tx = os.urandom(8).hex()
        made = {change.key: _missing_dirs(change) for change in changes if change.before is None}
        journal = Journal(
            tx=tx,
            files=tuple(
                _journal_file(home, f"{tx}-{number}", change, originals.get(change.key), old, ledger)
                for number, change in enumerate(changes)
            ),
            create_dirs=tuple(dict.fromkeys(path for paths in made.values() for path in paths)),
            prefixes=prefixes,
            event=dict(event),
            remove_dirs=_deserted(changes, old, ledger),
            spared=spared,
        )
        try:
            _keep_bytes(home, changes, originals, old, ledger, extra_blobs)
            journals.save(home, journal)
        except BaseException as error:
            # Nothing is changed yet. With the journal in place (the failure came after its rename) or without:
            settle.abandon(home, tx, spared)
            if isinstance(error, OSError):
                raise fs.named(error, suffix="; nothing was changed") from error
            raise
        try:
            stats = _switch(home, journal, changes, originals)
            for change in changes:
                bytecode.remove_stale(change.path, pycache_prefixes=prefixes, legacy=change.after is None)
            stats = {c.key: stats[c.key] for c in changes if c.key in stats and _as_recorded(c, ledger)}
            found = {key: (original.before.sha256, original.before.link) for key, original in originals.items()}
            dirs, links = ledgers.dirs_after(home, old, ledger, made), ledgers.links_after(old, ledger, found)
            written = ledgers.with_written(ledger, home, tx, stats, dirs, links)
            ledgers.save(home, written)
        except BaseException as error:
            failure = _after_failure(home, journal, error)
            if failure is None:
                raise
            raise failure from error
        settle.finish(home, journal)
        return written


def recover(home: str, *, keep: bool = False, pycache_prefixes: Sequence[str] = ()) -> Recovery | None:
    """Finish or take back an interrupted transaction; the first thing that every command that writes does.

    Takes the lock unless this thread holds it, so a transaction that is still running is waited for, not disturbed.

    Args:
        home: The site-packages directory.
        keep: Accept files that are neither as before nor as intended: leave them so and close the transaction.
        pycache_prefixes: Further places where bytecode may lie; the interrupted run's own are known.

    Returns:
        None where nothing was interrupted.

    Raises:
        SiteError: ``interrupted``: files have other bytes than before and than intended. They are left alone, all
            others are as before, and the journal stays. ``locked``, ``corrupt``, or a disk error as in :func:`commit`.
    """
    if not pending(home):
        return None
    try:
        with lock(home):
            journal = journals.load(home)
            if journal is None:
                return None  # the run was not interrupted, only still under way: it has ended since
            journal = journal._replace(prefixes=tuple(dict.fromkeys((*journal.prefixes, *pycache_prefixes))))
            done = settle.settle(home, journal, keep=keep)
            if done.waits is not None:
                raise done.waits
    except OSError as error:
        failure = fs.named(error)
        if failure.code not in ("read-only", "permission"):
            raise failure from error
        return _report(home, failure)
    except SiteError as error:
        if error.code not in ("read-only", "permission"):
            raise
        return _report(home, error)
    return Recovery(
        outcome="finished" if done.finished else "rolled-back",
        files=tuple(file.key for file in journal.files),
        event=journal.event,
        missing=done.missing,
        kept=done.neither,
    )


def _report(home: str, error: SiteError) -> Recovery:
    journal = journals.load(home)
    keys = tuple(file.key for file in journal.files) if journal is not None else ()
    return Recovery("pending", keys, journal.event if journal is not None else {}, reason=error.message)


def _check_distinct(changes: Sequence[Change]) -> None:
    seen: set[str] = set()
    for change in changes:
        if change.path in seen:
            raise InternalError(f"{change.path} is in one transaction twice")
        seen.add(change.path)
        if change.before is None and change.after is None:
            raise InternalError(f"{change.path}: neither present before nor after")


def _verify(changes: Sequence[Change]) -> dict[str, _Original]:
    """Compare every file with its ``before``; by key, what it is now.

    Raises:
        SiteError: ``changed``, naming all that differ; or a disk error.
    """
    originals: dict[str, _Original] = {}
    differ: list[tuple[str, str]] = []
    for change in changes:
        try:
            own = os.lstat(change.path)
        except (FileNotFoundError, NotADirectoryError):
            if change.before is not None:
                differ.append((change.path, "is gone"))
            continue
        except OSError as error:
            raise fs.named(error, change.path, suffix="; nothing was changed") from error
        if change.before is None:
            differ.append((change.path, "exists already"))
            continue
        try:
            through = os.stat(change.path)
            if not stat.S_ISREG(through.st_mode):
                differ.append((change.path, "is not a regular file"))
                continue
            data = fs.read_file(change.path)
            link = os.readlink(change.path) if stat.S_ISLNK(own.st_mode) else None
        except FileNotFoundError:
            differ.append((change.path, "is a link to nothing"))
            continue
        except OSError as error:
            raise fs.named(error, change.path, suffix="; nothing was changed") from error
        if data != change.before:
            differ.append((change.path, "has other bytes"))
            continue
        mode = stat.S_IMODE(through.st_mode)
        before = Before(sha256_hex(data), mode, through.st_mtime_ns, through.st_uid, through.st_gid, link)
        originals[change.key] = _Original(own, before)
    if differ:
        raise _changed(differ)
    return originals


def _changed(differ: Sequence[tuple[str, str]]) -> SiteError:
    return SiteError(
        "\n".join(f"{path}: {what} since it was planned" for path, what in differ) + "\nnothing was changed",
        code="changed",
        hint="run the command again; if another program is changing these files, let it end first",
        details={"path": differ[0][0], "paths": [path for path, _ in differ]},
    )


def _missing_dirs(change: Change) -> list[str]:
    """The directories to make for an added file, outermost first."""
    missing = [path for path in change.create_dirs if not os.path.lexists(path)]
    directory = os.path.dirname(change.path)
    found: list[str] = []
    while directory and not os.path.lexists(directory):
        found.append(directory)
        directory = os.path.dirname(directory)
    return sorted({*missing, *found}, key=len)


def _deserted(changes: Sequence[Change], old: Ledger, new: Ledger) -> tuple[str, ...]:
    """The directories made for added files that leave the ledger without a change: somebody removed them by hand."""
    changed = {change.key for change in changes}
    gone = [entry for key, entry in old.files.items() if key not in new.files and key not in changed]
    return tuple(dict.fromkeys(name for entry in gone for name in entry.created_dirs))


def _link_again(change: Change, old: Ledger, new: Ledger) -> str | None:
    """Where the file shall point again that was a link when it was pristine; None: it becomes a regular file.

    Installers that link (``uv --link-mode symlink``) point into their cache. That is trusted again only while it
    holds exactly the pristine bytes.
    """
    entry = old.files.get(change.key)
    if entry is None or entry.link is None or entry.pristine is None or change.key in new.files:
        return None
    if change.after is None or sha256_hex(change.after) != entry.pristine.sha256:
        return None
    try:
        same = fs.read_file(os.path.join(os.path.dirname(change.path), entry.link)) == change.after
    except OSError:
        return None
    return entry.link if same else None


def _journal_file(
    home: str, mark: str, change: Change, original: _Original | None, old: Ledger, new: Ledger
) -> JournalFile:
    if os.path.normpath(file_path(home, change.key)) != os.path.normpath(change.path):
        raise InternalError(f"{change.path} is not the path of the key {change.key}")
    entry = new.files.get(change.key) or old.files.get(change.key)
    remove: tuple[str, ...] = ()
    if change.after is None:
        known = old.files[change.key].created_dirs if change.key in old.files else ()
        remove = tuple(dict.fromkeys((*known, *(key_of(home, path) for path in change.create_dirs))))
    return JournalFile(
        key=change.key,
        temp=f".patchkit-{mark}.tmp",
        before=None if original is None else original.before,
        after=None if change.after is None else sha256_hex(change.after),
        pristine=None if entry is None or entry.pristine is None else entry.pristine.sha256,
        remove_dirs=remove,
        link=_link_again(change, old, new),
    )


def _keep_bytes(
    home: str,
    changes: Sequence[Change],
    originals: Mapping[str, _Original],
    old: Ledger,
    ledger: Ledger,
    extra: Iterable[bytes],
) -> None:
    """Put all bytes before and after into the blobs, durably.

    A blob that was lost before is no reason to refuse: taking out what needs it is the way out.

    Raises:
        InternalError: The ledger refers to a blob that is not there then, and ``old`` did not.
    """
    # Those of the files first, each as private as its file: the others' modes are for bytes that are nobody's secret.
    for change in changes:
        original = originals.get(change.key)
        mode = 0o644 if original is None else 0o600 | original.before.mode & 0o044
        for content in (change.before, change.after):
            if content is not None:
                blobs.put(home, content, mode=mode)
    for data in extra:
        blobs.put(home, data)
    blobs.flush(home)
    lacking = sorted(name for name in ledger.blobs() - old.blobs() if not blobs.has(home, name))
    if lacking:
        raise InternalError(f"the ledger to be written refers to bytes that are not kept: {', '.join(lacking)}")


def _switch(
    home: str, journal: Journal, changes: Sequence[Change], originals: Mapping[str, _Original]
) -> dict[str, Stat]:
    """Prepare every new file, then rename all into place, flush and read back.

    Returns:
        The stats of the new files, by key.
    """
    for path in journal.create_dirs:
        if not os.path.isdir(path):
            parent = os.path.dirname(path)
            fs.mkdir(path, fs.Like(os.stat(parent).st_mode, 0o077))
            fs.fsync_dir(parent)
    for change, file in zip(changes, journal.files, strict=True):
        if file.link is not None:
            fs.symlink(file.link, journal.temp(home, file))
        elif change.after is not None:
            fs.write_new(journal.temp(home, file), change.after, _meta(home, change, originals.get(change.key)))
    for change, file in zip(changes, journal.files, strict=True):
        _still(change, originals.get(change.key))
        if change.after is None:
            fs.unlink(change.path)
        else:
            fs.replace(journal.temp(home, file), change.path)
    for directory in dict.fromkeys(os.path.dirname(change.path) for change in changes):
        fs.fsync_dir(directory)
    stats: dict[str, Stat] = {}
    for change, file in zip(changes, journal.files, strict=True):
        if change.after is None:
            if os.path.lexists(change.path):
                raise _unverified(change.path, "was removed and is still there")
        else:
            linked = file.link is not None
            if fs.read_file(change.path) != change.after or os.path.islink(change.path) != linked:
                raise _unverified(change.path, "reads back other bytes than were written")
            stats[change.key] = Stat.of(change.path)
    return stats


def _as_recorded(change: Change, ledger: Ledger) -> bool:
    """Whether a file holds what the ledger says; where hand edits were kept around ours, its stat must not vouch."""
    entry = ledger.files.get(change.key)
    return entry is not None and change.after is not None and entry.ours(change.after)


def _meta(home: str, change: Change, original: _Original | None) -> fs.Meta:
    """What the new file takes over from the one it replaces.

    An added one is as readable and writable for others as its package's ``__init__.py``, whatever the umask of whoever
    applies the patch (the directories made for it: as the directory they lie in); for its owner the umask holds. Made
    by root, it gets its directory's owner.
    """
    if original is None:
        meta = fs.Meta(mode=change.mode, mtime_ns=change.mtime_ns, like=fs.package_like(home, change.path))
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            parent = os.stat(os.path.dirname(change.path))
            return meta._replace(uid=parent.st_uid, gid=parent.st_gid)
        return meta
    before = original.before
    mtime_ns = change.mtime_ns
    if mtime_ns is None and change.before is not None and change.after is not None:
        import time

        # Bytecode that lies where we do not look is trusted by whole second and size: they must not both stay.
        if len(change.after) == len(change.before) and time.time_ns() // _SECOND <= before.mtime_ns // _SECOND:
            mtime_ns = (before.mtime_ns // _SECOND + 1) * _SECOND
    return fs.Meta(
        mode=before.mode if change.mode is None else change.mode,
        mtime_ns=mtime_ns,
        uid=before.uid,
        gid=before.gid,
        xattrs_from=change.path,
    )


def _still(change: Change, original: _Original | None) -> None:
    """Look once more, right before the rename, whether somebody else changed the file meanwhile."""
    try:
        now = os.lstat(change.path)
    except FileNotFoundError:
        if original is None:
            return
        raise _changed([(change.path, "is gone")]) from None
    if original is None:
        raise _changed([(change.path, "exists already")])
    if _identity(now) != _identity(original.own):
        # Where another name of the file goes (a hard link in a cache, or in a copy of the site), only its ctime moves.
        others = now.st_nlink != original.own.st_nlink and _identity(now)[:-1] == _identity(original.own)[:-1]
        if not others or now.st_mode != original.own.st_mode or fs.read_file(change.path) != change.before:
            raise _changed([(change.path, "was written to")])


def _identity(now: os.stat_result) -> tuple[int, int, int, int]:
    return now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _unverified(path: str, what: str) -> SiteError:
    return SiteError(
        f"{path}: {what}",
        code="verify",
        hint="look at the disk, or for a program that changes files there at the same time",
        details={"path": path},
    )


def _after_failure(home: str, journal: Journal, error: BaseException) -> SiteError | None:
    """Take the transaction back, or finish it where its ledger is in place already.

    Returns:
        The error to raise instead of ``error``; None: that one as it is.
    """
    try:
        done = settle.settle(home, journal)
    except (OSError, SiteError) as second:
        reason = second.message if isinstance(second, SiteError) else fs.named(second).message
        first = error if isinstance(error, SiteError) else fs.named(error) if isinstance(error, OSError) else None
        if first is None:
            return None  # an interrupt, or a fault of ours; the journal stays for the next command
        return SiteError(
            f"{first.message}; it could not be taken back completely either: {reason}",
            code=first.code,
            hint="remove the cause, then run the command again: it takes the rest back first",
            details={**first.details, "rolled_back": False},
        )
    if isinstance(error, OSError):
        if done.finished:
            return fs.named(error, suffix="; the changes are in place all the same", committed=True)
        return fs.named(error, suffix="; everything was put back as it was")
    return None
