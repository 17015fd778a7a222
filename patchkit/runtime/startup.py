"""What ``patchkit run`` lays into a bundle as ``sitecustomize.py``: it starts the overlay, then the real one.

The first folder on PYTHONPATH is the bundle, so the ``site`` module of every Python that inherits the environment runs
this file, whatever its version is: it must be valid, and do nothing, in any (Python 2 as well), hence no function and
no annotation. Nothing of it stays behind: not the bundle on ``sys.path``, and not this module where there is another of
that name.
"""

import os
import sys

# The folders of the patched modules, by every name: a bundle has them here.
_bases = ()  # type: tuple[str, ...]

if __name__ == "sitecustomize":
    _here = __file__.replace("\\", "/").rpartition("/")[0]
    sys.path[:] = [_entry for _entry in sys.path if _entry.replace("\\", "/") != _here]
    # An interpreter that imports from none of those folders is another environment's, and goes on at once.
    _concerned = [_entry for _entry in sys.path if _entry in _bases or os.path.realpath(_entry) in _bases]
    if _concerned and sys.version_info >= (3, 8):
        _kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False  # this is our own cache, and nobody's tree
        sys.path.insert(0, _here)
        try:
            import _patchkit_overlay  # type: ignore[import-not-found]  # overlay.py, under its name in a bundle
        except Exception as _error:  # `site` would pass over it, and the program would run without the patches
            sys.stderr.write("patchkit run: the bundle %s cannot be used: %s\n" % (_here, _error))  # noqa: UP031
            sys.stderr.flush()
            os._exit(5)
        finally:
            sys.path.remove(_here)
            sys.dont_write_bytecode = _kept
        _patchkit_overlay.start(_here)
    # The environment's own, as if this one had not been there. Its errors are for `site` to report, as ever.
    _ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as _error:
        if getattr(_error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", _ours)
