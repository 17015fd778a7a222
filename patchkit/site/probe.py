"""What a Python interpreter says of itself.

This file is run as a script by the target interpreter (``python -I probe.py``), so it uses nothing but the standard
library and must work on Python 3.8 and later. It is also imported, for the running interpreter.
"""

from __future__ import annotations

import os
import sys
from typing import Any

#: What stands around the answer, since a ``sitecustomize`` or a ``.pth`` file may print as well.
OPEN, CLOSE = b"<<patchkit:probe:", b":probe:patchkit>>"


def describe() -> dict[str, Any]:
    """Everything but the markers, which cost the import of ``platform``."""
    import _imp
    import sysconfig

    paths = sysconfig.get_paths()
    purelib, platlib = paths["purelib"], paths["platlib"]
    return {
        "executable": sys.executable,
        "version": list(sys.version_info[:3]),
        "implementation": sys.implementation.name,
        "purelib": purelib,
        "site_directories": site_directories(purelib, platlib, user_site()),
        "pycache_prefix": sys.pycache_prefix or os.environ.get("PYTHONPYCACHEPREFIX"),
        "prefix": sys.prefix,
        "extension_suffixes": _imp.extension_suffixes(),
    }


def user_site() -> str | None:
    """The user site directory when an ordinary start would enable it; ``-I`` and ``-s`` do not count.

    The rules are those of ``site.check_enableusersite`` and ``site.venv``.
    """
    if os.environ.get("PYTHONNOUSERSITE"):
        return None
    if hasattr(os, "geteuid") and (os.geteuid() != os.getuid() or os.getegid() != os.getgid()):
        return None
    if sys.prefix != sys.base_prefix and not _venv_sees_system():
        return None
    import site

    try:
        return site.getusersitepackages()
    except (AttributeError, OSError, TypeError):
        return None


def _venv_sees_system() -> bool:
    try:
        with open(os.path.join(sys.prefix, "pyvenv.cfg"), encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition("=")
                if key.strip().lower() == "include-system-site-packages":
                    return value.strip().lower() == "true"
    except OSError:
        pass
    return False


def site_directories(purelib: str, platlib: str, user: str | None) -> list[str]:
    """The directories that installers write to, in the order in which an ordinary start puts them on ``sys.path``.

    They need not exist. ``site`` adds the virtual environment's own, then the user's, then the system's.
    """
    import site

    found: list[str] = []
    getter = getattr(site, "getsitepackages", None)
    if getter is not None:
        everything = list(getter())
        own = list(getter([sys.prefix])) if sys.prefix != sys.base_prefix else []
    else:  # the site module of virtualenv before 20
        everything = [purelib, platlib]
        own = everything
    found += own
    if user is not None:
        found.append(user)
    found += everything
    found += [purelib, platlib]
    found += [
        entry for entry in sys.path if os.path.basename(entry.rstrip("/\\")) in ("site-packages", "dist-packages")
    ]
    ordered: list[str] = []
    for entry in found:
        entry = os.path.abspath(entry)
        if entry not in ordered:
            ordered.append(entry)
    return ordered


def markers() -> dict[str, str]:
    """The PEP 508 marker environment, without ``extra``."""
    import platform

    info = sys.implementation.version
    implementation_version = f"{info.major}.{info.minor}.{info.micro}"
    if info.releaselevel != "final":
        implementation_version += info.releaselevel[0] + str(info.serial)
    return {
        "implementation_name": sys.implementation.name,
        "implementation_version": implementation_version,
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": ".".join(platform.python_version_tuple()[:2]),
        "sys_platform": sys.platform,
    }


def main() -> None:
    """Print everything as JSON between ``OPEN`` and ``CLOSE``."""
    import json

    answer = describe()
    answer["markers"] = markers()
    sys.stdout.flush()
    sys.stdout.buffer.write(b"\n" + OPEN + json.dumps(answer).encode("ascii") + CLOSE + b"\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
