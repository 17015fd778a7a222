"""A target's Python interpreter, asked once and remembered."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from patchkit.errors import SiteError, UsageError
from patchkit.runtime.ledger import open_regular
from patchkit.site import probe
from patchkit.site.cache import cache_directory, write_cached

#: Seconds that an interpreter may take to answer.
PATIENCE = 20.0
OLDEST = (3, 8)

_SCHEMA = 3
# What the answer depends on besides the executable.
_VARIABLES = ("PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "HOME", "APPDATA", "USERPROFILE")


class Interpreter:
    """One Python: where it is, what it is, and where its packages lie.

    ``site_directories`` are in the order of its ``sys.path``, Debian's ``dist-packages`` and the user site included;
    they need not exist. ``extension_suffixes`` are those of the compiled modules that it loads.
    """

    __slots__ = (
        "_markers",
        "executable",
        "extension_suffixes",
        "implementation",
        "prefix",
        "purelib",
        "pycache_prefix",
        "site_directories",
        "version",
    )

    def __init__(
        self,
        *,
        executable: str,
        version: tuple[int, int, int],
        implementation: str,
        purelib: str,
        site_directories: tuple[str, ...],
        pycache_prefix: str | None,
        prefix: str,
        markers: Mapping[str, str] | None = None,
        extension_suffixes: tuple[str, ...] = (),
    ) -> None:
        """Hold what was answered; without ``markers`` it is the running interpreter, and they are found when needed."""
        self.executable = executable
        self.version = version
        self.implementation = implementation
        self.purelib = purelib
        self.site_directories = site_directories
        self.pycache_prefix = pycache_prefix
        self.prefix = prefix
        self.extension_suffixes = extension_suffixes
        self._markers = None if markers is None else dict(markers)

    @property
    def markers(self) -> dict[str, str]:
        """The PEP 508 marker environment, without ``extra``."""
        if self._markers is None:
            self._markers = probe.markers()
        return self._markers

    @property
    def python_version(self) -> tuple[int, int]:
        """Major and minor version."""
        return self.version[:2]

    def __repr__(self) -> str:
        return f"Interpreter({self.executable!r}, {'.'.join(map(str, self.version))})"


def own() -> Interpreter:
    """The interpreter that this process runs in; starts no process."""
    return _from_answer(probe.describe(), None)


def ask(executable: str, *, environ: Mapping[str, str] | None = None) -> Interpreter:
    """Ask an interpreter about itself; the answer is cached as long as neither it nor its ``pyvenv.cfg`` changes.

    Args:
        executable: Path of the interpreter.
        environ: Where the cache directory's variables are looked up.

    Raises:
        UsageError: ``no-interpreter``: the file does not exist or is not executable.
        SiteError: ``interpreter``: it is not Python, too old, crashes or does not answer.
    """
    path = os.path.abspath(executable)
    if is_running(path):
        return own()
    stamp = _stamp(path)
    # The name is only a bucket: the stamp inside decides, so a short checksum serves and spares importing hashlib.
    import binascii

    bucket = "\0".join([path, *(f"{key}={value}" for key, value in sorted(stamp["environ"].items()))])
    name = f"{binascii.crc32(bucket.encode('utf-8', 'surrogateescape')):08x}.json"
    cached = os.path.join(cache_directory(environ), "interpreters", name)
    known = _read_cached(cached, stamp)
    if known is not None:
        return known
    answer = _ask(path)
    interpreter = _from_answer(answer, answer["markers"])
    # A shim (pyenv, asdf) or wrapper script answers for whatever it chooses today: that is not to be remembered.
    if os.path.realpath(interpreter.executable) == stamp["real"]:
        import json

        entry = {"schema": _SCHEMA, "stamp": stamp, "answer": answer}
        write_cached(cached, json.dumps(entry).encode("ascii"))
    return interpreter


def is_running(executable: str) -> bool:
    """Whether ``executable`` is the running interpreter in the same virtual environment (or in none)."""
    if not sys.executable:
        return False
    path = os.path.abspath(executable)
    if os.path.realpath(path) != os.path.realpath(sys.executable):
        return False
    config = venv_config(path)
    here = sys.prefix if sys.prefix != sys.base_prefix else None
    if config is None or here is None:
        return config is None and here is None
    return os.path.realpath(os.path.dirname(config)) == os.path.realpath(here)


def venv_config(executable: str) -> str | None:
    """The ``pyvenv.cfg`` that governs an executable: beside it or one directory up (PEP 405)."""
    folder = os.path.dirname(executable)
    for place in (folder, os.path.dirname(folder)):
        config = os.path.join(place, "pyvenv.cfg")
        if os.path.isfile(config):
            return config
    return None


def _stamp(path: str) -> dict[str, Any]:
    real = os.path.realpath(path)
    try:
        status = os.stat(real)
    except OSError as error:
        raise UsageError(
            f"there is no Python interpreter {path}: {error.strerror}",
            code="no-interpreter",
            hint="give the path of a python executable or of a virtual environment with --python",
            details={"path": path},
        ) from None
    if os.path.isdir(real) or not os.access(real, os.X_OK):
        raise UsageError(
            f"{path} cannot be run: {'it is a directory' if os.path.isdir(real) else 'it is not executable'}",
            code="no-interpreter",
            hint="give the path of a python executable or of a virtual environment with --python",
            details={"path": path},
        )
    config = venv_config(path)
    return {
        "path": path,
        "real": real,
        "mtime_ns": status.st_mtime_ns,
        "size": status.st_size,
        "venv": None if config is None else [config, os.stat(config).st_mtime_ns],
        "environ": {key: os.environ[key] for key in _VARIABLES if key in os.environ},
    }


def _read_cached(path: str, stamp: dict[str, Any]) -> Interpreter | None:
    try:
        with open_regular(path) as file:
            data = file.read()
    except OSError:
        return None
    import json

    try:
        entry = json.loads(data)
        if entry["schema"] != _SCHEMA or entry["stamp"] != stamp:
            return None
        return _from_answer(entry["answer"], entry["answer"]["markers"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _from_answer(answer: Mapping[str, Any], markers: Mapping[str, str] | None) -> Interpreter:
    major, minor, micro = answer["version"]
    texts = ("executable", "implementation", "purelib", "prefix")
    directories = answer["site_directories"]
    if not all(isinstance(answer[key], str) for key in texts) or not isinstance(directories, list):
        raise TypeError("an interpreter's answer of the wrong shape")
    if markers is not None:
        markers = {str(key): str(value) for key, value in markers.items()}
    return Interpreter(
        executable=answer["executable"],
        version=(int(major), int(minor), int(micro)),
        implementation=answer["implementation"],
        purelib=answer["purelib"],
        site_directories=tuple(map(str, directories)),
        pycache_prefix=answer["pycache_prefix"],
        prefix=answer["prefix"],
        markers=markers,
        extension_suffixes=tuple(map(str, answer["extension_suffixes"])),
    )


def _ask(path: str) -> dict[str, Any]:
    import json

    from patchkit.site.process import run

    try:
        done = run([path, "-I", probe.__file__], timeout=PATIENCE)
    except OSError as error:
        raise _failed(path, f"cannot be run ({error.strerror})", "") from None
    start = done.out.rfind(probe.OPEN)
    end = done.out.rfind(probe.CLOSE)
    if 0 <= start < end:
        try:
            answer: dict[str, Any] = json.loads(done.out[start + len(probe.OPEN) : end])
            answer["executable"] = answer["executable"] or path
            _from_answer(answer, answer["markers"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _failed(path, "gave an answer that cannot be read", done.said()) from None
        return answer
    if done.status is None:
        raise _failed(path, f"did not answer within {PATIENCE:g} seconds", done.said())
    version = _bare_version(path)
    if version is not None and version < OLDEST:
        raise SiteError(
            f"{path} is Python {version[0]}.{version[1]}; patchkit works on environments of Python 3.8 and later",
            code="interpreter",
            hint="point --python at a newer environment",
            details={"path": path, "version": f"{version[0]}.{version[1]}"},
        )
    what = "crashed" if version is not None else "does not behave like Python"
    raise _failed(path, f"{what}: it {done.ended()}", done.said())


def _bare_version(path: str) -> tuple[int, int] | None:
    """The version that any Python since 2.6 tells, or None where it is no Python."""
    from patchkit.site.process import run

    script = "import sys; sys.stdout.write('<<%d.%d>>' % sys.version_info[:2])"
    try:
        done = run([path, "-E", "-S", "-c", script], timeout=PATIENCE)
    except OSError:
        return None
    text = done.out.decode("ascii", "replace")
    if not (text.startswith("<<") and text.endswith(">>")):
        return None
    major, _, minor = text[2:-2].partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _failed(path: str, what: str, said: str) -> SiteError:
    printed = f"; it printed:\n{said}" if said else "; it printed nothing"
    return SiteError(
        f"{path} {what}{printed}",
        code="interpreter",
        hint="check that it starts by itself; or give --site DIR to work without it",
        details={"path": path, "output": said},
    )
