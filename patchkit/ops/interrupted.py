"""The state of a site that an interrupted command left half written, for those who cannot take it back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from patchkit.errors import SiteError
from patchkit.ops.check import FileDrift, PatchState
from patchkit.runtime.ledger import open_regular, sha256_hex
from patchkit.state.journal import Journal, JournalFile, load

if TYPE_CHECKING:
    from patchkit.ops.check import FileWord, StateWord


def half_written(home: str, ledger: Mapping[str, Any] | None, error: SiteError) -> dict[str, PatchState]:
    """The patches that an interrupted command was about, and those that share its files, by name.

    Nobody where that command had been completed, and only its traces could not be removed.

    Args:
        home: The directory with the journal.
        ledger: Its raw ledger.
        error: Why the command could not be taken back.

    Raises:
        SiteError: The journal is damaged, or cannot be read.
    """
    journal = load(home)
    recorded = {str(patch["name"]): patch for patch in ledger["patches"]} if ledger is not None else {}
    if journal is None or (ledger is not None and ledger.get("tx") == journal.tx):
        return {}
    keys = {file.key for file in journal.files}
    touched = [name for name, patch in recorded.items() if not keys.isdisjoint(patch["files"])]
    named = [str(name) for name in journal.event.get("patches") or ()]
    named = [name for name in named if name not in recorded or name in touched]  # others were to stay as they are
    named += touched
    files = tuple(FileDrift(file.key, _state(home, journal, file)) for file in journal.files)
    strange = any(file.state in ("modified", "missing", "unreadable") for file in files)
    command = journal.event.get("command") or "command"
    reason = "; ".join(line.strip().rstrip(":") for line in error.message.split("\n"))
    if not reason.startswith("an interrupted"):
        reason = f"an interrupted `{command}` waits to be taken back: {reason}"
    reason += f"; {error.hint}" if error.hint else ""
    found = {}
    for name in dict.fromkeys(named or [f"({command})"]):
        known = recorded.get(name)
        distribution, version = (None, None) if known is None else (str(known["distribution"]), str(known["version"]))
        word: StateWord = "modified" if strange else "partial"
        found[name] = PatchState(name, word, distribution, version, version, files, reason, site=home)
    return found


def before_it(journal: Journal, ledger: Mapping[str, Any]) -> dict[str, FileWord]:
    """The files of a command that is at work, as the word of ``check`` was before it, by key.

    Args:
        journal: Of that command.
        ledger: The raw ledger, which it has not written yet.
    """
    found: dict[str, FileWord] = {}
    for file in journal.files:
        entry = ledger["files"].get(file.key)
        if entry is None:
            continue
        sha256 = None if file.before is None else file.before.sha256
        if sha256 == (entry["after"] and entry["after"]["sha256"]):
            found[file.key] = "applied"
        elif sha256 == (entry["pristine"] and entry["pristine"]["sha256"]):
            found[file.key] = "pristine"
        else:
            found[file.key] = "missing" if sha256 is None else "modified"
    return found


def _state(home: str, journal: Journal, file: JournalFile) -> FileWord:
    """The word of ``check`` for one file of the journal."""
    path = journal.path(home, file)
    try:
        with open_regular(path) as stream:
            sha256 = sha256_hex(stream.read())
    except (FileNotFoundError, NotADirectoryError):
        if os.path.lexists(path):
            return "missing"
        if file.pristine is None:
            return "pristine"  # one that a patch adds
        return "applied" if file.before is None or file.after is None else "missing"  # one that a patch takes away
    except IsADirectoryError:
        return "modified"
    except OSError:
        return "unreadable"
    if sha256 == file.pristine:
        return "pristine"
    before = file.before.sha256 if file.before is not None else None
    return "applied" if sha256 in (before, file.after) else "modified"
