"""``patchkit.require``: a process refuses to start unless the patches it counts on are in the files it imports."""

from __future__ import annotations

import os
import sys

from patchkit.runtime import ledger as reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from patchkit.errors import SiteError


def require(*names: str, site: Any = None) -> None:
    """Raise unless each of the patches ``names`` is applied to the distribution that is installed now.

    Applied means: the ledger has it, its distribution is still the one it was applied to, and every file has the bytes
    patchkit wrote. A patch that the installed release has made needless (recorded as upstreamed) counts as well.
    Imports no parser and takes milliseconds, so it can stand first in a program. What the process imported *before* an
    apply it cannot know.

    Args:
        names: Names of patches.
        site: None: the site-packages directories on ``sys.path``; else such a directory, an environment's root, or an
            object with a ``home`` (and ``paths``, each of which may have a ledger).

    With ``site=None`` a distribution counts only where imports of this process reach it: not behind another install of
    it that is earlier on ``sys.path`` (the user's site directory, say).

    Raises:
        UsageError: No name is given, which would let anything pass.
        SiteError: ``not-applied``: the message and ``details["patches"]`` tell each one's state, the hint what to type.
            ``corrupt``, ``ledger-version`` or ``unreadable``: the ledger cannot be read.
    """
    if not names:
        from patchkit.errors import UsageError

        raise UsageError("require() names no patch, so it would let anything pass", hint='require("NAME", ...)')
    try:
        _require(names, site)
    except Exception as error:
        hint = getattr(error, "hint", None)
        if hint and hasattr(error, "add_note"):  # Python 3.11: an uncaught one then shows the way out
            error.add_note(hint)
        raise


def _require(names: tuple[str, ...], site: Any) -> None:
    homes = _homes(site)
    ledgers = [(home, ledger) for home in homes for ledger in [reader.read(home)] if ledger is not None]
    missing = []
    hidden = _Hidden(ledgers) if site is None else None
    for name in names:
        found = [_judge(home, ledger, name, hidden) for home, ledger in ledgers]
        known = [verdict for verdict in found if verdict is not None]
        if not any(state == "applied" for state, _ in known):
            state, reason = known[0] if known else ("absent", "was never applied here")
            missing.append({"name": name, "state": state, "reason": reason})
    if missing:
        raise _not_applied(missing, homes, hidden)


def _homes(site: Any) -> list[str]:
    homes = reader.find_homes(site)
    more = () if isinstance(site, str) else getattr(site, "paths", ())
    return list(dict.fromkeys([*homes, *more]))


class _Hidden:
    """Which patched distributions imports of this process never reach: another is earlier on ``sys.path``."""

    def __init__(self, ledgers: list[tuple[str, dict[str, Any]]]) -> None:
        self._wanted = {
            reader.normal(entry["distribution"])
            for _, ledger in ledgers
            for entry in (*ledger["patches"], *ledger["upstreamed"])
        }
        self._found: dict[str, set[str]] = {}
        self.imported_from: dict[str, None] = {}

    def judge(self, home: str, distribution: str) -> tuple[str, str] | None:
        """The state ``shadowed`` and its reason, where another directory's install comes before that of ``home``."""
        wanted, real = reader.normal(distribution), os.path.realpath(home)
        for entry in sys.path:
            directory = os.path.abspath(entry)
            if directory == home or os.path.realpath(directory) == real:
                break
            if wanted in self._in(directory):
                self.imported_from[directory] = None
                return "shadowed", f"was applied to {distribution} in {home}, but imports take that in {directory}"
        return None

    def _in(self, directory: str) -> set[str]:
        """Which of the wanted distributions a directory has the metadata of."""
        known = self._found.get(directory)
        if known is None:
            known = self._found[directory] = set()
            try:
                names = os.listdir(directory)
            except OSError:  # a zip file, or nothing at all
                names = []
            for name in names:
                stem, dot, kind = name.rpartition(".")
                if dot and kind in ("dist-info", "egg-info"):
                    project = reader.normal(stem.partition("-")[0])
                    if project in self._wanted and _has_metadata(os.path.join(directory, name)):
                        known.add(project)
        return known


def _has_metadata(info: str) -> bool:
    """False for the empty directory that an interrupted removal leaves; an egg-info may be one file."""
    return os.path.isfile(info) or any(os.path.isfile(os.path.join(info, name)) for name in ("METADATA", "PKG-INFO"))


def _judge(home: str, ledger: dict[str, Any], name: str, hidden: _Hidden | None) -> tuple[str, str] | None:
    """The state of one patch by one ledger, and its reason; None where the ledger does not have it."""
    for entry in ledger["patches"]:
        if entry["name"] == name:
            if not reader.installed(home, entry["info"]):
                return _other_version(home, entry, "was applied to")
            shadowed = hidden.judge(home, entry["distribution"]) if hidden is not None else None
            if shadowed is not None:
                return shadowed
            states = reader.check_files(home, ledger, entry["files"])
            return _overall(states)
    for entry in ledger["upstreamed"]:
        if entry["name"] == name:
            if reader.installed(home, entry["info"]):
                shadowed = hidden.judge(home, entry["distribution"]) if hidden is not None else None
                return shadowed or ("applied", "")
            return _other_version(home, entry, "was found needless with")
    return None


def _other_version(home: str, entry: dict[str, Any], did: str) -> tuple[str, str]:
    distribution = entry["distribution"]
    versions = reader.installed_versions(home, distribution)
    did = f"{did} {distribution} {entry['version']}"
    if versions:
        return "stale", f"{did}; installed is {', '.join(versions)}"
    return "uninstalled", f"{did}, which is no longer installed"


def _overall(states: dict[str, str]) -> tuple[str, str]:
    """The state of a patch from those of its files (the words of ``check``), and which file is why."""
    kinds = set(states.values())
    if kinds <= {"applied"}:
        return "applied", ""
    words = {
        "modified": "has neither the installer's bytes nor the patched ones",
        "missing": "is missing",
        "unreadable": "cannot be read",
    }
    for key, state in states.items():
        if state in words:
            return "modified", f"{key} {words[state]}"
    key = next(key for key, state in states.items() if state == "pristine")
    if kinds == {"pristine"}:
        return "lost", f"its files are the installer's again ({key}): a reinstall"
    return "partial", f"{key} is the installer's, other files are patched"


def _not_applied(missing: list[dict[str, str]], homes: list[str], hidden: _Hidden | None) -> SiteError:
    from patchkit.errors import SiteError

    where = ", ".join(homes) or "no directory on sys.path has a .patchkit/ledger.json"
    lines = [f"{item['name']}: {item['state']}: {item['reason']}" for item in missing]
    states = {item["state"] for item in missing}
    names = " ".join(item["name"] for item in missing)
    option = f"--site {homes[0]} " if homes else ""
    if states == {"shadowed"} and hidden is not None:
        hint = f"where imports take it from: patchkit --site {next(iter(hidden.imported_from))} apply {names}"
    elif states <= {"absent", "lost", "partial"}:
        hint = f"patchkit {option}apply {names}"
    else:
        hint = f"patchkit {option}check {names}, then what it says; most often: patchkit {option}apply {names}"
    return SiteError(
        f"not every required patch is applied in {where}:\n  " + "\n  ".join(lines),
        code="not-applied",
        hint=hint,
        details={"patches": missing, "site": homes[0] if homes else None},
    )
