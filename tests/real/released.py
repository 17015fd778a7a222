"""What the tests on released wheels share: cases as data, independent expectations, the command under test.

A case is a directory ``cases/<case>/`` with ``case.toml`` and ``patches/<case>.toml``, beside patches that must be
refused. Nothing in this module uses patchkit: expected bytes come from the next release's wheel or from counted
replacements, and the original hashes from the installer's RECORD.

Keys of ``case.toml``:

- ``why``: what the case is there for; ``distribution``, ``versions``: the releases to patch, each by itself.
- ``becomes``, ``files``: the release whose ``files`` the patched ones must equal. Instead of them,
- ``[[change]]``: in each of ``files`` ``old`` becomes ``new``. ``count``: how often ``old`` stands there; ``only``:
  just this one of them changes; ``encoding`` of both texts.
- ``[[matched]]``: the ``lines`` per version and the ``scope`` that ``apply --json`` must report for ``file``.
- ``[[refused]]``: ``patch`` must end with ``status`` and an error that ``says`` these words, with nothing written.
- ``slow``: a large download; ``mode`` of the changed files; ``mends_syntax``: no parse before, but after;
  ``wheel_for``: options of ``pip download`` for a wheel of another platform or Python.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import json
import os
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """``old`` becomes ``new`` in each of ``files``, where it stands ``count`` times; ``only``: the n-th alone."""

    files: list[str]
    old: str
    new: str
    count: int = 1
    only: int | None = None
    encoding: str = "utf-8"

    def apply(self, data: bytes) -> bytes:
        """The file's bytes after the change, by splitting and joining bytes."""
        old, new = (text.encode(self.encoding) for text in (self.old, self.new))
        pieces = data.split(old)
        assert len(pieces) - 1 == self.count, f"{self.old!r} stands {len(pieces) - 1} times, not {self.count}"
        out = [pieces[0]]
        for number, piece in enumerate(pieces[1:], 1):
            out += (new if self.only in (None, number) else old, piece)
        return b"".join(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The lines per version and the scope that ``apply --json`` must report for ``file``."""

    file: str
    lines: dict[str, list[int]]
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A patch beside the case's own that must end with ``status`` and an error with these words in it."""

    patch: str
    status: int
    says: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One directory of ``cases/``; see the module's description."""

    name: str
    why: str
    distribution: str
    versions: list[str]
    becomes: str | None = None
    files: list[str] = field(default_factory=list)
    change: list[Change] = field(default_factory=list)
    matched: list[Matched] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    slow: bool = False
    mode: str | None = None
    mends_syntax: bool = False
    wheel_for: list[str] = field(default_factory=list)

    @property
    def patches(self) -> Path:
        """The folder for ``--patches``."""
        return CASES / self.name / "patches"

    def changes(self, path: str) -> list[Change]:
        """The replacements that lead to the expected bytes of ``path``."""
        return [change for change in self.change if path in change.files]


def load_cases() -> list[Case]:
    """All cases, by name."""
    return [_load(path) for path in sorted(CASES.glob("*/case.toml"))]


def _load(path: Path) -> Case:
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    data["change"] = [Change(**table) for table in data.get("change", [])]
    data["matched"] = [Matched(**table) for table in data.get("matched", [])]
    data["refused"] = [Refused(**table) for table in data.get("refused", [])]
    data.setdefault("files", sorted({name for change in data["change"] for name in change.files}))
    case = Case(name=path.parent.name, **data)
    assert (case.becomes is None) == bool(case.change), f"{path}: either becomes or [[change]]"
    return case


def wheel_bytes(wheel: Path, path: str) -> bytes:
    """One file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(path)


def foreign_wheel(distribution: str, version: str, options: list[str]) -> Path:
    """A wheel that pip would not give this Python, kept in the tests' cache; asked for at most twice.

    Raises:
        subprocess.CalledProcessError: pip failed twice.
    """
    cache = Path(os.environ.get("PATCHKIT_TEST_CACHE") or Path(__file__).parent / ".cache").absolute()
    kept = cache / "foreign" / f"{distribution}-{version}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        command += ["--only-binary", ":all:", *options, f"{distribution}=={version}", "--dest"]
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            for attempt in (1, 2):
                if subprocess.run([*command, folder], check=attempt == 2).returncode == 0:
                    break
            with contextlib.suppress(OSError):  # another worker was faster
                Path(folder).rename(kept)
                Path(folder).mkdir()
    return next(kept.glob("*.whl"))


def executable_bits(wheel: Path, site: Path) -> None:
    """Give the unpacked files the mode that pip gives them: 0755 where the wheel marks one executable, else 0644."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                (site / member.filename).chmod(0o755 if (member.external_attr >> 16) & 0o111 else 0o644)


class FileState(NamedTuple):
    """What of a file must not change unasked."""

    sha256: str
    mode: int
    mtime_ns: int


def snapshot(site: Path) -> dict[str, FileState]:
    """Every file of the site by its POSIX path, without patchkit's own folder and caches of bytecode."""
    out: dict[str, FileState] = {}
    for folder, names, files in os.walk(site):
        names[:] = [name for name in names if name not in (".patchkit", "__pycache__")]
        for name in files:
            path = Path(folder, name)
            status = path.stat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            out[path.relative_to(site).as_posix()] = FileState(digest, stat.S_IMODE(status.st_mode), status.st_mtime_ns)
    return out


def record_mismatches(site: Path) -> list[str]:
    """The files in the site that differ from their distribution's RECORD, found without patchkit."""
    records = list(site.glob("*.dist-info/RECORD"))
    assert len(records) == 1
    with records[0].open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.reader(stream) if row and row[1].startswith("sha256=")]
    assert len(rows) > 3
    out = []
    for path, digest, *_ in rows:
        file = site / path
        if ".data/" not in path and not path.startswith("..") and file.suffix != ".pyc":
            found = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
            if digest != f"sha256={found}":
                out.append(path)
    return out


class Outcome(NamedTuple):
    """How a command ended: its exit status, and the object it printed."""

    status: int
    answer: Mapping[str, Any]


def patchkit(site: Path, patches: Path, *arguments: str) -> Outcome:
    """Run ``python -m patchkit --json`` on a site, in a fresh process outside every project."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "patchkit", "--site", str(site), "--patches", str(patches), "--json", *arguments]
    run = subprocess.run(command, cwd=site.parent, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert run.stdout, run.stderr
    answer = json.loads(run.stdout)
    assert isinstance(answer, dict)
    return Outcome(run.returncode, answer)
