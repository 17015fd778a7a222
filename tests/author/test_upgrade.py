"""``matrix --upgrade``: would the patches of a site survive, asked of wheels made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bench import Bench
from support.dists import keep_wheel

from patchkit.author.upgrade import check_upgrade
from patchkit.errors import GuardError, UsageError
from patchkit.site.environment import resolve

CORE = "def double(x):\n    y = x + x\n    return y\n"
EDIT = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
UPSTREAMED = '[[upstreamed]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\n'
#: The edit fits 1.0 and 1.1; its scope is gone in 1.2; 2.0 has the change.
RELEASES = {
    "1.0": {"demo/core.py": CORE},
    "1.1": {"demo/core.py": "import os\n" + CORE},
    "1.2": {"demo/core.py": CORE.replace("double", "twice")},
    "2.0": {"demo/core.py": CORE.replace("x + x", "2 * x")},
}


def keep(cache: Path, version: str, files: dict[str, str]) -> Path:
    """Put a release of ``demo`` into the cache."""
    return keep_wheel(cache, "demo", version, files)


@pytest.fixture
def applied(bench: Bench, tmp_path: Path) -> Bench:
    """A site with ``demo 1.0`` and the patch ``fix`` applied."""
    bench.files = {**RELEASES["1.0"]}
    bench.install("1.0")
    bench.patch("fix", EDIT + UPSTREAMED, requirement="demo>=1.0,<2")
    assert bench("apply", "fix").status == 0
    for version, files in RELEASES.items():
        keep(tmp_path / "cache", version, files)
    return bench


@pytest.mark.parametrize(
    ("version", "state", "status"), [("1.1", "survives", 0), ("1.2", "needs-port", 1), ("2.0", "upstreamed", 0)]
)
def test_an_upgrade_is_judged_before_it_is_made(applied: Bench, version: str, state: str, status: int) -> None:
    before = applied.read("demo/core.py")
    run = applied.json("matrix", "--upgrade", f"demo=={version}", "--offline")
    assert [(p["name"], p["state"]) for p in run.json["patches"]] == [("fix", state)]
    assert (run.status, run.json["installed"]) == (status, "1.0")
    assert applied.read("demo/core.py") == before
    text = applied("matrix", "--upgrade", f"demo=={version}", "--offline")
    assert text.status == status
    assert ("patchkit port fix --to 1.2" in text.out) == (version == "1.2")


def test_an_upgrade_out_of_the_requirement_is_refused_although_it_fits(applied: Bench, tmp_path: Path) -> None:
    keep(tmp_path / "cache", "3.0", {"demo/core.py": CORE})
    run = applied.json("matrix", "--upgrade", "demo==3.0", "--offline")
    assert [p["state"] for p in run.json["patches"]] == ["refused"]
    assert run.status == 1
    assert "see: patchkit port fix --to 3.0" in applied("matrix", "--upgrade", "demo==3.0", "--offline").out


def test_an_upgrade_is_judged_by_the_grammar_of_the_site(applied: Bench) -> None:
    """What this Python could read counts for nothing where the site's is older."""
    newer = '"""\n    match x:\n        case _:\n            y = 2 * x\n"""'
    later = EDIT.replace('"y = x + x"', '"    y = x + x\\n"').replace('"y = 2 * x"', newer) + 'versions = ">=1.1"\n'
    applied.patch("fix", EDIT + 'versions = "<1.1"\n' + later, requirement="demo")
    assert applied("matrix", "--upgrade", "demo==1.1", "--offline").status == 0
    applied.site = applied.root / "lib" / "python3.9" / "site-packages"
    applied.install("1.0")
    assert applied("apply", "fix").status == 0
    run = applied.json("matrix", "--upgrade", "demo==1.1", "--offline")
    assert (run.status, [(p["name"], p["state"]) for p in run.json["patches"]]) == (1, [("fix", "needs-port")])


def test_an_upgrade_is_judged_with_the_other_patches_laid_on(applied: Bench, tmp_path: Path) -> None:
    """The second patch edits what the first one writes: by itself, it fits no release."""
    second = EDIT.replace('"y = x + x"', '"y = 2 * x"', 1).replace('replace = "y = 2 * x"', 'replace = "y = x * 2"')
    applied.patch("second", second, requirement="demo>=1.0,<2", target='after = ["fix"]')
    assert applied("apply", "second").status == 0
    run = applied.json("matrix", "--upgrade", "demo==1.1", "--offline")
    assert [(p["name"], p["state"]) for p in run.json["patches"]] == [("fix", "survives"), ("second", "survives")]
    run = applied.json("matrix", "--upgrade", "demo==2.0", "--offline")
    assert [(p["name"], p["state"]) for p in run.json["patches"]] == [("fix", "upstreamed"), ("second", "refused")]


def test_an_upgrade_is_judged_by_the_ledger_s_copy_where_the_file_is_gone(applied: Bench) -> None:
    (applied.patches / "fix.toml").unlink()
    run = applied.json("matrix", "--upgrade", "demo==1.1", "--offline")
    assert [(p["state"], p["source"]) for p in run.json["patches"]] == [("survives", None)]


def test_an_upgrade_of_what_is_not_patched_says_so(applied: Bench) -> None:
    run = applied.json("matrix", "--upgrade", "other==1.0", "--offline")
    assert (run.status, run.error["code"]) == (3, "not-applied")
    assert "demo" in run.error["hint"]


@pytest.mark.parametrize("broken", ["syntax", "pattern", "other", "key"])
def test_a_file_that_is_wrong_by_now_is_passed_over_for_the_ledger_s_copy(applied: Bench, broken: str) -> None:
    """The command goes on, and a file for another distribution says nothing about this one."""
    path = applied.patches / "fix.toml"
    if broken == "syntax":
        path.write_text("schema = \n")
    elif broken == "pattern":
        applied.patch("fix", EDIT.replace('find = "y = x + x"', 'match = "y = ("'), requirement="demo")
    elif broken == "other":
        applied.patch("fix", EDIT, requirement="other")
    else:
        applied.patch("fix", EDIT + "new = 1\n", requirement="demo")
    for version, state in (("1.1", "survives"), ("2.0", "upstreamed")):  # the latter by the copy alone
        run = applied.json("matrix", "--upgrade", f"demo=={version}", "--offline")
        (patch,) = run.json["patches"]
        assert (patch["state"], patch["source"]) == (state, None)
        assert "fix" in patch["passed_over"]
    said = " ".join(applied("matrix", "--upgrade", "demo==1.1", "--offline").out.split())
    assert "judged by the ledger's copy of the patch, since its file cannot be: " in said


def test_the_function_itself(applied: Bench) -> None:
    site = resolve(directory=str(applied.site))
    found = check_upgrade(site, " Demo == 1.1 ", find_patch=lambda name, source: source, offline=True)
    assert (found.distribution, found.version, found.installed, found.ok) == ("Demo", "1.1", "1.0", True)
    (patch,) = found.patches
    assert (patch.name, patch.state, patch.applied_version) == ("fix", "survives", "1.0")
    assert (patch.source, patch.passed_over) == (str(applied.patches / "fix.toml"), None)
    found = check_upgrade(site, "demo==1.2", find_patch=lambda name, source: None, offline=True)
    assert (found.ok, found.patches[0].verdict.code, found.patches[0].source) == (False, "scope-missing", None)
    for wrong in ("demo", "demo==", "==1.0"):
        with pytest.raises(UsageError, match="is not DIST==VERSION"):
            check_upgrade(site, wrong, find_patch=lambda name, source: None)
    with pytest.raises(GuardError, match="no patch of other is applied"):
        check_upgrade(site, "other==1.0", find_patch=lambda name, source: None)
