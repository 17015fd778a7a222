"""``patchkit.require``: a process refuses to start unless the patches it counts on are in the files it imports."""

from __future__ import annotations

import os
import sys

from patchkit.runtime import ledger as reader

#: Seconds to wait for a command that is writing, before its half-done work is taken for what is there.
BUSY_SECONDS = 2.0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from patchkit.errors import SiteError
    from patchkit.runtime.imported import Imports


def require(*names: str, site: Any = None) -> None:
    """Raise unless each of the patches ``names`` is applied to the distribution that is installed now.

    Applied means: the ledger has it, its distribution is still the one it was applied to, and every file has the bytes
    patchkit wrote. A patch that the installed release has made needless (recorded as upstreamed) counts as well.
    Imports no parser and takes milliseconds, so it can stand first in a program.

    In a process of ``patchkit run`` it is memory that counts, not the disk: the patches named there hold, no others.

    Args:
        names: Names of patches.
        site: None: the site-packages directories on ``sys.path``; else such a directory, an environment's root, or an
            object with a ``home`` (and ``paths``, each of which may have a ledger).

    With ``site=None`` a patch counts only where imports of this process reach it: not behind another install of its
    distribution that is earlier on ``sys.path`` (the user's site directory, say), not where another file is imported
    instead of a patched one, and not where this process imported a module before it was patched (a notebook's kernel).

    Raises:
        UsageError: No name is given, which would let anything pass.
        SiteError: ``not-applied``: the message and ``details["patches"]`` tell each one's state, the hint what to type.
            ``corrupt``, ``ledger-version`` or ``unreadable``: the ledger cannot be read.
    """
    if not names:
        from patchkit.errors import UsageError

        raise UsageError("require() names no patch, so it would let anything pass", hint='require("NAME", ...)')
    if _holds(names, site):
        return
    try:
        _require_at_rest(names, site)
    except Exception as error:
        hint = getattr(error, "hint", None)
        if hint and hasattr(error, "add_note"):  # Python 3.11: an uncaught one then shows the way out
            error.add_note(hint)
        raise


def _require(names: tuple[str, ...], site: Any) -> None:
    overlay = _overlay() if site is None else None
    homes = _homes(site)
    ledgers = [(home, ledger) for home in homes for ledger in [reader.read(home)] if ledger is not None]
    missing = []
    installs = _Installs(ledgers, imported=site is None)
    for name in names:
        if overlay is not None and (name in overlay.live or name in overlay.upstreamed):
            strays = [text for module, text in overlay.strays().items() if module in overlay.live.get(name, ())]
            if strays:
                missing.append({"name": name, "state": "shadowed", "reason": f"imports took {strays[0]} instead"})
            continue
        found = [_judge(home, ledger, name, installs) for home, ledger in ledgers]
        known = [verdict for verdict in found if verdict is not None]
        if not any(state == "applied" for state, _ in known):
            absent = "is not applied here" if overlay is None else _not_in_memory(overlay)
            if overlay is None and site is None and os.environ.get("PATCHKIT_RUN"):
                absent += ", and `patchkit run` has nothing in the memory of this process"
            state, reason = known[0] if known else ("absent", absent)
            missing.append({"name": name, "state": state, "reason": reason})
    if missing:
        raise _not_applied(missing, homes, installs, overlay)


def _overlay() -> Any:
    """The module that has patches in the memory of this process (:mod:`patchkit.runtime.overlay`, from a bundle)."""
    found = sys.modules.get("_patchkit_overlay")
    return found if found is not None and found.active else None


def _not_in_memory(overlay: Any) -> str:
    return f"is not among what `patchkit run` has in memory here ({', '.join(overlay.live) or 'no patch'})"


def _holds(names: tuple[str, ...], site: Any) -> bool:
    try:
        _require(names, site)
    except Exception:
        return False
    return True


def _require_at_rest(names: tuple[str, ...], site: Any) -> None:
    """Ask once more; and again, as long as a command is writing: what it has done by halves is nobody's state.

    What an interrupted command left is not waited for: nobody goes on with it.
    """
    import time

    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        before = _marks(site)
        try:
            return _require(names, site)
        except Exception:
            writing = before != _marks(site) or any(map(_at_work, _homes(site)))
            if not writing or time.monotonic() >= deadline:
                raise
        time.sleep(0.05)


def _at_work(home: str) -> bool:
    """Whether a command is writing there, or was interrupted and it cannot be told whether it is still at work.

    That is so who may not read the lock, and on Windows, where asking for it would keep others from it.
    """
    if not os.path.lexists(reader.state_path(home, "journal.json")):
        return False
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(reader.state_path(home, "lock"), flags)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        import fcntl  # the lock of patchkit.state.lock

        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return True
    finally:
        os.close(descriptor)
    return False


def _marks(site: Any) -> list[tuple[tuple[int, int] | None, bool]]:
    """Of each home, which ledger it has, and whether a command is writing or was interrupted."""
    marks = []
    for home in _homes(site):
        try:
            now = os.stat(reader.state_path(home, "ledger.json"))
            ledger = (now.st_ino, now.st_mtime_ns)
        except OSError:
            ledger = None
        marks.append((ledger, os.path.lexists(reader.state_path(home, "journal.json"))))
    return marks


def _homes(site: Any) -> list[str]:
    homes = reader.find_homes(site)
    more = () if isinstance(site, str) else getattr(site, "paths", ())
    overlay = _overlay() if site is None else None
    if overlay is not None:  # what is on disk there is not what this process has
        covered = set(map(os.path.realpath, overlay.homes))
        homes = [home for home in homes if os.path.realpath(home) not in covered]
    return list(dict.fromkeys([*homes, *more]))


class _Installs:
    """Where the patched distributions lie: which are doubled, and which no import of this process reaches."""

    def __init__(self, ledgers: list[tuple[str, dict[str, Any]]], *, imported: bool) -> None:
        self._imported = imported
        self._process: Imports | None = None
        self._judged: dict[tuple[str, str], tuple[str, str] | None] = {}
        self._wanted = {
            reader.normal(entry["distribution"])
            for _, ledger in ledgers
            for entry in (*ledger["patches"], *ledger["upstreamed"])
        }
        self._found: dict[str, dict[str, list[str]]] = {}
        self.imported_from: dict[str, None] = {}

    def judge(self, home: str, distribution: str) -> tuple[str, str] | None:
        """``stale`` or ``shadowed`` and its reason, where the install in ``home`` cannot be told or is not imported."""
        about = (home, distribution)  # the same for all of its patches
        if about not in self._judged:
            self._judged[about] = self._judge(*about)
        return self._judged[about]

    def _judge(self, home: str, distribution: str) -> tuple[str, str] | None:
        wanted, real = reader.normal(distribution), os.path.realpath(home)
        doubled = self._in(home).get(wanted, [])
        doubled = [info for info in doubled if _is_of(info, wanted)] if len(doubled) > 1 else doubled
        if len(doubled) > 1 and not _same_release(doubled):
            names = " and ".join(sorted(map(os.path.basename, doubled)))
            return "stale", f"{home} holds {len(doubled)} installations of {distribution}: {names}"
        for entry in sys.path if self._imported else ():
            if type(entry) is not str:
                continue  # as imports do
            directory = os.path.abspath(entry)
            if directory == home or os.path.realpath(directory) == real:
                break
            if any(_is_of(info, wanted) for info in self._in(directory).get(wanted, ())):
                self.imported_from[directory] = None
                return "shadowed", f"was applied to {distribution} in {home}, but imports take that in {directory}"
        return None

    def not_in_force(self, home: str, keys: Iterable[str]) -> tuple[str, str] | None:
        """``inert`` or ``outdated`` and its reason, where this process does not run the patched files."""
        if not self._imported:
            return None
        if self._process is None:
            from patchkit.runtime.imported import Imports

            self._process = Imports()
        return self._process.not_in_force(home, keys)

    def _in(self, directory: str) -> dict[str, list[str]]:
        known = self._found.get(directory)
        if known is None:
            known = self._found[directory] = reader.infos_of(directory, self._wanted)
        return known


def _is_of(info: str, wanted: str) -> bool:
    """Whether metadata that may be of ``wanted`` by their name are, and are there."""
    if os.path.basename(info).count("-") == 1:
        return _has_metadata(info)
    return reader.normal(_header(info, "name:")) == wanted


def _same_release(infos: list[str]) -> bool:
    """Whether they are one install all the same: conda and Debian leave an egg-info beside the dist-info."""
    if sum(info.endswith(".dist-info") for info in infos) > 1:
        return False
    return len({_header(info, "version:") for info in infos}) == 1


def _header(info: str, key: str) -> str:
    """A line of METADATA or PKG-INFO; empty where it is missing."""
    for path in (os.path.join(info, "METADATA"), os.path.join(info, "PKG-INFO"), info):
        try:
            with reader.open_text(path) as file:
                for line in file:
                    if line[: len(key)].lower() == key:
                        return line[len(key) :].strip()
                    if not line.strip():
                        break
        except OSError:
            continue
    return ""


def _has_metadata(info: str) -> bool:
    """False for the empty directory that an interrupted removal leaves; an egg-info may be one file."""
    return os.path.isfile(info) or any(os.path.isfile(os.path.join(info, name)) for name in ("METADATA", "PKG-INFO"))


def _judge(home: str, ledger: dict[str, Any], name: str, installs: _Installs) -> tuple[str, str] | None:
    """The state of one patch by one ledger, and its reason; None where the ledger does not have it."""
    for entry in ledger["patches"]:
        if entry["name"] == name:
            if not reader.installed(home, entry["info"]):
                return _other_version(home, entry, "was applied to")
            found = installs.judge(home, entry["distribution"]) or _overall(
                reader.check_files(home, ledger, entry["files"])
            )
            return (found[0] == "applied" and installs.not_in_force(home, entry["files"])) or found
    for entry in ledger["upstreamed"]:
        if entry["name"] == name:
            if reader.installed(home, entry["info"]):
                return installs.judge(home, entry["distribution"]) or ("applied", "")
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


def _not_applied(
    missing: list[dict[str, str]], homes: list[str], installs: _Installs, overlay: Any = None
) -> SiteError:
    from patchkit.errors import SiteError

    if overlay is not None:
        homes = [*homes, *overlay.homes]
    where = f" in {', '.join(homes)}" if homes else " (no folder of sys.path has a .patchkit/ledger.json)"
    lines = [f"{item['name']}: {item['state']}: {item['reason']}" for item in missing]
    states = {item["state"] for item in missing}
    names = " ".join(item["name"] for item in missing)
    option = f"--site {homes[0]} " if homes else ""
    if overlay is not None and states == {"shadowed"}:
        hint = "leave that import hook out; or have the patches on disk: patchkit apply"
    elif overlay is not None:
        hint = f"patchkit run {' '.join(f'--with {name}' for name in [*overlay.live, *names.split()])} -- CMD"
    elif states == {"outdated"}:
        hint = "restart the process; in a notebook: the kernel"
    elif states == {"inert"}:
        hint = "take away what is imported instead, or name its site with --site or --python, and apply there"
    elif states == {"shadowed"}:
        hint = f"where imports take it from: patchkit --site {next(iter(installs.imported_from))} apply {names}"
    elif states <= {"absent", "lost", "partial"}:
        hint = f"patchkit {option}apply {names}"
        if any("`patchkit run`" in item["reason"] for item in missing):
            hint = f"patchkit run {' '.join(f'--with {name}' for name in names.split())} -- CMD; or on disk: {hint}"
    else:
        hint = f"patchkit {option}check {names}, then what it says; most often: patchkit {option}apply {names}"
    return SiteError(
        f"not every required patch is applied{where}:\n  " + "\n  ".join(lines),
        code="not-applied",
        hint=hint,
        details={"patches": missing, "site": homes[0] if homes else None},
    )
