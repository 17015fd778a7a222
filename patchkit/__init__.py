"""patchkit: patch installed Python packages; declarative, proved, atomic, taken back byte for byte.

``require`` is what a program asks at its start; it imports no parser. ``load``, ``plan``, ``apply``, ``revert``,
``check`` and ``rebench`` are the commands of the same names. Everything is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchkit.api import apply, check, load, plan, rebench, revert
    from patchkit.errors import PatchkitError
    from patchkit.runtime.require import require

__all__ = ["PatchkitError", "__version__", "apply", "check", "load", "plan", "rebench", "require", "revert"]

__version__ = "0.1.0"

_HOMES = {"require": "patchkit.runtime.require", "PatchkitError": "patchkit.errors"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "patchkit.api")), name)


def __dir__() -> list[str]:
    return __all__
