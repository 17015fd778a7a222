"""Names for what is damaged, so that a hint says what to type: by the ledger, else by what is installed."""

from __future__ import annotations

import os
from collections.abc import Iterable

from patchkit.errors import SiteError
from patchkit.runtime.ledger import open_regular, read


def owner(home: str, key: str) -> str | None:
    """``name==version`` of the distribution in ``home`` whose RECORD lists the file ``key``; None: nobody's."""
    row = b"\n" + key.encode("utf-8", "surrogateescape") + b","
    try:
        names = sorted(name for name in os.listdir(home) if name.endswith(".dist-info"))
    except OSError:
        return None
    for name in names:
        try:
            with open_regular(os.path.join(home, name, "RECORD")) as file:
                listed = row in b"\n" + file.read()
        except OSError:
            continue
        if listed:
            project, _, version = name.removesuffix(".dist-info").rpartition("-")
            return f"{project.replace('_', '-')}=={version}"
    return None


def reinstall(home: str, keys: Iterable[str]) -> str:
    """The command that brings back the installer's files for ``keys``."""
    from patchkit.runtime.reinstall import together

    found = sorted({name for key in keys if (name := owner(home, key)) is not None})
    return together(home, [_parted(name) for name in found] or [("DISTRIBUTION", "VERSION")])


def _parted(pinned: str) -> tuple[str, str]:
    name, _, version = pinned.partition("==")
    return name, version


def advice(home: str, sha256: str) -> str:
    """What to do about a lost blob, by the names that the ledger has for what it was."""
    try:
        ledger = read(home) or {"patches": [], "files": {}}
    except SiteError as error:
        return error.hint or ""
    for patch in ledger["patches"]:
        if patch["digest"] == sha256:
            return (
                f"put the file of the patch {patch['name']} back as it was applied ({patch['source']}), or take the "
                f"patch out, with those that share its files: patchkit revert {patch['name']}"
            )
    keys = {
        key
        for key, entry in ledger["files"].items()
        if sha256 in ((entry["after"] or {}).get("sha256"), (entry["pristine"] or {}).get("sha256"))
    }
    concerned = [patch for patch in ledger["patches"] if not keys.isdisjoint(patch["files"])]
    if not concerned:
        return "no applied patch needs it: run the command again"
    names = " ".join(patch["name"] for patch in concerned)
    wheels = sorted({f"{patch['distribution']}=={patch['version']}" for patch in concerned})
    from patchkit.runtime.reinstall import together

    return (
        f"--fetch takes the original from the released wheel ({' '.join(wheels)}); or bring it back with: "
        f"{together(home, [_parted(one) for one in wheels])}, then: patchkit apply {names} (or revert)"
    )
