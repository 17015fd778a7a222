"""One trial, in a process of the target's interpreter: standard library and jax only, and nothing of patchkit.

    python driver.py SCRIPT FUNCTION RESULT

The user's script is imported, its function called for a jitted function and arguments, and these are made and waited
for before anything is timed. What it costs to lower, to compile and to run once follows, each waited for. That no
compile cache had a part in it is seen from jax's own events, not from the settings that ask for it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
from typing import Any

_HITS = "/jax/compilation_cache/cache_hits"


def main(script: str, function: str, target: str) -> int:
    """Time one trial of ``function`` in ``script`` and write what came of it to ``target``, also where it fails."""
    result: dict[str, Any] = {"schema": 1, "error": None}
    try:
        _trial(script, function, result)
    except BaseException as error:
        traceback.print_exc()
        result["error"] = {"type": type(error).__name__, "message": str(error)[:2000]}
    with open(target + ".part", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(target + ".part", target)
    return 0 if result["error"] is None else 1


def _trial(script: str, function: str, result: dict[str, Any]) -> None:
    import jax

    hits: list[str] = []
    jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if event == _HITS else None)
    result["versions"] = {
        "python": ".".join(map(str, sys.version_info[:3])),
        "jax": jax.__version__,
        "jaxlib": _version("jaxlib"),
        "libtpu": _version("libtpu"),
    }
    device = jax.devices()[0]
    result["device"] = {"platform": device.platform, "kind": device.device_kind, "count": jax.device_count()}
    jitted, arguments, *more = getattr(_module(script), function)()
    result["note"] = str(more[0])[:500] if more else None
    jax.block_until_ready(arguments)
    laps = [_now()]
    lowered = jitted.lower(*arguments)
    laps.append(_now())
    compiled = lowered.compile()
    laps.append(_now())
    jax.block_until_ready(compiled(*arguments))
    laps.append(_now())
    for which, name in enumerate(("seconds", "cpu_seconds")):
        times = [lap[which] for lap in laps]
        result[name] = {
            "lower": times[1] - times[0],
            "compile": times[2] - times[1],
            "first_run": times[3] - times[2],
        }
    result["cache_hits"] = len(hits)
    result["cache_enabled"] = bool(jax.config.jax_enable_compilation_cache)


def _now() -> tuple[float, float]:
    """By the wall clock, and of the processor."""
    return time.perf_counter(), time.process_time()


def _module(path: str) -> Any:
    """The user's script as a module; what lies beside it can be imported, as where it is run itself."""
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.dont_write_bytecode = True  # nothing beside a script that may lie in somebody's site-packages
    spec.loader.exec_module(module)
    return module


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
