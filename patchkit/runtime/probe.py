"""The source of the probe that a ``probe`` edit puts into a module.

It runs in somebody else's process, so: the standard library only, nothing of patchkit, Python 3.8 and later, never an
exception of its own, one line on stderr and at most one small file per process. A process made by fork is a new one
and reports again. Nothing in it depends on names of the module (which may redefine ``open`` or ``Exception``); all of
it is plain Python, so under ``jax.jit`` it reports while the function is traced.

Loading the module prints nothing. Where ``PATCHKIT_PROBES`` names a folder it leaves the file already, with ``ran``
null, so that "loaded and never executed" can be told from "not loaded" also of a process that was killed.
:mod:`patchkit.ops.records` reads these files.
"""

from __future__ import annotations

import re

FOLDER_VARIABLE = "PATCHKIT_PROBES"
"""The environment variable with the folder for the files; unset: no file."""
RECORD_SCHEMA = 1
"""The schema of a file."""
RANKS = (
    "RANK",
    "LOCAL_RANK",
    "NODE_RANK",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_RANK",
    "TPU_WORKER_ID",
    "JOB_COMPLETION_INDEX",
    "VLLM_DP_RANK",
)
"""Environment variables that number the processes of a job; recorded where they are decimal digits."""

# The defaults are bound while nothing of the module has run. In `_at`: when and by whom the module was
# loaded, and the folder of that moment, since a program may clear its environment or change its directory. The hot
# path is one system call and one look-up; by pid, so that a fork and a pickled copy of the function start anew.
_HELPER = """\
def {name}(  # patchkit: {patch}, edit {edit}
    _loading=False, _ran={{}}, _at={{}}, _getpid=__import__("os").getpid, _own=__import__("builtins")
):
    pid = _getpid()
    if pid in _ran:
        return
    token = []
    if not _loading and _ran.setdefault(pid, token) is not token:
        return
    lost = ""
    role = "unknown"
    try:
        import os
        import sys
        import time

        now = time.time()
        if _loading:
            folder = os.environ.get("{folder}")
            _at.update(time=now, pid=pid, path=_own.globals().get("__file__"))
            _at.update(folder=folder and os.path.abspath(folder))
        folder = _at.get("folder") or os.environ.get("{folder}")
        process = sys.modules.get("multiprocessing.process")
        role = "MainProcess" if process is None else process.current_process().name
        if role == "MainProcess":
            role = "main" if _at.get("pid", pid) == pid else "fork"
        role = "".join(c if c.isalnum() or c in "-_.:" else "_" for c in role[:80])
        if folder:
            import io
            import json

            title, ticks = "", None
            try:
                with io.open("/proc/self/comm", encoding="utf-8", errors="replace") as file:
                    title = file.read().strip()
                with io.open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
                    ticks = _own.int(file.read().rpartition(")")[2].split()[19])
            except _own.Exception:
                pass
            ranks = {{name: os.environ.get(name, "") for name in {ranks}}}
            report = {{
                **{constant},
                "pid": pid,
                "parent": os.getppid(),
                "role": role,
                "title": title,
                "ranks": {{name: rank for name, rank in ranks.items() if rank.isdigit()}},
                "host": os.uname().nodename if _own.hasattr(os, "uname") else "",
                "ticks": ticks,
                "executable": sys.executable,
                "python": "%d.%d.%d" % sys.version_info[:3],
                "module": __name__,
                "path": _own.str(_at.get("path") or ""),
                "loaded": _at.get("time", now),
                "ran": None if _loading else now,
            }}
            path = os.path.join(folder, "%d-%x-{patch}-{edit}" % (pid, _own.int(_at.get("time", now) * 1e9)))
            os.makedirs(folder, exist_ok=True)
            try:
                with io.open(path + ".tmp", "w", encoding="utf-8") as file:
                    json.dump(report, file)
                os.replace(path + ".tmp", path + ".json")
            except _own.BaseException:
                os.remove(path + ".tmp")
                raise
    except _own.Exception as error:
        lost = " record=lost:" + _own.type(error).__name__
    try:
        if not _loading:
            import sys

            sys.stderr.write({line} % (pid, role, lost))
            sys.stderr.flush()
    except _own.Exception:
        pass


{name}(True)
"""


def helper_name(patch: str, edit: int) -> str:
    """The name of the function that a probe adds to its module."""
    return f"_patchkit_probe_{re.sub('[^0-9A-Za-z]', '_', patch)}_{edit}"


def helper_source(patch: str, edit: int, file: str, function: str, text: str) -> str:
    """The definition of that function and the call that notes the loading, ASCII only, ending in a newline.

    ``file`` is the path of the module as in RECORD. ``text`` may be anything; on stderr, what would break the line is
    escaped.
    """
    from patchkit.visible import visible  # here, where patchkit runs: this room is imported in others' processes

    where = visible(file).replace(" ", "\\x20")
    line = f"[patchkit] probe patch={patch} edit={edit} file={where} function={function} ".replace("%", "%%")
    line += f"pid=%d role=%s%s text={visible(text).replace('%', '%%')}\n"
    constant = {
        "schema": RECORD_SCHEMA,
        "patch": patch,
        "edit": edit,
        "file": file,
        "function": function,
        "text": text,
    }
    return _HELPER.format(
        name=helper_name(patch, edit),
        patch=patch,
        edit=edit,
        folder=FOLDER_VARIABLE,
        ranks=RANKS,
        constant=ascii(constant),
        line=ascii(line),
    )
