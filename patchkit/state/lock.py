"""One patchkit at a time per site: an advisory lock on ``.patchkit/lock`` that dies with its holder.

Our own few lines instead of ``filelock``, whose import alone takes six times a bare interpreter's start.

Which lock, and why:

- Linux, macOS, other Unix: ``flock``. It belongs to the open file, so two threads exclude each other, it goes with the
  last descriptor (``kill -9`` included), and it can be probed on a read-only descriptor by who may not write there.
  Record locks (``fcntl``, ``lockf``) belong to the process: they vanish as soon as it closes *any* descriptor of the
  file, as one that only reads who holds it does, and an exclusive one needs a writable descriptor.
- NFS: Linux turns ``flock`` into a record lock of the server, seen by all its clients; ours is writable and the probe
  asks for a shared one, which is what such a lock needs. Where the server or the mount has no locks, we refuse.
- Windows: ``msvcrt.locking`` of one byte. The system releases it when the process ends.

The file is identified by what it is, not by its name, so all names of a site share one lock. Only its holder removes
it, and only where nothing else is in ``.patchkit`` (a refused command leaves no trace): whoever waits for it looks
afterwards whether the file it has locked is still the one of that name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator

from patchkit.errors import SiteError, UsageError
from patchkit.runtime.ledger import read_regular, state_path
from patchkit.state import fs
from patchkit.tuples import NamedTuple

POLL_SECONDS = 0.05
WAIT_SECONDS = 60.0
WAIT_VARIABLE = "PATCHKIT_WAIT"
_GRACE_SECONDS = 2.0
"""How long a new holder may take to write itself down, before a name that is no process any more is reported."""
_LEAST_GRACE_SECONDS = 0.1
"""The same where there is less time to wait than that."""
_LOCK_BYTE = 1 << 30
"""Windows locks are mandatory: lock a byte far behind the text, so that others can read who holds it."""
_BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)

_Owner = tuple[object, int, int]


class _Entry:
    """A lock that a thread has entered: how often, and its descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.count = 1


_held: dict[_Owner, _Entry] = {}
"""By (identity of the home, process, thread); a forked child does not hold its parent's."""
_watching_forks = False


class Holder(NamedTuple):
    """Who holds the lock, by what it wrote into the file; ``pid`` is None where it wrote nothing yet.

    ``host`` and ``space`` (Linux: its pid namespace) tell whether the number means anything here.
    """

    pid: int | None
    command: str
    host: str = ""
    space: str = ""

    @property
    def elsewhere(self) -> str:
        """Where that process is, as words behind its number; empty on this machine."""
        if self.host and self.host != _host():
            return f" on {self.host}"
        if not _here(self):
            return " of another container"
        return "" if self.pid is None or _alive(self) else ", not visible from here (in another container?)"


@contextlib.contextmanager
def lock(home: str, *, timeout: float | None = None, on_wait: Callable[[Holder], None] | None = None) -> Iterator[None]:
    """Hold the site's lock within the block. The thread that holds it may enter again.

    Args:
        home: The site-packages directory.
        timeout: Seconds to wait, 0 not at all; None: what ``$PATCHKIT_WAIT`` says, else 60.
        on_wait: Called once, with the holder, before waiting.

    Raises:
        SiteError: ``locked`` (the message names the holder's pid); ``no-locks``: the file system has none; or as
            :func:`patchkit.state.fs.named`, where the lock file cannot be made.
        UsageError: ``$PATCHKIT_WAIT`` is no number of seconds.
    """
    owner = _owner(home)
    entry = _held.get(owner)
    if entry is not None:
        entry.count += 1
        try:
            yield
        finally:
            entry.count -= 1
        return
    with fs.confined(home):
        fs.check_ground(state_path(home, "lock"))
        descriptor = _acquire(home, patience() if timeout is None else timeout, on_wait)
    _watch_forks()
    _held[owner] = _Entry(descriptor)
    try:
        with fs.confined(home):
            yield
    finally:
        # A child that was forked within the block has no such entry: the lock is its parent's to release.
        if _held.pop(owner, None) is not None:
            _release(home, descriptor)


@contextlib.contextmanager
def shared(home: str, *, timeout: float) -> Iterator[None]:
    """Keep commands from working on the site within the block; for readers, who need no right to write.

    Where there is no lock file, or it cannot be opened or locked, or the time is over, the block runs all the same.
    """
    import time

    if _owner(home) in _held:
        yield
        return
    deadline = time.monotonic() + timeout
    descriptor = _open_to_read(home)
    try:
        if descriptor is not None:
            with contextlib.suppress(SiteError):
                while not _try_lock(descriptor, home, share=True) and time.monotonic() < deadline:
                    time.sleep(POLL_SECONDS)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def probe(home: str) -> Holder | None:
    """Who holds the lock at this moment, asked without a right to write; None: nobody, or it cannot be told."""
    if _owner(home) in _held:
        return None
    descriptor = _open_to_read(home)
    if descriptor is None:
        return None
    import time

    try:
        deadline = time.monotonic() + _GRACE_SECONDS
        while not _try_lock(descriptor, home, share=True):
            by = holder(home)
            if _alive(by) or time.monotonic() >= deadline:
                return by
            time.sleep(POLL_SECONDS / 10)  # a new holder has not written itself down yet
    except SiteError:
        return None
    finally:
        os.close(descriptor)
    return None


def holder(home: str) -> Holder:
    """Who wrote itself into the lock file last; nobody when it was released."""
    try:
        lines = read_regular(state_path(home, "lock"), 4096).decode("utf-8", "replace").splitlines()
    except OSError:
        return Holder(None, "")
    pid, command, host, space = (*lines, "", "", "", "")[:4]
    return Holder(int(pid) if pid.isascii() and pid.isdigit() else None, command.strip(), host.strip(), space.strip())


def identity(directory: str) -> object:
    """What is equal for all names of a directory: links, bind mounts, other spellings where case does not count."""
    try:
        status = os.stat(directory)
    except OSError:
        status = None
    if status is not None and status.st_ino:
        return status.st_dev, status.st_ino
    return os.path.normcase(os.path.realpath(directory))  # some Windows file systems number no files


def in_order(homes: Iterable[str]) -> list[str]:
    """``homes`` in the order in which everybody locks several: else two could wait for each other."""
    return sorted(homes, key=lambda home: str(identity(home)))


def _owner(home: str) -> _Owner:
    import _thread

    return identity(home), os.getpid(), _thread.get_ident()


def patience(otherwise: float = WAIT_SECONDS) -> float:
    """How long to wait for another patchkit, in seconds: what ``$PATCHKIT_WAIT`` says, if it says anything.

    Raises:
        UsageError: It is no number of seconds.
    """
    text = os.environ.get(WAIT_VARIABLE)
    if not text:
        return otherwise
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise UsageError(
            f"${WAIT_VARIABLE} is {text!r}, and should be the seconds to wait for another patchkit",
            hint=f"a number such as {WAIT_VARIABLE}=300; 0 does not wait, inf waits for ever",
        )
    return seconds


def _acquire(home: str, timeout: float, on_wait: Callable[[Holder], None] | None) -> int:
    import time

    path = state_path(home, "lock")
    began = time.monotonic()
    told = False
    while True:
        descriptor = _open(path)
        try:
            locked = _try_lock(descriptor, path)
            if locked and _is_file(descriptor, path):
                if os.fstat(descriptor).st_nlink > 1:
                    descriptor = _own_file(path, descriptor)
                _write_holder(descriptor)
                return descriptor
        except BaseException:
            _tidy(home, descriptor)
            os.close(descriptor)
            raise
        os.close(descriptor)
        if locked:  # somebody removed the file or its directory between the two calls: lock what is there now
            continue
        by, waited = holder(home), time.monotonic() - began
        # Who was killed left its name, and the next one has not written its own yet: nobody to wait for, or to name.
        if _alive(by) or waited >= min(_GRACE_SECONDS, max(timeout, _LEAST_GRACE_SECONDS)):
            if waited >= timeout:
                named = _alive(by) or waited >= _GRACE_SECONDS
                raise locked_by(path, by if named else Holder(None, ""), waited, timeout)
            if not told and on_wait is not None:
                on_wait(by)
            told = True
        time.sleep(min(POLL_SECONDS, max(timeout - waited, POLL_SECONDS / 10)))


def _release(home: str, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
    _tidy(home, descriptor)
    with contextlib.suppress(OSError):
        _unlock(descriptor)
    os.close(descriptor)


def _tidy(home: str, descriptor: int) -> None:
    """Remove ``.patchkit`` where the lock is all that is in it: nothing was ever done to this site."""
    with contextlib.suppress(OSError):
        path = state_path(home, "lock")
        if os.listdir(state_path(home)) == ["lock"] and _is_file(descriptor, path):
            os.unlink(path)  # on Windows an open file stays
            os.rmdir(state_path(home))


def _open(path: str) -> int:
    directory = os.path.dirname(path)
    home = os.path.dirname(directory)
    try:
        for _ in range(100):
            try:
                if not os.path.isdir(directory):
                    with contextlib.suppress(FileExistsError):
                        fs.mkdir(directory, fs.open_like(home, folder=True))
                    fs.fsync_dir(home)
                return _open_or_make(path, home)
            except FileNotFoundError:
                if not os.path.isdir(home):
                    raise
                # Else whoever held the lock has just taken the directory away again.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    except OSError as error:
        raise fs.named(error, path) from error


def _open_or_make(path: str, home: str) -> int:
    new = not os.path.lexists(path)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _flags(), 0o666)
    except PermissionError:
        # Somebody else's file in a directory that we may write: flock needs no right to write to it.
        if sys.platform == "win32" or os.access(path, os.W_OK) or not os.access(os.path.dirname(path), os.W_OK):
            raise
        return os.open(path, os.O_RDONLY | _flags())
    if new:
        # Others read who holds it. Whoever made it meanwhile may be another user, whose mode stands.
        with contextlib.suppress(OSError):
            fs.share(path, fs.open_like(home))
        fs.own_like(path, home)
    return descriptor


def _own_file(path: str, shared_by: int) -> int:
    """A locked file of our own in the place of one that a copy of the whole environment (``cp -al``) has as well.

    The old one is locked as long as that takes; whoever waits for it looks for the new one then.
    """
    home = os.path.dirname(os.path.dirname(path))
    temporary = f"{path}.tmp"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        descriptor = _open_or_make(temporary, home)
    except OSError:
        return shared_by  # it is a lock all the same
    try:
        _try_lock(descriptor, path)
        os.replace(temporary, path)
    except (OSError, SiteError):
        os.close(descriptor)
        return shared_by
    os.close(shared_by)
    return descriptor


def _open_to_read(home: str) -> int | None:
    try:
        return os.open(state_path(home, "lock"), os.O_RDONLY | _flags() | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None


def _flags() -> int:
    flags = 0
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY", "O_NOINHERIT"):
        flags |= getattr(os, name, 0)
    return flags


def _is_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int, path: str, *, share: bool = False) -> bool:
    """Whether the lock was free; it is held then. Windows has no shared one, so there a probe is exclusive as well."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _LOCK_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, (fcntl.LOCK_SH if share else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno in _NO_LOCKS:
            raise _no_locks(path, error) from error
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


def _watch_forks() -> None:
    """A forked child lets go of what its parent holds: else the lock would outlive a parent that is killed."""
    global _watching_forks
    if not _watching_forks and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)
        _watching_forks = True


def _forget() -> None:
    for entry in _held.values():
        with contextlib.suppress(OSError):
            os.close(entry.descriptor)
    _held.clear()


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _here(by: Holder) -> bool:
    """Whether its number is one of this machine and this container."""
    return by.host in ("", _host()) and by.space in ("", _space())


def _alive(by: Holder) -> bool:
    """Whether that process may be running; of another machine's, and on Windows, where none can be asked: yes."""
    if by.pid is None or by.pid <= 0:
        return False
    if sys.platform == "win32" or not _here(by):
        return True
    try:
        os.kill(by.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass  # another user's
    try:
        with open(f"/proc/{by.pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")  # killed, and not waited for yet
    except (OSError, IndexError):
        return True


def _write_holder(descriptor: int) -> None:
    """Say who we are. A disk too full for that does not keep anybody from working."""
    program = sys.argv[0] if getattr(sys, "argv", None) else ""
    name = os.path.basename(program or sys.executable)
    if name == "__main__.py":
        name = os.path.basename(os.path.dirname(program))
    command = " ".join(" ".join([name, *getattr(sys, "argv", [])[1:]]).split())
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        text = "\n".join([str(os.getpid()), command[:1000], _host(), _space(), ""])
        os.write(descriptor, text.encode("utf-8", "replace"))


def locked_by(path: str, by: Holder, waited: float, timeout: float) -> SiteError:
    """The error of who waited in vain for ``by``, who need not have written itself down.

    Args:
        path: The lock.
        by: Who has it.
        waited: Seconds that it took.
        timeout: Seconds that it was to take.
    """
    who = f"process {by.pid}{by.elsewhere}" if by.pid is not None else "another process"
    if by.pid == os.getpid() and not by.elsewhere:
        who = f"another thread of this process ({by.pid})"
    command = f" ({by.command})" if by.command else ""
    does = "is working on this site" if by.pid is not None else "is reading this site or working on it"
    return SiteError(
        f"{path}: {who}{command} {does}; waited {round(waited, 1):g} s",
        code="locked",
        hint=f"wait for it to end and run the command again; {WAIT_VARIABLE}=SECONDS in the environment waits longer "
        f"than {timeout:g} s",
        details={"path": path, "pid": by.pid, "command": by.command, "host": by.host, "space": by.space},
    )


def _no_locks(path: str, error: OSError) -> SiteError:
    word = errno.errorcode.get(error.errno or 0, "OSError")
    return SiteError(
        f"{path}: this file system has no file locks ({error.strerror}, {word}), and without them two commands could "
        "write at once; nothing was changed",
        code="no-locks",
        hint="mount it with locks (NFS: without nolock), or patch a copy of the environment on a local disk",
        details={"path": path, "errno": word},
    )
