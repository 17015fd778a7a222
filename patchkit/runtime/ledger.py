"""Reading the ledger and comparing it with the files: the part that every process start can afford.

Standard library only, and of that only what a bare interpreter has loaded already: ``json``, ``re``, ``typing`` and
``hashlib`` cost 5 to 12 ms each, a whole ``require`` may cost 5 ms. So the ledger is read by the C scanner under
``json``, and a hash is computed only for a file whose stat differs. Runs on Python 3.8 and later, as it is what is
imported *inside* the target process. :mod:`patchkit.state.ledger` builds on it.
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import BufferedReader
    from typing import Any, TextIO

    from patchkit.errors import SiteError

DIRECTORY = ".patchkit"
"""Name of patchkit's own directory in the site-packages directory (the "home")."""
SCHEMA = 1
"""The ledger schema this version writes and the newest that it reads."""
MAX_BYTES = 1 << 28
"""The largest ledger that is read; one of 100,000 files has 30 MB."""
HASH_BUILTIN_MAX = 1 << 20
"""Bytes up to which CPython's own SHA-256 beats the cost of importing OpenSSL's (4 ms)."""


_EINVAL = 22  # on every system; ``errno`` is one more import
# What is read here of an entry of the ledger, of a content and of a stat.
TEXTS = ("name", "distribution", "version")
_CONTENT: dict[str, type] = {"sha256": str, "size": int}
_STAT: dict[str, type] = {"size": int, "mtime_ns": int, "ino": int, "ctime_ns": int}


def state_path(home: str, *names: str) -> str:
    """The path of something in the ``.patchkit`` directory of ``home``."""
    return os.path.join(home, DIRECTORY, *names)


def file_path(home: str, key: str) -> str:
    """The absolute path of a ledger key: relative to ``home`` with ``/``, or absolute already."""
    return os.path.join(home, *key.split("/")) if not os.path.isabs(key) else key


def key_of(home: str, path: str) -> str:
    """The ledger key of a file or directory: relative to ``home`` with ``/``, or absolute where it lies outside.

    It goes by the directory that the file really lies in, so that whatever name it is reached by (a linked ``lib64``, a
    linked package directory, ``/tmp`` on macOS) has one key. A file that is itself a link keeps its name.
    """
    path = os.path.abspath(path)
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    prefix = os.path.join(os.path.realpath(home), "")
    return (real[len(prefix) :] if real.startswith(prefix) else real).replace(os.sep, "/")


def read_regular(path: str, most: int | None = None) -> bytes:
    """The bytes of a regular file, of a longer one than ``most`` the first ``most + 1``.

    A pipe, a device or a socket of that name would keep a reader waiting, or never end.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    with open_regular(path) as file:
        data: bytes | None = file.read() if most is None else file.read(most + 1)
    if data is None:  # a file of /proc that has nothing to say yet
        raise OSError(_EINVAL, "it has nothing to read", path)
    return data


def open_regular(path: str) -> BufferedReader:
    """A regular file, to be read in pieces.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115  # it is the caller's to close
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(_EINVAL, "not a regular file", path)
    except BaseException:
        file.close()
        raise
    return file


def open_text(path: str, *, encoding: str = "utf-8", errors: str = "replace") -> TextIO:
    """A regular file of text, to be read line by line.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    import io

    return io.TextIOWrapper(open_regular(path), encoding=encoding, errors=errors)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def climbs(key: str) -> bool:
    """Whether a ledger key leads out of the home by its spelling: relative, with a part that is ``..`` or empty."""
    parts = key.split("/")
    if os.path.isabs(key):
        parts = parts[1:]
    # On Windows "C:name" is relative, to wherever that drive is; and a drive within a path leaves what stood before it.
    drive = os.sep != "/" and any(":" in part or os.sep in part for part in parts)
    return not key or "\0" in key or ".." in parts or "" in parts or drive


def plain(word: object) -> bool:
    """Whether a recorded name or version is one: such words are printed, and stand in the commands of hints."""
    if type(word) is not str or not word or word[0] == "-" or not word.isascii():
        return False
    return word.isalnum() or all(char.isalnum() or char in "._+-!" for char in word)


def sha256_hex(data: bytes) -> str:
    """SHA-256 of ``data`` in hex, by the cheapest implementation at hand."""
    if "hashlib" not in sys.modules and len(data) <= HASH_BUILTIN_MAX:
        name = "_sha2" if sys.version_info >= (3, 12) else "_sha256"
        try:
            return str(__import__(name).sha256(data).hexdigest())
        except (ImportError, AttributeError):
            pass  # a build without CPython's own hashes
    import hashlib

    return hashlib.sha256(data).hexdigest()


def checksum(body: bytes) -> str:
    """The checksum of ledger bytes: CRC-32, which catches damage; it is no protection against intent."""
    from zlib import crc32

    return f"crc32:{crc32(body):08x}"


def loads(text: str) -> Any:
    """As ``json.loads``, without its import: ``json`` loads ``re`` and ``enum``, which takes 10 ms.

    Raises:
        ValueError: ``text`` is no JSON.
    """
    if text[:1] == "{":
        try:
            from _json import make_scanner  # what json.decoder itself uses; private, hence the way back
        except ImportError:
            pass
        else:
            try:
                value, end = make_scanner(_Decoding)(text, 0)  # type: ignore[arg-type]  # it reads attributes only
                if not text[end:].strip():
                    return value
            except (StopIteration, SystemError, AttributeError, TypeError):
                # Not JSON: the scanner needs json.decoder to say where (SystemError without it). Or another Python's
                # scanner, which wants more than _Decoding has.
                pass
    import json

    return json.loads(text)


class _Decoding:
    """The attributes that the C scanner reads from a ``json.JSONDecoder``."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def read(home: str) -> dict[str, Any] | None:
    """The ledger of ``home`` as JSON values, checked against its checksum; None where there is none.

    Raises:
        SiteError: ``ledger-version`` (a newer patchkit wrote it), ``corrupt``, or ``unreadable``.
    """
    path = state_path(home, "ledger.json")
    try:
        data = read_regular(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise error_of(
            "unreadable",
            f"{path}: cannot be read: {error.strerror}",
            "run as a user who may read it",
            path=path,
        ) from None
    if len(data) > MAX_BYTES:
        raise error_of("unreadable", f"{path}: is larger than {MAX_BYTES >> 20} MB", "move it away", path=path)
    return parse(data, path)


def parse(data: bytes, path: str) -> dict[str, Any]:
    """Ledger bytes as JSON values; ``path`` is for messages.

    Raises:
        SiteError: ``ledger-version`` or ``corrupt``.
    """

    def damaged(reason: str) -> SiteError:
        from patchkit.runtime.damage import corrupt

        return corrupt(path, reason, data)

    try:
        ledger = loads(data.decode("utf-8"))
        if type(ledger) is not dict:
            raise ValueError("not a JSON object")
        schema = ledger["schema"]
        if type(schema) is not int or schema < 1:
            raise ValueError(f"schema is {schema!r}")
    except (ValueError, KeyError, RecursionError) as error:
        reason = f"no {error} in it" if isinstance(error, KeyError) else str(error)
        raise damaged(reason) from None
    if schema > SCHEMA:
        from patchkit.runtime.damage import newer

        raise newer(path, schema)
    stated, found = ledger.get("checksum"), checksum(covered(data))
    if stated != found:
        raise damaged(f"its checksum is {stated}, that of its content {found}")
    problem = _misshapen(ledger)
    if problem is not None:
        raise damaged(problem)
    return ledger


def _misshapen(ledger: dict[str, Any]) -> str | None:
    """What a reader of this module would stumble over, in words; its checksum may fit all the same."""
    for member, kind in (("patches", list), ("files", dict), ("upstreamed", list)):
        if type(ledger.get(member)) is not kind:
            return f"no {'list' if kind is list else 'table'} {member!r} in it"
    files = ledger["files"]
    for member, texts in (("patches", (*TEXTS, "digest")), ("upstreamed", TEXTS)):
        for entry in ledger[member]:
            if type(entry) is not dict or any(type(entry.get(name)) is not str for name in texts):
                return f"an entry of {member!r} lacks one of {', '.join(texts)}"
            if not all(plain(entry[name]) for name in TEXTS):
                return f"an entry of {member!r} has a name or version that is none"
            if type(entry.get("info", 0)) not in (str, type(None)):
                return f"the entry of {entry['name']} lacks 'info'"
    for entry in ledger["patches"]:
        keys = entry.get("files")
        if type(keys) is not list or any(type(key) is not str or key not in files for key in keys):
            return f"the entry of {entry['name']} lacks 'files', or names one that is not recorded"
    for key, entry in files.items():
        if climbs(key):
            return f"it names {key!r}, which is no file of the site"
        if type(entry) is not dict or not (
            _has_or_null(entry, "after", _CONTENT)
            and _has_or_null(entry, "pristine", _CONTENT)
            and not entry["after"] is entry["pristine"] is None
            and _has_or_null(entry, "stat", _STAT)
        ):
            return f"the entry of {key!r} lacks 'pristine', 'after' or 'stat'"
    return None


def _has_or_null(entry: dict[str, Any], name: str, members: dict[str, type]) -> bool:
    value = entry.get(name, 0)
    return value is None or _has(value, members)


def _has(value: Any, members: dict[str, type]) -> bool:
    if type(value) is not dict:
        return False
    return all(type(value.get(name)) is kind for name, kind in members.items())


def covered(data: bytes) -> bytes:
    """The bytes that the checksum covers: all behind the line that holds it (the second)."""
    return data.split(b"\n", 2)[-1]


def error_of(code: str, message: str, hint: str, **details: Any) -> SiteError:
    """A :class:`SiteError`, whose module is imported only here."""
    from patchkit.errors import SiteError

    return SiteError(message, hint=hint, code=code, details=details)


def check_files(
    home: str, ledger: dict[str, Any], keys: Iterable[str] | None = None, *, linked: set[str] | None = None
) -> dict[str, str]:
    """The state of each file in the ledger (or of ``keys``), by stat where that is conclusive, else by hash.

    ``linked`` gets the keys of those that are links, or have further names: patchkit writes no such file.

    Returns:
        ``applied`` (our bytes; for a file that a patch took away: absent) | ``pristine`` (the installer's; for a file
        that a patch added: absent) | ``modified`` | ``missing`` | ``unreadable``, per key.
    """
    try:
        written = os.stat(state_path(home, "ledger.json")).st_mtime_ns
    except OSError:
        written = 0  # no time to judge by: hash everything
    files = ledger["files"]
    return {key: _file_state(home, key, files[key], written, linked) for key in (files if keys is None else keys)}


def has_links(own: os.stat_result) -> bool:
    """Whether the file of this ``lstat`` is a link, or has further names."""
    return own.st_nlink > 1 or not stat.S_ISREG(own.st_mode)


def _file_state(home: str, key: str, entry: dict[str, Any], written: int, linked: set[str] | None) -> str:
    path, pristine, after = file_path(home, key), entry["pristine"], entry["after"]
    try:
        now = os.lstat(path)
        if linked is not None and has_links(now):
            linked.add(key)
        if stat.S_ISLNK(now.st_mode):
            now = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.lexists(path):
            return "missing" if after is not None else "modified"  # a link to nothing
        return "applied" if after is None else "pristine" if pristine is None else "missing"
    except OSError:
        return "unreadable"
    if same_stat(entry["stat"], now, written):
        return "applied"
    if not stat.S_ISREG(now.st_mode) and not stat.S_ISDIR(now.st_mode):
        return "unreadable"  # a pipe, a device: it would keep a reader waiting
    size = now.st_size
    if (after is None or size != after["size"]) and (pristine is None or size != pristine["size"]):
        return "modified"
    try:
        digest = sha256_hex(read_regular(path))
    except FileNotFoundError:
        return "missing"
    except IsADirectoryError:
        return "modified"
    except OSError:
        return "unreadable"
    if after is not None and digest == after["sha256"]:
        return "applied"
    return "pristine" if pristine is not None and digest == pristine["sha256"] else "modified"


def missing_blobs(home: str, ledger: dict[str, Any]) -> list[str]:
    """The SHA-256 of every blob that ``ledger`` refers to and that is not there: one listing, nothing is read.

    Where the directory may not be listed, nothing is known to be missing.
    """
    wanted = {str(patch["digest"]) for patch in ledger["patches"]}
    for entry in ledger["files"].values():
        wanted.update(_contents(entry))
    if not wanted:
        return []
    try:
        there = os.listdir(state_path(home, "blobs"))
    except (FileNotFoundError, NotADirectoryError):
        there = []
    except OSError:
        return []
    return sorted(wanted.difference(there))


def lost(ledger: dict[str, Any], missing: Iterable[str]) -> dict[str, list[str]]:
    """What the ``missing`` blobs were, in words, for each patch that they concern."""
    gone = set(missing)
    found: dict[str, list[str]] = {}
    for patch in ledger["patches"] if gone else ():
        words = ["its patch file"] if patch["digest"] in gone else []
        for key in patch["files"]:
            entry = ledger["files"].get(key)
            pristine = entry and entry["pristine"]
            if pristine and pristine["sha256"] in gone:
                words.append(f"the original of {key}")
            after = entry and entry["after"]
            if after and after["sha256"] in gone:
                words.append(f"the patched copy of {key}")
        if words:
            found[str(patch["name"])] = words
    return found


def _contents(entry: dict[str, Any]) -> list[str]:
    return [content["sha256"] for content in (entry["after"], entry["pristine"]) if content is not None]


def same_stat(recorded: dict[str, int] | None, now: os.stat_result, written: int) -> bool:
    """Whether a file with stat ``now`` is surely the one recorded.

    A file changed in the same clock tick in which the ledger was written (``written``, ns) could carry the recorded
    times and yet other bytes, so its stat proves nothing: the rule of git's index ("racy git"). ``ctime_ns`` catches a
    tool that puts the modification time back.
    """
    return (
        recorded is not None
        and recorded["size"] == now.st_size
        and recorded["mtime_ns"] == now.st_mtime_ns
        and recorded["ino"] == now.st_ino
        and recorded["ctime_ns"] == now.st_ctime_ns
        and now.st_ctime_ns < written
    )


def installed(home: str, info: str | None) -> bool:
    """Whether the ``.dist-info`` (or egg-info) that a patch was applied to is still there; True if none is recorded.

    Where the system does not tell (no permission, a failing disk), it is: nothing is forgotten on a guess.
    """
    if info is None:
        return True
    try:
        os.lstat(file_path(home, info))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass
    return True


def installed_versions(home: str, distribution: str) -> list[str]:
    """The versions of ``distribution`` that ``home`` has by the names of its info directories; usually one or none."""
    wanted = normal(distribution)
    found = []
    try:
        names = os.listdir(home)
    except OSError:
        return []
    for name in names:
        stem, dot, kind = name.rpartition(".")
        if dot and kind in ("dist-info", "egg-info"):
            project, dash, version = stem.partition("-")
            if dash and normal(project) == wanted:
                found.append(version.partition("-py")[0] if kind == "egg-info" else version)
    return sorted(found)


def infos_of(directory: str, wanted: Iterable[str]) -> dict[str, list[str]]:
    """The metadata in ``directory`` that may be of each of the distributions ``wanted`` (normalised), by its name.

    Where the name has several dashes, only what is within tells: "a-2-1.0" is "a-2" of 1.0, or "a" of 2-1.0.
    """
    found: dict[str, list[str]] = {}
    names = set(wanted)
    heads = tuple({name.partition("-")[0] for name in names})  # no spelling changes more than the case
    try:
        entries = os.listdir(directory)
    except OSError:  # a zip file, or nothing at all
        return found
    for entry in entries:
        if entry.endswith((".dist-info", ".egg-info")) and entry.lower().startswith(heads):
            stem = entry.rpartition(".")[0]
            if stem.count("-") <= 1:
                project = normal(stem.partition("-")[0])
                likely = [project] if project in names else []
            else:  # a version begins with a digit; a dash alone does not end a name ("Flask-Login-0.6.3")
                stem = normal(stem)
                likely = [one for one in names if stem.startswith(one + "-") and stem[len(one) + 1 :][:1].isdigit()]
            for one in likely:
                found.setdefault(one, []).append(os.path.join(directory, entry))
    return found


def normal(name: str) -> str:
    """PEP 503 normalisation without ``re``."""
    return "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)


def find_homes(site: Any = None) -> list[str]:
    """The site-packages directories to look for a ledger in.

    Args:
        site: None: every directory of ``sys.path`` that has a ledger (the user's site directory is on it when it is
            enabled; only text counts, as for imports). A path: that directory, or where it is an environment's root,
            its site-packages. Else an object with a ``home``.
    """
    if site is None:
        seen: dict[str, None] = {}
        for entry in sys.path:
            if type(entry) is str and entry and os.path.isfile(state_path(entry, "ledger.json")):
                seen[os.path.abspath(entry)] = None
        return list(seen)
    if not isinstance(site, str) and not hasattr(site, "__fspath__"):  # pathlib's paths have a "home" of their own
        return [os.fspath(site.home)]
    path = os.path.abspath(os.fspath(site))
    if os.path.isdir(state_path(path)):
        return [path]
    lib = os.path.join(path, "lib")
    try:
        versions = [name for name in sorted(os.listdir(lib)) if name.startswith("python")]
    except OSError:
        versions = []
    inner = [os.path.join(lib, name, "site-packages") for name in versions]
    inner.append(os.path.join(path, "Lib", "site-packages"))
    return [home for home in inner if os.path.isdir(home)][:1] or [path]
