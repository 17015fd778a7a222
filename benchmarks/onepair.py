"""One pair of adjacent releases: the difference as a patch by ``create`` and by ``import``, judged byte by byte."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pairs import Member, Pair, Unavailable, below, contents, unpack, wheel, write

from patchkit.author.published import HostGrammar, WheelFiles
from patchkit.cli.main import main
from patchkit.edit.plan import plan_patch
from patchkit.errors import PlanError
from patchkit.model.load import parse_patch

VARIANTS = {
    "import, U1": ("a", "b", "-U1"),
    "import, U10": ("a", "b", "-U10"),
    "import, src/": ("a/src", "b/src", "-U3"),
    "import, diff -u": None,
    "import, CRLF": ("a", "b", "-U3"),
}
"""The same difference as other diffs: where the two sides lie, and the context; None: by ``diff`` instead of git."""

IN_PROCESS = "PATCHKIT_BENCHMARK_IN_PROCESS"
"""Set in the environment: the commands run in the benchmark's own processes, without the time that Python starts in."""

PARTS = ("create", "import", *VARIANTS, "neighbour")
"""What is tried on a pair, by its key in the result."""


class Work(NamedTuple):
    """A folder for one pair, with a site that holds the old release; the files of the packages, and of all the site."""

    folder: str
    site: str
    pair: Pair
    old: Mapping[str, Member]
    new: Mapping[str, Member]
    pristine: Mapping[str, bytes]


def attempt(cache: str, pair: Pair, *, quick: bool) -> dict[str, Any]:
    """Both commands on one pair, as what can be written as JSON: ``failed`` is "" or says why, ``left`` what is out."""
    result: dict[str, Any] = {"pair": str(pair), "name": pair.name, "quick": quick}
    try:
        paths = {version: wheel(cache, pair.name, version) for version in (pair.before, pair.old, pair.new) if version}
    except Unavailable as error:
        return {**result, "unavailable": str(error)}
    old, new = contents(paths[pair.old]), contents(paths[pair.new])
    if old == new:
        return {**result, "same": True}
    with tempfile.TemporaryDirectory() as folder:
        site = os.path.join(folder, "site-packages")
        unpack(paths[pair.old], site)
        work = Work(folder, site, pair, old, new, below(site))
        result["bare"] = _cpu(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))[0]
        diff, result["diff"] = _git_diff(work)
        result["create"] = _by_create(work)
        result["create"]["git"] = result["diff"].pop("seconds")
        result["create"]["bare"] = result["bare"]
        result["import"], text = _by_import(work, diff, "pulled")
        if not quick and text:
            result.update(_variants(work, diff, text, result["import"]["left"]))
        if not quick and pair.before:
            result["neighbour"] = _neighbour(work, paths[pair.before], diff)
            result["carried"] = _carried(paths[pair.before], pair, os.path.join(folder, "patches", "made.toml"))
    return result


def _cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """The CPU seconds of the processes that ``run`` starts and waits for, and what it returns."""
    first = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = run()
    last = resource.getrusage(resource.RUSAGE_CHILDREN)
    return last.ru_utime + last.ru_stime - first.ru_utime - first.ru_stime, answer


def _patchkit(work: Work, *arguments: str, site: str | None = None) -> tuple[int, dict[str, Any]]:
    """One command, in a process of its own, or in this one (:data:`IN_PROCESS`)."""
    line = ["--site", site or work.site, "--json", "--patches", os.path.join(work.folder, "patches"), *arguments]
    environment = {**os.environ, "PATCHKIT_CACHE": os.path.join(work.folder, "cache")}
    if os.environ.get(IN_PROCESS):
        os.chdir(work.folder)
        os.environ["PATCHKIT_CACHE"] = environment["PATCHKIT_CACHE"]
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = main(line)
        return status, json.loads(out.getvalue())
    command = [sys.executable, "-m", "patchkit", *line]
    done = subprocess.run(command, cwd=work.folder, env=environment, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else {"error": {"code": "", "message": done.stderr}}


def _error(answer: Mapping[str, Any]) -> str:
    return f"{answer['error']['code']}: {answer['error']['message']}"


def _nothing_to_hold(answer: Mapping[str, Any]) -> bool:
    """Whether a command refused because all that differs is what it leaves out."""
    error = answer["error"]
    return error["code"] == "nothing-changed" and bool(error.get("left"))


def _by_create(work: Work) -> dict[str, Any]:
    """The pair by ``edit`` and ``create``."""
    copy = os.path.join(work.folder, "copy")
    os.makedirs(os.path.join(work.folder, "patches"))
    status, answer = _patchkit(work, "edit", work.pair.name, copy)
    if status:
        return {"failed": f"edit, {_error(answer)}", "left": []}
    for path in work.old.keys() - work.new.keys():
        os.unlink(os.path.join(copy, path))
    write(copy, work.new)
    seconds, (status, answer) = _cpu(lambda: _patchkit(work, "create", "made", work.pair.name, "--from", copy))
    if os.environ.get(IN_PROCESS):
        seconds = 0.0
    if status:
        if _nothing_to_hold(answer):
            return {"failed": _judge(work, {}, answer["error"]["left"]), "left": _named(answer["error"]["left"])}
        return {"failed": _error(answer), "left": []}
    failed = _whole(work, "made", answer["left"])
    return {"failed": failed, "left": _named(answer["left"]), "seconds": seconds, "edits": _edits(answer["patch"])}


def _named(left: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    return [(one["path"], one["reason"]) for one in left]


def _edits(text: str) -> list[dict[str, Any]]:
    """The measures of every edit: lines and bytes of its anchor, whether it names a scope."""
    return [
        {
            "lines": len(edit["find"].rstrip("\n").split("\n")),
            "bytes": len(edit["find"].encode()),
            "scope": "scope" in edit,
            "files": len(edit["file"]) if isinstance(edit["file"], list) else 1,
        }
        for edit in tomllib.loads(text).get("edit", [])
        if "find" in edit
    ]


def _git_diff(work: Work) -> tuple[bytes, dict[str, Any]]:
    """The pair's diff by git, with paths a/... and b/...; and the measures of its hunks: how many, their old sides."""
    root = os.path.join(work.folder, "diff")
    write(os.path.join(root, "a"), work.old)
    write(os.path.join(root, "b"), work.new)
    seconds, diff = _cpu(lambda: _diff(root, "-U3"))
    body = [line for line in diff.split(b"\n") if not line.startswith((b"--- a/", b"--- /dev/null"))]
    sides = [line[1:] for line in body if line.startswith((b" ", b"-"))]
    hunks = sum(line.startswith(b"@@ ") for line in body)
    measures = {"hunks": hunks, "lines": len(sides), "bytes": sum(len(line) + 1 for line in sides), "seconds": seconds}
    return diff, measures


def _diff(root: str, context: str) -> bytes:
    command = ["git", "-c", "core.quotepath=off", "diff", "--no-index", "--no-renames", "--no-ext-diff", "--no-prefix"]
    return subprocess.run([*command, context, "a", "b"], cwd=root, capture_output=True).stdout


def _by_import(work: Work, diff: bytes, name: str) -> tuple[dict[str, Any], str]:
    """The pair by ``import``, and the patch file's text ("": there is none)."""
    status, answer = _import(work, diff, name)
    if status:
        if _nothing_to_hold(answer):
            return {"failed": _judge(work, {}, answer["error"]["left"]), "left": _named(answer["error"]["left"])}, ""
        return {"failed": _error(answer), "left": []}, ""
    return {"failed": _whole(work, name, answer["left"]), "left": _named(answer["left"])}, answer["patch"]


def _import(work: Work, diff: bytes, name: str, *options: str, site: str | None = None) -> tuple[int, dict[str, Any]]:
    with open(os.path.join(work.folder, f"{name}.diff"), "wb") as file:
        file.write(diff)
    return _patchkit(work, "import", f"{name}.diff", "--name", name, "--dist", work.pair.name, *options, site=site)


def _variants(work: Work, diff: bytes, text: str, left: Sequence[Any]) -> dict[str, Any]:
    """``import`` of other diffs of the pair: the same patch must come."""
    found: dict[str, Any] = {}
    for number, (what, shape) in enumerate(VARIANTS.items()):
        name = f"pulled-{number}"
        if what == "import, CRLF":
            if b"\r" in diff:
                continue
            other = diff.replace(b"\n", b"\r\n")
        else:
            other = _other_diff(work, shape)
        status, answer = _import(work, other, name)
        if status:
            found[what] = {"failed": "", "left": [], "reported": _error(answer)}
            if answer["error"]["code"] != "hunks":
                found[what]["failed"] = found[what].pop("reported")
        elif answer["patch"].replace(name, "pulled") == text:
            found[what] = {"failed": "", "left": left}
        else:
            # `diff` prints nothing at all of a file that one side has without content, and the other has not.
            silent = (
                [path for path in work.old.keys() ^ work.new.keys() if not _data(work, path)] if shape is None else []
            )
            unnamed = [*answer["left"], *({"path": path, "reason": "is not in the diff"} for path in silent)]
            found[what] = {"failed": _whole(work, name, unnamed), "left": _named(unnamed)}
    return found


def _data(work: Work, path: str) -> bytes:
    """The bytes of a file that one of the two releases has."""
    return (work.old.get(path) or work.new[path]).data


def _other_diff(work: Work, shape: tuple[str, str, str] | None) -> bytes:
    root = os.path.join(work.folder, "diff")
    if shape is None:
        return subprocess.run(["diff", "-ruN", "a", "b"], cwd=root, capture_output=True).stdout
    first, second, context = shape
    if (first, second) == ("a", "b"):
        return _diff(root, context)
    with tempfile.TemporaryDirectory(dir=work.folder) as moved:
        for side, where in (("a", first), ("b", second)):
            os.makedirs(os.path.dirname(os.path.join(moved, where)), exist_ok=True)
            shutil.copytree(os.path.join(root, side), os.path.join(moved, where))
        return _diff(moved, context)


def _whole(work: Work, patch: str, left: Sequence[Mapping[str, str]]) -> str:
    """Lint, apply, compare, revert, compare; "" when all is right."""
    status, answer = _patchkit(work, "lint", "--strict", patch)
    if status:
        told = [_finding(one) for one in answer.get("findings", ()) if one["level"] != "note"]
        return f"lint: {'; '.join(told) or _error(answer)}"
    status, answer = _patchkit(work, "apply", patch)
    if status:
        return f"apply, {_error(answer)}"
    wrong = _judge(work, below(work.site), left)
    status, answer = _patchkit(work, "revert", patch)
    if status:
        return wrong or f"revert, {_error(answer)}"
    now = below(work.site)
    back = sorted(path for path in work.pristine.keys() | now.keys() if work.pristine.get(path) != now.get(path))
    return wrong or (f"not back after revert: {', '.join(back)}" if back else "")


def _finding(one: Mapping[str, Any]) -> str:
    return f"{os.path.basename(one['path'])}:{one['line']}: {one['key']}: {one['message']}"


def _judge(work: Work, now: Mapping[str, bytes], left: Sequence[Mapping[str, str]]) -> str:
    """Whether every file is the new release's, or as it was where it is named as left out. An empty ``now``: as was."""
    now = now or work.pristine
    out = {re.sub("^src/", "", one["path"]) for one in left}
    wrong = []
    for path in sorted(now.keys() | work.new.keys()):
        ours = path in work.old or path in work.new
        wanted = work.pristine.get(path) if path in out or not ours else getattr(work.new.get(path), "data", None)
        if now.get(path) != wanted:
            wrong.append(path)
    return f"other bytes, and not named as left out: {', '.join(wrong)}" if wrong else ""


def _neighbour(work: Work, before: str, diff: bytes) -> dict[str, Any]:
    """The diff on the release before: every hunk where a three-way merge has it, or reported.

    A hunk without a place refuses the whole diff, so its file is left out then, as the error's hint says.
    """
    site = os.path.join(work.folder, "before")
    unpack(before, site)
    was = below(site)
    found: dict[str, Any] = {"failed": "", "left": [], "hunks": diff.count(b"\n@@ "), "unplaced": 0, "unjudged": []}
    name, options = "carried", list[str]()
    status, answer = _import(work, diff, name, site=site)
    if status and answer["error"]["code"] == "hunks":
        found.update(reported=_error(answer), hunks=answer["error"]["total"], unplaced=answer["error"]["failing"])
        for path in dict.fromkeys(one["path"] for one in answer["error"]["hunks"]):
            options += ["--exclude", path]
        status, answer = _import(work, diff, name, *options, site=site)
    if status:
        if answer["error"]["code"] in ("present", "nothing-changed"):
            return {**found, "reported": found.get("reported") or _error(answer)}
        return {**found, "failed": _error(answer)}
    status, applied = _patchkit(work, "apply", name, site=site)
    if status:
        return {**found, "failed": f"apply, {_error(applied)}"}
    now = below(site)
    wrong = []
    for path in sorted(path for path in was.keys() | now.keys() if was.get(path) != now.get(path)):
        if path not in work.new:  # deleted: no line of the file may have been another one here
            if now.get(path) is not None or was.get(path) != work.old[path].data:
                wrong.append(path)
            continue
        merged = _merge(work, was.get(path), path)
        if merged is None:
            found["unjudged"].append(path)
        elif merged != now.get(path):
            wrong.append(path)
    if wrong:
        return {**found, "failed": f"other bytes than a three-way merge makes: {', '.join(wrong)}"}
    return found


def _merge(work: Work, mine: bytes | None, path: str) -> bytes | None:
    """What ``git merge-file`` makes of the old release's change on other bytes; None where it sees a conflict."""
    if mine is None or path not in work.old:
        return work.new[path].data
    with tempfile.TemporaryDirectory(dir=work.folder) as folder:
        for side, data in (("mine", mine), ("base", work.old[path].data), ("theirs", work.new[path].data)):
            with open(os.path.join(folder, side), "wb") as file:
                file.write(data)
        done = subprocess.run(["git", "merge-file", "-p", "mine", "base", "theirs"], cwd=folder, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def _carried(before: str, pair: Pair, path: str) -> tuple[int, int] | None:
    """How many edits of the created patch fit the release before, each by itself, and how many there are."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        patch = parse_patch(file.read(), path)
    fitting = 0
    with zipfile.ZipFile(before) as archive:
        files = WheelFiles(archive, pair.name, str(pair.before))
        for edit in patch.edits:
            try:
                plan_patch(patch._replace(edits=(edit,), adds=(), removes=()), files, HostGrammar())
            except PlanError:
                continue
            fitting += 1
    return fitting, len(patch.edits)
