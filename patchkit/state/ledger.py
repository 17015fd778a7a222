"""patchkit's record in a site: which patches it applied, to which files, from which bytes to which.

The ledger is a value: ``with_...`` and ``without_...`` return new ones, only :func:`Ledger.load` and :func:`save` touch
the disk. Reading is :mod:`patchkit.runtime.ledger`'s; bytes lie beside it as blobs.

On disk it is JSON with sorted keys and one line per patch and per file, so that a diff of it can be read and a damaged
one still names the patches on its intact lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.errors import InternalError, SiteError
from patchkit.runtime.ledger import SCHEMA, checksum, file_path, key_of, parse, read, sha256_hex, state_path
from patchkit.state import fs
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.source import ByteSplice


#: Replaced runs of more bytes are not kept in the ledger, which every process start may read.
LONGEST_OLD = 16 << 10


class Pristine(NamedTuple):
    """What the installer put there: SHA-256 (hex), size in bytes, permission bits, modification time in ns."""

    sha256: str
    size: int
    mode: int
    mtime_ns: int


class Content(NamedTuple):
    """Bytes by their SHA-256 (hex) and size."""

    sha256: str
    size: int


class Stat(NamedTuple):
    """What a file's stat was when it was written; while it is so, its bytes need not be read."""

    size: int
    mtime_ns: int
    ino: int
    ctime_ns: int

    @classmethod
    def of(cls, path: str) -> Stat:
        """The stat of ``path`` as it is now."""
        return cls.from_result(os.stat(path))

    @classmethod
    def from_result(cls, now: os.stat_result) -> Stat:
        """The stat that the system gave, of an open file perhaps."""
        return cls(now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns)


class Layer(NamedTuple):
    """What one patch did to a file: splices ``(start, end, new, old)`` on the bytes as they stood before that patch.

    ``new`` is the length of the new bytes in the file's last layer (they stand in the patched file) and the bytes in
    base64 in every layer below (a later patch may have written over them). ``old`` is what stood there, in base64, so
    that the patch can be undone where the blob with the pristine bytes is lost; None where it is long, or the ledger
    older than that. :func:`layers_of` makes, :func:`scripts_of` and :func:`beneath` read them.
    """

    patch: str
    splices: tuple[tuple[int, int, int | str, str | None], ...]


class FileEntry(NamedTuple):
    """One file. ``pristine`` is None for a file that a patch added, ``after`` for one that a patch took away.

    ``witness`` is ``record`` or ``none``.

    ``stat``, ``created_dirs`` (directories made for an added file, as keys, outermost first; those given for a file
    that is new to the ledger stay) and ``link`` (where the file pointed when it was a symbolic link to the pristine
    bytes) are filled in by :func:`patchkit.state.transaction.commit`.
    """

    distribution: str
    pristine: Pristine | None
    witness: str
    after: Content | None
    layers: tuple[Layer, ...] = ()
    stat: Stat | None = None
    created_dirs: tuple[str, ...] = ()
    link: str | None = None

    def ours(self, data: bytes | None) -> bool:
        """Whether a file with these bytes (None: no file) is as patchkit left it."""
        if self.after is None or data is None:
            return self.after is None and data is None
        return sha256_hex(data) == self.after.sha256


class PatchEntry(NamedTuple):
    """One applied patch. ``digest`` names the blob of its TOML, ``info`` the dist-info directory (a key).

    ``source`` is the path of the patch file, ``applied_at`` UTC in ISO form to the second, ``files`` the keys of its
    files.
    ``conflicts`` and ``after`` are the patch's own, so that a later patch can be held against them without its TOML.
    """

    name: str
    digest: str
    source: str | None
    summary: str
    distribution: str
    version: str
    info: str | None
    requirement: str
    applied_at: str
    files: tuple[str, ...]
    optional: bool = False
    conflicts: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Upstreamed(NamedTuple):
    """A wanted patch that the installed release makes needless: ``require`` accepts it while that version is there."""

    name: str
    distribution: str
    version: str
    info: str | None
    digest: str


class Ledger(NamedTuple):
    """The whole record: patches in the order they are laid on, files by key, and the last transaction's id.

    ``spared`` are blobs that were there when no ledger was: perhaps the only originals of a ledger that was lost.
    """

    patches: tuple[PatchEntry, ...] = ()
    files: Mapping[str, FileEntry] = {}
    upstreamed: tuple[Upstreamed, ...] = ()
    tx: str = ""
    spared: tuple[str, ...] = ()

    @classmethod
    def load(cls, home: str) -> Ledger:
        """The ledger of the site-packages directory ``home``; an empty one where there is none.

        Raises:
            SiteError: ``ledger-version``, ``corrupt`` or ``unreadable``.
        """
        value = read(home)
        return cls() if value is None else from_json(value, state_path(home, "ledger.json"))

    @property
    def empty(self) -> bool:
        """True where nothing is recorded."""
        return not (self.patches or self.files or self.upstreamed)

    def patch(self, name: str) -> PatchEntry | None:
        """The applied patch of that name."""
        return next((entry for entry in self.patches if entry.name == name), None)

    def blobs(self) -> frozenset[str]:
        """The SHA-256 of every blob that must be kept."""
        wanted = {entry.digest for entry in self.patches}
        for entry in self.files.values():
            if entry.after is not None:
                wanted.add(entry.after.sha256)
            if entry.pristine is not None:
                wanted.add(entry.pristine.sha256)
        return frozenset(wanted.union(self.spared))

    def with_upstreamed(self, entry: Upstreamed) -> Ledger:
        """With ``entry`` in the place of the upstreamed patch of its name, else at the end."""
        kept = self.without_upstreamed(entry.name)
        return kept._replace(upstreamed=(*kept.upstreamed, entry))

    def without_upstreamed(self, name: str) -> Ledger:
        """Without that upstreamed patch."""
        return self._replace(upstreamed=tuple(entry for entry in self.upstreamed if entry.name != name))

    def to_json(self) -> dict[str, Any]:
        """As JSON values, the form that :func:`patchkit.runtime.ledger.read` gives (without the checksum)."""
        return {
            "schema": SCHEMA,
            "tx": self.tx,
            "patches": [entry._asdict() for entry in self.patches],
            "files": {key: _file_json(entry) for key, entry in self.files.items()},
            "upstreamed": [entry._asdict() for entry in self.upstreamed],
            **({"spared": list(self.spared)} if self.spared else {}),
        }


def _file_json(entry: FileEntry) -> dict[str, Any]:
    return {
        "distribution": entry.distribution,
        "pristine": entry.pristine and entry.pristine._asdict(),
        "witness": entry.witness,
        "after": entry.after and entry.after._asdict(),
        "stat": entry.stat and entry.stat._asdict(),
        "layers": [{"patch": layer.patch, "splices": [list(s) for s in layer.splices]} for layer in entry.layers],
        "created_dirs": list(entry.created_dirs),
        **({} if entry.link is None else {"link": entry.link}),
    }


def from_json(value: Mapping[str, Any], path: str) -> Ledger:
    """The ledger from JSON values of schema 1; ``path`` is for messages.

    Raises:
        SiteError: ``corrupt``: a member is missing or of another kind.
    """
    try:
        return Ledger(
            patches=tuple(
                PatchEntry(**{name: _frozen(entry[name]) for name in PatchEntry._fields}) for entry in value["patches"]
            ),
            files={key: _file_entry(entry) for key, entry in value["files"].items()},
            upstreamed=tuple(
                Upstreamed(*(entry[name] for name in Upstreamed._fields)) for entry in value["upstreamed"]
            ),
            tx=value["tx"],
            spared=tuple(str(name) for name in value.get("spared", ())),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        from patchkit.runtime.damage import corrupt

        raise corrupt(path, f"a member is missing or of the wrong kind ({error})", dumps(value)) from None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _file_entry(value: Mapping[str, Any]) -> FileEntry:
    pristine, after, stat = value["pristine"], value["after"], value["stat"]
    return FileEntry(
        distribution=value["distribution"],
        pristine=None if pristine is None else Pristine(*(pristine[name] for name in Pristine._fields)),
        witness=value["witness"],
        after=None if after is None else Content(after["sha256"], after["size"]),
        layers=tuple(
            Layer(
                layer["patch"],
                tuple((start, end, new, *(old or (None,))) for start, end, new, *old in layer["splices"]),
            )
            for layer in value["layers"]
        ),
        stat=None if stat is None else Stat(*(stat[name] for name in Stat._fields)),
        created_dirs=tuple(value["created_dirs"]),
        link=value.get("link"),
    )


def dumps(value: Mapping[str, Any]) -> bytes:
    """Ledger bytes: sorted keys, one line per patch and file; the second line is the checksum of all behind it."""
    import json

    def line(item: Any) -> str:
        return json.dumps(item, sort_keys=True, ensure_ascii=True)

    members = []
    for name in sorted(value):
        item = value[name]
        if name == "checksum":
            continue
        if isinstance(item, dict) and item:
            text = "{\n" + ",\n".join(f"  {line(key)}: {line(item[key])}" for key in sorted(item)) + "\n }"
        elif isinstance(item, list) and item:
            text = "[\n" + ",\n".join(f"  {line(entry)}" for entry in item) + "\n ]"
        else:
            text = line(item)
        members.append(f" {line(name)}: {text}")
    body = (",\n".join(members) + "\n}\n").encode("ascii")
    return f'{{\n "checksum": "{checksum(body)}",\n'.encode("ascii") + body


def save(home: str, ledger: Ledger) -> None:
    """Write the ledger, wholly or not at all. Only a transaction may call this.

    Raises:
        OSError: With its path.
        InternalError: Its own reader would refuse it.
    """
    path = state_path(home, "ledger.json")
    data = dumps(ledger.to_json())
    try:
        parse(data, path)
    except SiteError as error:
        raise InternalError(f"its own reader would refuse the ledger to be written: {error.message}") from None
    fs.write_atomic(path, data, fs.open_like(home))


def layers_of(scripts: Iterable[tuple[str, Sequence[ByteSplice]]]) -> tuple[Layer, ...]:
    """The layers of one file from each patch's splices (sorted, on the bytes as they stood before it), in order."""
    from binascii import b2a_base64  # base64 itself imports re and struct

    listed = list(scripts)
    last = len(listed) - 1

    def packed(text: bytes) -> str:
        return b2a_base64(text, newline=False).decode("ascii")

    def new(index: int, text: bytes) -> int | str:
        return len(text) if index == last else packed(text)

    def old(text: bytes) -> str | None:
        return packed(text) if len(text) <= LONGEST_OLD else None

    return tuple(
        Layer(patch, tuple((s.start, s.end, new(index, s.new), old(s.old)) for s in splices))
        for index, (patch, splices) in enumerate(listed)
    )


def beneath(layers: Sequence[Layer], after: bytes) -> bytes | None:
    """The bytes before all of ``layers``, out of those after them; None where the ledger does not have all of it.

    Whether they are right, their hash must tell.
    """
    from binascii import a2b_base64

    data = after
    for layer in reversed(layers):
        out: list[bytes] = []
        at = behind = 0  # in data, and in what was before it
        for start, end, new, old in layer.splices:
            if old is None:
                return None
            out += (data[at : at + start - behind], a2b_base64(old))
            at += start - behind + (new if isinstance(new, int) else len(a2b_base64(new)))
            behind = end
        out.append(data[at:])
        data = b"".join(out)
    return data


def scripts_of(layers: Sequence[Layer], pristine: bytes, after: bytes) -> list[tuple[str, list[ByteSplice]]]:
    """Each patch's splices, rebuilt from the pristine bytes (``b""`` for an added file) and the patched ones.

    Raises:
        InternalError: The layers do not lead from ``pristine`` to ``after``.
    """
    from binascii import a2b_base64

    from patchkit.edit.source import ByteSplice

    data = pristine
    scripts: list[tuple[str, list[ByteSplice]]] = []
    for layer in layers:
        splices: list[ByteSplice] = []
        out: list[bytes] = []
        at = length = 0
        for start, end, new, _ in layer.splices:
            out.append(data[at:start])
            length += start - at
            text = a2b_base64(new) if isinstance(new, str) else after[length : length + new]
            out.append(text)
            length += len(text)
            splices.append(ByteSplice(start, end, data[start:end], text))
            at = end
        out.append(data[at:])
        data = b"".join(out)
        scripts.append((layer.patch, splices))
    if data != after:
        raise InternalError("the ledger's layers do not lead from the pristine bytes to the patched ones")
    return scripts


def with_written(
    ledger: Ledger,
    home: str,
    tx: str,
    stats: Mapping[str, Stat],
    dirs: Mapping[str, Sequence[str]],
    links: Mapping[str, str | None],
) -> Ledger:
    """The ledger as a transaction commits it: its id, the new files' stats, directories made and links (by key)."""
    files = dict(ledger.files)
    for key, stat in stats.items():
        if key in files:
            files[key] = files[key]._replace(stat=stat)
    for key, made in dirs.items():
        if key in files:
            files[key] = files[key]._replace(created_dirs=tuple(key_of(home, path) for path in made))
    for key, link in links.items():
        files[key] = files[key]._replace(link=link)
    return ledger._replace(files=files, tx=tx)


def links_after(old: Ledger, new: Ledger, found: Mapping[str, tuple[str, str | None]]) -> dict[str, str | None]:
    """Where each file of ``new`` pointed when it was pristine; by key, None for a regular file.

    Args:
        old: The ledger before the transaction.
        new: The one after.
        found: What the transaction's files were before it, by key: SHA-256, and the target where it was a link.
    """
    links: dict[str, str | None] = {}
    for key, entry in new.files.items():
        if entry.pristine is None:
            continue
        sha256, link = found.get(key, ("", None))
        if sha256 != entry.pristine.sha256:
            before = old.files.get(key)
            known = None if before is None else before.pristine
            link = before.link if before and known and known.sha256 == entry.pristine.sha256 else None
        links[key] = link
    return links


def dirs_after(home: str, old: Ledger, new: Ledger, made: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Which directories each added file of ``new`` answers for, so that the last to go takes its directory along.

    A directory was made for one file; when that goes and another added file still lies within, that one takes it over.

    Args:
        home: The site-packages directory.
        old: The ledger before the transaction.
        new: The one after.
        made: Absolute paths of the directories this transaction makes, by key, outermost first.
    """
    owned: dict[str, list[str]] = {}
    added = [key for key, entry in new.files.items() if entry.pristine is None]
    for key in added:
        before = old.files.get(key) or new.files[key]
        kept = [file_path(home, name) for name in before.created_dirs]
        owned[key] = [*kept, *(path for path in made.get(key, ()) if path not in kept)]
    for key, entry in old.files.items():
        if key in owned:
            continue
        for path in (file_path(home, name) for name in entry.created_dirs):
            heir = next((name for name in added if file_path(home, name).startswith(path + os.sep)), None)
            if heir is not None and path not in owned[heir]:
                owned[heir] = sorted([*owned[heir], path], key=len)
    return owned
