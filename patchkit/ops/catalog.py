"""Where patches are found by name: the folders of DESIGN section 4, in their order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from patchkit.errors import PatchFileError, UsageError
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.model.project import Project


class Folder(NamedTuple):
    """One place that patches come from. ``origin`` is "--patches", "project", "folder", "package" or "shipped"."""

    path: str
    origin: str


class Catalog:
    """Patches by name. The first folder that has ``<name>.toml`` wins."""

    def __init__(self, folders: Sequence[Folder], project: Project | None = None) -> None:
        self.folders = folders
        self.project = project
        self._loaded: dict[str, Patch] = {}
        self._packages: list[Folder] | None = None

    def path_of(self, name: str, others: Sequence[str] = ()) -> str:
        """The file of the patch ``name``, which may also be a path to a ``.toml`` file.

        Args:
            name: The name or path.
            others: Further names to suggest from.

        Raises:
            UsageError: ``unknown-patch``: no folder has it; the nearest names are suggested.
        """
        if name.endswith(".toml") or os.sep in name or "/" in name:
            if os.path.isfile(name):
                return name
            raise UsageError(
                f"no patch file {name}",
                code="unknown-patch",
                hint="check the path; `patchkit list` shows the patches that can be named",
                details={"patch": name, "suggestion": None},
            )
        found = self.find(name)
        if found is not None:
            return found
        import difflib

        names = [known for known in (*(known for known, _, _ in self.names()), *others) if known != name]
        near = difflib.get_close_matches(name, names, n=1)
        raise UsageError(
            f"no patch named {name}" + (f" (did you mean {near[0]}?)" if near else ""),
            code="unknown-patch",
            hint="looked in " + ", ".join(_shown(f.path) for f in self.all_folders()) + "; see `patchkit list`",
            details={"patch": name, "suggestion": near[0] if near else None},
        )

    def find(self, name: str) -> str | None:
        """The file of the patch ``name``, or None."""
        for folder in self.all_folders():
            path = os.path.join(folder.path, f"{name}.toml")
            if os.path.isfile(path):
                return path
        return None

    def file_of(self, name: str, source: str | None) -> str | None:
        """The file of an applied patch: by its name where the project lists it, else the one it was applied from.

        Args:
            name: The patch.
            source: Where it was applied from, as the ledger says.
        """
        listed = self.project is not None and name in self.project.wanted
        if not listed and source is not None and os.path.isfile(source):
            return source
        found = self.find(name)
        if found is None and source is not None and os.path.isfile(source):
            return source
        return found

    def load(self, name: str) -> Patch:
        """The patch ``name`` (or at the path ``name``).

        Raises:
            UsageError: There is none.
            PatchFileError: It is wrong.
        """
        path = self.path_of(name)
        if path not in self._loaded:
            from patchkit.model.load import load_patch

            try:
                self._loaded[path] = load_patch(path)
            except PatchFileError as error:
                error.hint = error.hint or f"correct it there; `patchkit lint {path}` says whether it is right then"
                raise
        return self._loaded[path]

    def names(self) -> Iterator[tuple[str, str, str]]:
        """(name, path, origin) of every patch file, the shadowed ones left out, by name within a folder."""
        return names_in(self.all_folders())

    def all_folders(self) -> Iterator[Folder]:
        """The folders in order; installed packages of patches are only looked for when the search gets that far."""
        yield from (folder for folder in self.folders if folder.origin != "shipped")
        if self._packages is None:
            self._packages = _package_folders()
        yield from self._packages
        yield from (folder for folder in self.folders if folder.origin == "shipped")


def open_catalog(patches: Sequence[str] = (), *, start: str | None = None) -> Catalog:
    """The catalogue for a working directory.

    Args:
        patches: Folders named on the command line; each must exist.
        start: The directory that the project is looked for from; the current one by default.

    Raises:
        UsageError: A named folder does not exist.
        PatchFileError: The project's ``[tool.patchkit]`` is wrong.
    """
    refuse_missing(patches, "--patches ")
    from patchkit.model.project import load_project

    begin = start or os.getcwd()
    try:
        project = load_project(begin)
    except PatchFileError as error:
        error.hint = error.hint or "correct it there; then run the command again"
        raise
    folders = [Folder(folder, "--patches") for folder in patches]
    if project is not None:
        folders += [Folder(folder, "project") for folder in project.patches]
        missing = [folder for folder in project.patches if not os.path.isdir(folder)]
        # The default folder need not exist: a project may want shipped patches only.
        if missing and missing != [os.path.join(project.root, "patches")]:
            raise PatchFileError(
                f"{project.path}: tool.patchkit.patches: no such folder: {missing[0]}",
                code="no-folder",
                hint="correct it, or make the folder",
                details={"path": project.path, "key": "tool.patchkit.patches"},
            )
    folders.append(Folder(os.path.join(begin, "patches"), "folder"))
    folders.append(Folder(shipped_folder(), "shipped"))
    return Catalog(each_once(folders), project)


def names_in(folders: Iterable[Folder]) -> Iterator[tuple[str, str, str]]:
    """(name, path, origin) of every TOML file in ``folders``, the shadowed ones left out, by name within a folder."""
    seen: set[str] = set()
    for folder in folders:
        try:
            entries = os.listdir(folder.path)
        except OSError:
            continue
        stems = {entry.removesuffix(".toml") for entry in entries if entry.endswith(".toml")}
        for stem in sorted(stems - seen):
            seen.add(stem)
            yield stem, os.path.join(folder.path, f"{stem}.toml"), folder.origin


def refuse_missing(folders: Sequence[str], option: str = "") -> None:
    """Refuse folders that are named and not there.

    Raises:
        UsageError: ``no-folder``.
    """
    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(
                f"{option}{folder}: no such folder", code="no-folder", hint="name a folder that holds NAME.toml files"
            )


def each_once(folders: Iterable[Folder]) -> tuple[Folder, ...]:
    """Folders in their order, one that is named twice at its first place."""
    unique: dict[str, Folder] = {}
    for item in folders:
        unique.setdefault(os.path.realpath(item.path), item)
    return tuple(unique.values())


def shipped_folder() -> str:
    """The folder of the patches that come with patchkit: in the wheel, or beside the package in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "shipped", "patches")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "patches")


def _package_folders() -> list[Folder]:
    """Folders named by entry points of group ``patchkit.patches``: ``name = "package"`` or ``"package.data"``.

    Only found, never imported: a folder of patches is data, and importing a package would run it.
    """
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    folders = []
    for point in entry_points(group="patchkit.patches"):
        top, *inner = point.value.partition(":")[0].split(".")
        spec = find_spec(top)
        for location in (spec.submodule_search_locations or []) if spec else []:
            folder = os.path.join(location, *inner)
            if os.path.isdir(folder):
                folders.append(Folder(folder, "package"))
    return folders


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else path


def check_unique_name(patches: Sequence[Patch]) -> None:
    """Refuse two different files that bear one name in one call.

    Raises:
        PatchFileError: ``same-name``.
    """
    seen: dict[str, Patch] = {}
    for patch in patches:
        other = seen.setdefault(patch.name, patch)
        if other.digest != patch.digest:
            raise PatchFileError(
                f"two patches are named {patch.name}: {other.path} and {patch.path}",
                code="same-name",
                hint="rename one of them (the file and its `name`)",
            )
