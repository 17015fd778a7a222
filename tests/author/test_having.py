"""``port`` to a release that has the change itself, and does not say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bench import Bench
from support.porting import EDIT, OLD, Porter

from patchkit.model.load import load_patch

DONE = OLD.replace("self.work(job, size)", "self.work(job, size + 1)")


@pytest.fixture
def porter(bench: Bench, tmp_path: Path) -> Porter:
    return Porter(bench, tmp_path / "cache")


def test_a_release_that_has_the_change_is_told_with_what_to_write(porter: Porter) -> None:
    path = porter.patch()
    porter.release("1.5", {"demo/core.py": DONE})
    porter.release("2.0", {"demo/core.py": "# new\n" + DONE})
    run = porter("--write")
    assert (run.status, run.json["state"], run.json["parts"]) == (0, "upstreamed", [])
    block = run.json["upstreamed"]
    path.write_text(path.read_text() + "\n" + block)
    (told,) = load_patch(str(path)).upstreamed
    assert (told.file, told.scope, told.versions) == ("demo/core.py", "Worker.run", ">=1.5")
    assert told.find == "        result = self.work(job, size + 1)\n"
    porter.bench.install("2.0", {"demo/core.py": "# new\n" + DONE})
    path.write_text(path.read_text().replace("demo>=1.0,<2", "demo>=1.0"))
    assert porter.bench.json("apply", "fix").json["patches"][0]["action"] == "upstreamed"
    again = porter().json
    assert (again["state"], again["upstreamed"]) == ("upstreamed", None)


def test_it_is_printed_in_few_lines(porter: Porter) -> None:
    porter.patch()
    porter.release("2.0", {"demo/core.py": DONE})
    out = porter.bench("port", "fix", "--to", "2.0", "--offline").out
    assert "has the change itself" in out
    assert "\n[[upstreamed]]\nfile     = " in out
    assert 'versions = ">=2.0"' in out
    assert len(out.splitlines()) < 16


@pytest.mark.parametrize(
    "text",
    [
        DONE.replace("def run(", "def go("),  # in another function
        DONE.replace("size + 1)", "size + 2)"),
    ],
)
def test_where_it_is_not_for_sure_a_person_decides(porter: Porter, text: str) -> None:
    porter.patch()
    porter.release("2.0", {"demo/core.py": text})
    assert porter().json["state"] != "upstreamed"


def test_a_line_that_stands_twice_is_told_with_those_around_it(porter: Porter) -> None:
    porter.patch()
    more = "        result = self.work(job, size + 1)\n        return result\n"
    porter.release("2.0", {"demo/core.py": DONE.replace("        return result\n", more)})
    block = porter().json["upstreamed"]
    assert "        size = len(job)\n        result = self.work(job, size + 1)\n        self.done += 1\n" in block


def test_a_change_of_which_only_a_part_is_there(porter: Porter) -> None:
    more = '\n[[edit]]\nfile = "demo/core.py"\nscope = "Worker.stop"\nfind = "self.done = 0"\n'
    porter.patch(EDIT + more + 'replace = "self.done = self.nothing_done_yet"\n')
    porter.release("2.0", {"demo/core.py": DONE})
    assert porter().json["state"] != "upstreamed"
    porter.release("2.0", {"demo/core.py": DONE.replace("self.done = 0", "self.done = self.nothing_done_yet")})
    assert porter().json["state"] == "upstreamed"


def test_new_text_that_says_too_little(porter: Porter) -> None:
    head = '[[edit]]\nfile = "demo/core.py"\nscope = "Worker.stop"\n'
    porter.patch(f"{head}find = '''\n        return None\n'''\nreplace = '''\n        pass\n'''\n")
    porter.release("2.0", {"demo/core.py": OLD.replace("return None", "pass")})
    assert porter().json["state"] == "decide"
