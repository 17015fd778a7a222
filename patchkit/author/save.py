"""Saving a patch file: wholly or not at all, and never over another one unasked."""

from __future__ import annotations

import os
import shutil
import tempfile

from patchkit.errors import SiteError, UsageError
from patchkit.model.checks import name as check_name
from patchkit.runtime.ledger import read_regular


def check_free(name: str, path: str, *, overwrite: bool) -> None:
    """Refuse a name that no patch can have, and a file that is there.

    Raises:
        UsageError: ``usage``, ``exists``.
    """
    complaint = check_name(name)
    if complaint is not None:
        raise UsageError(complaint.message, hint="a name such as my-fix", details={"name": name})
    if os.path.lexists(path) and not overwrite:
        raise UsageError(
            f"{path} exists", code="exists", hint="choose another name, or --overwrite", details={"path": path}
        )


def save(path: str, data: bytes, *, hint: str | None = None) -> None:
    """Write a patch file, and its folder, or another file into a folder that is there; wholly or not at all.

    Args:
        path: The file.
        data: What to write.
        hint: What to do where it cannot be written. Without one it is a patch file.

    Raises:
        SiteError: ``unwritable``.
    """
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        if hint is None:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        raise SiteError(
            f"{path}: cannot be written: {error.strerror}",
            code="unwritable",
            hint=hint or "name another folder with --patches",
            details={"path": path},
        ) from None


def replace_file(path: str, was: bytes, data: bytes) -> None:
    """Put ``data`` in the place of a patch file that holds ``was``, at once, with the mode it has.

    A link stays one: what it leads to is replaced.

    Raises:
        SiteError: ``unwritable``: it holds something else by now, or cannot be written.
    """
    path = os.path.realpath(path)
    try:
        if read_regular(path) != was:
            raise SiteError(
                f"{path}: was changed meanwhile: nothing is written",
                code="unwritable",
                hint="run the command again",
                details={"path": path},
            )
        descriptor, temporary = tempfile.mkstemp(prefix=".patchkit-", dir=os.path.dirname(path))
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            shutil.copymode(path, temporary)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise SiteError(
            f"{path}: cannot be written: {error.strerror}",
            code="unwritable",
            hint="check the permissions of the file and of its folder",
            details={"path": path},
        ) from None
