"""Other Pythons on this machine, for tests; where there is none, the running one has to do."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys


@functools.cache
def find_python(version: str) -> str | None:
    """An interpreter of ``version`` ("3.8"): ``PATH``, pyenv's versions, ``uv python find``; None without one."""
    major, minor = map(int, version.split("."))
    if sys.version_info[:2] == (major, minor):
        return sys.executable
    candidates = [shutil.which(f"python{version}") or ""]
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    try:
        names = sorted(os.listdir(os.path.join(root, "versions")), reverse=True)
    except OSError:
        names = []
    candidates += [
        os.path.join(root, "versions", name, "bin", "python") for name in names if name.startswith(version + ".")
    ]
    found = next((path for path in candidates if path and _is_version(path, (major, minor))), None)
    return found or _by_uv(version, (major, minor))


def _by_uv(version: str, wanted: tuple[int, int]) -> str | None:
    uv = shutil.which("uv", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if uv is None:
        return None
    command = [uv, "python", "find", "--no-python-downloads", "--offline", version]
    path = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    return path if path and _is_version(path, wanted) else None


def _is_version(path: str, version: tuple[int, int]) -> bool:
    script = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([path, "-I", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return False
    return done.stdout.strip() == "{}.{}".format(*version)


def other_pythons(*versions: str) -> list[str]:
    """Those of ``versions`` that there are; the running interpreter where there is none of them."""
    found = [path for version in versions if (path := find_python(version))]
    return found or [sys.executable]
