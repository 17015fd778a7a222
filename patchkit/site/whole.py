"""Writing one file wholly or not at all, where no transaction covers it: the cache, and what an author's commands save.

Files of a site are written by :mod:`patchkit.state.transaction` alone.
"""

from __future__ import annotations

import contextlib
import os
import stat


def write_whole(path: str, data: bytes, *, overwrite: bool, durable: bool = True) -> None:
    """Put ``data`` at ``path``: all of it, or nothing is changed.

    A file that is replaced keeps its permission bits; behind a link, it is the file that the link leads to. What is no
    regular file (a pipe, a device) is written to, not replaced.

    Args:
        path: The file, in a folder that is there.
        data: What to write.
        overwrite: Replace a file that is there.
        durable: Make it last through a power cut.

    Raises:
        OSError: It cannot be written; ``FileExistsError``: there is something, and it may not be replaced.
    """
    if overwrite:
        path = os.path.realpath(path)
    try:
        mode: int | None = os.stat(path).st_mode
    except OSError:
        mode = None
    if overwrite and mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        with open(path, "wb") as stream:
            stream.write(data)
        return
    # A name that nobody had, so that what an earlier process left is never in the way.
    temporary = beside(path)
    try:
        _write_new(temporary, data, durable)
        if overwrite:
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            os.replace(temporary, path)
        else:
            _give_name(temporary, path, data, durable)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    if durable:
        _flush_folder(os.path.dirname(path))


def keep_aside(path: str) -> str:
    """Give a regular file a second name in its folder, and return that: the way back for who replaces it.

    Raises:
        OSError: It cannot be.
    """
    name = beside(path)
    try:
        os.link(path, name)
    except OSError:  # a file system without hard links
        from patchkit.runtime.ledger import read_regular

        _write_new(name, read_regular(path), durable=True)
        os.chmod(name, stat.S_IMODE(os.stat(path).st_mode))
    return name


def beside(path: str) -> str:
    """A name that nothing has, in the folder of ``path``."""
    return os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}.tmp")


def _write_new(path: str, data: bytes, durable: bool) -> None:
    try:
        with open(path, "xb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except FileExistsError:
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def _give_name(temporary: str, path: str, data: bytes, durable: bool) -> None:
    """Move a file to a name that nothing may have: ``os.rename`` would replace what came there meanwhile."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        _write_new(path, data, durable)


def _flush_folder(folder: str) -> None:
    """Make a rename last; not every system and file system has such a call."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder or os.curdir, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
