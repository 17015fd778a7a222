"""The source of the probe that a ``probe`` edit puts into a module.

It runs in somebody else's process, so: the standard library only, nothing of patchkit, never an exception, one line
on stderr and at most one small file per process. A process made by fork is a new one and reports again. Nothing in
it depends on names of the module (which may redefine ``open``); all of it is plain Python, so under ``jax.jit`` it
reports while the function is traced.
"""

from __future__ import annotations

import re

FOLDER_VARIABLE = "PATCHKIT_PROBES"
"""The environment variable with the folder for ``<pid>-<patch>-<edit>.json``; unset: no file."""

_HELPER = """\
def {name}(_seen={{}}, _error=Exception):  # patchkit: {patch}, edit {edit}
    try:
        import os

        pid, token = os.getpid(), []
        if pid in _seen or _seen.setdefault(pid, token) is not token:
            return
        report = {{"schema": 1, "patch": {patch_literal}, "edit": {edit}, "function": {function_literal}, "pid": pid}}
        report["text"] = {text_literal}
        try:
            import sys

            sys.stderr.write({line_literal} % pid)
            sys.stderr.flush()
        except _error:
            pass
        folder = os.environ.get("{folder}")
        if folder:
            import io
            import json
            import time

            report["module"], report["time"] = __name__, time.time()
            path = os.path.join(folder, "%d-{patch}-{edit}.json" % pid)
            os.makedirs(folder, exist_ok=True)
            with io.open(path + ".tmp", "w", encoding="utf-8") as file:
                json.dump(report, file)
            os.replace(path + ".tmp", path)
    except _error:
        pass
"""


def helper_name(patch: str, edit: int) -> str:
    """The name of the function that a probe adds to its module."""
    return f"_patchkit_probe_{re.sub('[^0-9A-Za-z]', '_', patch)}_{edit}"


def helper_source(patch: str, edit: int, function: str, text: str) -> str:
    """The definition of that function, ASCII only, ending in a newline.

    ``text`` may be anything; on stderr, what would break the line is escaped.
    """
    from patchkit.visible import visible  # here, where patchkit runs: this room is imported in others' processes

    line = f"[patchkit] probe patch={patch} edit={edit} function={function} ".replace("%", "%%")
    line += f"pid=%d text={visible(text).replace('%', '%%')}\n"
    return _HELPER.format(
        name=helper_name(patch, edit),
        patch=patch,
        edit=edit,
        folder=FOLDER_VARIABLE,
        patch_literal=ascii(patch),
        function_literal=ascii(function),
        text_literal=ascii(text),
        line_literal=ascii(line),
    )
