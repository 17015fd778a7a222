"""From a path in a patch to a file of the distribution, or a refusal before anything is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING

from patchkit.errors import PatchFileError, PlanError, SiteError
from patchkit.runtime import ledger
from patchkit.site.record import Entry, leads_out
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

#: A file that is larger than this is refused: nobody's source, and the ledger would hold it twice.
LARGEST_FILE = 64 << 20

_DEVICES = ("con", "prn", "aux", "nul", "conin$", "conout$")


class ResolvedFile(NamedTuple):
    """A file of a distribution.

    Attributes:
        path: As the patch and RECORD spell it.
        absolute: Where it is (or, for an added file, will be).
        key: Its name in the ledger: relative to the site's home with "/", or the absolute POSIX path outside it.
        entry: Its row of RECORD; None for an added file that has none.
    """

    path: str
    absolute: str
    key: str
    entry: Entry | None


def resolve_file(distribution: Distribution, path: str) -> ResolvedFile:
    """The distribution's own file of that path, which exists and can be read.

    A file that is itself a link (``uv --link-mode symlink``) is allowed, since it is replaced and never written
    through; a directory that is a link must stay within the site.

    Raises:
        PatchFileError: ``leads-out``: the path is absolute or climbs; ``path``: it is not in POSIX form.
        PlanError: ``not-in-distribution``; ``bytecode``: there is nothing but bytecode of it.
        SiteError: ``leads-out`` (through a link), ``missing``, ``not-a-file``, ``unreadable``.
    """
    check_spelling(path)
    entry = distribution.record.entry(path)
    if entry is None and _bytecode_alone(distribution, path) is not None:
        raise _no_source(distribution, path)
    if entry is None:
        raise _not_in(distribution, path)
    if not distribution.record.has_hashes:
        _check_sole_owner(distribution, path)
    absolute = _locate(distribution, path)
    try:
        status = os.stat(absolute)
    except OSError as error:
        if os.path.islink(absolute):
            found = f"is a link to {os.readlink(absolute)}, which cannot be followed ({error.strerror})"
        elif isinstance(error, (FileNotFoundError, NotADirectoryError)):
            alone = _bytecode_alone(distribution, path)
            found = "is not there" + (
                "" if alone is None else f": imports take {alone}, and there is no source to patch"
            )
        else:
            found = f"cannot be looked at ({error.strerror})"
        raise _refused(
            distribution,
            path,
            "missing",
            f"is listed by {_list_name(distribution)} but {found}",
            hint=f"install it again: `{distribution.reinstall}`; where it is not there then, the release itself "
            "lists a file that it lacks: patch another one",
        ) from None
    if not stat.S_ISREG(status.st_mode):
        what = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise _refused(distribution, path, "not-a-file", f"is {what}", hint="name one of its files")
    if not os.access(absolute, os.R_OK):
        raise _refused(distribution, path, "unreadable", "cannot be read", hint="check the file's permissions")
    return ResolvedFile(path, absolute, key_of(distribution.site, absolute), entry)


def resolve_gone(distribution: Distribution, path: str) -> ResolvedFile | None:
    """The place of a file that the distribution lists and that is not there; None where something is.

    Raises:
        As :func:`resolve_file`, but for what is about the file itself.
    """
    check_spelling(path)
    entry = distribution.record.entry(path)
    absolute = _locate(distribution, path)
    if entry is None or os.path.lexists(absolute):
        return None
    return ResolvedFile(path, absolute, key_of(distribution.site, absolute), entry)


def resolve_added(distribution: Distribution, path: str) -> ResolvedFile:
    """The place of a file that a patch adds: in one of the distribution's own package directories, and free.

    Raises:
        PatchFileError: ``leads-out`` or ``path``, as for :func:`resolve_file`.
        PlanError: ``not-in-distribution``: the distribution owns no files in that top-level directory.
        SiteError: ``exists``; ``leads-out`` (through a link); ``not-a-directory``; ``bytecode``: the module exists
            without a source.
    """
    check_spelling(path)
    top, slash, _ = path.partition("/")
    if not slash or top not in package_directories(distribution):
        owned = package_directories(distribution)
        raise PlanError(
            f"{path}: {distribution.name} {distribution.version} has no package {top if slash else '(top level)'} "
            f"to add it to; its packages: {', '.join(owned) or 'none'}",
            code="not-in-distribution",
            hint=f"add the file below {owned[0]}/" if owned else None,
            details={"path": path, "distribution": distribution.name, "packages": owned},
        )
    absolute = _locate(distribution, path)
    if os.path.lexists(absolute):
        raise _refused(
            distribution, path, "exists", "exists already", hint="choose another name, or change the file with an edit"
        )
    alone = _bytecode_alone(distribution, path)
    if alone is not None:
        raise _refused(
            distribution,
            path,
            "bytecode",
            f"exists already as bytecode: {alone}, which the new file would hide",
            hint="choose another name",
        )
    folder = os.path.dirname(absolute)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise _refused(distribution, path, "not-a-directory", f"cannot be added: {folder} is not a directory")
    return ResolvedFile(path, absolute, key_of(distribution.site, absolute), distribution.record.entry(path))


def check_spelling(path: str) -> None:
    """Refuse a path that is absolute, climbs, or is not in plain POSIX form.

    Raises:
        PatchFileError: ``leads-out`` or ``path``.
    """
    parts = path.split("/")
    drive = len(path) > 1 and path[1] == ":" and path[0].isalpha()
    if path.startswith(("/", "\\", "~")) or drive or ".." in parts or ".." in path.split("\\"):
        raise PatchFileError(
            f"{path!r} leads out of the distribution",
            code="leads-out",
            hint="name the file relative to site-packages, as RECORD spells it",
            details={"path": path},
        )
    if not path or "\0" in path or "" in parts or "." in parts or (os.sep == "\\" and "\\" in path):
        raise PatchFileError(
            f"{path!r} is not the plain path of a file",
            code="path",
            hint='write it as RECORD does, with "/" between the names and without "." or doubled "/"',
            details={"path": path},
        )
    if os.sep == "\\":
        for part in parts:
            problem = _not_on_windows(part)
            if problem is not None:
                raise PatchFileError(
                    f"{path!r} is no path on Windows: {problem}",
                    code="path",
                    hint="choose another name; Windows would open something else under this one",
                    details={"path": path},
                )


def _not_on_windows(name: str) -> str | None:
    """Why Windows would not take ``name`` for a file of just that name.

    https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
    """
    if ":" in name:
        return f"{name!r} names a drive or an alternate data stream"
    if name[-1] in ". ":
        return f"{name!r} ends in a dot or a blank, which are dropped"
    if any(char in '<>"|?*' or char < " " for char in name):
        return f"{name!r} holds a character that no name may have"
    stem = name.partition(".")[0].rstrip(" ").lower()
    if stem in _DEVICES or (stem[:-1] in ("com", "lpt") and stem[-1] in "0123456789\xb9\xb2\xb3"):
        return f"{name!r} is a device"
    return None


def key_of(site: Site, absolute: str) -> str:
    """The ledger's name for a file of the site, by :func:`patchkit.runtime.ledger.key_of`."""
    return ledger.key_of(site.home, absolute)


def package_directories(distribution: Distribution) -> list[str]:
    """The top-level directories that the distribution owns files in, without its metadata."""
    tops: dict[str, None] = {}
    for path in distribution.record.paths():
        top, slash, _ = path.partition("/")
        if (
            slash
            and top not in ("", ".", "..", "__pycache__")
            and not top.endswith((".dist-info", ".egg-info", ".data"))
        ):
            tops[top] = None
    return [top for top in tops if not top.endswith(":")]


def owners(site: Site, path: str, base: str | None = None) -> list[Distribution]:
    """Every distribution that lists ``path``; with ``base``, only those installed in that directory.

    It reads the RECORD of each distribution of the site.
    """
    found = []
    for one in site.distributions():
        if base is None or one.base == base:
            try:
                listed = one.record.entry(path) is not None
            except SiteError:
                continue  # its RECORD is damaged, and nobody asked for it: `doctor` tells
            if listed:
                found.append(one)
    return found


def _bytecode_alone(distribution: Distribution, path: str) -> str | None:
    """The module's file beside a source that is not there, where Python imports it without one (``compileall -b``)."""
    stem, suffix = os.path.splitext(path)
    absolute = os.path.join(distribution.base, *stem.split("/"))
    if suffix != ".py" or os.path.lexists(absolute + suffix) or not os.path.isfile(absolute + ".pyc"):
        return None
    return f"{stem}.pyc"


def _no_source(distribution: Distribution, path: str) -> PlanError:
    name = distribution.name
    return PlanError(
        f"{path}: {path}c is all that {name} {distribution.version} has of it: there is no source to patch",
        code="bytecode",
        hint=f"install a build of {name} that holds its sources",
        details={"path": path, "distribution": name},
    )


def shared_with(distribution: Distribution, paths: Iterable[str]) -> dict[str, list[Distribution]]:
    """Which other distributions of the same folder list some of ``paths`` in their RECORD as well.

    Every RECORD there is searched as bytes, once for all the paths of a top-level folder: by what these begin with,
    which the others' hardly ever hold. That costs a tenth of reading it as a list, however many files are asked for.
    """
    from patchkit.site.distribution import index, read_distribution

    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(path.partition("/")[0], []).append(path)
    needles = [(_beginning(group).encode("utf-8", "surrogateescape"), group) for group in groups.values()]
    found: dict[str, list[Distribution]] = {}
    head = os.path.join(distribution.base, "")
    for _, entry in index(distribution.site, distribution.base).entries if needles else ():
        info = head + entry
        if info == distribution.info or not entry.endswith(".dist-info"):
            continue
        try:
            data = _bytes_of(os.path.join(info, "RECORD"))
            near = [path for needle, group in needles if needle in data for path in group]
            other = read_distribution(distribution.site, distribution.base, entry) if near else None
            if other is None or other.normalized == distribution.normalized:
                continue
            if len(near) > 1:
                other.record.entries()  # one by one, each would be searched for in all of it
            for path in near:
                if other.record.entry(path) is not None:
                    found.setdefault(path, []).append(other)
        except (OSError, SiteError):
            continue
    return found


def _beginning(texts: list[str]) -> str:
    """What all of them begin with, letter by letter: the longer it is, the faster it is searched for."""
    first, last = min(texts), max(texts)
    for at, letter in enumerate(first):
        if letter != last[at] or letter == '"':  # which RECORD doubles
            return first[:at]
    return first


def _bytes_of(path: str) -> bytes:
    """The bytes of a RECORD: of hundreds one after the other, which a file object each would make twice as slow."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(descriptor)
        return os.read(descriptor, status.st_size) if stat.S_ISREG(status.st_mode) else b""
    finally:
        os.close(descriptor)


def _locate(distribution: Distribution, path: str) -> str:
    """The absolute path, with linked directories resolved so that a file has one name only."""
    absolute = distribution.base
    roots: list[str] | None = None
    *folders, name = path.split("/")
    for folder in folders:
        absolute = os.path.join(absolute, folder)
        if os.path.islink(absolute):
            target = os.path.realpath(absolute)
            if roots is None:
                roots = [os.path.realpath(root) for root in (distribution.base, *distribution.site.paths)]
            if not any(target.startswith(root.rstrip(os.sep) + os.sep) for root in roots):
                raise _refused(
                    distribution,
                    path,
                    "leads-out",
                    f"leads out of the site: {absolute} is a link to {target}",
                    hint="patch the environment that the files belong to",
                )
            absolute = target
    return os.path.join(absolute, name)


def _check_sole_owner(distribution: Distribution, path: str) -> None:
    """A list without hashes may be a guess at a shared package directory: another's RECORD overrules it."""
    for other in owners(distribution.site, path, distribution.base):
        if other.record.has_hashes and other.normalized != distribution.normalized:
            raise PlanError(
                f"{path} belongs to {other.name} {other.version}, whose RECORD lists it; "
                f"{distribution.name} has no RECORD",
                code="not-in-distribution",
                hint=f"make {other.name} the target of the patch",
                details={"path": path, "distribution": distribution.name, "owners": [other.name]},
            )


def _not_in(distribution: Distribution, path: str) -> PlanError:
    """The refusal of a path that is not listed, with the nearest names and whose file it is."""
    near = _nearest(distribution, path)
    who = f"{distribution.name} {distribution.version}"
    lines = [f"{path} is not a file of {who}"]
    belongs = [one.name for one in owners(distribution.site, path) if one.normalized != distribution.normalized]
    if belongs:
        lines.append(f"it belongs to {', '.join(belongs)}")
    elif os.path.lexists(os.path.join(distribution.base, *path.split("/"))):
        lines.append(f"it exists, but {_list_name(distribution)} does not list it")
    if near:
        lines.append("nearest: " + ", ".join(near))
    if belongs:
        hint = f"make {belongs[0]} the target of the patch"
    elif any("\udc80" <= character <= "\udcff" for one in distribution.record.paths() for character in one):
        lines.append(f"{_list_name(distribution)} is not UTF-8, so that not every name in it can be told")
        hint = f"install it again: `{distribution.reinstall}`"
    elif near:
        hint = f"write {near[0]!r}, if that is the file meant"
    else:
        hint = "name the file relative to site-packages, as RECORD spells it"
    return PlanError(
        "\n".join(lines),
        code="not-in-distribution",
        hint=hint,
        details={"path": path, "distribution": distribution.name, "nearest": near, "owners": belongs},
    )


def _nearest(distribution: Distribution, path: str) -> list[str]:
    """Up to three listed files that resemble ``path``: those of the same name first."""
    import difflib

    listed = [p for p in distribution.record.paths() if not leads_out(p) and p.isprintable() and ".dist-info/" not in p]
    name = path.rpartition("/")[2]
    same = [p for p in listed if p.rpartition("/")[2].lower() == name.lower()]
    if len(same) > 1:
        same = difflib.get_close_matches(path, same, 3, 0.0)
    if len(same) < 3:
        suffix = os.path.splitext(name)[1]
        # Comparing with all the files of a large distribution takes seconds; the same kind of file will do.
        others = [p for p in listed if p.endswith(suffix) and p not in same and not p.endswith(".pyc")]
        folder = path.rpartition("/")[0]
        close = [p for p in others if p.rpartition("/")[0] == folder] if len(others) > 2000 else others
        same += difflib.get_close_matches(path, close, 3 - len(same), 0.7)
    return same


def _list_name(distribution: Distribution) -> str:
    source = distribution.record.source
    return os.path.basename(source) if source else "its package directory"


def _refused(distribution: Distribution, path: str, code: str, what: str, *, hint: str | None = None) -> SiteError:
    return SiteError(
        f"{path} of {distribution.name} {distribution.version} {what}",
        code=code,
        hint=hint or f"install it again: `{distribution.reinstall}`",
        details={"path": path, "distribution": distribution.name},
    )
