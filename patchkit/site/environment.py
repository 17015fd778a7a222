"""The site: one target environment, and how it is found."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from patchkit.errors import SiteError, UsageError
from patchkit.runtime.ledger import open_text
from patchkit.site.interpreter import Interpreter, ask, own

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution, Index

#: The directory of patchkit's own records in a site.
LEDGER_DIRECTORY = ".patchkit"
#: The mark in it of an experiment, :mod:`patchkit.ops.experiment`.
EXPERIMENT = "rebench.json"

_SITE_NAMES = ("site-packages", "dist-packages")


class Site:
    """One target environment.

    Attributes:
        home: The directory whose ``.patchkit`` is meant: as :func:`resolve` gives it, the interpreter's ``purelib`` or
            the directory named, for whatever is not installed; :func:`home_of` tells a distribution's.
        paths: The directories searched for distributions, in the order of the site's ``sys.path``.
        interpreter: The site's Python, or None for a bare directory.
        python_version: Major and minor version, or None where nothing tells it.
        label: A short text for people.
    """

    __slots__ = ("_indexes", "_markers", "home", "interpreter", "label", "paths", "python_version")

    def __init__(
        self,
        *,
        home: str,
        paths: Sequence[str],
        interpreter: Interpreter | None,
        python_version: tuple[int, int] | None,
        label: str,
    ) -> None:
        """Hold the parts; :func:`resolve` is what finds them."""
        self.home = home
        self.paths = tuple(paths)
        self.interpreter = interpreter
        self.python_version = python_version
        self.label = label
        self._markers: dict[str, str] | None = None
        self._indexes: dict[str, Index] = {}

    def at(self, home: str) -> Site:
        """The same environment, with the ledger of another of its directories."""
        if home == self.home:
            return self
        other = Site(
            home=home,
            paths=self.paths,
            interpreter=self.interpreter,
            python_version=self.python_version,
            label=self.label,
        )
        other._markers, other._indexes = self._markers, self._indexes
        return other

    @property
    def markers(self) -> dict[str, str]:
        """The PEP 508 marker environment: the interpreter's, or the host's with the site's ``python_version``."""
        if self._markers is None:
            if self.interpreter is not None:
                self._markers = dict(self.interpreter.markers)
            else:
                self._markers = dict(own().markers)
                if self.python_version is not None and self.python_version != sys.version_info[:2]:
                    version = ".".join(map(str, self.python_version))
                    self._markers["python_version"] = version
                    self._markers["python_full_version"] = f"{version}.0"
                    self._markers["implementation_version"] = f"{version}.0"
        return self._markers

    def distributions(self) -> list[Distribution]:
        """Every distribution that an import can find: the first of each name on the path, in the path's order."""
        from patchkit.site.distribution import distributions

        return distributions(self)

    def find(self, name: str) -> Distribution | None:
        """The distribution of that name, by :func:`patchkit.site.distribution.find_distribution`."""
        from patchkit.site.distribution import find_distribution

        return find_distribution(self, name)

    def __repr__(self) -> str:
        return f"Site({self.label!r})"


def resolve(python: str | None = None, directory: str | None = None, environ: Mapping[str, str] | None = None) -> Site:
    """Find the site: ``--site``, ``--python``, ``$PATCHKIT_PYTHON``, ``$VIRTUAL_ENV``, the running interpreter.

    Args:
        python: An executable, a virtual environment's directory, or a name on ``PATH``.
        directory: A site-packages directory, the root of an environment, or a ``pip --target`` folder.
        environ: The environment variables; this process's own by default.

    Raises:
        UsageError: Both are given, or one names nothing that exists.
        SiteError: The interpreter cannot be asked.
    """
    env = os.environ if environ is None else environ
    if python is not None and directory is not None:
        raise UsageError("--site and --python exclude each other", hint="give one of them")
    if directory is not None:
        return _from_directory(directory, env)
    if python is not None:
        return from_interpreter(ask(_executable(python, "--python", env), environ=env))
    if env.get("PATCHKIT_PYTHON"):
        return from_interpreter(ask(_executable(env["PATCHKIT_PYTHON"], "$PATCHKIT_PYTHON", env), environ=env))
    if env.get("VIRTUAL_ENV"):
        active = env["VIRTUAL_ENV"]
        found = _python_in(active)
        if found is None:
            gone = "does not exist" if not os.path.isdir(active) else "holds no Python interpreter"
            raise UsageError(
                f"$VIRTUAL_ENV is {active}, which {gone}",
                code="no-interpreter",
                hint="deactivate that environment, or say which one is meant with --python",
                details={"path": active},
            )
        return from_interpreter(ask(found, environ=env))
    return from_interpreter(own())


def from_interpreter(interpreter: Interpreter, home: str | None = None) -> Site:
    """The site of an interpreter; ``home`` overrules the choice of the directory that holds the ledger."""
    paths = _distinct(interpreter.site_directories)
    version = ".".join(map(str, interpreter.version))
    return Site(
        home=home or interpreter.purelib,
        paths=paths,
        interpreter=interpreter,
        python_version=interpreter.python_version,
        label=f"{interpreter.prefix if home is None else home} (Python {version})",
    )


def home_of(site: Site, distribution: Distribution) -> str:
    """The directory of the site's path that holds a distribution, and therefore the ledger of its files.

    Whoever patches it, through whichever environment sees it, finds the same record there. The site's own home for one
    that lies elsewhere (a directory that a ``.pth`` file names).
    """
    holder = os.path.dirname(distribution.info)
    if os.path.basename(distribution.info) == "EGG-INFO":
        holder = os.path.dirname(holder)  # within its egg
    real = os.path.realpath(holder)  # the home may have several names, and its ledger has one
    return next((one for one in (site.home, *site.paths) if os.path.realpath(one) == real), site.home)


def ledger_homes(site: Site) -> list[str]:
    """The directories of the site's path that have a ``.patchkit``, the site's own home first.

    Raises:
        SiteError: ``not-a-directory``: something else bears that name; ``leads-out``: it is a link out of there.
    """
    found: list[str] = []
    seen: set[object] = set()
    for directory in (site.home, *site.paths):
        path = os.path.join(directory, LEDGER_DIRECTORY)
        try:
            status = os.stat(path)
        except OSError:
            continue
        if not stat.S_ISDIR(status.st_mode):
            raise SiteError(
                f"{path}: is not a directory, and patchkit keeps its ledger in one of that name",
                code="not-a-directory",
                hint="move it away; if it stood for a ledger, the patched distributions must be reinstalled",
                details={"path": path},
            )
        real = os.path.realpath(directory)
        if os.path.islink(path) and not os.path.realpath(path).startswith(os.path.join(real, "")):
            raise SiteError(
                f"{path}: is a link to {os.path.realpath(path)}, and the ledger there is another environment's",
                code="leads-out",
                hint=f"remove the link (rm {path}); what was patched here before is known by RECORD alone then",
                details={"path": path},
            )
        # By what it is, not by its name: a bind mount, or another spelling where case does not count, is no link.
        same = (status.st_dev, status.st_ino) if status.st_ino else os.path.normcase(real)
        if same not in seen:
            seen.add(same)
            found.append(directory)
    return found


def _distinct(directories: Sequence[str]) -> list[str]:
    """Those that exist, each real directory once (``lib64`` is often a link to ``lib``)."""
    seen: set[str] = set()
    kept: list[str] = []
    for directory in directories:
        real = os.path.realpath(directory)
        if real not in seen and os.path.isdir(real):
            seen.add(real)
            kept.append(directory)
    return kept


def _executable(python: str, source: str, env: Mapping[str, str]) -> str:
    """The interpreter that ``--python`` means."""
    expanded = os.path.expanduser(python)
    is_path = os.sep in expanded or (os.altsep is not None and os.altsep in expanded)
    if os.path.isdir(expanded) and (is_path or _python_in(expanded) is not None):
        found = _python_in(expanded)
        if found is None:
            raise UsageError(
                f"{source}: {python} is a directory without bin/python or Scripts/python.exe",
                code="no-interpreter",
                hint="give a python executable or a virtual environment; for a plain package directory use --site",
                details={"path": python},
            )
        return found
    if is_path or not python:
        if not os.path.lexists(expanded):
            raise UsageError(
                f"{source}: {python or 'the empty text'} does not exist",
                code="no-interpreter",
                hint="give a python executable, a virtual environment, or a name on PATH",
                details={"path": python},
            )
        return expanded
    import shutil

    on_path = shutil.which(python, path=env.get("PATH", os.defpath))
    if on_path is not None:
        return on_path
    if os.path.isfile(expanded):
        return expanded
    raise UsageError(
        f"{source}: there is no {python} on PATH",
        code="no-interpreter",
        hint="give the path of a python executable or of a virtual environment",
        details={"path": python},
    )


def _python_in(root: str, version: tuple[int, int] | None = None) -> str | None:
    """The interpreter of the environment at ``root``, preferring the one of ``version``."""
    names = ["bin/python", "bin/python3", "Scripts/python.exe", "python.exe", "bin/pypy3"]
    if version is not None and not os.path.isfile(os.path.join(root, "pyvenv.cfg")):
        # Below a prefix such as /usr, "python" may be another version than the one the directory is for.
        names.insert(0, f"bin/python{version[0]}.{version[1]}")
    for name in names:
        path = os.path.join(root, *name.split("/"))
        if os.path.isfile(path):
            return path
    return None


def _from_directory(directory: str, env: Mapping[str, str]) -> Site:
    path = os.path.abspath(os.path.expanduser(directory))
    if not os.path.isdir(path):
        exists = os.path.lexists(path)
        raise UsageError(
            f"--site: {directory} {'is not a directory' if exists else 'does not exist'}",
            code="no-site",
            hint="give a site-packages directory, a virtual environment, or a pip --target folder",
            details={"path": directory},
        )
    if os.path.isfile(os.path.join(path, "pyvenv.cfg")) or _is_prefix(path):
        inside = _python_in(path)
        if inside is not None:
            return from_interpreter(ask(inside, environ=env))
        path = _packages_below(path)
    return _packages_site(path, env)


def _is_prefix(path: str) -> bool:
    """Whether a directory is an environment's root: an interpreter in it, and packages below it."""
    return _python_in(path) is not None and bool(_packages_in(path))


def _packages_in(root: str) -> list[str]:
    """The site directories below an environment's root."""
    found = [os.path.join(root, "Lib", "site-packages")]
    for library in ("lib", "lib64"):
        try:
            names = sorted(os.listdir(os.path.join(root, library)))
        except OSError:
            continue
        found += [
            os.path.join(root, library, name, kind)
            for name in names
            if name.startswith(("python", "pypy"))
            for kind in _SITE_NAMES
        ]
    return _distinct(found)


def _packages_below(root: str) -> str:
    found = _packages_in(root)
    if len(found) == 1:
        return found[0]
    what = "no site-packages" if not found else "several site-packages:\n" + "\n".join(f"  {path}" for path in found)
    raise UsageError(
        f"--site: {root} is an environment without an interpreter, and holds {what}",
        code="no-site",
        hint="give the site-packages directory itself",
        details={"path": root, "found": found},
    )


def _packages_site(path: str, env: Mapping[str, str]) -> Site:
    """The site of a directory that holds packages: with its interpreter where the layout has one."""
    parent = os.path.dirname(path)
    layout = os.path.basename(parent)
    version = _version_of(layout)
    root: str | None = None
    if os.path.basename(path) in _SITE_NAMES:
        if os.path.normcase(layout) == os.path.normcase("Lib"):
            root = os.path.dirname(parent)
        elif layout.startswith(("python", "pypy")):
            root = os.path.dirname(os.path.dirname(parent))
    if root is not None:
        inside = _python_in(root, version)
        if inside is not None:
            try:
                interpreter = ask(inside, environ=env)
            except (SiteError, UsageError):
                interpreter = None  # a broken link to a removed Python must not keep one from the files
            real = os.path.realpath(path)
            if interpreter is not None and real in map(os.path.realpath, interpreter.site_directories):
                return from_interpreter(interpreter, home=path)
        version = version or _configured_version(os.path.join(root, "pyvenv.cfg"))
    known = "" if version is None else f"Python {version[0]}.{version[1]}, "
    return Site(
        home=path, paths=[path], interpreter=None, python_version=version, label=f"{path} ({known}no interpreter)"
    )


def _version_of(layout: str) -> tuple[int, int] | None:
    """The version in a directory name such as ``python3.12`` or ``python3.13t``."""
    for prefix in ("python", "pypy"):
        if layout.startswith(prefix):
            return _version(layout[len(prefix) :].rstrip("t"))
    return None


def _configured_version(config: str) -> tuple[int, int] | None:
    """The version that a ``pyvenv.cfg`` tells: ``version`` (venv) or ``version_info`` (virtualenv, uv)."""
    try:
        with open_text(config) as file:
            for line in file:
                key, _, value = line.partition("=")
                if key.strip().lower() in ("version", "version_info"):
                    return _version(value.strip())
    except OSError:
        pass
    return None


def _version(text: str) -> tuple[int, int] | None:
    parts = text.split(".")
    if len(parts) >= 2 and parts[0].isdigit() and parts[1].isdigit():
        return int(parts[0]), int(parts[1])
    return None
