"""Records as somebody else may have written them: a journal and a ledger with checksums that fit."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any


def blob(site: Path, data: bytes) -> str:
    """Keep ``data`` in the site's ledger folder; its SHA-256."""
    name = hashlib.sha256(data).hexdigest()
    (site / ".patchkit" / "blobs").mkdir(parents=True, exist_ok=True)
    (site / ".patchkit" / "blobs" / name).write_bytes(data)
    return name


def journal(site: Path, files: list[dict[str, Any]], **members: Any) -> Path:
    """A journal of an interrupted run that is to be taken back."""
    value = {"tx": "aa", "create_dirs": [], "prefixes": [], "event": {}, "remove_dirs": [], "schema": 1, **members}
    return _write(site, "journal.json", {**value, "files": files})


def journal_file(key: str, before: str | None, after: str | None, **members: Any) -> dict[str, Any]:
    """One file of :func:`journal`, by the SHA-256 of its bytes."""
    was = None if before is None else {"sha256": before, "mode": 0o755, "mtime_ns": 1, "uid": 0, "gid": 0, "link": None}
    file = {"key": key, "temp": "x.tmp", "before": was, "after": after, "pristine": None, "remove_dirs": []}
    return {**file, "link": None, **members}


def ledger(site: Path, patches: list[dict[str, Any]], files: dict[str, Any]) -> Path:
    """A ledger."""
    return _write(site, "ledger.json", {"schema": 1, "tx": "", "patches": patches, "files": files, "upstreamed": []})


def ledger_patch(digest: str, keys: list[str], **members: Any) -> dict[str, Any]:
    """One patch of :func:`ledger`."""
    entry = {"name": "p1", "digest": digest, "source": None, "summary": "s", "distribution": "demo", "version": "1.0"}
    rest = {"info": "demo-1.0.dist-info", "requirement": "demo", "applied_at": "2026-01-01T00:00:00Z", "files": keys}
    return {**entry, **rest, "optional": False, "conflicts": [], "after": [], **members}


def ledger_file(pristine: bytes, after: bytes, **members: Any) -> dict[str, Any]:
    """One file of :func:`ledger`."""
    content = {"sha256": hashlib.sha256(after).hexdigest(), "size": len(after)}
    before = {"sha256": hashlib.sha256(pristine).hexdigest(), "size": len(pristine), "mode": 0o644, "mtime_ns": 5}
    entry = {"distribution": "demo", "pristine": before, "witness": "none", "after": content, "stat": None}
    return {**entry, "layers": [], "created_dirs": [], **members}


def _write(site: Path, name: str, value: dict[str, Any]) -> Path:
    folder = site / ".patchkit"
    folder.mkdir(exist_ok=True)
    body = json.dumps(value, sort_keys=True)[1:].encode("ascii") + b"\n"
    path = folder / name
    path.write_bytes(f'{{\n"checksum": "crc32:{zlib.crc32(body):08x}",\n'.encode("ascii") + body)
    return path
