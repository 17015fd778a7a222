"""The distributions of a site, found by the names of their metadata directories."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Literal

from patchkit.errors import SiteError
from patchkit.runtime.ledger import open_regular, open_text
from patchkit.site.record import Record, read_record
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.environment import Site

Kind = Literal["wheel", "egg-info", "egg", "no-record"]

_RUN = re.compile(r"[-_.]+")
_NAME = re.compile(rb"^name:[ \t]*(.+?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_VERSION = re.compile(rb"^version:[ \t]*(.+?)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_BLANK = re.compile(rb"\r?\n\r?\n")
_TICK_NS = 100_000_000
_SUFFIXES = (".dist-info", ".egg-info", ".egg", ".egg-link")


def normalize(name: str) -> str:
    """The PEP 503 form of a distribution's name: ``ruamel.yaml`` and ``Ruamel_YAML`` are one."""
    return _RUN.sub("-", name).lower()


class Index(NamedTuple):
    """The metadata names in one directory: ``entries`` pairs each stem, normalised, with its file name.

    ``redirects`` are setuptools' ``__editable__`` files, ``path_files`` all ``.pth`` files.
    """

    mtime_ns: int
    entries: list[tuple[str, str]]
    redirects: list[str]
    path_files: list[str]


class Distribution:
    """One installed distribution.

    Attributes:
        name: As its metadata spell it.
        normalized: Its PEP 503 form.
        version: As its metadata spell it.
        info: The ``.dist-info`` or ``.egg-info`` directory (or file), or the zipped egg.
        base: The directory that the rows of RECORD are relative to.
        kind: ``wheel`` (has a RECORD), ``no-record`` (a ``.dist-info`` without), ``egg-info`` or ``egg``.
        site: The site that it was found in.
    """

    __slots__ = (
        "_editable",
        "_record",
        "base",
        "info",
        "kind",
        "name",
        "normalized",
        "site",
        "version",
    )

    def __init__(
        self, *, name: str, version: str, info: str, base: str, kind: Kind, site: Site, source: str | None = None
    ) -> None:
        """Hold the parts; ``source`` is the source tree where it is already known that it is editable."""
        self.name = name
        self.normalized = normalize(name)
        self.version = version
        self.info = info
        self.base = base
        self.kind = kind
        self.site = site
        self._record: Record | None = None
        self._editable: tuple[str | None, str | None] | None = None
        if source is not None:
            self.mark_editable(f"an .egg-link leads to its source in {source}", source)

    @property
    def record(self) -> Record:
        """Its files and their hashes; read at the first use."""
        if self._record is None:
            if self.zipped:
                self._record = Record(self.base, None, paths=[])
            else:
                self._record = read_record(self.base, self.info, self.name)
        return self._record

    @property
    def editable(self) -> bool:
        """Whether it is installed in editable (development) mode: its source is edited where it lies."""
        return self.editable_reason is not None

    @property
    def editable_reason(self) -> str | None:
        """How it is known to be editable and where its source lies, or None."""
        return self._editability()[0]

    @property
    def editable_source(self) -> str | None:
        """The source tree of an editable distribution, where it is known."""
        return self._editability()[1]

    def mark_editable(self, reason: str, source: str | None) -> None:
        """Record what the search for it has shown already."""
        self._editable = (reason, source)

    @property
    def zipped(self) -> bool:
        """Whether it is an egg that is one file: Python imports from it, and there is nothing in it to patch."""
        return self.kind == "egg" and self.info == self.base

    @property
    def home(self) -> str:
        """The directory that holds its metadata, or the egg that does."""
        holder = os.path.dirname(self.info)
        return os.path.dirname(holder) if os.path.basename(self.info) == "EGG-INFO" else holder

    @property
    def reinstall(self) -> str:
        """The command that brings its released files back, by who installed it and where."""
        return reinstalling(self.site, self.home, self.name, self.version)

    def _editability(self) -> tuple[str | None, str | None]:
        if self._editable is None:
            from patchkit.site.editable import editability

            self._editable = editability(self)
        return self._editable

    def __repr__(self) -> str:
        return f"Distribution({self.name!r}, {self.version!r}, {self.info!r})"


def reinstalling(site: Site, home: str, name: str, version: str, *, cached: bool = False) -> str:
    """:func:`patchkit.runtime.reinstall.command` for a directory of a site, whose interpreter is known."""
    from patchkit.runtime.reinstall import command

    executable = None if site.interpreter is None else site.interpreter.executable
    return command(home, name, version, executable=executable, cached=cached)


def find_distribution(site: Site, name: str) -> Distribution | None:
    """The distribution of that name that the site's Python would import: the first on its path.

    Raises:
        SiteError: ``duplicate``: one directory holds two of that name, as a broken upgrade leaves them.
    """
    wanted = normalize(name)
    for directory in site.paths:
        found = in_directory(site, directory, wanted)
        if found:
            return _only(site, found, directory)
    from patchkit.site.editable import find_in_path_files

    return find_in_path_files(site, wanted)


def distributions(site: Site) -> list[Distribution]:
    """The first distribution of each name on the path; two of one name in one directory are both given."""
    seen: set[str] = set()
    found: list[Distribution] = []
    for directory in site.paths:
        here: list[Distribution] = []
        for _, entry in index(site, directory).entries:
            one = read_distribution(site, directory, entry)
            if one is not None and one.normalized not in seen:
                here.append(one)
        seen.update(one.normalized for one in here)
        found += here
    return found


def index(site: Site, directory: str) -> Index:
    """What the names in a directory tell; read again when the directory has changed."""
    try:
        mtime = os.stat(directory).st_mtime_ns
        known = site._indexes.get(directory)
        if known is not None and known.mtime_ns == mtime:
            return known
        names = sorted(os.listdir(directory))
    except OSError:
        return Index(0, [], [], [])
    fresh = Index(
        mtime,
        # "~" begins what pip left of an interrupted removal.
        [(normalize(os.path.splitext(n)[0]), n) for n in names if n.endswith(_SUFFIXES) and not n.startswith("~")],
        [n for n in names if n.startswith("__editable__")],
        [n for n in names if n.endswith(".pth")],
    )
    # A directory changed this very moment may change again within the clock's tick, and keep its time.
    if time.time_ns() - mtime > _TICK_NS:
        site._indexes[directory] = fresh
    return fresh


def in_directory(site: Site, directory: str, wanted: str) -> list[Distribution]:
    """Those of a normalised name in one directory, which need not be one of the site's.

    The file name only selects candidates: METADATA has the last word.
    """
    found = []
    for stem, entry in index(site, directory).entries:
        if stem == wanted or stem.startswith(wanted + "-"):
            one = read_distribution(site, directory, entry)
            if one is not None and one.normalized == wanted:
                found.append(one)
    return found


class Misnamed(NamedTuple):
    """Metadata that keep a distribution from being found by its name: ``what`` is wrong, and its ``cure``."""

    what: str
    cure: str


def misnamed(site: Site, name: str) -> Misnamed | None:
    """What there is of a distribution that :func:`find_distribution` does not find; reads all the others' metadata.

    That is a folder without METADATA, as an interrupted install or removal leaves it, or one whose file name and
    METADATA do not agree: ``importlib.metadata`` goes by the first, pip by the second.
    """
    from shlex import join

    wanted = normalize(name)
    for directory in site.paths:
        for stem, entry in index(site, directory).entries:
            path = os.path.join(directory, entry)
            one = read_distribution(site, directory, entry)
            project, _, version = os.path.splitext(entry)[0].rpartition("-")
            if one is None and stem.startswith(wanted + "-") and normalize(project) == wanted:
                return Misnamed(
                    f"{path} has no {'METADATA' if entry.endswith('.dist-info') else 'PKG-INFO'}, as an interrupted "
                    "install or removal leaves it",
                    f"install it again: `{reinstalling(site, directory, name, version)}`",
                )
            if one is None or stem == one.normalized or stem.startswith(one.normalized + "-"):
                continue
            if one.normalized == wanted or stem == wanted or stem.startswith(wanted + "-"):
                return Misnamed(
                    f"{path} says that it is {one.name}, and its own name says otherwise",
                    f"remove it, and install what it was meant to be: `{join(['rm', '-r', path])}`",
                )
    return None


def _only(site: Site, found: list[Distribution], directory: str) -> Distribution:
    if len(found) > 1:
        # A link to a source tree yields to what is really installed beside it: that comes first on sys.path.
        installed = [one for one in found if one.base == directory or os.path.dirname(one.base) == directory]
        found = installed or found
    if len(found) > 1 and all(one.kind == "egg" for one in found):
        found = _active_eggs(site, directory, found) or found
    if len(found) > 1 and len({one.version for one in found}) == 1:
        # conda and Debian leave an egg-info beside the dist-info of the same release.
        found = [one for one in found if one.info.endswith(".dist-info")] or found[:1]
    if len(found) > 1:
        raise _doubled(found, directory)
    return found[0]


def _active_eggs(site: Site, directory: str, eggs: list[Distribution]) -> list[Distribution]:
    """Those that ``easy-install.pth``, or another path file, puts on the path; the others are kept for later."""
    lines: set[str] = set()
    for name in index(site, directory).path_files:
        try:
            with open_text(os.path.join(directory, name), errors="surrogateescape") as file:
                lines.update(os.path.normpath(os.path.join(directory, line.strip())) for line in file)
        except OSError:
            continue
    return [egg for egg in eggs if os.path.normpath(egg.base) in lines]


def _doubled(found: list[Distribution], directory: str) -> SiteError:
    """The refusal of a folder with several installs of one name; the one whose files are there is told where it is."""
    from shlex import join

    names = [os.path.basename(one.info if one.kind != "egg" else one.base) for one in found]
    right = [one for one in found if _files_are_its_own(one)]
    others = [one for one in found if one not in right]
    message = f"{directory} holds {len(found)} installations of {found[0].normalized}: {' and '.join(names)}"
    hint = "a broken upgrade leaves this: "
    if len(right) == 1 and all(one.info.endswith(".dist-info") for one in others):
        message += f"; the files are those of {right[0].version}, by the hashes of its RECORD"
        hint += f"remove what is left over: `{join(['rm', '-r', *(one.info for one in others)])}`"
    else:
        hint += "remove the metadata of all but the one whose version is wanted, and install that again, as in: "
        hint += f"`{found[-1].reinstall}`"
    return SiteError(
        message,
        code="duplicate",
        hint=hint,
        details={"distribution": found[0].normalized, "found": [one.info for one in found]},
    )


def _files_are_its_own(distribution: Distribution) -> bool:
    """Whether every Python file that RECORD has a hash for is there, with that hash."""
    try:
        rows = [row for path, row in distribution.record.entries().items() if path.endswith(".py") and row.digest]
        if distribution.kind != "wheel" or not rows:
            return False
        for row in rows:
            with open_regular(os.path.join(distribution.base, *row.path.split("/"))) as file:
                if not row.matches(file.read()):
                    return False
    except (OSError, SiteError):
        return False
    return True


def read_distribution(site: Site, directory: str, entry: str) -> Distribution | None:
    """The distribution that a ``.dist-info``, ``.egg-info``, ``.egg`` or ``.egg-link`` stands for.

    None where it holds no metadata: the rest of a removal, say.
    """
    path = os.path.join(directory, entry)
    if entry.endswith(".egg-link"):
        from patchkit.site.editable import read_egg_link

        return read_egg_link(site, path)
    stem, suffix = os.path.splitext(entry)
    kind: Kind = "egg-info"
    base, info = directory, path
    if suffix == ".dist-info":
        header = read_header(os.path.join(path, "METADATA"))
        kind = "wheel" if os.path.lexists(os.path.join(path, "RECORD")) else "no-record"
    elif suffix == ".egg-info":
        header = read_header(os.path.join(path, "PKG-INFO") if os.path.isdir(path) else path)
    elif os.path.isdir(path):
        kind, base, info = "egg", path, os.path.join(path, "EGG-INFO")
        header = read_header(os.path.join(info, "PKG-INFO"))
    else:
        kind, base = "egg", path
        header = _zipped_header(path)
    if header is None:
        return None
    name, version = header
    guessed = stem.partition("-")
    return Distribution(
        name=name or guessed[0],
        version=version or guessed[2].partition("-")[0],
        info=info,
        base=base,
        kind=kind,
        site=site,
    )


def read_header(path: str) -> tuple[str, str] | None:
    """Name and version of a METADATA or PKG-INFO ("" where it lacks one), or None where it cannot be read.

    Only as much of the file is read as it takes: some hold a hundred kilobytes of description.
    """
    try:
        with open_regular(path) as file:
            head = file.read(1024)
            name, version = _header(head)
            while not (name and version) and not _BLANK.search(head):
                more = file.read(16384)
                if not more:
                    break
                head += more
                name, version = _header(head)
            return name, version
    except OSError:
        return None


def _header(head: bytes) -> tuple[str, str]:
    blank = _BLANK.search(head)
    if blank is not None:
        head = head[: blank.start() + 1]
    elif not head.endswith(b"\n"):
        head = head[: head.rfind(b"\n") + 1]  # the last line may have been cut
    texts = []
    for pattern in (_NAME, _VERSION):
        found = pattern.search(head)
        texts.append(found.group(1).decode("utf-8", "replace") if found else "")
    return texts[0], texts[1]


def _zipped_header(path: str) -> tuple[str, str] | None:
    import zipfile

    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return _header(archive.read("EGG-INFO/PKG-INFO") + b"\n")
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
