"""Commands on several folders take their locks in one order, whatever the path of each environment says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from concurrency.arena import environment
from support.dists import make_dist

#: Locks its first folder, and goes on when the other process has its first as well, or cannot get it.
PROGRAM = """
import contextlib, os, sys, time
from pathlib import Path
import patchkit.state.lock as locks
from support.sites import bare_site
from patchkit.errors import PatchkitError
from patchkit.ops.catalog import open_catalog
from patchkit.ops.revert import revert_site
from patchkit.ops.sync import sync_site

kind, own, other, patches, *homes = sys.argv[1:]
real, first = locks.lock, [True]

@contextlib.contextmanager
def meeting(home, **options):
    with real(home, **options):
        if first:
            first.clear()
            Path(own).touch()
            end = time.monotonic() + 0.7
            while not os.path.exists(other) and time.monotonic() < end:
                time.sleep(0.01)
        yield

locks.lock = meeting
site = bare_site(*map(Path, homes))
try:
    if kind == "revert":
        revert_site(site, (), everything=True, notice=print)
    else:
        sync_site(site, open_catalog([patches]), notice=print)
except PatchkitError as error:
    sys.exit(f"{error.code}: {error}")
"""


@pytest.mark.parametrize("kind", ["revert", "sync"])
def test_two_that_name_the_folders_the_other_way_round_do_not_wait_for_each_other(tmp_path: Path, kind: str) -> None:
    patches = tmp_path / "patches"
    patches.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        name = home.name
        make_dist(home, name, "1.0", {f"{name}/__init__.py": "V = 1\n"})
        (patches / f"p-{name}.toml").write_text(
            f'schema = 1\nname = "p-{name}"\nsummary = "s"\n[target]\nrequirement = "{name}"\n'
            f'[[edit]]\nfile = "{name}/__init__.py"\nfind = "V = 1"\nreplace = "V = 2"\n'
        )
        applied = subprocess.run(
            [sys.executable, "-m", "patchkit", "--site", str(home), "--patches", str(patches), "apply", f"p-{name}"],
            env=environment(),
            cwd=work,
            capture_output=True,
            text=True,
        )
        assert applied.returncode == 0, applied.stderr
    if kind == "sync":  # both have something to do in both
        (work / "pyproject.toml").write_text(f'[tool.patchkit]\npatches = "{patches.as_posix()}"\napply = []\n')
    marks = [tmp_path / "mark-1", tmp_path / "mark-2"]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, kind, str(own), str(other), str(patches), *map(str, order)],
            env=environment(PATCHKIT_WAIT="10"),
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for own, other, order in ((*marks, homes), (*reversed(marks), homes[::-1]))
    ]
    results = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    assert [(home / home.name / "__init__.py").read_text() for home in homes] == ["V = 1\n", "V = 1\n"]
