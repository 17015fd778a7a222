"""Saving a patch file: wholly or not at all, and never over another one unasked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from patchkit.errors import SiteError, UsageError
from patchkit.model.checks import name as check_name
from patchkit.runtime.ledger import read_regular
from patchkit.site.whole import keep_aside, write_whole


def check_free(name: str, path: str, *, overwrite: bool) -> None:
    """Refuse a name that no patch can have, and a file that is there.

    Raises:
        UsageError: ``usage``, ``exists``.
    """
    complaint = check_name(name)
    if complaint is not None:
        raise UsageError(complaint.message, hint="a name such as my-fix", details={"name": name})
    if os.path.lexists(path) and not overwrite:
        raise _exists(path)


def save(path: str, data: bytes, *, overwrite: bool, hint: str | None = None) -> None:
    """Write a patch file, and its folder, or another file into a folder that is there; wholly or not at all.

    Args:
        path: The file; behind a link, the one that it leads to.
        data: What to write.
        overwrite: Replace a file that is there.
        hint: What to do where it cannot be written. Without one it is a patch file.

    Raises:
        UsageError: ``exists``: there is one, and it is not to be replaced.
        SiteError: ``unwritable``.
    """
    with _told(path, hint):
        if hint is None:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        try:
            write_whole(path, data, overwrite=overwrite)
        except FileExistsError:
            if overwrite:
                raise
            raise _exists(path) from None


@contextlib.contextmanager
def saved(path: str, data: bytes, *, overwrite: bool) -> Iterator[None]:
    """A patch file that is saved, as long as what is done within succeeds; else there is what was there before.

    Raises:
        UsageError: ``exists``.
        SiteError: ``unwritable``.
    """
    real = os.path.realpath(path)
    new = not os.path.lexists(real)
    kept = None
    if overwrite and os.path.isfile(real):
        with _told(path, None):
            kept = keep_aside(real)
    try:
        save(path, data, overwrite=overwrite)
        try:
            yield
        except BaseException:
            if kept is not None:
                os.replace(kept, real)
            elif new:
                os.unlink(real)
            raise
    finally:
        if kept is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(kept)


def replace_file(path: str, was: bytes, data: bytes) -> None:
    """Put ``data`` in the place of a patch file that holds ``was``, at once, with the mode it has.

    A link stays one: what it leads to is replaced.

    Raises:
        SiteError: ``unwritable``: it holds something else by now, or cannot be written.
    """
    with _told(path, "check the permissions of the file and of its folder"):
        if read_regular(path) != was:
            raise SiteError(
                f"{path}: was changed meanwhile: nothing is written",
                code="unwritable",
                hint="run the command again",
                details={"path": path},
            )
        write_whole(path, data, overwrite=True)


@contextlib.contextmanager
def _told(path: str, hint: str | None) -> Iterator[None]:
    """An error of the system as one of ours."""
    try:
        yield
    except OSError as error:
        raise SiteError(
            f"{path}: cannot be written: {error.strerror}",
            code="unwritable",
            hint=hint or "name another folder with --patches",
            details={"path": path},
        ) from None


def _exists(path: str) -> UsageError:
    return UsageError(
        f"{path} exists", code="exists", hint="choose another name, or --overwrite", details={"path": path}
    )
