"""What ``patchkit run`` lays into a bundle as ``sitecustomize.py``: it starts the overlay, then the real one.

The first folder on PYTHONPATH is the bundle, so the ``site`` module of every Python that inherits the environment runs
this file, whatever its version is: it must be valid, and do nothing, in any (Python 2 as well), hence no annotation.
Nothing of it stays behind but a path hook where none of the patched folders is on the path, for one that comes later:
not the bundle on ``sys.path``, and not this module where there is another of that name.
"""

import os
import sys

# The folders of the patched modules, by every name: a bundle has them here.
_bases = ()  # type: tuple[str, ...]
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # noqa: F401


def _overlay():  # type: () -> Any
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, bool(sys.dont_write_bytecode and sys.pycache_prefix)
    sys.path.insert(0, _here)  # this is our own cache, and nobody's tree
    try:
        import _patchkit_overlay  # type: ignore[import-not-found]  # overlay.py, under its name in a bundle
    finally:
        sys.path.remove(_here)
        sys.dont_write_bytecode = kept
    return _patchkit_overlay


def _late(path):  # type: (str) -> Any
    """For ``sys.path_hooks``: a program may put one of the folders on its path by itself."""
    if path not in _bases and os.path.realpath(path) not in _bases:
        raise ImportError("no folder of patched modules")
    with _lock:
        if _loading:
            raise ImportError("what the overlay itself imports is none of them")
        _loading.append(path)
        try:
            overlay = _overlay()
            overlay.start(_here, path)
        except Exception as error:  # as an ImportError it would be taken for "ask the next hook"
            raise RuntimeError("patchkit run: the bundle %s cannot be used: %s" % (_here, error))  # noqa: UP031, B904
        finally:
            _loading.pop()
    return overlay._hook(path)


if __name__ == "sitecustomize":
    _here = __file__.replace("\\", "/").rpartition("/")[0]
    # Imports pass over what is no text. Nor can a folder come twice: `site` has made the path one of different ones.
    _names = [_entry for _entry in sys.path if hasattr(_entry, "format")]
    for _entry in _names:
        if _entry.replace("\\", "/") == _here:
            sys.path.remove(_entry)
    # An interpreter that imports from none of those folders is another environment's, and goes on at once.
    _concerned = [_entry for _entry in _names if _entry in _bases or os.path.realpath(_entry) in _bases]
    if _concerned and sys.version_info >= (3, 8):
        try:
            _start = _overlay().start
        except Exception as _error:  # `site` would pass over it, and the program would run without the patches
            sys.stderr.write("patchkit run: the bundle %s cannot be used: %s\n" % (_here, _error))  # noqa: UP031
            sys.stderr.flush()
            os._exit(5)
        _start(_here)
    elif _bases and sys.version_info >= (3, 8):
        _lock, _loading = sys.modules["_thread"].RLock(), []  # type: Any, list[str]
        sys.path_hooks.insert(0, _late)
    # The environment's own, as if this one had not been there. Its errors are for `site` to report, as ever.
    _ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as _error:
        if getattr(_error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", _ours)
