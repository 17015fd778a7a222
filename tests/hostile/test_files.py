"""Patch files, projects and sites made to harm: every one ends soon, with an error that names the place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hostile.bounds import bounded
from support.bench import Bench

EDIT = '[[edit]]\nfile = "demo/core.py"\n'
SWAP = f'{EDIT}find = "y = x + x"\nreplace = "y = 2 * x"\n'


def dots(count: int) -> str:
    return ".".join(["a"] * count)


#: Body of the patch file, and what the error says.
LARGE = {
    "too-large": ("# " + "x" * (8 << 20), "is larger than 8 MB"),
    "dotted-key": (f"{dots(1_000_000)} = 1", "a key of more than 16 dotted parts"),
    "dotted-header": (f"[{dots(1_000_000)}]", "a key of more than 16 dotted parts"),
    "quoted-dots": ("'a'" + ' . "b"' * 100_000 + " = 1", "a key of more than 16 dotted parts"),
    "arrays": ("x = " + "[" * 1_000_000, "nested too deeply"),
    "inline-tables": ("x = " + "{a=" * 100_000, "nested too deeply"),
    "keys": ("".join(f"k{i} = 1\n" for i in range(300_000)), 'unknown key "k0"'),
    "tables": ("[[edit]]\n" * 200_000, 'edit 1: required key "file" is missing'),
    "one-key": ("k" * 5_000_000 + " = 1", "unknown key"),
    "twice": ("a = 1\n" * 300_000, "a: is set twice, first on line 7"),
    "digits": ("x = " + "9" * 1_000_000, "an integer of more than 64 bits"),
    "hex": (f"{SWAP}count = 0x{'f' * 100_000}\n", "found an integer of more than 64 bits"),
    "versions": (f'{SWAP}versions = ">={",>=".join(map(str, range(100_000)))}"\n', "is longer than 1000 characters"),
    "items": (f"[[edit]]\nadd_import = [{'1,' * 500_000}]\n", "add_import: item 1: expected a string"),
    "pattern": (f'{EDIT}match = "{"x = 1; " * 100_000}"\nreplace = "y"\n', "longer than 100,000 characters"),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_large_patch_file_ends_with_an_error(bench: Bench, case: str) -> None:
    body, expected = LARGE[case]
    path = bench.patch("large", body)
    done = bounded("lint", str(path), cwd=bench.root)
    assert done.returncode == 1, (done.returncode, done.stderr[-500:])
    assert expected in done.stdout
    assert len(done.stdout) < 50_000
    assert "Traceback" not in done.stderr


def test_no_more_than_a_hundred_problems_are_told(bench: Bench) -> None:
    path = bench.patch("many", "".join(f"k{i} = 1\n" for i in range(500)))
    run = bench("--json", "apply", str(path))
    assert len(run.error["problems"]) == 100
    assert run.error["hint"] == "only the first 100 problems are shown; correct them and look again"


def test_an_anchor_of_a_million_lines(bench: Bench) -> None:
    lines = "x = 1\n" * 1_000_000
    path = bench.patch("lines", f"{EDIT}find = '''\n{lines}'''\nreplace = ''\n")
    assert bounded("lint", str(path), cwd=bench.root).returncode == 0
    done = bounded("--site", str(bench.site), "apply", str(path), cwd=bench.root)
    assert (done.returncode, "`find` matches nowhere" in done.stderr) == (4, True)


BOMBS = {
    "brackets": "x = " + "[" * 20_000 + "]" * 20_000,
    "minus": "x = " + "- " * 20_000 + "1",
    "lambda": "x = " + "lambda: " * 10_000 + "1",
    "attributes": "x = a" + ".b" * 40_000,
    "sum": "x = " + "a + " * 20_000 + "a",
    "elif": "if x: pass\n" + "elif x: pass\n" * 5_000,
    "indents": "".join(" " * i + "if x:\n" for i in range(200)) + " " * 200 + "pass\n",
    "f-string": "x = f'{a:" + "{a:" * 100 + "}" * 100 + "}'",
    "integer": "x = " + "9" * 50_000,
    "decorators": "@a\n" * 10_000 + "def f(): pass\n",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_parser_bomb_in_pattern_template_and_target(bench: Bench, bomb: str) -> None:
    text = json.dumps(BOMBS[bomb])
    patterns = bench.patch("pattern", f'{EDIT}match = {text}\nreplace = "y"\n')
    template = bench.patch("template", f'{EDIT}match = "y = x + x"\nreplace = {text}\n')
    site = ["--site", str(bench.site)]
    for path in (patterns, template):
        done = bounded(*site, "apply", str(path), "--dry-run", cwd=bench.root)
        assert done.returncode in (0, 2, 4), (done.returncode, done.stderr[-300:])
        assert len(done.stderr) < 20_000
    bench.install("1.0", {"demo/__init__.py": "", "demo/core.py": f"y = x + x\n{BOMBS[bomb]}\n"})
    for number, anchor in enumerate(("match", "find")):
        path = bench.patch(f"target-{number}", f'{EDIT}{anchor} = "y = x + x"\nreplace = "y = 2 * x"\n')
        done = bounded(*site, "apply", str(path), "--dry-run", cwd=bench.root)
        assert done.returncode in (0, 4), (done.returncode, done.stderr[-300:])


def test_a_pattern_whose_parts_stand_often_in_one_long_line(bench: Bench) -> None:
    """The explanation once searched with a regular expression that took time with the fifth power of the line."""
    line = "x = f(" + ", ".join("a" for _ in range(10_000)) + ")\nzz = 1\n"
    bench.install("1.0", {"demo/__init__.py": "", "demo/core.py": line})
    pattern = '"f($$$A, a, $$$B, a, $$$C, a, $$$D, zz)"'
    path = bench.patch("often", f'{EDIT}match = {pattern}\nreplace = "y"\n')
    done = bounded("--site", str(bench.site), "apply", str(path), cwd=bench.root)
    assert (done.returncode, "matches nowhere" in done.stderr) == (4, True)


@pytest.mark.parametrize("name", ["x.pth", "sitecustomize.py", "json.py", "json/__init__.py", "conftest.py"])
def test_nothing_is_added_that_runs_by_itself(bench: Bench, name: str) -> None:
    path = bench.patch("add", f'[[add]]\nfile = "{name}"\ncontent = "import os"\n')
    run = bench("apply", str(path))
    assert (run.status, "to add it to; its packages: demo" in run.err) == (4, True)
    assert not (bench.site / name).exists()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("demo/__pycache__/core.cpython-311.pyc", "is compiled code, or its place"),
        ("demo/core.cpython-311-x86_64-linux-gnu.so", "is compiled code"),
        ("demo/core.PYC", "is compiled code"),
        ("~/x.py", "begins with ~"),
        ("demo/\u200bcore.py", "invisible character"),
        ("demo/a\u202eb.py", "control character"),
        ("demo/../../bin/x", "leads out of the distribution"),
        (".PATCHKIT/ledger.json", "patchkit's own records"),
        ("demo-1.0.DIST-INFO/RECORD", "the installer's records"),
        ("demo\\..\\x.py", "backslash"),
        ("C:x.py", "drive letter"),
    ],
)
@pytest.mark.parametrize("table", ["edit", "add"])
def test_paths_that_no_patch_may_name(bench: Bench, name: str, reason: str, table: str) -> None:
    rest = 'content = ""' if table == "add" else 'find = "a"\nreplace = "b"'
    path = bench.patch("path", f"[[{table}]]\nfile = {json.dumps(name)}\n{rest}\n")
    run = bench("apply", str(path))
    assert run.status == 2
    assert f"path.toml:8: {table} 1: file: " in run.err
    assert reason in run.err


def test_lint_warns_of_code_that_cannot_be_seen(bench: Bench) -> None:
    """Trojan Source, CVE-2021-42574."""
    evil = 'access = "user\\u202e \\u2066# Check\\u2069 \\u2066"'
    path = bench.patch("trojan", f"{EDIT}find = \"y = x + x\"\nreplace = '''{evil}'''\n")
    path.write_text(path.read_text().replace("\\u202e", "\u202e").replace("\\u2066", "\u2066"), encoding="utf-8")
    run = bench("lint", str(path), "--strict")
    assert run.status == 1
    assert "replace: writes U+202E, which cannot be seen and may show code otherwise than it runs" in run.out
    added = bench.patch("added", '[[add]]\nfile = "demo/new.py"\ncontent = "x = 1  # \\u2066"\n')
    assert "content: writes U+2066" in bench("lint", str(added)).out


@pytest.mark.parametrize(
    ("char", "warned"),
    [
        ("\U000323b5", False),  # no character yet: a later Unicode may have it as a letter
        ("\u2065", True),  # none either, and reserved for one that is never shown
        ("\U000e0fff", True),
        ("\ufffe", True),
        ("\u200b", True),
    ],
)
def test_lint_knows_what_is_only_new_from_what_cannot_be_seen(bench: Bench, char: str, warned: bool) -> None:
    path = bench.patch("letter", f'{EDIT}find = "y = x + x"\nreplace = \'y = "{char}"\'\n')
    assert ("cannot be seen" in bench("lint", str(path)).out) is warned


def test_lint_leaves_the_joiners_of_a_language_to_its_texts(bench: Bench) -> None:
    """A catalogue of messages runs nowhere; Sinhala and Persian cannot be written without a joiner."""
    content = 'content = "msgstr \\u200d"\n'
    path = bench.patch("words", f'[[add]]\nfile = "demo/si.po"\n{content}[[add]]\nfile = "demo/si.py"\n{content}')
    assert bench("lint", str(path)).out.count("cannot be seen") == 1
    assert "add 2: content" in bench("lint", str(path)).out


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1", "cp037"])
def test_patch_files_in_another_encoding(bench: Bench, encoding: str) -> None:
    path = bench.patch("é".encode("ascii", "ignore").decode() or "enc", SWAP + "# é\n")
    path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    run = bench("lint", str(path))
    assert run.status == 1
    assert "UTF-8" in run.out or "not valid TOML" in run.out


def test_nothing_of_patch_project_or_site_is_executed(bench: Bench, tmp_path: Path) -> None:
    """`lint`, `list`, `show`, `apply`, `check` and `revert` with code at every place that Python would run it."""
    mark = tmp_path / "executed"
    code = f"open({str(mark)!r}, 'a').write('x')\n"
    bench.install("1.0", {"demo/__init__.py": code, "demo/core.py": code + "y = x + x\n"})
    for name in ("sitecustomize.py", "usercustomize.py", "conftest.py"):
        (bench.site / name).write_text(code)
        (bench.root / "work" / name).write_text(code)
    (bench.site / "evil.pth").write_text(f"import os; {code}")
    info = bench.site / "demo-1.0.dist-info"
    (info / "entry_points.txt").write_text("[patchkit.patches]\nevil = demo\n")
    bench.patch("swap", SWAP)
    for command in (["lint"], ["list"], ["show", "swap"], ["apply", "swap"], ["check"], ["diff"], ["revert", "swap"]):
        options = ["--site", str(bench.site), "--patches", str(bench.patches)]
        done = bounded(*options, *command, cwd=bench.root / "work")
        assert done.returncode == 0, (command, done.stderr)
    assert not mark.exists()


@pytest.mark.parametrize(("one", "other"), [("New", "new"), ("caf\u00e9", "cafe\u0301"), ("STRASSE", "stra\u00dfe")])
def test_added_files_that_many_disks_take_for_one(bench: Bench, one: str, other: str) -> None:
    adds = [f'[[add]]\nfile = "demo/{name}.py"\ncontent = "x = 1\\n"\n' for name in (one, other, f"{other}2")]
    path = bench.patch("alike", "".join(adds))
    run = bench("apply", str(path))
    assert (run.status, run.err.count("in case or in Unicode form alone")) == (2, 1)
    assert "differs from the file of add 1" in run.err
    path.write_text(path.read_text(encoding="utf-8").replace(adds[1], ""), encoding="utf-8")
    assert bench("apply", str(path)).status == 0


def test_too_little_memory_is_no_fault_of_patchkit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError

    path = bench.patch("swap", SWAP)
    monkeypatch.setattr("patchkit.ops.apply.plan_change", out_of_memory)
    run = bench.json("apply", str(path))
    assert (run.status, run.error["code"]) == (5, "no-memory")
    assert bench.pristine()
