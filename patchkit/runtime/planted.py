"""What ``patchkit transplant`` lays into a copy as ``_transplant/startup/sitecustomize.py``: it activates the copy.

With that folder first on PYTHONPATH, every Python that inherits the environment does so before its program begins. It
must be valid, and do nothing, in any Python, hence no function and no annotation. As in a run
(:mod:`patchkit.runtime.startup`), nothing of it stays behind, and the environment's own ``sitecustomize`` follows.
"""

import os
import sys

if __name__ == "sitecustomize":
    _here = os.path.dirname(os.path.abspath(__file__))
    _copy = os.path.dirname(os.path.dirname(_here))
    sys.path[:] = [_entry for _entry in sys.path if os.path.abspath(_entry) != _here]
    if sys.version_info >= (3, 8):
        try:
            import importlib.util as _util

            _name = "_patchkit_transplant_" + os.path.basename(_copy)
            _inner = os.path.dirname(_here)
            _spec = _util.spec_from_file_location(
                _name, os.path.join(_inner, "__init__.py"), submodule_search_locations=[_inner]
            )
            assert _spec is not None
            assert _spec.loader is not None
            sys.modules[_name] = _util.module_from_spec(_spec)
            _spec.loader.exec_module(sys.modules[_name])
            sys.modules[_name].activate()
        except Exception as _error:  # `site` would pass over it, and the program would run without the copy
            sys.stderr.write("[patchkit] transplant %s cannot be put in place: %s\n" % (_copy, _error))  # noqa: UP031
            sys.stderr.flush()
            os._exit(5)
    _ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as _error:
        if getattr(_error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", _ours)
