"""The intent of a transaction, on disk before its first change: the next command can finish it or take it back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from patchkit.errors import SiteError
from patchkit.runtime.ledger import checksum, climbs, covered, file_path, key_of, loads, plain, state_path
from patchkit.state import fs
from patchkit.tuples import NamedTuple

SCHEMA = 1


class Before(NamedTuple):
    """A file as it was: content (a blob), permission bits, time and owner; ``link`` is a symbolic link's target."""

    sha256: str
    mode: int
    mtime_ns: int
    uid: int
    gid: int
    link: str | None = None


class JournalFile(NamedTuple):
    """One file of the intent.

    ``before`` and ``after`` (SHA-256) are None for absence; ``temp`` is the name of the temporary file beside it;
    ``pristine`` is the SHA-256 of the installer's bytes, which a reinstall may bring back meanwhile; ``remove_dirs``
    (as keys) go, when empty, once a removed file is gone for good. With ``link``, the file after is a symbolic link
    to there, and ``after`` what its target holds.
    """

    key: str
    temp: str
    before: Before | None
    after: str | None
    pristine: str | None
    remove_dirs: tuple[str, ...] = ()
    link: str | None = None


class Journal(NamedTuple):
    """One transaction: its id, which the ledger carries as well once it is committed, and what it means to do.

    ``create_dirs`` (absolute; in the file as keys) are the directories to make, outermost first.
    ``remove_dirs`` (as keys) were made for files that others removed: they go, when empty, with the ledger's entries.
    ``spared`` is the ledger's.
    """

    tx: str
    files: tuple[JournalFile, ...]
    create_dirs: tuple[str, ...]
    prefixes: tuple[str, ...]
    event: Mapping[str, Any]
    remove_dirs: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()

    def path(self, home: str, file: JournalFile) -> str:
        """The absolute path of ``file``."""
        return file_path(home, file.key)

    def temp(self, home: str, file: JournalFile) -> str:
        """The absolute path of the temporary file beside ``file``."""
        return os.path.join(os.path.dirname(file_path(home, file.key)), file.temp)


def journal_path(home: str) -> str:
    """Where the journal of ``home`` lies while a transaction is under way, or was interrupted."""
    return state_path(home, "journal.json")


def save(home: str, journal: Journal) -> None:
    """Write the journal, wholly or not at all, and make it last.

    Raises:
        OSError: With its path.
    """
    import json

    value = {
        **journal._asdict(),
        "schema": SCHEMA,
        "files": [{**file._asdict(), "before": file.before and file.before._asdict()} for file in journal.files],
        "create_dirs": [key_of(home, path) for path in journal.create_dirs],  # the site may be moved meanwhile
    }
    body = json.dumps(value, sort_keys=True)[1:].encode("ascii") + b"\n"
    data = f'{{\n"checksum": "{checksum(body)}",\n'.encode("ascii") + body
    fs.write_atomic(journal_path(home), data, fs.open_like(home))


def _keys(data: bytes) -> list[str]:
    """The keys of files that a damaged journal still shows."""
    import re

    return re.findall(r'"key": "([^"\\]+)"', data.decode("utf-8", "replace"))


def load(home: str) -> Journal | None:
    """The journal of ``home``; None where no transaction was interrupted.

    Raises:
        SiteError: ``corrupt``, ``ledger-version`` (a newer patchkit wrote it) or ``unreadable``.
    """
    path = journal_path(home)
    try:
        data = fs.read_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SiteError(
            f"{path}: cannot be read: {error.strerror}",
            code="unreadable",
            hint="run as a user who may read it",
            details={"path": path},
        ) from None
    try:
        value = loads(data.decode("utf-8"))
        if value["schema"] > SCHEMA:
            raise SiteError(
                f"{path}: written by a newer patchkit (schema {value['schema']}; this one reads up to {SCHEMA})",
                code="ledger-version",
                hint="upgrade this patchkit: pip install -U site-patchkit",
                details={"path": path},
            )
        if value["checksum"] != checksum(covered(data)):
            raise ValueError("its checksum does not fit its content")
        for file in value["files"]:
            if climbs(file["key"]) or "/" in file["temp"] or os.sep in file["temp"]:
                raise ValueError(f"it names {file['key']!r}, which is no file of the site")
        event = value["event"]
        if not all(plain(word) for word in (event.get("command") or "x", *(event.get("patches") or ()))):
            raise ValueError("its command or a patch of it has a name that is none")
        return Journal(
            tx=value["tx"],
            files=tuple(
                JournalFile(
                    key=file["key"],
                    temp=file["temp"],
                    before=None if file["before"] is None else Before(**file["before"]),
                    after=file["after"],
                    pristine=file["pristine"],
                    remove_dirs=tuple(file["remove_dirs"]),
                    link=file.get("link"),
                )
                for file in value["files"]
            ),
            create_dirs=tuple(file_path(home, key) for key in value["create_dirs"]),
            prefixes=tuple(value["prefixes"]),
            event=value["event"],
            remove_dirs=tuple(value.get("remove_dirs", ())),
            spared=tuple(value.get("spared", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        from patchkit.state import salvage

        raise SiteError(
            f"{path}: damaged: {error}",
            code="corrupt",
            hint="an interrupted run cannot be taken back from it: put back what it was working on "
            f"({salvage.reinstall(home, _keys(data))}), delete {path}, and apply again",
            details={"path": path},
        ) from None
