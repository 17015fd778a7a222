"""``lint --fix``: what it writes, what it leaves, and that what the patch does stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.bench import Bench
from support.dists import keep_wheel

CORE = '''\
"""A module."""
import os

LIMIT = 1


def double(x):
    y = x + x
    return y


class Worker:
    def run(self, job):
        first = job
        result = double(job)
        third = result
        fourth = result
        return result

    def stop(self):
        result = None
        return result
'''
#: The last one fits nothing.
RELEASES = {"1.0": CORE, "1.1": CORE.replace("LIMIT = 1\n", "LIMIT = 2\n"), "1.2": "x = 1\n"}
#: Everything that can be fixed, among comments and layouts of all kinds.
BEFORE = """\
# Top.
schema  = 1
name    = "fix"
summary = 'S'  # the summary
description = "Why."
links = ["https://example.org/1"]

[target]
requirement = 'demo >= 1.0' # all of them
otherwise   = "nothing"

# 1. The worker.

[[edit]]
file    = "demo/core.py"   # where
find    = '''
        first = job
        result = double(job)
        third = result
        fourth = result
'''  # what
replace = \"\"\"
        first = job
        result = double(job, again=True)
        third = result
        fourth = result
\"\"\"

[[edit]]
file = "demo/core.py"
scope='Worker.run'
versions = "<2"
find='''
        first = job
        result = double(job)
        third = result
        fourth = result
'''
replace = '''
        first = job
        result = double(job, again=True)
        third = result
        fourth = result
'''

# 2. Imports.
[[edit]]
file       = "demo/core.py"
add_import = ["import re"]

[[edit]]
file       = ["demo/core.py"]
add_import = ["import re"]

[[precondition]]
file  = "demo/core.py"
scope = "double"
find  = "y = x + x"
count = 0

[[edit]]
file    = "demo/core.py"
scope   = "double"
find    = "y = x + x"
replace = "y = 2 * x"

# The end.
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    for version, text in RELEASES.items():
        keep_wheel(tmp_path / "cache", "demo", version, {"demo/core.py": text})
    return tmp_path / "cache"


def write(bench: Bench, text: str, newline: str = "\n") -> Path:
    path = bench.patches / "fix.toml"
    path.write_text(text, encoding="utf-8", newline=newline)
    return path


ONE = BEFORE.partition("\n[[edit]]\nfile = ")[0]
#: :data:`ONE` as it is written by hand when every finding is heeded.
ONE_FIXED = """\
# Top.
schema  = 1
name    = "fix"
summary = 'S'  # the summary
description = "Why."
links = ["https://example.org/1"]

[target]
requirement = "demo>=1.0,<1.2" # all of them
otherwise   = "nothing"

# 1. The worker.

[[edit]]
file    = "demo/core.py"   # where
scope   = "Worker.run"
find    = '''
        result = double(job)
'''  # what
replace = '''
        result = double(job, again=True)
'''
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_everything_else_stays_byte_for_byte(bench: Bench, cache: Path, newline: str) -> None:
    path = write(bench, ONE, newline)
    path.chmod(0o640)
    run = bench.json("lint", "fix", "--against", "all", "--offline", "--fix")
    assert run.status == 0, run.err
    assert path.read_bytes() == ONE_FIXED.replace("\n", newline).encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [(one["rule"], one["fixed"], one["reason"]) for one in run.json["fixes"]] == [
        ("requirement-wide", True, None),
        ("no-scope", True, None),
        ("anchor-long", True, None),
    ]
    assert run.json["findings"] == []
    assert os.listdir(bench.patches) == ["fix.toml"]


def test_a_second_time_finds_nothing_to_fix(bench: Bench, cache: Path) -> None:
    path = write(bench, ONE)
    arguments = ("lint", "fix", "--against", "all", "--offline", "--fix")
    bench(*arguments)
    once = path.read_bytes()
    run = bench.json(*arguments)
    assert (run.json["fixes"], run.json["diff"], path.read_bytes()) == ([], "", once)


def test_a_dry_run_shows_the_diff_and_leaves_the_file(bench: Bench, cache: Path) -> None:
    path = write(bench, ONE)
    run = bench.json("lint", "fix", "--against", "all", "--offline", "--fix", "--dry-run")
    assert path.read_text() == ONE
    assert [f["rule"] for f in run.json["findings"]] == ["requirement-wide", "no-scope"]
    assert (
        "-requirement = 'demo >= 1.0' # all of them\n+requirement = \"demo>=1.0,<1.2\" # all of them\n"
        in run.json["diff"]
    )
    bench("lint", "fix", "--against", "all", "--offline", "--fix")
    assert path.read_text() == ONE_FIXED


def test_without_releases_only_what_is_said_twice_goes(bench: Bench) -> None:
    body = BEFORE.replace("count = 0", "count = 1").replace("scope='Worker.run'\n", "")
    path = write(bench, body)
    run = bench.json("lint", "fix", "--fix")
    assert [(one["rule"], one["key"], one["fixed"]) for one in run.json["fixes"]] == [
        ("overlap", "edit 2: find", True),
        ("redundant", "edit 4: add_import", True),
        ("condition-repeats", "precondition 1: find", True),
    ]
    second, imports = body.index('[[edit]]\nfile = "demo/core.py"\nversions'), body.index("# 2. Imports.")
    fourth, fifth = body.index('[[edit]]\nfile       = ["demo'), body.rindex("[[edit]]")
    assert path.read_text() == body[:second] + body[imports:fourth] + body[fifth:]


def test_a_fix_that_would_do_something_else_is_not_made(bench: Bench, cache: Path) -> None:
    """By itself the edit does the same with a scope; beside the precondition that is another patch."""
    import patchkit.author.fixing as fixing
    from patchkit.author.published import opened_wheel
    from patchkit.model.load import load_patch
    from patchkit.ops.rules import Finding, Fix

    path = write(bench, ONE_FIXED)
    patch = load_patch(str(path))
    wheel = next((cache / "wheels/demo/1.0").glob("*.whl"))

    def wrong(patch: object) -> list[Finding]:
        other = loaded.edits[0]._replace(find="        third = result\n")
        return [Finding(str(path), 1, "anchor-long", "edit 1: find", "", Fix("edit", 1, other))]

    loaded = patch
    with opened_wheel(str(wheel), "demo", "1.0") as files:
        fixed = fixing.fix(patch, wrong, [files])
        assert (fixed.patch, fixed.done) == (patch, ())
        assert [why for _, why in fixed.refused] == ["on demo 1.0 the patch would do something else"]
    fixed = fixing.fix(patch, wrong, [])
    assert [why for _, why in fixed.refused] == ["there is no release to prove it on"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            'edit = [{ file = "demo/core.py", find = "third = result", replace = "third = 1" }]\n',
            "the file is not laid out so that it can be changed for sure",
        ),
        (
            "[[edit]]\nfile = 'demo/core.py'\n'find' = '''\n        result = double(job)\n        third = result\n'''\n"
            "scope = 'Worker.run'\nreplace = '''\n        result = double(job)\n        third = 1\n'''\n",
            "`find` is not written as a string of its own",
        ),
    ],
)
def test_what_is_laid_out_otherwise_is_left_to_a_person(bench: Bench, cache: Path, body: str, why: str) -> None:
    head, _, target = ONE.partition("[[edit]]")[0].partition("[target]")
    inline = body.startswith("edit")
    text = f"{head}{body if inline else ''}[target]{target}{'' if inline else body}"
    path = write(bench, text.replace("demo >= 1.0", "demo<1.2"))
    before = path.read_bytes()
    run = bench.json("lint", "fix", "--against", "all", "--offline", "--fix")
    assert [(one["fixed"], one["reason"]) for one in run.json["fixes"]] == [(False, why)]
    assert path.read_bytes() == before
    assert (
        f"not fixed: edit 1: find: {run.json['fixes'][0]['rule']}: {why}\n"
        in bench("lint", "fix", "--against", "all", "--offline", "--fix").out
    )


def test_a_fix_says_what_was_meant_and_nothing_else(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with how the text is changed, the file is read again and compared."""
    from patchkit.author.fixing import changed
    from patchkit.author.splice import PatchText
    from patchkit.errors import PatchFileError
    from patchkit.model.load import load_patch
    from patchkit.ops.rules import Fix

    patch = load_patch(str(write(bench, ONE_FIXED)))
    one = Fix("edit", 1, patch.edits[0]._replace(scope="Worker"))
    assert changed(patch, one).data == ONE_FIXED.replace('"Worker.run"', '"Worker"').encode()
    right = PatchText.set_string

    def wrong(self: PatchText, path: tuple[str | int, ...], value: str) -> None:
        right(self, path, value)
        right(self, ("target", "otherwise"), "something else")

    monkeypatch.setattr(PatchText, "set_string", wrong)
    with pytest.raises(PatchFileError, match="not laid out so that it can be changed for sure"):
        changed(patch, one)


def test_an_example_that_the_shorter_anchor_breaks_keeps_the_longer_one(bench: Bench, cache: Path) -> None:
    example = (
        "\n[[edit.example]]\nbefore = '''\n        first = job\n        result = double(job)\n        third = result\n"
    )
    example += "        fourth = result\n        result = double(job)\n'''\nafter = '''\n        first = job\n"
    example += "        result = double(job, again=True)\n        third = result\n        fourth = result\n"
    example += "        result = double(job)\n'''\n"
    write(bench, ONE.replace("demo >= 1.0", "demo<1.2") + example)
    run = bench.json("lint", "fix", "--against", "all", "--offline", "--fix")
    assert [(one["rule"], one["fixed"], one["reason"]) for one in run.json["fixes"]] == [
        ("no-scope", True, None),
        ("anchor-long", False, "the patch would not pass the rule example"),
    ]


def test_a_file_that_changed_meanwhile_is_not_written(bench: Bench) -> None:
    from patchkit.author.save import replace_file
    from patchkit.errors import SiteError

    path = write(bench, ONE)
    with pytest.raises(SiteError, match="was changed meanwhile"):
        replace_file(str(path), b"another", b"new")
    assert path.read_text() == ONE
    replace_file(str(path), ONE.encode(), b"new")
    assert path.read_text() == "new"


def test_a_link_stays_a_link(bench: Bench, cache: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.toml"
    real.write_text(ONE)
    (bench.patches / "fix.toml").symlink_to(real)
    bench("lint", "fix", "--against", "all", "--offline", "--fix")
    assert (bench.patches / "fix.toml").is_symlink()
    assert real.read_text() == ONE_FIXED


def test_shipped_patches_are_not_rewritten(bench: Bench) -> None:
    run = bench.json("lint", "logits-greedy", "--fix")
    assert (run.status, run.error["code"]) == (2, "usage")
    assert "belongs to patchkit" in run.error["message"]


def test_a_requirement_is_widened_where_all_releases_were_looked_at(bench: Bench, cache: Path) -> None:
    text = ONE_FIXED.replace('requirement = "demo>=1.0,<1.2"', 'requirement = "demo==1.0"').replace(
        'otherwise   = "nothing"\n', ""
    )
    path = write(bench, text)
    bench("lint", "fix", "--against", ">=1.0", "--offline", "--fix")
    assert path.read_text() == text
    bench("lint", "fix", "--against", "all", "--offline", "--fix")
    assert path.read_text() == text.replace("demo==1.0", "demo>=1.0,<1.2")
