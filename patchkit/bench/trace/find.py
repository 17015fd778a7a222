"""Where a profiler wrote its traces, and which of them is the one that is meant.

A profiler may ignore the folder that it was given: ``jax.profiler.start_trace(None)`` writes below
``None/plugins/profile`` of the working directory. So traces are searched for, and the newest one after the start of the
job is taken; a viewer that shows an older session silently is what this is to prevent.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from patchkit.errors import UsageError
from patchkit.tuples import NamedTuple

STRAY = os.path.join("None", "plugins", "profile")
"""Below the working directory: where traces go whose folder was None."""
_ENDS = (".xplane.pb", ".trace.json.gz", ".trace.json")
#: Files that are looked at, at most: a folder with more is not one of traces.
_MOST = 200_000


class Candidate(NamedTuple):
    """A trace file; ``modified`` in seconds since 1970."""

    path: str
    modified: float
    size: int


class Found(NamedTuple):
    """The file that was taken, and each other with the reason that it was not."""

    taken: Candidate
    ignored: tuple[tuple[Candidate, str], ...]


def find_trace(path: str, *, since: float | None = None, newest: bool = False, cwd: str | None = None) -> Found:
    """The trace that ``path`` means: the file itself, or the one in or below the folder.

    Args:
        path: A file or folder.
        since: When the job began, in seconds since 1970: what is older is not of it.
        newest: Take the newest of several sessions.
        cwd: Where ``None/plugins/profile`` is looked for as well; nowhere by default.

    Raises:
        UsageError: ``no-trace``: there is none. ``which-trace``: there are several sessions, and neither ``since`` nor
            ``newest`` says which is meant.
    """
    if os.path.isfile(path):
        return Found(_candidate(path), ())
    folders = [path]
    if cwd is not None:
        folders.append(os.path.join(cwd, STRAY))
    return choose(_candidates(folders), path, since=since, newest=newest, looked=folders)


def choose(
    candidates: Sequence[Candidate],
    path: str,
    *,
    since: float | None = None,
    newest: bool = False,
    looked: Sequence[str] = (),
) -> Found:
    """Which of the candidates is meant; pure. See :func:`find_trace`."""
    late = [one for one in candidates if since is None or one.modified >= since]
    ignored = [(one, "written before the job began") for one in candidates if one not in late]
    if not late:
        among = f", and {len(ignored)} older than the job" if ignored else ""
        raise UsageError(
            f"there is no trace in {' or '.join(looked or [path])}{among}",
            code="no-trace",
            hint="the engine writes one where its profiler is on: profiler_config={'profiler': 'torch', "
            "'torch_profiler_dir': DIR} for vLLM; it may lie below None/plugins/profile of the job's working directory",
            details={"path": path, "older": [one.path for one in candidates]},
        )
    sessions: dict[str, list[Candidate]] = {}
    for one in late:
        sessions.setdefault(os.path.dirname(one.path), []).append(one)
    if len(sessions) > 1 and since is None and not newest:
        raise UsageError(
            f"{path}: traces of {len(sessions)} sessions, and nothing says which is meant:\n"
            + "\n".join(f"  {name}" for name in sorted(sessions)),
            code="which-trace",
            hint="--newest, or --since with the time at which the job began, or the name of one session's folder",
            details={"path": path, "sessions": sorted(sessions)},
        )
    last = max(sessions, key=lambda name: (max(one.modified for one in sessions[name]), name))
    ordered = sorted(sessions.pop(last), key=lambda one: (_rank(one.path), -one.modified, one.path))
    taken, *others = ordered
    for one in others:
        same = _stem(one.path) == _stem(taken.path)
        ignored.append((one, "the same trace for viewers" if same else "of another host, in the same session"))
    ignored += [(one, "of an older session") for same in sessions.values() for one in same]
    ignored.sort(key=lambda pair: (-pair[0].modified, pair[0].path))
    return Found(taken, tuple(ignored))


def _rank(path: str) -> int:
    return next(rank for rank, end in enumerate((*_ENDS, "")) if path.endswith(end))


def _stem(path: str) -> str:
    return next((path.removesuffix(end) for end in _ENDS if path.endswith(end)), path)


def _candidate(path: str) -> Candidate:
    found = os.stat(path)
    return Candidate(path, found.st_mtime, found.st_size)


def _candidates(folders: Sequence[str]) -> list[Candidate]:
    found: dict[str, Candidate] = {}
    seen = 0
    for folder in folders:
        for where, inner, names in os.walk(folder):
            inner.sort()
            for name in sorted(names):
                seen += 1
                if seen > _MOST:
                    raise UsageError(
                        f"{folder} holds more than {_MOST} files",
                        code="no-trace",
                        hint="name the folder that the profiler wrote to",
                        details={"path": folder},
                    )
                if name.endswith(_ENDS):
                    path = os.path.join(where, name)
                    try:
                        found.setdefault(os.path.realpath(path), _candidate(path))
                    except OSError:  # gone meanwhile, or a link to nowhere
                        continue
    return list(found.values())
