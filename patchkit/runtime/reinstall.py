"""The command that brings an installer's files back: another one for each installer and layout.

It is read off the folder alone, since the errors that need it are also raised where nothing else can be asked. Standard
library only, Python 3.8 and later, as the rest of this room; imported only where something is wrong.
"""

from __future__ import annotations

import os

from patchkit.runtime.ledger import normal, open_regular, open_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_NO_CACHE = ("--no-deps", "--no-cache-dir")


def command(home: str, name: str, version: str, *, executable: str | None = None, cached: bool = False) -> str:
    """What to type so that ``home`` holds the released files of a distribution again, whoever installed it there.

    Args:
        home: The directory that holds its metadata.
        name: The distribution.
        version: Its version.
        executable: The interpreter that uses ``home``, for one that no layout tells (the user's site directory).
        cached: Whether uv may take it out of its cache, which has been cleaned.
    """
    return together(home, [(name, version)], executable=executable, cached=cached)


def together(
    home: str, wanted: Iterable[tuple[str, str]], *, executable: str | None = None, cached: bool = False
) -> str:
    """The same for several distributions, by one command for each installer, joined with ``&&``."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, version in wanted:
        info = _info(home, name)
        head, item, tail = _by(home, info, installer_of(info), name, version, executable, cached)
        groups.setdefault((head, tail), []).append(item)
    return " && ".join(f"{head} {' '.join(dict.fromkeys(items))}{tail}" for (head, tail), items in groups.items())


def _by(
    home: str, info: str | None, installer: str, name: str, version: str, executable: str | None, cached: bool
) -> tuple[str, str, str]:
    """The command up to the distribution, the distribution as that command calls it, and what follows."""
    from shlex import join, quote

    home = os.path.realpath(home)
    parent, kind = os.path.split(home)
    lib, layout = os.path.split(parent)
    listed = _listed(info)
    if listed is not None and installer == "rpm":
        return "dnf reinstall", f'"$(rpm -qf {quote(listed)})"', ""
    if listed is not None and kind == "dist-packages" and layout == "python3":  # apt's own, on Debian and Ubuntu
        return "apt-get install --reinstall", f'"$(dpkg -S {quote(listed)} | cut -d: -f1)"', ""
    root = None
    if kind in ("site-packages", "dist-packages"):
        if layout in ("lib", "Lib"):
            root = lib
        elif layout.startswith(("python", "pypy")):
            root = os.path.dirname(lib)
    package = _conda_package(root, info) if root is not None and installer != "pip" else None
    if root is not None and (installer == "conda" or package is not None):
        head = ["conda", "install", "--prefix", root, "--force-reinstall"]
        return join(head), quote(package or f"{name.lower()}={version}"), ""
    python = _python(root, layout) if root is not None else None
    standard = parent
    if python is None and root is not None and os.path.basename(root) == "local":
        # Debian's Python installs below /usr/local, and so it does below --prefix.
        below = os.path.dirname(root)
        standard = os.path.join(below, "lib", layout)
        python = _python(below, layout)
        root = below if python is None and kind == "dist-packages" else root
    if python is None and _is_user_site(home):
        # uv does not know this folder: https://docs.astral.sh/uv/pip/compatibility/
        head = [executable or _python_of(home), "-m", "pip", "install", "--user", _how(info), *_NO_CACHE]
    elif installer == "uv":
        head = ["uv", "pip", "install", *_uv_place(home, root, layout, python), "--reinstall", "--no-deps"]
        if not cached:
            # uv cannot link symbolically out of a cache that it throws away, and has uninstalled by then.
            head += ["--link-mode", "copy"] if _is_linked(info) else []
            head.append("--no-cache")
    elif python is not None:
        runner = ["pip", "--python", python] if _is_without_pip(root, home) else [python, "-m", "pip"]
        head = [*runner, "install", _how(info), *_NO_CACHE]
    elif root is not None:
        # pip of another Python would install below that one's name; and it would remove the one of its own environment.
        head = [*_pip_of(home, layout), "install", "--prefix", root, "--ignore-installed", *_NO_CACHE]
    elif _shares_folders(home, info):
        # With --upgrade, pip removes whole folders of the target, whatever others have in them; tar replaces file by
        # file, and does not write through links.
        fresh = home + ".new"
        moved = f" && tar -cf - -C {quote(fresh)} . | tar -xf - -C {quote(home)} && rm -r {quote(fresh)}"
        return join(["pip", "install", "--target", fresh, *_NO_CACHE]), quote(f"{name}=={version}"), moved
    else:
        head = ["pip", "install", "--target", home, "--upgrade", *_NO_CACHE]
    if python is not None and os.path.isfile(os.path.join(standard, "EXTERNALLY-MANAGED")):
        head.append("--break-system-packages")  # it was overcome before
    return join(head), quote(f"{name}=={version}"), ""


def _how(info: str | None) -> str:
    return "--force-reinstall" if _removable(info) else "--ignore-installed"


def _uv_place(home: str, root: str | None, layout: str, python: str | None) -> list[str]:
    """Where uv is to install."""
    if python is not None:
        return ["--python", python]
    if root is None:
        return ["--target", home]
    # The version decides on the folder below the prefix, as with pip.
    return ["--prefix", root, *(["--python", layout] if layout[-1:].isdigit() or layout[-1:] == "t" else [])]


def _pip_of(home: str, layout: str) -> list[str]:
    """The pip that installs below a prefix into folders of the name ``layout`` ("python3.9")."""
    if os.path.basename(home) == "dist-packages":
        # Where a prefix has its packages, each Python decides by itself, and Debian's alone says this.
        return [f"/usr/bin/{layout}", "-m", "pip"]
    return ["pip"] if layout in ("lib", "Lib") else [layout, "-m", "pip"]


def _python_of(home: str) -> str:
    """What the Python whose user's site directory this is is called: its version is in the path."""
    for part in reversed(home.split(os.sep)):
        digits = part[len("python") :] if part.lower().startswith("python") else part
        if digits[:1].isdigit():
            # ".../python3.11/site-packages", "Library/Python/3.11/lib/python/site-packages", "Python311\\site-packages"
            return "python" + (digits if "." in digits else f"{digits[0]}.{digits[1:]}")
    return "python3"


def _is_linked(info: str | None) -> bool:
    """Whether uv installed, or would install, by symbolic links: then it did so with the metadata as well."""
    found = info is not None and os.path.islink(os.path.join(info, "METADATA"))
    return found or os.environ.get("UV_LINK_MODE") == "symlink"


def _shares_folders(home: str, info: str | None) -> bool:
    """Whether another distribution of a ``--target`` folder may have files in a top-level folder of this one."""
    own = None if info is None else _tops(info)
    try:
        others = [name for name in os.listdir(home) if name.endswith((".dist-info", ".egg-info")) and name[:1] != "~"]
    except OSError:
        return False
    for name in others:
        if info is None or name != os.path.basename(info):
            tops = _tops(os.path.join(home, name))
            if own is None or tops is None or not own.isdisjoint(tops):
                return True
    return False


def _tops(info: str) -> set[str] | None:
    """The top-level folders that a distribution has files in; None where it has no list of them."""
    try:
        with open_text(os.path.join(info, "RECORD"), errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return None
    tops = set()
    for line in lines:
        parts = line.strip('"').partition(",")[0].replace("\\", "/").split("/")
        while parts and parts[0] in (".", ".."):  # pip lists scripts and data as "../../bin/", and moves them to "bin/"
            del parts[0]
        if len(parts) > 1:
            tops.add(parts[0])
    # Metadata are nobody else's, and bytecode is made again.
    return {top for top in tops if not top.endswith((".dist-info", "__pycache__"))} if tops else None


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


def installer_of(info: str | None) -> str:
    """The first word of INSTALLER, in lower case; empty where there is none."""
    if info is None:
        return ""
    try:
        with open_text(os.path.join(info, "INSTALLER")) as file:
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
            with open_regular(os.path.join(folder, name)) as file:
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
