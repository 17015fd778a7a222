"""`patchkit` from Python: the same operations as the commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import CORE, Bench

import patchkit
from patchkit.errors import GuardError, PlanError, SiteError, UsageError

ROOT = Path(__file__).resolve().parents[2]
DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
DOUBLED = CORE.replace("x + x", "2 * x").encode()


def test_the_life_of_a_patch(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    path = bench.patch("double", DOUBLE)
    site = str(bench.site)
    patch = patchkit.load(path)
    assert (patch.name, patch.target.requirement) == ("double", "demo")
    assert patchkit.load("double", patches=[str(bench.patches)]) == patch
    planned = patchkit.plan(patch, site=site)
    assert planned.dry_run
    assert [(p.name, p.action) for p in planned.patches] == [("double", "applied")]
    assert planned.patches[0].files[0].after == DOUBLED
    assert bench.pristine()
    with pytest.raises(SiteError, match="is not applied here"):
        patchkit.require("double", site=site)
    done = patchkit.apply("double", site=site, patches=[str(bench.patches)])
    assert (done.written, done.patches[0].action) == (1, "applied")
    assert bench.read("demo/core.py") == DOUBLED
    patchkit.require("double", site=site)
    [state] = patchkit.check(site=site, patches=[str(bench.patches)])
    assert (state.name, state.state, state.clean) == ("double", "applied", True)
    back = patchkit.revert("double", site=site)
    assert [(p.name, p.action) for p in back.patches] == [("double", "reverted")]
    assert bench.pristine()
    with pytest.raises(SiteError, match="double: absent: is not applied here"):  # "never" would be wrong now
        patchkit.require("double", site=site)
    assert capsys.readouterr() == ("", "")


def test_a_site_may_be_an_object(bench: Bench) -> None:
    from patchkit.site.environment import resolve

    site = resolve(None, str(bench.site))
    patchkit.apply(str(bench.patch("double", DOUBLE)), site=site)
    patchkit.require("double", site=site)
    patchkit.revert(site=site, everything=True)
    assert bench.pristine()


def test_errors_are_raised(bench: Bench) -> None:
    site = str(bench.site)
    with pytest.raises(UsageError):
        patchkit.load("nowhere")
    with pytest.raises(GuardError):
        patchkit.apply(str(bench.patch("p", DOUBLE, requirement="other")), site=site)
    with pytest.raises(PlanError) as caught:
        patchkit.apply(str(bench.patch("p", DOUBLE.replace("x + x", "x + z"))), site=site)
    assert caught.value.code == "anchor-missing"
    assert isinstance(caught.value, patchkit.PatchkitError)
    assert bench.pristine()


@pytest.mark.parametrize(
    ("happens", "state"),
    [("reinstall", "lost"), ("upgrade", "stale"), ("uninstall", "uninstalled"), ("edit", "modified")],
)
def test_require_notices_drift(bench: Bench, happens: str, state: str) -> None:
    patchkit.apply(str(bench.patch("double", DOUBLE)), site=str(bench.site))
    match happens:
        case "reinstall":
            bench.install("1.0")
        case "upgrade":
            bench.install("2.0")
        case "uninstall":
            bench.uninstall()
        case _:
            bench.write("demo/core.py", b"")
    with pytest.raises(SiteError) as caught:
        patchkit.require("double", site=str(bench.site))
    assert caught.value.code == "not-applied"
    assert [item["state"] for item in caught.value.details["patches"]] == [state]
    assert caught.value.hint


def test_require_in_a_process_that_has_the_site_on_its_path(bench: Bench) -> None:
    """Through the package, and without a parser or anything else that takes long to import."""
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    code = (
        "import sys; before = set(sys.modules)\n"
        "import patchkit; patchkit.require('double')\n"
        "slow = {'ast', 'tomllib', 'json', 're', 'dataclasses', 'packaging', 'pathlib', 'typing', 'argparse'}\n"
        "print(sorted((set(sys.modules) - before) & slow))\n"
        "from demo.core import double; print(double.__code__.co_consts)\n"
    )
    command = [
        sys.executable,
        "-S",
        "-E",
        "-c",
        f"import sys; sys.path[:0] = {[str(bench.site), str(ROOT)]!r}\n" + code,
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=bench.root / "work")
    assert done.stdout == "[]\n(None, 2)\n", done.stderr
    bench("revert", "double")
    done = subprocess.run(command, capture_output=True, text=True, cwd=bench.root / "work")
    assert done.returncode == 1
    assert "not every required patch is applied" in done.stderr


def test_the_package_tells_what_it_has() -> None:
    verbs = {"apply", "check", "load", "plan", "rebench", "require", "revert"}
    assert set(dir(patchkit)) == {"PatchkitError", "__version__", *verbs}
    with pytest.raises(AttributeError, match="nothing"):
        _ = patchkit.nothing  # type: ignore[attr-defined]
