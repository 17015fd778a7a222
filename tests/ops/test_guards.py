"""Guards, as whole commands: what must be installed is checked before anything is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import CORE, Bench
from support.dists import make_dist
from support.interpreters import find_python

EDIT = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'


def apply(bench: Bench) -> tuple[int, str]:
    run = bench.json("apply", "p")
    if run.status:
        assert bench.pristine()
        assert run.error["hint"]
    return run.status, run.error["code"] if run.error else ""


def test_a_target_that_is_not_installed(bench: Bench) -> None:
    bench.patch("p", EDIT, requirement="other>=1")
    assert apply(bench) == (3, "not-installed")


@pytest.mark.parametrize(
    ("installed", "requirement", "status"),
    [
        ("1.0", "demo>=1,<2", 0),
        ("1.0", "demo>=2", 3),
        ("1.0", "Demo==1.0.0", 0),
        ("2.0rc1", "demo>=1,<3", 0),  # a prerelease counts as any version does
        ("2.0rc1", "demo>=2.0", 3),
        ("2.0.dev3", "demo<2.0", 3),  # PEP 440: "<2.0" leaves out the prereleases of 2.0
        ("1.5+cpu", "demo==1.5", 0),  # a local version satisfies the public one
        ("1.5+cpu", "demo>1.5", 3),
        ("1.5.post1", "demo>=1.5", 0),
    ],
)
def test_versions(bench: Bench, installed: str, requirement: str, status: int) -> None:
    bench.install(installed)
    bench.patch("p", EDIT, requirement=requirement)
    assert apply(bench) == (status, "version" if status else "")


def test_the_advice_of_the_patch_is_the_hint(bench: Bench) -> None:
    bench.patch("p", EDIT, requirement="demo>=2", target='otherwise = "Before 2 set DEMO_FAST=1 instead."')
    run = bench("apply", "p")
    assert run.status == 3
    assert run.err == ("error: p: demo 1.0 is installed; required: demo>=2\nhint: Before 2 set DEMO_FAST=1 instead.\n")


@pytest.mark.parametrize("spelling", ["Foo_Bar", "foo-bar", "FOO.BAR"])
def test_names_are_normalised(bench: Bench, spelling: str) -> None:
    make_dist(bench.site, "foo_bar", "1.0", {"foo_bar.py": "A = 1\n"})
    bench.patch("p", '[[edit]]\nfile = "foo_bar.py"\nfind = "A = 1"\nreplace = "A = 2"\n', requirement=spelling)
    assert bench("apply", "p").status == 0
    assert bench.read("foo_bar.py") == b"A = 2\n"


@pytest.mark.parametrize(
    ("requires", "status"),
    [("other>=1", 0), ("other>=2", 3), ("missing", 3), ("missing; python_version < '3'", 0)],
)
def test_further_requirements(bench: Bench, requires: str, status: int) -> None:
    make_dist(bench.site, "other", "1.5", {"other.py": ""})
    bench.patch("p", EDIT, target=f'requires = ["{requires}"]')
    assert apply(bench) == (status, "requires" if status else "")


@pytest.mark.parametrize(
    ("marker", "status"), [("python_version >= '3.0'", 0), ("python_version < '3.0'", 3), ("sys_platform == 'none'", 3)]
)
def test_markers(bench: Bench, marker: str, status: int) -> None:
    bench.patch("p", EDIT, requirement=f"demo; {marker}")
    assert apply(bench) == (status, "marker" if status else "")


def test_an_editable_target(bench: Bench) -> None:
    source = bench.root / "source"
    source.mkdir()
    direct = {"url": source.as_uri(), "dir_info": {"editable": True}}
    make_dist(bench.site, "dev", "1.0", {}, info_files={"direct_url.json": json.dumps(direct)})
    bench.patch("p", EDIT, requirement="dev")
    run = bench.json("apply", "p")
    assert (run.status, run.error["code"]) == (3, "editable")
    assert run.error["hint"] == f"edit it there: {source}"


def test_edits_for_versions(bench: Bench) -> None:
    body = EDIT.replace("[[edit]]", '[[edit]]\nversions = "<2"') + EDIT.replace(
        "[[edit]]", '[[edit]]\nversions = ">=2,<3"'
    ).replace("x + x", "x + x + 0").replace("2 * x", "2 * x + 0")
    bench.patch("p", body)
    assert apply(bench) == (0, "")
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()
    newer = CORE.replace("x + x", "x + x + 0")
    bench.install("2.1", {**bench.files, "demo/core.py": newer})
    assert bench("apply", "p").status == 0
    assert bench.read("demo/core.py") == newer.replace("x + x", "2 * x").encode()
    bench.install("3.0")
    run = bench("apply", "p")
    assert run.status == 3
    assert run.err.startswith("error: p: has no edit for version 3.0; it has edits for <2 and >=2,<3\n")
    assert bench.pristine()


def test_added_files_for_versions(bench: Bench) -> None:
    bench.patch("p", EDIT + '[[add]]\nfile = "demo/extra.py"\ncontent = ""\nversions = ">=2"\n')
    assert apply(bench) == (0, "")
    assert not (bench.site / "demo/extra.py").exists()


def test_the_guard_stands_before_the_files(bench: Bench) -> None:
    (bench.site / "demo/core.py").unlink()
    bench.patch("p", EDIT, requirement="demo>=2")
    assert bench("apply", "p").status == 3


def test_a_distribution_without_record(bench: Bench) -> None:
    make_dist(bench.site, "bare", "1.0", {"bare.py": "A = 1\n"}, record=False, info_files={"top_level.txt": "bare\n"})
    bench.patch("p", '[[edit]]\nfile = "bare.py"\nfind = "A = 1"\nreplace = "A = 2"\n', requirement="bare")
    assert bench("apply", "p").status == 0
    assert bench("revert", "p").status == 0
    assert bench.read("bare.py") == b"A = 1\n"


def test_the_site_of_a_virtual_environment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """$VIRTUAL_ENV, then the interpreter that patchkit runs in; --python and $PATCHKIT_PYTHON go before."""
    import venv

    from patchkit.cli.main import main

    environment = bench.root / "env"
    venv.create(environment, with_pip=False)
    site = environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    make_dist(site, "demo", "1.0", bench.files)
    bench.patch("p", EDIT)
    options = ["--patches", str(bench.patches)]
    changed = CORE.replace("x + x", "2 * x")
    assert main([*options, "--python", str(environment / "bin/python"), "apply", "p"]) == 0
    assert (site / "demo/core.py").read_text() == changed
    monkeypatch.setenv("PATCHKIT_PYTHON", str(environment / "bin/python"))
    assert main([*options, "revert", "p"]) == 0
    assert (site / "demo/core.py").read_text() == CORE
    monkeypatch.delenv("PATCHKIT_PYTHON")
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    assert main([*options, "apply", "p"]) == 0
    assert (site / "demo/core.py").read_text() == changed
    assert bench.pristine()


GRAMMARS = [
    (".".join(map(str, sys.version_info[:2])), "match = x", 0),
    ("3.8", "match = x", 0),
    ("3.8", "match x:\\n        case _: pass", 4),  # no match statement before 3.10
    ("3.9", "match x:\\n        case _: pass", 4),
    ("3.12", "type T = int", 0),  # the grammar of a Python later than patchkit's own may be
    ("3.12", "match x:\\n        case _: pass", 0),
]


@pytest.mark.parametrize(("version", "text", "status"), [case for case in GRAMMARS if find_python(case[0])])
def test_the_grammar_is_the_sites(bench: Bench, version: str, text: str, status: int) -> None:
    python = find_python(version)
    assert python is not None
    environment = bench.root / "env"
    subprocess.run([python, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = environment / "lib" / f"python{version}" / "site-packages"
    make_dist(site, "demo", "1.0", bench.files)
    bench.patch(
        "p", EDIT.replace("y = 2 * x", f"y = 2 * x\\n    {text}"), requirement=f"demo; python_version == '{version}'"
    )
    capture = subprocess.run(
        [sys.executable, "-m", "patchkit", "--python", str(environment), "--patches", str(bench.patches), "apply", "p"],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        cwd=bench.root / "work",
        capture_output=True,
        text=True,
    )
    assert capture.returncode == status, capture.stderr
    if status:
        assert "demo/core.py would not parse any more" in capture.stderr
        assert (site / "demo/core.py").read_text() == CORE
    else:
        ending = text.replace("\\n", "\n")
        assert (site / "demo/core.py").read_text() == CORE.replace("x + x", f"2 * x\n    {ending}")
