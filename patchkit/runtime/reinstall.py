"""The command that brings an installer's files back: another one for each installer and layout.

It is read off the folder alone, since the errors that need it are also raised where nothing else can be asked. Standard
library only, Python 3.8 and later, as the rest of this room; imported only where something is wrong.
"""

from __future__ import annotations

import os

from patchkit.runtime.ledger import normal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def command(home: str, name: str, version: str, *, executable: str | None = None) -> str:
    """What to type so that ``home`` holds the released files of a distribution again, whoever installed it there.

    Args:
        home: The directory that holds its metadata.
        name: The distribution.
        version: Its version.
        executable: The interpreter that uses ``home``, for one that no layout tells (the user's site directory).
    """
    return together(home, [(name, version)], executable=executable)


def together(home: str, wanted: Iterable[tuple[str, str]], *, executable: str | None = None) -> str:
    """The same for several distributions, by one command for each installer, joined with ``&&``."""
    groups: dict[str, list[str]] = {}
    for name, version in wanted:
        info = _info(home, name)
        head, item = _by(home, info, _installer(info), name, version, executable)
        groups.setdefault(head, []).append(item)
    return " && ".join(f"{head} {' '.join(dict.fromkeys(items))}" for head, items in groups.items())


def _by(
    home: str, info: str | None, installer: str, name: str, version: str, executable: str | None
) -> tuple[str, str]:
    """The command up to the distribution, and the distribution as that command calls it."""
    from shlex import join, quote

    home = os.path.realpath(home)
    parent, kind = os.path.split(home)
    lib, layout = os.path.split(parent)
    listed = _listed(info)
    if listed is not None and installer == "rpm":
        return "dnf reinstall", f'"$(rpm -qf {quote(listed)})"'
    if listed is not None and kind == "dist-packages" and layout == "python3":  # apt's own, on Debian and Ubuntu
        return "apt-get install --reinstall", f'"$(dpkg -S {quote(listed)} | cut -d: -f1)"'
    root = None
    if kind in ("site-packages", "dist-packages"):
        if layout in ("lib", "Lib"):
            root = lib
        elif layout.startswith(("python", "pypy")):
            root = os.path.dirname(lib)
    package = _conda_package(root, info) if root is not None and installer != "pip" else None
    if root is not None and (installer == "conda" or package is not None):
        head = ["conda", "install", "--prefix", root, "--force-reinstall"]
        return join(head), quote(package or f"{name.lower()}={version}")
    python = _python(root, layout) if root is not None else None
    standard = parent
    if python is None and root is not None and os.path.basename(root) == "local":
        # Debian's Python installs below /usr/local, and so it does below --prefix.
        below = os.path.dirname(root)
        standard = os.path.join(below, "lib", layout)
        python = _python(below, layout)
        root = below if python is None and kind == "dist-packages" else root
    head = _installing(home, root, python, executable, info, uv=installer == "uv")
    if python is not None and os.path.isfile(os.path.join(standard, "EXTERNALLY-MANAGED")):
        head.append("--break-system-packages")  # it was overcome before
    return join(head), quote(f"{name}=={version}")


def _installing(
    home: str, root: str | None, python: str | None, executable: str | None, info: str | None, *, uv: bool
) -> list[str]:
    """How pip or uv install anew into ``home``, without their caches."""
    user = python is None and executable is not None and _is_user_site(home)
    where: list[str] = []
    if python is None and not user:
        where = ["--prefix", root] if root is not None else ["--target", home]
    if uv and not user:
        place = where or ["--python", str(python)]
        return ["uv", "pip", "install", *place, "--reinstall", "--no-deps", "--no-cache"]
    if where[:1] == ["--target"]:
        how = "--upgrade"
    else:  # with --prefix, pip would remove the one of its own environment
        how = "--ignore-installed" if where or not _removable(info) else "--force-reinstall"
    if python is not None and _is_without_pip(root, home):
        runner = ["pip", "--python", python]
    else:
        interpreter = python or (executable if user else None)
        if interpreter is None and os.path.basename(home) == "dist-packages":
            # Where a prefix has its packages, each Python decides by itself, and Debian's alone says this.
            interpreter = f"/usr/bin/{os.path.basename(os.path.dirname(home))}"
        runner = ["pip"] if interpreter is None else [interpreter, "-m", "pip"]
    return [*runner, "install", *where, *(["--user"] if user else []), how, "--no-deps", "--no-cache-dir"]


def _is_without_pip(root: str | None, home: str) -> bool:
    """Whether a virtual environment was made without pip."""
    return (
        root is not None
        and os.path.isfile(os.path.join(root, "pyvenv.cfg"))
        and not os.path.isdir(os.path.join(home, "pip"))
    )


def _info(home: str, name: str) -> str | None:
    """The metadata of a distribution in ``home``: the directory or file, as far as the names tell."""
    wanted = normal(name)
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return None
    for suffix in (".dist-info", ".egg-info", ".egg"):
        for entry in names:
            if entry.endswith(suffix) and entry[:1] != "~":
                stem = normal(entry[: -len(suffix)].split("-py")[0])
                if stem == wanted or (stem.startswith(wanted + "-") and stem[len(wanted) + 1 :][:1].isdigit()):
                    return os.path.join(home, entry)
    return None


def _installer(info: str | None) -> str:
    """The first word of INSTALLER, in lower case; empty where there is none."""
    if info is None:
        return ""
    try:
        with open(os.path.join(info, "INSTALLER"), encoding="utf-8", errors="replace") as file:
            words = file.read(200).split()
    except OSError:
        return ""
    return words[0].lower() if words else ""


def _listed(info: str | None) -> str | None:
    """A file of the metadata, for package managers that know every file of theirs."""
    if info is None or os.path.isfile(info):
        return info
    for name in ("METADATA", "PKG-INFO", "RECORD"):
        if os.path.isfile(os.path.join(info, name)):
            return os.path.join(info, name)
    return None


def _removable(info: str | None) -> bool:
    """Whether pip can remove it: not what distutils installed (one file), nor what has no list of its files."""
    if info is None:
        return False
    if info.endswith(".egg-info"):
        return os.path.isfile(os.path.join(info, "installed-files.txt"))
    return info.endswith(".dist-info") and os.path.isfile(os.path.join(info, "RECORD"))


def _conda_package(root: str, info: str | None) -> str | None:
    """``name=version`` of the conda package of the environment ``root`` that lists ``info`` among its files."""
    if info is None:
        return None
    folder = os.path.join(root, "conda-meta")
    needle = (os.path.relpath(os.path.realpath(info), root).replace(os.sep, "/") + "/").encode("utf-8", "replace")
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return None
    for name in names:
        parts = name[: -len(".json")].rsplit("-", 2)
        try:
            with open(os.path.join(folder, name), "rb") as file:
                listed = needle in file.read()
        except OSError:
            continue
        if listed and len(parts) == 3:
            return f"{parts[0]}={parts[1]}"
    return None


def _python(root: str, layout: str) -> str | None:
    """The interpreter of the environment at ``root``; one of the version that the layout names, where there are any."""
    exact = [] if layout in ("lib", "Lib") else [f"bin/{layout}"]
    if os.path.isfile(os.path.join(root, "pyvenv.cfg")):
        exact = ["bin/python", *exact]
    for name in [*exact, "Scripts/python.exe", "python.exe"]:
        path = os.path.join(root, *name.split("/"))
        if os.path.isfile(path):
            return path
    return None


def _is_user_site(home: str) -> bool:
    import site

    try:
        base = site.getuserbase()
    except (AttributeError, OSError, TypeError):
        return False
    return bool(base) and home.startswith(os.path.join(os.path.realpath(base), ""))
