"""The tools, each as its own documentation says to use it: what lies in the project, and what is typed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from lending import MADE_UP, lend
from scene import DISTRIBUTION, MODULE, Case, Change

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Command(NamedTuple):
    """One command line: its words, working directory and additions to the environment."""

    words: list[str]
    folder: str
    environment: Mapping[str, str] = {}


class Tool(ABC):
    """One tool. ``own`` is the folder of the tools that pip and npm installed for this benchmark."""

    name = ""

    def __init__(self, own: str) -> None:
        self.own = own

    @abstractmethod
    def version(self) -> str | None:
        """Its version; None where it is not there."""

    @abstractmethod
    def lay(self, case: Case, change: Change) -> None:
        """Put the change into the project, as a patch of the version that the case has."""

    @abstractmethod
    def apply(self, case: Case, change: Change) -> Command:
        """Apply it."""

    def check(self, case: Case, change: Change) -> Command | None:
        """Say whether it is applied; None: it has no such command."""
        return None

    def revert(self, case: Case, change: Change) -> Command | None:
        """Take it back; None: it has no such command."""
        return None

    def prepare(self, case: Case) -> None:
        """Put into the environment itself what must be there."""
        return

    def _script(self, name: str) -> str | None:
        path = os.path.join(self.own, "python", "bin", name)
        return path if os.path.exists(path) else None


def _write(path: str, text: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


def _said(*words: str) -> str | None:
    """The last word of the first line that a program prints of its version."""
    if shutil.which(words[0]) is None:
        return None
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    line = (done.stdout.strip() or done.stderr.strip()).split("\n")[0]
    return line.split()[-1] if line else None


def _distribution_version(python: str, name: str) -> str | None:
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    done = subprocess.run([python, "-c", code, name], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


class Patchkit(Tool):
    """The checkout that this benchmark is of."""

    name = "patchkit"

    def version(self) -> str | None:
        """As the checkout says."""
        return _distribution_version(sys.executable, "site-patchkit") or "checkout"

    def lay(self, case: Case, change: Change) -> None:
        """The patch file that ``patchkit import`` makes of the diff."""
        diff = _write(os.path.join(case.root, "change.diff"), change.diff)
        words = ["import", diff, "--name", change.name, "--dist", DISTRIBUTION]
        made = subprocess.run(self._words(case, *words), cwd=case.project, capture_output=True, text=True, check=False)
        if made.returncode:
            raise RuntimeError(made.stderr)

    def apply(self, case: Case, change: Change) -> Command:
        """``apply``."""
        return self._command(case, "apply", change.name)

    def check(self, case: Case, change: Change) -> Command | None:
        """``check``."""
        return self._command(case, "check")

    def revert(self, case: Case, change: Change) -> Command | None:
        """``revert``."""
        return self._command(case, "revert", change.name)

    def _command(self, case: Case, *words: str) -> Command:
        return Command(self._words(case, *words), case.project)

    def _words(self, case: Case, *words: str) -> list[str]:
        # Without the bytecode of the interpreter's own start, like every console script that pip writes.
        code = f"import sys; sys.path.insert(0, {REPOSITORY!r}); from patchkit.cli.main import entrypoint; entrypoint()"
        patches = os.path.join(case.project, "patches")
        os.makedirs(patches, exist_ok=True)
        return [sys.executable, "-c", code, "--python", case.python, "--patches", patches, *words]


class GnuPatch(Tool):
    """GNU patch in site-packages."""

    name = "GNU patch"

    def version(self) -> str | None:
        """Of the program ``patch``."""
        return _said("patch", "--version")

    def lay(self, case: Case, change: Change) -> None:
        """The diff."""
        _write(os.path.join(case.project, "change.diff"), change.diff)

    def apply(self, case: Case, change: Change) -> Command:
        """``patch -p1``."""
        return Command(["patch", "-s", "-p1", "-i", os.path.join(case.project, "change.diff")], case.site)

    def revert(self, case: Case, change: Change) -> Command | None:
        """``patch -R``."""
        command = self.apply(case, change)
        return command._replace(words=[*command.words, "-R"])


class GitApply(Tool):
    """``git apply`` in site-packages, outside of any repository."""

    name = "git apply"

    def version(self) -> str | None:
        """Of git."""
        return _said("git", "--version")

    def lay(self, case: Case, change: Change) -> None:
        """The diff."""
        _write(os.path.join(case.project, "change.diff"), change.diff)

    def apply(self, case: Case, change: Change) -> Command:
        """``git apply``."""
        return self._command(case)

    def revert(self, case: Case, change: Change) -> Command | None:
        """``git apply -R``."""
        return self._command(case, "-R")

    def _command(self, case: Case, *options: str) -> Command:
        words = ["git", "apply", *options, os.path.join(case.project, "change.diff")]
        return Command(words, case.site, {"GIT_CEILING_DIRECTORIES": case.root, "GIT_CONFIG_GLOBAL": os.devnull})


class Quilt(Tool):
    """quilt, its series in the project."""

    name = "quilt"

    def version(self) -> str | None:
        """Of quilt."""
        return _said("quilt", "--version")

    def lay(self, case: Case, change: Change) -> None:
        """The diff and the series."""
        _write(os.path.join(case.project, "patches", "change.diff"), change.diff)
        _write(os.path.join(case.project, "patches", "series"), "change.diff\n")

    def apply(self, case: Case, change: Change) -> Command:
        """``quilt push``."""
        return self._command(case, "push", "-a", "-q")

    def revert(self, case: Case, change: Change) -> Command | None:
        """``quilt pop``."""
        return self._command(case, "pop", "-a", "-q")

    def _command(self, case: Case, *words: str) -> Command:
        environment = {
            "QUILT_PATCHES": os.path.join(case.project, "patches"),
            "QUILT_PC": os.path.join(case.project, "pc"),
        }
        return Command(["quilt", "--quiltrc", "-", *words], case.site, environment)


class NpmPatchPackage(Tool):
    """npm's patch-package, on the same files as a package of node_modules."""

    name = "npm patch-package"

    def version(self) -> str | None:
        """Of the package."""
        path = os.path.join(self.own, "node", "node_modules", "patch-package", "package.json")
        if not os.path.exists(path) or shutil.which("node") is None:
            return None
        with open(path, encoding="utf-8") as file:
            return str(json.load(file)["version"])

    def prepare(self, case: Case) -> None:
        """The site becomes a package of the project."""
        modules = os.path.join(case.project, "node_modules")
        os.makedirs(modules)
        os.rename(os.path.join(case.site, MODULE), os.path.join(modules, MODULE))
        os.symlink(os.path.join(modules, MODULE), os.path.join(case.site, MODULE))
        about = json.dumps({"name": MODULE, "version": case.version})
        _write(os.path.join(modules, MODULE, "package.json"), about)
        _write(os.path.join(case.project, "package.json"), json.dumps({"dependencies": {MODULE: case.version}}))
        _write(os.path.join(case.project, "package-lock.json"), "{}")

    def lay(self, case: Case, change: Change) -> None:
        """The diff under its version, with paths below node_modules."""
        diff = change.diff.replace(f" a/{MODULE}/", f" a/node_modules/{MODULE}/")
        diff = diff.replace(f" b/{MODULE}/", f" b/node_modules/{MODULE}/")
        _write(os.path.join(case.project, "patches", f"{MODULE}+{case.version}.patch"), diff)

    def apply(self, case: Case, change: Change) -> Command:
        """``patch-package --error-on-fail``: without it, a failure has status 0."""
        return self._command(case, "--error-on-fail")

    def revert(self, case: Case, change: Change) -> Command | None:
        """``--reverse``."""
        return self._command(case, "--reverse", "--error-on-fail")

    def _command(self, case: Case, *options: str) -> Command:
        program = os.path.join(self.own, "node", "node_modules", "patch-package", "index.js")
        return Command(["node", program, *options], case.project)


class Makepatch(Tool):
    """makepatch, from an environment of its own."""

    name = "makepatch"

    def version(self) -> str | None:
        """Of the distribution."""
        return self._script("makepatch") and _distribution_version(self._script("python") or "", "makepatch")

    def lay(self, case: Case, change: Change) -> None:
        """The diff under its version."""
        _write(os.path.join(case.project, "pyproject.toml"), '[project]\nname = "x"\nversion = "1"\n')
        path = os.path.join(case.project, "patches", "packages", f"{DISTRIBUTION}@{case.version}.patch")
        _write(path, change.diff)

    def apply(self, case: Case, change: Change) -> Command:
        """``pkg apply``."""
        return self._command(case, "apply")

    def check(self, case: Case, change: Change) -> Command | None:
        """``pkg status``."""
        return self._command(case, "status")

    def revert(self, case: Case, change: Change) -> Command | None:
        """``pkg revert``."""
        return self._command(case, "revert", DISTRIBUTION)

    def _command(self, case: Case, *words: str) -> Command:
        program = self._script("makepatch") or ""
        return Command([program, "-C", case.project, "pkg", "--python", case.python, *words], case.project)


class PatchPackagePy(Tool):
    """patch-package-py, whose command is ``p12y``."""

    name = "patch-package-py"

    def version(self) -> str | None:
        """Of the distribution."""
        return self._script("p12y") and _distribution_version(self._script("python") or "", "patch-package-py")

    def lay(self, case: Case, change: Change) -> None:
        """The diff under its version."""
        _write(os.path.join(case.project, "patches", f"{DISTRIBUTION}+{case.version}.patch"), change.diff)

    def apply(self, case: Case, change: Change) -> Command:
        """``p12y apply``."""
        environment = os.path.dirname(os.path.dirname(case.python))
        return Command([self._script("p12y") or "", "apply", "-e", environment], case.project)


class PatchPackage(Tool):
    """PyPI's patch-package, which works in the environment that it is installed in."""

    name = "PyPI patch-package"

    def version(self) -> str | None:
        """Of the distribution."""
        return self._script("patch-package") and _distribution_version(self._script("python") or "", "patch-package")

    def lay(self, case: Case, change: Change) -> None:
        """The diff under its version, without the letters that git puts before paths."""
        diff = re.sub(rf"(?m)^(---|\+\+\+) [ab]/{MODULE}/", rf"\1 {MODULE}/", change.diff)
        diff = re.sub(r"(?m)^(diff|index) .*\n", "", diff)
        _write(os.path.join(case.project, "patches", f"{DISTRIBUTION}=={case.version}.patch"), diff)

    def prepare(self, case: Case) -> None:
        """Its module, and the one that it needs, in the case's environment."""
        lend(self.own, case, "patch_package.py", "unidiff")

    def apply(self, case: Case, change: Change) -> Command:
        """``patch-package``."""
        return Command([case.python, "-c", "import patch_package; patch_package.main([])"], case.project)


class Pypatch(Tool):
    """pypatch, in the environment that it is installed in."""

    name = "pypatch"

    def version(self) -> str | None:
        """Of the distribution."""
        return self._script("pypatch") and _distribution_version(self._script("python") or "", "pypatch")

    def lay(self, case: Case, change: Change) -> None:
        """The diff, with paths below the package."""
        diff = re.sub(rf"(?m)^(---|\+\+\+) [ab]/{MODULE}/", r"\1 ", change.diff)
        _write(os.path.join(case.project, "change.diff"), re.sub(r"(?m)^(diff|index) .*\n", "", diff))

    def prepare(self, case: Case) -> None:
        """Its package, and the module that it needs, in the case's environment."""
        lend(self.own, case, "pypatch", "six.py")

    def apply(self, case: Case, change: Change) -> Command:
        """``pypatch apply``."""
        words = ["-c", "from pypatch.command import main; main()", "apply"]
        return Command([case.python, *words, os.path.join(case.project, "change.diff"), MODULE], case.project)


class VenvPatcher(Tool):
    """venv-patcher, in the environment that it is installed in; what the package that it imports needs is stubbed."""

    name = "venv-patcher"

    def version(self) -> str | None:
        """Of the distribution."""
        return self._script("venv-patcher") and _distribution_version(self._script("python") or "", "venv-patcher")

    def lay(self, case: Case, change: Change) -> None:
        """The diff below the package, and the list."""
        diff = change.diff.replace(f"a/{MODULE}/", "a/").replace(f"b/{MODULE}/", "b/")
        path = _write(os.path.join(case.project, "change.diff"), diff)
        text = json.dumps({"version": 1, "patches": [{"package": MODULE, "path": path, "apply-command": "git apply"}]})
        _write(os.path.join(case.project, "patches.yml"), text)

    def prepare(self, case: Case) -> None:
        """Its package, what it needs, and an importer that makes up what the patched package imports."""
        lend(self.own, case, "venv_patcher", "yaml", "_yaml")
        _write(os.path.join(case.site, "made_up.pth"), "import made_up\n")
        _write(os.path.join(case.site, "made_up.py"), MADE_UP)

    def apply(self, case: Case, change: Change) -> Command:
        """``apply``."""
        return self._command(case, "apply", "-f", os.path.join(case.project, "patches.yml"))

    def check(self, case: Case, change: Change) -> Command | None:
        """``list``."""
        return self._command(case, "list")

    def revert(self, case: Case, change: Change) -> Command | None:
        """``reset``."""
        return self._command(case, "reset")

    def _command(self, case: Case, *words: str) -> Command:
        code = "import sys; from venv_patcher.cli import main; sys.exit(main())"
        environment = {"VIRTUAL_ENV": os.path.dirname(os.path.dirname(case.python)), "GIT_CONFIG_GLOBAL": os.devnull}
        return Command([case.python, "-c", code, *words], case.project, environment)


class SocketPatch(Tool):
    """socket-patch, with the manifest and the blobs that its service would deliver."""

    name = "socket-patch"

    def version(self) -> str | None:
        """Of the distribution."""
        return self._script("socket-patch") and _distribution_version(self._script("python") or "", "socket-patch")

    def lay(self, case: Case, change: Change) -> None:
        """Hashes as git makes them of blobs (with SHA-256), and the bytes."""
        files = {}
        for path in change.before:
            hashes = {}
            for key, data in (("beforeHash", change.before[path]), ("afterHash", change.after[path])):
                hashes[key] = hashlib.sha256(b"blob %d\0" % len(data) + data).hexdigest()
                blob = os.path.join(case.project, ".socket", "blobs", hashes[key])
                os.makedirs(os.path.dirname(blob), exist_ok=True)
                with open(blob, "wb") as file:
                    file.write(data)
            files[path] = hashes
        purl = f"pkg:pypi/{DISTRIBUTION}@{case.version}"
        patch = {
            "uuid": "00000000-0000-4000-8000-000000000000",
            "exportedAt": "2026-01-01T00:00:00Z",
            "files": files,
            "vulnerabilities": {},
            "description": "",
            "license": "",
            "tier": "free",
        }
        manifest = json.dumps({"patches": {purl: patch}})
        _write(os.path.join(case.project, ".socket", "manifest.json"), manifest)

    def apply(self, case: Case, change: Change) -> Command:
        """``apply --offline --strict``."""
        return self._command(case, "apply", "--offline", "--strict")

    def revert(self, case: Case, change: Change) -> Command | None:
        """``rollback``."""
        return self._command(case, "rollback", "--offline")

    def _command(self, case: Case, *words: str) -> Command:
        environment = {"VIRTUAL_ENV": os.path.dirname(os.path.dirname(case.python)), "SOCKET_TELEMETRY_DISABLED": "1"}
        return Command([self._script("socket-patch") or "", *words], case.project, environment)


TOOLS: tuple[type[Tool], ...] = (
    Patchkit,
    GnuPatch,
    GitApply,
    Quilt,
    NpmPatchPackage,
    Makepatch,
    PatchPackagePy,
    PatchPackage,
    Pypatch,
    SocketPatch,
    VenvPatcher,
)
PYTHON_TOOLS = ("makepatch", "patch-package-py", "patch-package", "pypatch", "socket-patch", "venv-patcher")
"""Distributions that the benchmark installs for itself, the newest release of each."""
NODE_TOOLS = ("patch-package",)
