"""A small site-packages directory, a transaction on it, and ways to stop one."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from patchkit.edit.source import ByteSplice
from patchkit.state import fs
from patchkit.state.ledger import Content, FileEntry, Ledger, PatchEntry, Pristine, layers_of
from patchkit.state.transaction import Change, commit

MTIME = 1_600_000_000_123_456_789
TOML = b'schema = 1\nname = "first"\n'


class Draft(Ledger):
    """A ledger made step by step: each method returns a new one."""

    def with_patch(self, entry: PatchEntry) -> Draft:
        """With ``entry`` at the end, in the place of the patch of its name."""
        kept = tuple(old for old in self.patches if old.name != entry.name)
        return self._replace(patches=(*kept, entry))

    def with_file(self, key: str, entry: FileEntry) -> Draft:
        """With ``entry`` for the file ``key``."""
        return self._replace(files={**self.files, key: entry})

    def without_file(self, key: str) -> Draft:
        """Without the file ``key``."""
        return self._replace(files={name: entry for name, entry in self.files.items() if name != key})


def observed_commit(
    hook: fs.Hook | None,
    home: str,
    changes: Sequence[Change],
    ledger: Ledger,
    event: Mapping[str, Any],
    *,
    extra_blobs: Iterable[bytes] = (),
) -> Ledger:
    """A transaction, with ``hook`` called around every step on the disk."""
    with fs.observed(hook):
        return commit(home, changes, ledger, event, extra_blobs=extra_blobs)


class Crash(BaseException):
    """The process stops: nothing that runs later gets anything done either."""


class Stop:
    """Raise before or after the ``at``-th step; when ``dead``, at every step from then on (as if killed)."""

    def __init__(
        self, at: int | None, when: str = "before", error: BaseException | None = None, dead: bool = True
    ) -> None:
        self.at, self.when, self.error, self.dead = at, when, error or Crash(), dead
        self.count = 0
        self.steps: list[tuple[str, str]] = []
        self.fired = False

    def __call__(self, operation: str, path: str, when: str) -> None:
        if self.fired and self.dead:
            raise self.error
        if when == "before":
            self.count += 1
            self.steps.append((operation, path))
        if self.count == self.at and when == self.when and not self.fired:
            self.fired = True
            raise self.error


class Exit(Stop):
    """Leave the process for good, as ``kill -9`` does: no handler runs."""

    def __call__(self, operation: str, path: str, when: str) -> None:
        if when == "before":
            self.count += 1
        if self.count == self.at and when == self.when:
            os._exit(9)


class Site(NamedTuple):
    """A site: its directory, the bytes every file had and shall have (None: absent), and what to commit."""

    home: Path
    before: dict[str, bytes | None]
    after: dict[str, bytes | None]
    ledger: Ledger

    def changes(self) -> list[Change]:
        return [Change(key, str(self.home / key), self.before[key], self.after[key]) for key in self.before]

    def commit(self, hook: fs.Hook | None = None) -> Ledger:
        event = {"command": "apply", "patches": ["first"]}
        return observed_commit(hook, str(self.home), self.changes(), self.ledger, event, extra_blobs=[TOML])

    def now(self) -> dict[str, bytes | None]:
        return {key: (self.home / key).read_bytes() if (self.home / key).exists() else None for key in self.before}

    def strays(self) -> list[str]:
        """Temporary files, empty directories and unreferenced blobs."""
        found = [
            str(path) for path in self.home.rglob("*") if path.name.endswith(".tmp") or path.name.startswith(".tmp")
        ]
        found += [str(path) for path in self.home.rglob("*") if path.is_dir() and not any(path.iterdir())]
        kept = Ledger.load(str(self.home)).blobs()
        blobs = self.home / ".patchkit" / "blobs"
        found += [str(path) for path in blobs.iterdir() if path.name not in kept] if blobs.exists() else []
        return found


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def entry_for(pristine: bytes | None, after: bytes, patch: str = "first", mode: int = 0o644) -> FileEntry:
    """The record of a file changed as a whole by one patch."""
    return FileEntry(
        distribution="pkg",
        pristine=None if pristine is None else Pristine(sha(pristine), len(pristine), mode, MTIME),
        witness="record",
        after=Content(sha(after), len(after)),
        layers=layers_of([(patch, [ByteSplice(0, len(pristine or b""), pristine or b"", after)])]),
    )


def patch_entry(name: str, files: Sequence[str], toml: bytes = TOML, version: str = "1.0") -> PatchEntry:
    return PatchEntry(
        name=name,
        digest=sha(toml),
        source=f"/src/{name}.toml",
        summary="A patch",
        distribution="pkg",
        version=version,
        info=f"pkg-{version}.dist-info",
        requirement="pkg>=1",
        applied_at="2026-11-30T12:00:00Z",
        files=tuple(files),
    )


def build(home: Path) -> Site:
    """Three files that change, one that is added in a new directory, one (added earlier) removed with its own."""
    (home / "pkg-1.0.dist-info").mkdir(parents=True)
    (home / "pkg-1.0.dist-info" / "METADATA").write_text("Name: pkg\n")
    (home / "pkg" / "old").mkdir(parents=True)
    before: dict[str, bytes | None] = {
        "pkg/a.py": b"a = 1\n",
        "pkg/b.py": b"b = 1\r\n",
        "pkg/c.py": b"",
        "pkg/new/deep/add.py": None,
        "pkg/old/gone.py": b"gone = 1\n",
    }
    after: dict[str, bytes | None] = {
        "pkg/a.py": b"a = 2\n",
        "pkg/b.py": b"b = 1\r\nb = 2\r\n",
        "pkg/c.py": b"c = 2\n",
        "pkg/new/deep/add.py": b"added = True\n",
        "pkg/old/gone.py": None,
    }
    for key, data in before.items():
        if data is not None:
            (home / key).write_bytes(data)
            os.chmod(home / key, 0o640)
            os.utime(home / key, ns=(MTIME, MTIME))
    # The file to be removed is in the ledger, with the directory made for it.
    gone = b"gone = 1\n"
    (home / "pkg/old/gone.py").unlink()
    (home / "pkg/old").rmdir()
    zero = patch_entry("zero", ["pkg/old/gone.py"])
    first = Draft().with_patch(zero).with_file("pkg/old/gone.py", entry_for(None, gone, "zero"))
    commit(
        str(home),
        [Change("pkg/old/gone.py", str(home / "pkg/old/gone.py"), None, gone, mode=0o640, mtime_ns=MTIME)],
        first,
        {"command": "apply"},
        extra_blobs=[TOML],
    )
    ledger = Draft().with_patch(patch_entry("first", [key for key, data in after.items() if data is not None]))
    for key, data in after.items():
        if data is not None:
            ledger = ledger.with_file(key, entry_for(before[key], data))
    return Site(home, before, after, ledger)
