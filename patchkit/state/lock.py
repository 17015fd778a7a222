"""One patchkit at a time per site: an advisory lock on ``.patchkit/lock`` that dies with its holder.

Our own few lines instead of ``filelock``, whose import alone takes six times a bare interpreter's start. The file is
never removed: a waiter would hold a lock on a name that is gone while the next one locks a new file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterator

from patchkit.errors import SiteError
from patchkit.runtime.ledger import state_path
from patchkit.state import fs
from patchkit.tuples import NamedTuple

POLL_SECONDS = 0.05
_LOCK_BYTE = 1 << 30
"""Windows locks are mandatory: lock a byte far behind the text, so that others can read who holds it."""

_held: dict[tuple[str, int, int], int] = {}
"""How often each (home, process, thread) has entered the lock; a forked child does not hold its parent's."""


class Holder(NamedTuple):
    """Who holds the lock, by what it wrote into the file; ``pid`` is None where it wrote nothing yet."""

    pid: int | None
    command: str


@contextlib.contextmanager
def lock(home: str, *, timeout: float | None = 60.0, on_wait: Callable[[Holder], None] | None = None) -> Iterator[None]:
    """Hold the site's lock within the block. The thread that holds it may enter again.

    Args:
        home: The site-packages directory.
        timeout: Seconds to wait; None for ever, 0 not at all.
        on_wait: Called once, with the holder, before waiting.

    Raises:
        SiteError: ``locked`` (the message names the holder's pid); or as :func:`patchkit.state.fs.named`, where the
            lock file cannot be made.
    """
    owner = (os.path.realpath(home), os.getpid(), _thread())
    if owner in _held:
        _held[owner] += 1
        try:
            yield
        finally:
            _held[owner] -= 1
        return
    descriptor = _acquire(home, timeout, on_wait)
    _held[owner] = 1
    try:
        yield
    finally:
        del _held[owner]
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
        _unlock(descriptor)
        os.close(descriptor)


def holder(home: str) -> Holder:
    """Who wrote itself into the lock file last; nobody when it was released."""
    try:
        with open(state_path(home, "lock"), "rb") as file:
            pid, _, command = file.read(4096).decode("utf-8", "replace").partition("\n")
    except OSError:
        return Holder(None, "")
    return Holder(int(pid) if pid.isascii() and pid.isdigit() else None, command.strip())


def _thread() -> int:
    import _thread

    return _thread.get_ident()


def _acquire(home: str, timeout: float | None, on_wait: Callable[[Holder], None] | None) -> int:
    import time

    path = state_path(home, "lock")
    deadline = None if timeout is None else time.monotonic() + timeout
    waited = False
    while True:
        descriptor = _open(path)
        try:
            locked = _try_lock(descriptor, path)
            if locked and _is_file(descriptor, path):
                _write_holder(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if locked:  # somebody removed the file or its directory between the two calls: lock what is there now
            continue
        if deadline is not None and time.monotonic() >= deadline:
            raise _locked(path, holder(home), timeout or 0.0)
        if not waited and on_wait is not None:
            on_wait(holder(home))
        waited = True
        time.sleep(POLL_SECONDS)


def _open(path: str) -> int:
    try:
        directory = os.path.dirname(path)
        if not os.path.isdir(directory):
            with contextlib.suppress(FileExistsError):
                fs.mkdir(directory, fs.readable_like(os.path.dirname(directory), folder=True))
            fs.fsync_dir(os.path.dirname(directory))
        new = not os.path.lexists(path)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o644)
        if new:
            # Others read who holds it. Whoever made it meanwhile may be another user, whose mode stands.
            with contextlib.suppress(OSError):
                fs.share(path, fs.readable_like(os.path.dirname(directory)))
        return descriptor
    except OSError as error:
        raise fs.named(error, path) from error


def _is_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int, path: str) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _LOCK_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise fs.named(error, path) from error
    return True


def _unlock(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _LOCK_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _write_holder(descriptor: int) -> None:
    """Say who we are. A disk too full for that does not keep anybody from working."""
    command = " ".join([os.path.basename(sys.argv[0] or sys.executable), *sys.argv[1:]]) if hasattr(sys, "argv") else ""
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()}\n{command[:1000]}\n".encode("utf-8", "replace"))


def _locked(path: str, by: Holder, waited: float) -> SiteError:
    who = f"process {by.pid}" if by.pid is not None else "another process"
    if by.pid == os.getpid():
        who = f"another thread of this process ({by.pid})"
    command = f" ({by.command})" if by.command else ""
    return SiteError(
        f"{path}: {who}{command} is working on this site; waited {waited:g} s",
        code="locked",
        hint="wait for it to end and run the command again",
        details={"path": path, "pid": by.pid, "command": by.command},
    )
