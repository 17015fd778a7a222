"""What one call of patchkit costs, as a multiple of ``python -c pass`` of the same interpreter in the same run.

    python benchmarks/startup.py [--quick] [--json] [--wheel FILE]

The wheel is the real case: tpu-inference and its ``tpu_runner.py`` of 156 kB. Without ``--wheel`` pip fetches it into
the temporary directory; where that fails, the rows on the real file are left out and a line says so. Writes nothing
outside a temporary directory and always exits 0: benchmarks inform, they gate nothing.
"""

from __future__ import annotations

import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence

from measure import (
    Row,
    cpu_seconds,
    environment,
    make_dist,
    patchkit_command,
    ratio_to_bare,
    report,
    settle,
    source,
    versions,
    write_patch,
)

WHEEL = "tpu-inference==0.32.0"
RUNNER = "tpu_inference/runner/tpu_runner.py"
CHECK_BAR = 8.0
TEXT_BAR = 10.0
SYNTAX_BAR = 30.0
REQUIRE_BAR = 5.0
PATCHES = 50

#: Modules that would mean that ``require`` parses something.
PARSERS = ("ast", "tokenize", "json", "tomllib", "re", "argparse", "packaging", "importlib.metadata")

_REQUIRE = """\
import sys, time
names = sys.argv[2:]
sys.path.append(sys.argv[1])
begin = time.process_time()
import patchkit
patchkit.require(*names)
spent = time.process_time() - begin
print(spent * 1000, *(name for name in {parsers!r} if name in sys.modules))
"""


class Case:
    """A site in a temporary directory, its patches, and the command lines on it."""

    def __init__(self, root: str, name: str) -> None:
        self.root = os.path.join(root, name)
        self.site = os.path.join(self.root, "packages")
        self.patches = os.path.join(self.root, "patches")
        os.makedirs(self.site)
        os.makedirs(self.patches)
        self._program = patchkit_command(self.root)

    def command(self, *words: str) -> list[str]:
        """The command line of ``patchkit WORDS`` on this site."""
        return [*self._program, "--site", self.site, "--patches", self.patches, *words]

    def run(self, *words: str) -> None:
        """Run it, unmeasured."""
        log = os.path.join(self.root, "log")
        try:
            cpu_seconds(self.command(*words), cwd=self.root, output=log)
        except RuntimeError as error:
            with open(log, encoding="utf-8", errors="replace") as file:
                raise RuntimeError(f"{error}:\n{file.read()}") from None

    def row(self, name: str, bar: float, repeat: int, *words: str, reset: Sequence[str] = ()) -> Row:
        """Measure ``patchkit WORDS``; ``reset`` is the command that undoes it."""
        ratio, seconds = ratio_to_bare(
            self.command(*words),
            cwd=self.root,
            repeat=repeat,
            reset=(lambda: self.run(*reset)) if reset else None,
        )
        return Row(name, ratio, "x", bar, f"{seconds * 1000:.0f} ms")


def many_patches(root: str, repeat: int) -> list[Row]:
    """``check``, ``sync`` with nothing to do and ``require``, with fifty patches on fifty files."""
    case = Case(root, "many")
    files = {f"demo/module_{n}.py": source(40, start=n).encode() for n in range(PATCHES)}
    make_dist(case.site, "demo", {"demo/__init__.py": b"", **files})
    names = [f"patch-{n}" for n in range(PATCHES)]
    for number, name in enumerate(names):
        find = f"    return value_{number}_0\n"
        edit = {"file": f"demo/module_{number}.py", "find": find, "replace": find + "    # patched\n"}
        write_patch(case.patches, name, "demo", [edit])
    settle()
    case.run("apply", *names)
    settle()
    rows = [
        case.row(f"check, {PATCHES} applied patches", CHECK_BAR, repeat, "check"),
        case.row(f"check --json, {PATCHES} applied patches", CHECK_BAR, repeat, "--json", "check"),
        case.row(f"sync with nothing to do, {PATCHES} patches", TEXT_BAR, repeat, "sync"),
    ]
    for asked in (names[:1], names):
        spent, parsers = require_cost(case, asked, repeat)
        name = f"require, {len(asked)} of {PATCHES} patches"
        rows.append(Row(name, spent, " ms", REQUIRE_BAR, "CPU within the process"))
    rows.append(Row("parsers that require imports", len(parsers), "", 0, ", ".join(parsers)))
    return rows


def require_cost(case: Case, names: Sequence[str], repeat: int) -> tuple[float, list[str]]:
    """Milliseconds of CPU that ``import patchkit; patchkit.require(...)`` adds, and the parsers it imported."""
    best, parsers = float("inf"), []
    for _ in range(repeat + 1):
        done = subprocess.run(
            [sys.executable, "-c", _REQUIRE.format(parsers=PARSERS), case.site, *names],
            env=environment(),
            cwd=case.root,
            capture_output=True,
            text=True,
            check=True,
        )
        spent, *parsers = done.stdout.split()
        best = min(best, float(spent))
    return best, parsers


def small_file(root: str, repeat: int) -> list[Row]:
    """One text edit of a file of 10 kB, with and without ``scope``; and taking it out again."""
    case = Case(root, "small")
    text = source(20)
    make_dist(case.site, "demo", {"demo/__init__.py": b"", "demo/core.py": text.encode()})
    find = "    return value_7_0\n"
    edit = {"file": "demo/core.py", "find": find, "replace": "    return value_7_1\n"}
    write_patch(case.patches, "plain", "demo>=1,<2", [edit])
    write_patch(case.patches, "scoped", "demo>=1,<2", [{**edit, "scope": "function_7"}])
    settle()
    size = f"{len(text) // 1000} kB"
    return [
        case.row(f"text apply, {size}", TEXT_BAR, repeat, "apply", "plain", reset=("revert", "--all")),
        case.row(f"apply of what is applied, {size}", TEXT_BAR, repeat, "apply", "plain", reset=("apply", "plain")),
        case.row(f"revert, {size}", TEXT_BAR, repeat, "revert", "plain", reset=("apply", "plain")),
        case.row(f"text apply with scope, {size}", TEXT_BAR, repeat, "apply", "scoped", reset=("revert", "--all")),
    ]


def real_file(root: str, wheel: str, repeat: int) -> list[Row]:
    """Text and syntax edits of ``tpu_runner.py``, and the same one-line change by ``git apply`` and GNU ``patch``."""
    case = Case(root, "real")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(case.site)
    target = os.path.join(case.site, *RUNNER.split("/"))
    with open(target, encoding="utf-8") as file:
        text = file.read()
    find = "            logits = logits.astype(jnp.float32)\n"
    if text.count(find) != 1:
        raise RuntimeError(f"{wheel}: {RUNNER} has another text than {WHEEL}")
    replace = "            logits = logits.astype(jnp.bfloat16)\n"
    scope = "TPUModelRunner._sample_from_logits"
    plain = {"file": RUNNER, "find": find, "replace": replace}
    syntax = {
        "file": RUNNER,
        "scope": scope,
        "match": "$L = $L.astype(jnp.float32)",
        "count": 3,
        "nth": 1,
        "replace": "$L = $L.astype(jnp.bfloat16)",
    }
    write_patch(case.patches, "plain", "tpu-inference", [plain])
    write_patch(case.patches, "scoped", "tpu-inference", [{**plain, "scope": scope}])
    write_patch(case.patches, "syntax", "tpu-inference", [syntax])
    whole = {key: value for key, value in syntax.items() if key != "scope"}
    write_patch(case.patches, "syntax-whole", "tpu-inference", [whole])
    settle()
    size = f"{len(text.encode()) // 1000} kB"
    undo = ("revert", "--all")
    rows = [
        case.row(f"text apply, {size}", TEXT_BAR, repeat, "apply", "plain", reset=undo),
        case.row(f"revert, {size}", TEXT_BAR, repeat, "revert", "plain", reset=("apply", "plain")),
        case.row(f"text apply with scope, {size}", TEXT_BAR, repeat, "apply", "scoped", reset=undo),
        case.row(f"syntax apply with scope, {size}", SYNTAX_BAR, repeat, "apply", "syntax", reset=undo),
        case.row(f"syntax apply, whole file, {size}", SYNTAX_BAR, repeat, "apply", "syntax-whole", reset=undo),
    ]
    case.run(*undo)
    return rows + peers(case, text, find, replace, repeat)


def peers(case: Case, text: str, find: str, replace: str, repeat: int) -> list[Row]:
    """The tools that lay a unified diff, for scale: they prove nothing, record nothing and are written in C."""
    import difflib

    before = text.splitlines(keepends=True)
    after = text.replace(find, replace).splitlines(keepends=True)
    diff = os.path.join(case.root, "one-line.diff")
    with open(diff, "w", encoding="utf-8") as file:
        file.writelines(difflib.unified_diff(before, after, f"a/{RUNNER}", f"b/{RUNNER}"))
    folder = os.path.join(case.root, "plain-copy")
    target = os.path.join(folder, *RUNNER.split("/"))
    os.makedirs(os.path.dirname(target))

    def reset() -> None:
        with open(target, "w", encoding="utf-8", newline="") as out:
            out.write(text)

    rows = []
    for tool, command in (("git", ["git", "apply", diff]), ("patch", ["patch", "-s", "-p1", "-i", diff])):
        if shutil.which(tool) is not None:
            ratio, seconds = ratio_to_bare(command, cwd=folder, repeat=repeat, reset=reset)
            name = "git apply" if tool == "git" else "GNU patch"
            rows.append(Row(f"({name}, the same line)", ratio, "x", None, f"{seconds * 1000:.1f} ms"))
    return rows


def find_wheel(given: str | None, folder: str) -> str | None:
    """The wheel's path; None where it is not given and pip cannot fetch it."""
    if given is not None:
        return given
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, WHEEL]
    done = subprocess.run(command, capture_output=True, check=False)
    found = glob.glob(os.path.join(folder, "*.whl"))
    return found[0] if done.returncode == 0 and found else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="three processes a row instead of fifteen")
    parser.add_argument("--wheel", metavar="FILE", help=f"a wheel of {WHEEL}; fetched by pip by default")
    options = parser.parse_args()
    repeat = 3 if options.quick else 15
    with tempfile.TemporaryDirectory(prefix="patchkit-startup-") as root:
        rows = many_patches(root, repeat) + small_file(root, repeat)
        wheel = find_wheel(options.wheel, root)
        if wheel is None:
            print(f"{WHEEL} cannot be had: the rows on the real file are left out", file=sys.stderr)
        else:
            rows += real_file(root, wheel, repeat)
        bare = min(cpu_seconds([sys.executable, "-c", "pass"], cwd=root) for _ in range(repeat))
    report(rows, as_json=options.json, more={**versions(), "bare": f"{bare * 1000:.1f} ms"})


if __name__ == "__main__":
    main()
