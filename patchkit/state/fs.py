"""Every change that the state room makes to the disk goes through here, one small step at a time.

Tests observe the steps (:func:`observed`) and stop the process, or fail the call, before or after any of them. An
``OSError`` that leaves here always names its path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from _thread import get_ident
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from patchkit.errors import SiteError
from patchkit.runtime.ledger import read_regular
from patchkit.tuples import NamedTuple

Hook = Callable[[str, str, str], None]
"""Called with (operation, path, "before" or "after") around every step."""

_CHANGING = frozenset({"create", "replace", "symlink", "unlink", "mkdir", "rmdir", "append"})
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
_IN_USE = (5, 32)
"""Windows: access denied, sharing violation."""

_T = TypeVar("_T")
_hook: Hook | None = None
_grounds: dict[int, tuple[str, ...]] = {}
"""By thread."""


class Like(NamedTuple):
    """Permission bits taken from a neighbour: within ``mask`` they are ``mode``'s, outside of it the umask's.

    Shared environments are set up by the modes of their directories; the umask of whoever runs patchkit must not hide
    from the others what lies there. The owner's own bits stay the umask's.
    """

    mode: int
    mask: int


def open_like(directory: str, *, folder: bool = False) -> Like:
    """For patchkit's own files (``folder``: directories): others may read and write them as they may ``directory``.

    Who may write there can take the ledger away or exchange it anyway, whatever its mode; an open umask must not let in
    who may not.
    """
    return Like(os.stat(directory).st_mode, 0o077 if folder else 0o066)


def package_like(home: str, path: str) -> Like:
    """For a file added at ``path``: readable and writable by whom its package's ``__init__.py`` is.

    That is the one in the nearest directory at or above the file's, within ``home`` (directories just made for the
    file have none); without one, the file is like its directory.
    """
    directory = os.path.dirname(path)
    model = os.stat(directory).st_mode
    while True:
        with contextlib.suppress(OSError):
            return Like(os.stat(os.path.join(directory, "__init__.py")).st_mode, 0o066)
        directory = os.path.dirname(directory)
        if not directory.startswith(os.path.join(home, "")):
            return Like(model, 0o066)


class Meta(NamedTuple):
    """What a new file takes over besides its bytes; None leaves the system's default; ``mode`` is before ``like``."""

    mode: int | None = None
    mtime_ns: int | None = None
    uid: int | None = None
    gid: int | None = None
    xattrs_from: str | None = None
    like: Like | None = None


@contextlib.contextmanager
def observed(hook: Hook | None) -> Iterator[None]:
    """Call ``hook`` around every step within the block; None leaves the present hook alone."""
    global _hook
    before = _hook
    if hook is not None:
        _hook = hook
    try:
        yield
    finally:
        _hook = before


@contextlib.contextmanager
def confined(*grounds: str) -> Iterator[None]:
    """Within the block nothing is made, replaced or removed outside of these directories and those of outer blocks.

    Links are followed for that, right before each step: a directory of the site may be exchanged for a link to
    somewhere else between a look at it and a write, and a journal or ledger may have been written by anybody.
    """
    thread = get_ident()
    before = _grounds.get(thread, ())
    _grounds[thread] = (*before, *(ground for ground in grounds if ground not in before))
    try:
        yield
    finally:
        if before:
            _grounds[thread] = before
        else:
            _grounds.pop(thread, None)


def _leads_out(path: str, grounds: tuple[str, ...]) -> bool:
    """Whether the directory of ``path`` is in none of ``grounds``."""
    directory = os.path.dirname(path)
    for ground in grounds:
        if directory == ground or directory.startswith(os.path.join(ground, "")):
            at = ground
            for part in directory[len(ground) :].split(os.sep):
                at = os.path.join(at, part) if part else at
                if part == ".." or (at != ground and os.path.islink(at)):
                    break
            else:
                return False
    real = os.path.join(os.path.realpath(directory), "")
    return not real.startswith(tuple(os.path.join(os.path.realpath(ground), "") for ground in grounds))


def check_ground(path: str) -> None:
    """Refuse a path whose directory is outside of what :func:`confined` allows.

    Raises:
        SiteError: ``leads-out``.
    """
    grounds = _grounds.get(get_ident())
    if grounds and _leads_out(path, grounds):
        real = os.path.realpath(os.path.dirname(path))
        raise SiteError(
            f"{path} leads out of the site, to {real}: nothing is written there",
            code="leads-out",
            hint="see who made that link or record; patch the environment that the files belong to",
            details={"path": path},
        )


def _step(operation: str, path: str, call: Callable[[], _T]) -> _T:
    if _hook is not None:
        _hook(operation, path, "before")
    # Bytecode may lie elsewhere: PYTHONPYCACHEPREFIX.
    if _grounds and operation in _CHANGING and not (operation == "unlink" and path.endswith(".pyc")):
        check_ground(path)
    try:
        result = call()
    except OSError as error:
        error.filename = path  # calls on a descriptor know none, and a rename names its source
        raise
    if _hook is not None:
        _hook(operation, path, "after")
    return result


def read_file(path: str) -> bytes:
    """The bytes of ``path`` (a link is followed). A step as well, because a disk may fail to give back what it took."""

    def call() -> bytes:
        return read_regular(path)

    return _step("read", path, call)


def write_new(path: str, data: bytes, meta: Meta | None = None, *, mode: int = 0o666) -> None:
    """Create ``path``, which must not exist, with ``data`` and ``meta``, and flush it to the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):
        flags |= getattr(os, name, 0)
    descriptor = _step("create", path, lambda: os.open(path, flags, mode))
    try:
        _step("write", path, lambda: _write_all(descriptor, data))
        if meta is not None:
            _take_over(path, meta)
        _step("fsync", path, lambda: os.fsync(descriptor))
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _take_over(path: str, meta: Meta) -> None:
    if meta.uid is not None and meta.gid is not None and hasattr(os, "chown"):
        now = os.stat(path)
        uid, gid = meta.uid, meta.gid
        if (now.st_uid, now.st_gid) != (uid, gid):
            with contextlib.suppress(PermissionError):  # only root may give files away
                _step("chown", path, lambda: os.chown(path, uid, gid))
    if meta.xattrs_from is not None:
        _copy_xattrs(meta.xattrs_from, path)
    if meta.mode is not None:  # after chown, which clears set-id bits
        set_mode(path, meta.mode)
    elif meta.like is not None:
        share(path, meta.like)
    if meta.mtime_ns is not None:
        set_mtime(path, meta.mtime_ns)


def share(path: str, like: Like) -> None:
    """Give the new file or directory ``path`` the modes of ``like``; no step where it has them."""
    now = stat.S_IMODE(os.stat(path).st_mode)
    mode = (now & ~like.mask) | (like.mode & like.mask)
    if mode != now:
        set_mode(path, mode)


def _copy_xattrs(source: str, path: str) -> None:
    """Copy what can be copied: many file systems, and most users, may set only some attributes.

    What the new file was given by its directory (a default ACL) and the old one has not goes.
    """
    if not hasattr(os, "listxattr"):
        return
    try:
        names, given = os.listxattr(source), os.listxattr(path)
    except OSError:
        return
    for name in given:
        if name not in names:
            _attribute("removexattr", path, partial(os.removexattr, path, name))
    for name in names:
        try:
            value = os.getxattr(source, name)
        except OSError:
            continue
        _attribute("setxattr", path, partial(os.setxattr, path, name, value))


def _attribute(operation: str, path: str, call: Callable[[], None]) -> None:
    """A step that may be refused, since only some attributes may be set; not one that a failing disk may fail."""
    try:
        _step(operation, path, call)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS):
            raise


def set_mode(path: str, mode: int) -> None:
    """``chmod``."""
    _step("chmod", path, lambda: os.chmod(path, mode))


def set_mtime(path: str, mtime_ns: int) -> None:
    """Set access and modification time."""
    _step("utime", path, lambda: os.utime(path, ns=(mtime_ns, mtime_ns)))


def replace(source: str, target: str) -> None:
    """Rename over ``target``, in one step for every observer."""
    _step("replace", target, lambda: _patiently(lambda: os.replace(source, target)))


def _patiently(call: Callable[[], None]) -> None:
    """On Windows a file that a program has open just now (an import, a scanner) can be neither replaced nor removed."""
    import time

    for pause in _PAUSES if os.name == "nt" else ():
        try:
            return call()
        except PermissionError as error:
            if getattr(error, "winerror", None) not in _IN_USE:
                raise
            time.sleep(pause)
    return call()


def symlink(target: str, path: str) -> None:
    """Make the symbolic link ``path``; as root, owned like its directory, as :func:`mkdir` does."""
    _step("symlink", path, lambda: os.symlink(target, path))
    own_like(path, os.path.dirname(path))


def unlink(path: str, *, missing_ok: bool = False) -> bool:
    """Remove a file or link. Returns whether it was there; absence is an error unless ``missing_ok``."""
    try:
        _step("unlink", path, lambda: _patiently(lambda: os.unlink(path)))
    except FileNotFoundError:
        if not missing_ok:
            raise
        return False
    return True


def mkdir(path: str, like: Like | None = None) -> None:
    """Make one directory; as root, owned like its parent, so that the environment's owner can still remove it."""
    _step("mkdir", path, lambda: os.mkdir(path))
    own_like(path, os.path.dirname(path))
    if like is not None:
        share(path, like)


def own_like(path: str, directory: str) -> None:
    """As root, give what was just made to the owner of ``directory``, who must be able to go on with it."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        owner = os.stat(directory)
        if owner.st_uid != 0:
            with contextlib.suppress(PermissionError):  # a root without that right, as in some containers
                _step("chown", path, lambda: os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False))


def rmdir(path: str) -> bool:
    """Remove a directory when it is empty. Returns whether it is gone."""
    try:
        _step("rmdir", path, lambda: os.rmdir(path))
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EBUSY):
            return False  # in use, or not ours to remove: a directory left over harms nobody
        raise
    return True


def fsync_dir(path: str) -> None:
    """Make renames and removals in ``path`` last through a power cut; nothing where the system has no such call."""
    if os.name == "nt":
        return

    def call() -> None:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    _step("fsync-dir", path, call)


def write_atomic(path: str, data: bytes, like: Like | None = None) -> None:
    """Put ``data`` at ``path``, wholly or not at all, and make that last. The caller holds the lock."""
    temporary = path + ".tmp"
    unlink(temporary, missing_ok=True)
    write_new(temporary, data, Meta(like=like))
    own_like(temporary, os.path.dirname(path))
    replace(temporary, path)
    fsync_dir(os.path.dirname(path))


def append(path: str, data: bytes, like: Like | None = None) -> None:
    """Add ``data`` at the end of ``path`` in one write, creating it (then with the modes of ``like``)."""
    new = not os.path.lexists(path)
    if not new:
        own = os.lstat(path)
        if own.st_nlink > 1 or stat.S_ISLNK(own.st_mode):  # a copy of the environment has it, too: by `cp -al`, say
            write_atomic(path, read_file(path) if os.path.exists(path) else b"", like)

    def call() -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags, 0o666)  # a pipe that nobody reads would keep us waiting: an error instead
        try:
            _write_all(descriptor, data)
        finally:
            os.close(descriptor)

    _step("append", path, call)
    if new:
        own_like(path, os.path.dirname(path))
        if like is not None:
            share(path, like)


_CODES = {
    errno.ENOSPC: ("no-space", "make room on that disk and run the command again"),
    errno.EDQUOT: ("no-space", "make room in that quota and run the command again"),
    errno.EROFS: ("read-only", "patch a writable copy of the environment, or when its image is built"),
    errno.EACCES: ("permission", "run as a user who may write there, or patch an environment of your own"),
    errno.EPERM: ("permission", "run as a user who may write there (a file may also be set immutable: lsattr)"),
    errno.EIO: ("io", "the disk failed: look at the system log before anything else"),
}


def named(error: OSError, path: str = "", *, suffix: str = "", committed: bool = False) -> SiteError:
    """The :class:`SiteError` for an ``OSError``: ``no-space``, ``read-only``, ``permission``, ``io`` or ``os-error``.

    Args:
        error: The system's error; its own path is preferred.
        path: The path where it has none.
        suffix: What that means for the site, appended to the message.
        committed: Recorded in the details: whether the change is in place nevertheless.
    """
    where = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else path
    code, hint = _CODES.get(error.errno or 0, ("os-error", "remove the cause and run the command again"))
    if getattr(error, "winerror", None) in _IN_USE:
        hint = f"end the programs that have the file open and run the command again; or {hint}"
    word = errno.errorcode.get(error.errno or 0, "OSError")
    return SiteError(
        f"{where}: {error.strerror or error} ({word}){suffix}",
        code=code,
        hint=hint,
        details={"path": where, "errno": word, "committed": committed},
    )
