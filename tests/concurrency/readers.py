"""Programs that read a site in a tight loop while others change it: ``readers.py source|check|see SITE PATCHES``.

``see`` is ``check`` by somebody who may not write there.

Each runs until a line comes on standard input (or it ends), then prints what it saw as one JSON object.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
import threading
from pathlib import Path


def source(site: Path, stopped: threading.Event) -> dict[str, object]:
    """Read and compile every module, and import one after another; what was seen that nobody ever meant to write."""
    from concurrency.arena import possible

    wanted = possible()
    sys.path.insert(0, str(site))
    wrong: list[str] = []
    rounds = 0
    while not stopped.is_set():
        rounds += 1
        for path, contents in wanted.items():
            try:
                data = (site / path).read_bytes()
            except FileNotFoundError:
                if path != "demo/extra/new.py":
                    wrong.append(f"{path}: gone")
                continue
            if data not in contents:
                wrong.append(f"{path}: {data!r}")
            compile(data, path, "exec")
        importlib.invalidate_caches()
        module = importlib.import_module(f"demo.m{rounds % 6}")
        if module.total() != module.A + module.B + module.C:
            wrong.append(f"{module.__name__}: torn")
        for name in [name for name in sys.modules if name.partition(".")[0] == "demo"]:
            del sys.modules[name]
    return {"rounds": rounds, "wrong": wrong}


def check(site: Path, stopped: threading.Event, patches: Path) -> dict[str, object]:
    """Run ``check`` over and over; every state but ``applied`` and ``absent`` is one that never was."""
    from patchkit.cli.main import main

    names = sorted(path.stem for path in patches.glob("*.toml"))
    wrong: list[object] = []
    rounds, seen = 0, set()
    while not stopped.is_set():
        rounds += 1
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["--site", str(site), "--patches", str(patches), "--json", "check", *names])
        found = json.loads(out.getvalue())
        states = {patch["name"]: patch["state"] for patch in found.get("patches", ())}
        if status not in (0, 1) or set(states) != set(names) or not set(states.values()) <= {"applied", "absent"}:
            wrong.append({"status": status, **found})
        seen.add(tuple(sorted(name for name, state in states.items() if state == "applied")))
    return {"rounds": rounds, "wrong": wrong, "seen": sorted(seen)}


def only_read() -> None:
    """Let this process write nothing, as somebody else's site would."""
    real = os.open

    def refused(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", arguments[0])

    def opened(path: str, flags: int, *rest: object, **options: object) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            refused(path)
        return real(path, flags, *rest, **options)  # type: ignore[arg-type]

    os.open = opened  # type: ignore[assignment]
    os.mkdir = os.replace = os.unlink = os.rename = os.rmdir = refused  # type: ignore[assignment]


def run() -> None:
    """Until a line comes."""
    stopped = threading.Event()

    def wait() -> None:
        sys.stdin.readline()
        stopped.set()

    threading.Thread(target=wait, daemon=True).start()
    kind, site, patches = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if kind == "see":
        only_read()
    print("reading", flush=True)
    found = source(site, stopped) if kind == "source" else check(site, stopped, patches)
    print(json.dumps(found))


if __name__ == "__main__":
    run()
