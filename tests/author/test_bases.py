"""``port`` on released wheels: where it starts, by which grammar, and what it proposes to type and writes."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

import pytest
from support.bench import Bench
from support.dists import damage_member
from support.porting import EDIT, OLD, Porter

from patchkit.author.bases import find_base, port_to
from patchkit.cli.main import main
from patchkit.errors import PlanError, SiteError
from patchkit.model.load import load_patch

MOVED = OLD.replace("        self.done += 1\n", "        self.count(1)\n")


@pytest.fixture
def porter(bench: Bench, tmp_path: Path) -> Porter:
    return Porter(bench, tmp_path / "cache")


def test_the_nearest_older_release_comes_first(porter: Porter) -> None:
    patch = load_patch(str(porter.patch(requirement="demo>=1.0,<4")))
    assert find_base(patch, ["0.9", "1.0", "2.0", "3.0", "3.5", "4.0"], "3.0") == ["2.0", "1.0", "3.5"]
    with pytest.raises(SiteError, match="there is no release to port from") as caught:
        find_base(patch, ["0.9", "3.0"], "3.0")
    assert caught.value.code == "fetch"


def test_it_starts_from_the_first_that_it_fits(porter: Porter) -> None:
    for version, text in {"1.1": OLD, "1.2": MOVED, "2.0": MOVED}.items():
        porter.release(version, {"demo/core.py": text})
    patch = load_patch(str(porter.patch()))
    said: list[str] = []
    found = port_to(patch, "2.0", offline=True, progress=lambda done, total, what: said.append(what))
    assert (found.old_version, found.new_version, found.state) == ("1.1", "2.0", "ported")
    assert [version for version, _ in found.between] == ["1.2"]
    assert said == ["fetching demo 2.0", "asking for the releases of demo"]
    with pytest.raises(PlanError, match=r"^demo 1\.2: "):
        port_to(patch, "2.0", base="1.2", offline=True)
    none = load_patch(str(porter.patch(requirement="demo>=1.2,<2")))
    with pytest.raises(SiteError, match="fits none of the releases") as caught:
        port_to(none, "2.0", offline=True)
    assert caught.value.code == "no-base"


def test_a_release_without_an_edit_is_none_to_start_from(porter: Porter) -> None:
    for version, text in {"1.1": MOVED, "2.0": MOVED}.items():
        porter.release(version, {"demo/core.py": text})
    patch = load_patch(str(porter.patch(EDIT + 'versions = "<1.1"\n')))
    assert port_to(patch, "2.0", offline=True).old_version == "1.0"


def test_a_wheel_in_between_that_cannot_be_read_is_passed_over(porter: Porter) -> None:
    for version in ("1.5", "2.0"):
        porter.release(version, {"demo/core.py": MOVED})
    wheel = porter.cache / "wheels/demo/1.5/demo-1.5-py3-none-any.whl"
    damage_member(wheel, "demo/core.py", "checksum")
    wheel.with_name(f"{wheel.name}.sha256").write_text(hashlib.sha256(wheel.read_bytes()).hexdigest())
    found = port_to(load_patch(str(porter.patch())), "2.0", base="1.0", offline=True)
    assert (found.state, found.parts[0].since) == ("ported", "2.0")
    ((version, reason),) = found.between
    assert version == "1.5"
    assert "cannot be read: demo/core.py: " in str(reason)


def test_a_site_that_is_named_judges_by_its_grammar(porter: Porter) -> None:
    """What this Python could read counts for nothing where the site's is older."""
    newer = EDIT.replace("self.work(job, size + 1)\n", "1\n        match size:\n            case _: pass\n")
    path = porter.patch(EDIT + 'versions = "<2"\n' + newer + 'versions = ">=2"\n', requirement="demo")
    porter.release("2.0", {"demo/core.py": OLD})
    assert porter().json["state"] == "fits"
    porter.bench.site = porter.bench.root / "lib" / "python3.9" / "site-packages"
    porter.bench.install("1.0")
    assert main(["port", str(path), "--to", "2.0", "--offline"]) == 0
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")
    assert "Pattern matching is only supported in Python 3.10" in run.json["problem"]


def test_the_command_that_writes_works_as_it_is_typed(bench: Bench, tmp_path: Path) -> None:
    bench.patches = tmp_path / "my patches"
    bench.patches.mkdir()
    porter = Porter(bench, tmp_path / "cache")
    porter.release("2.0", {"demo/core.py": MOVED})
    path = porter.patch()
    bench.sited = True
    run = bench("port", "fix", "--to", "2.0", "--from", "1.0", "--in-place", "--offline")
    (line,) = [line for line in run.out.splitlines() if line.endswith(" --write")]
    words = shlex.split(line)
    assert words[:5] == ["patchkit", "--site", str(bench.site), "--patches", str(bench.patches)]
    assert words[5:] == ["port", "fix", "--to", "2.0", "--from", "1.0", "--in-place", "--offline", "--write"]
    before = path.read_bytes()
    assert main(words[1:]) == 0
    assert path.read_bytes() != before


def test_folders_behind_the_command_are_named_as_well(bench: Bench, tmp_path: Path) -> None:
    porter = Porter(bench, tmp_path / "cache")
    porter.release("2.0", {"demo/core.py": MOVED})
    porter.patch()
    behind = tmp_path / "it's there"
    behind.mkdir()
    run = bench("port", "fix", "--to", "2.0", "--offline", "--patches", str(behind))
    (line,) = [line for line in run.out.splitlines() if line.endswith(" --write")]
    assert shlex.split(line)[1:5] == ["--patches", str(bench.patches), "--patches", str(behind)]


def test_an_edit_made_meanwhile_is_not_overwritten(porter: Porter, monkeypatch: pytest.MonkeyPatch) -> None:
    porter.release("2.0", {"demo/core.py": MOVED})
    path = porter.patch()

    def edited(*arguments: object, **options: object) -> object:
        found = port_to(*arguments, **options)  # type: ignore[arg-type]
        path.write_bytes(path.read_bytes() + b"# by hand\n")
        return found

    monkeypatch.setattr("patchkit.author.bases.port_to", edited)
    run = porter("--write")
    assert (run.status, run.error["code"]) == (5, "unwritable")
    assert "was changed meanwhile" in run.error["message"]
    assert path.read_bytes().endswith(b"\n# by hand\n")
    assert b'requirement = "demo>=1.0,<2"\n' in path.read_bytes()
