"""``patchkit transplant``: a copy is made, shown, carried over and made a patch, through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
from support.bench import Bench
from support.dists import make_dist

KERNEL = """\
from ..shared import scale
from demo.part.util import (  # both
    half,
    twice)


def run(x):
    return scale(twice(x))


def other(x):
    return half(x)


def last(x):
    return x
"""
FILES: dict[str, str | bytes] = {
    "demo/__init__.py": "",
    "demo/shared.py": "def scale(x):\n    return 10 * x\n",
    "demo/part/__init__.py": "from .kernel import run\n",
    "demo/part/kernel.py": KERNEL,
    "demo/part/util.py": "def twice(x):\n    return 2 * x\n\n\ndef half(x):\n    return x / 2\n",
    "demo/part/table.txt": "1 2 3\r\n",
    "demo/alone.py": "from .shared import scale\n\n\ndef go(x):\n    return scale(x) + 1\n",
}


@pytest.fixture
def bench(make_bench: Callable[[dict[str, str | bytes]], Bench]) -> Bench:
    return make_bench(FILES)


def edit(path: str, old: str, new: str) -> None:
    text = Path(path).read_bytes().decode()
    assert text.count(old) == 1
    Path(path).write_bytes(text.replace(old, new).encode())


def python(bench: Bench, code: str) -> Any:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PATCHKIT")}
    env["PYTHONPATH"] = os.pathsep.join([str(bench.site), os.getcwd()])
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- make


def test_the_copy_has_every_byte_but_the_imports_and_works(bench: Bench) -> None:
    done = bench("transplant", "demo.part", "my_part")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "copied my_part: demo.part of demo 1.0, as it is in the site",
        "4 files; 2 imports rewritten, every other byte the same",
        "in force with `import my_part.activate` before the first use,",
        f"or in every Python of `PYTHONPATH={os.getcwd()}/my_part/_transplant/startup python ...`",
    ]
    expected = KERNEL.replace("from ..shared", "from demo.shared").replace("demo.part.util", "my_part.util")
    assert Path("my_part/kernel.py").read_text() == expected
    assert Path("my_part/table.txt").read_bytes() == b"1 2 3\r\n"
    assert Path("my_part/__init__.py").read_bytes() == FILES["demo/part/__init__.py"].encode()  # type: ignore[union-attr]
    edit("my_part/util.py", "2 * x", "3 * x")
    assert python(bench, "import demo.part as p; print(p.run(1))") == "20"
    assert python(bench, "import my_part.activate, demo.part as p; print(p.run(1))") == "30"
    assert bench.pristine()


def test_a_single_module(bench: Bench) -> None:
    assert bench("transplant", "demo.alone", "mine").status == 0
    assert Path("mine/alone.py").read_text().startswith("from demo.shared import scale\n")
    edit("mine/alone.py", "+ 1", "+ 2")
    code = "import demo.alone as a, mine.activate; print(a.go(1))"
    assert python(bench, code) == "12"
    diff = bench("transplant", "diff", "mine")
    assert "--- a/demo/alone.py" in diff.out
    assert "import" not in "".join(line for line in diff.out.splitlines() if line[0] in "+-")


def test_the_manifest_names_versions_and_hashes(bench: Bench) -> None:
    import hashlib

    bench("transplant", "demo.part", "my_part")
    manifest = json.loads(Path("my_part/transplant.json").read_text())
    head = {key: manifest[key] for key in ("schema", "module", "copy", "distribution", "version", "bytes", "patches")}
    assert head == {
        "schema": 1,
        "module": "demo.part",
        "copy": "my_part",
        "distribution": "demo",
        "version": "1.0",
        "bytes": "current",
        "patches": [],
    }
    (kernel,) = [file for file in manifest["files"] if file["path"] == "kernel.py"]
    assert kernel == {
        "path": "kernel.py",
        "source": "demo/part/kernel.py",
        "module": "demo.part.kernel",
        "copy": "my_part.kernel",
        "source_sha256": hashlib.sha256(KERNEL.encode()).hexdigest(),
        "copy_sha256": hashlib.sha256(Path("my_part/kernel.py").read_bytes()).hexdigest(),
        "rewrites": 2,
    }


PATCH = '[[edit]]\nfile = "demo/part/util.py"\nfind = "2 * x"\nreplace = "4 * x"\n'


def test_patches_are_copied_and_named_or_left_out(bench: Bench) -> None:
    bench.patch("fourfold", PATCH)
    assert bench("apply", "fourfold").status == 0
    done = bench("transplant", "demo.part", "with_it")
    assert done.out.splitlines()[0].endswith("as it is in the site, with fourfold")
    assert "4 * x" in Path("with_it/util.py").read_text()
    found = bench.json("transplant", "demo.part", "without", "--pristine").json
    assert (found["bytes"], found["patches"]) == ("pristine", [])
    assert "2 * x" in Path("without/util.py").read_text()


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["demo.nowhere", "mine"], 3, "not-installed"),
        (["demo..part", "mine"], 2, "usage"),
        (["demo.part", "not-a-name"], 2, "usage"),
        (["demo.part", "json"], 2, "usage"),
        (["demo.part", "demo"], 2, "usage"),
        (["demo.part", "mine", "--as", "pkg.other"], 2, "usage"),
        (["demo.part", "full"], 2, "exists"),
        (["demo.part", "mine", "--name", "x"], 2, "usage"),
        (["diff", "mine"], 2, "not-a-transplant"),
        (["update", "mine"], 2, "not-a-transplant"),
        (["to-patch", "mine", "--name", "x"], 2, "not-a-transplant"),
        (["to-patch", "mine"], 2, "usage"),
    ],
)
def test_what_is_refused(bench: Bench, arguments: list[str], status: int, code: str) -> None:
    Path("full").mkdir()
    Path("full/file").write_text("")
    done = bench.json("transplant", *arguments)
    assert (done.status, done.error["code"]) == (status, code)
    assert done.error["hint"]
    assert sorted(os.listdir()) == ["full"]


def test_a_copy_within_a_package_of_ones_own(bench: Bench) -> None:
    Path("own").mkdir()
    Path("own/__init__.py").write_text("")
    assert bench("transplant", "demo.part", "own/rpa", "--as", "own.rpa").status == 0
    assert "from own.rpa.util import" in Path("own/rpa/kernel.py").read_text()
    edit("own/rpa/util.py", "2 * x", "3 * x")
    assert python(bench, "import own.rpa.activate, demo.part as p; print(p.run(1))") == "30"


def test_sources_that_no_import_takes_are_refused(bench: Bench) -> None:
    suffix = EXTENSION_SUFFIXES[0]
    (bench.site / f"demo/part/kernel{suffix}").write_bytes(b"")
    done = bench.json("transplant", "demo.part", "mine")
    assert (done.status, done.error["code"], done.error["path"]) == (5, "shadowed", "demo/part/kernel.py")
    assert bench("transplant", "demo.alone", "other").status == 0


# --- diff


def test_diff_shows_what_a_person_edited_and_nothing_else(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    done = bench("transplant", "diff", "my_part")
    assert (done.status, done.out, done.err) == (0, "", "nothing edited; the site has what was copied (demo 1.0)\n")
    edit("my_part/kernel.py", "return half(x)", "return half(x) + 1")
    Path("my_part/extra.py").write_text("from my_part.util import half\n")
    os.unlink("my_part/table.txt")
    done = bench("transplant", "diff", "my_part")
    assert done.status == 0
    assert done.out == (
        "--- a/demo/part/kernel.py\n+++ b/demo/part/kernel.py\n@@ -9,7 +9,7 @@\n \n \n def other(x):\n"
        "-    return half(x)\n+    return half(x) + 1\n \n \n def last(x):\n"
        "--- a/demo/part/table.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-1 2 3\r\n"
        "--- /dev/null\n+++ b/demo/part/extra.py\n@@ -0,0 +1 @@\n+from demo.part.util import half\n"
    )
    found = bench.json("transplant", "diff", "my_part").json
    assert [(file["path"], file["state"]) for file in found["files"]] == [
        ("kernel.py", "edited"),
        ("table.txt", "removed"),
        ("extra.py", "added"),
    ]
    assert found["diff"] == done.out


def test_diff_says_when_the_package_moved_on(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    bench.install("1.1", {**FILES, "demo/part/util.py": "def twice(x):\n    return x + x\n"})
    done = bench("transplant", "diff", "my_part")
    assert done.err == (
        "nothing edited; a copy of demo 1.0, and the site has demo 1.1 with another demo/part/util.py: "
        "`patchkit transplant update my_part`\n"
    )


# --- update


NEWER = {
    **FILES,
    "demo/part/kernel.py": KERNEL.replace("def last(x):\n    return x\n", "def last(x):\n    return -x\n"),
    "demo/part/util.py": str(FILES["demo/part/util.py"]).replace("2 * x", "x + x"),
    "demo/part/fresh.py": "from demo.part.util import half\n",
}
del NEWER["demo/part/table.txt"]


def test_update_carries_edits_over_to_the_release_that_is_installed(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    edit("my_part/kernel.py", "return half(x)", "return half(x) + 1")
    Path("my_part/notes.md").write_text("mine\n")
    Path("my_part/.hidden").write_text("mine\n")
    bench.install("1.1", NEWER)
    before = sorted(str(path) for path in Path("my_part").rglob("*"))
    dry = bench("transplant", "update", "my_part", "--dry-run")
    assert (dry.status, sorted(str(path) for path in Path("my_part").rglob("*"))) == (0, before)
    done = bench("transplant", "update", "my_part")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines() == [
        "my_part: demo 1.0 -> 1.1",
        "  added fresh.py",
        "  merged kernel.py",
        "  removed table.txt",
        "  updated util.py",
    ]
    kernel = Path("my_part/kernel.py").read_text()
    assert "return half(x) + 1" in kernel
    assert "return -x" in kernel
    assert Path("my_part/fresh.py").read_text() == "from my_part.util import half\n"
    assert not Path("my_part/table.txt").exists()
    assert (Path("my_part/notes.md").read_text(), Path("my_part/.hidden").read_text()) == ("mine\n", "mine\n")
    assert sorted(os.listdir()) == ["my_part"]
    assert python(bench, "import my_part.activate, demo.part.kernel as k; print(k.other(2), k.last(2))") == "2.0 -2"
    assert "1.1" in bench("transplant", "diff", "my_part").err
    assert bench("transplant", "update", "my_part").out == (
        "my_part: the site has what was copied, demo 1.1\n  kept kernel.py\n"
    )


def test_a_conflict_is_marked_and_refuses_the_next_step_until_it_is_decided(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    edit("my_part/util.py", "2 * x", "3 * x")
    edit("my_part/table.txt", "1 2 3", "1 2 4")
    bench.install("1.1", NEWER)
    done = bench.json("transplant", "update", "my_part")
    assert (done.status, done.json["ok"]) == (1, False)
    states = {file["path"]: (file["state"], file["lines"]) for file in done.json["files"]}
    assert states["util.py"] == ("conflict", [2])
    assert states["table.txt"] == ("conflict", [])  # upstream removed what was edited
    assert Path("my_part/table.txt").read_bytes() == b"1 2 4\r\n"
    assert Path("my_part/util.py").read_text().partition("\n\n")[0] == (
        "def twice(x):\n<<<<<<< yours\n    return 3 * x\n||||||| demo 1.0\n    return 2 * x\n=======\n"
        "    return x + x\n>>>>>>> demo 1.1"
    )
    for verb in (["update", "my_part"], ["to-patch", "my_part", "--name", "mine"]):
        again = bench.json("transplant", *verb)
        assert (again.status, again.error["code"]) == (4, "conflicts")
        assert again.error["files"] == ["util.py"]
    text = Path("my_part/util.py").read_text()
    Path("my_part/util.py").write_text("def twice(x):\n    return 3 * x\n" + text.split(">>>>>>> demo 1.1\n")[1])
    assert "+    return 3 * x" in bench("transplant", "diff", "my_part").out
    assert bench("transplant", "update", "my_part").status == 0


def test_update_writes_nothing_by_halves(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench("transplant", "demo.part", "my_part")
    edit("my_part/util.py", "2 * x", "3 * x")
    bench.install("1.1", NEWER)
    before = {str(path): path.read_bytes() for path in Path("my_part").rglob("*") if path.is_file()}
    real = os.rename

    def failing(source: str, target: str) -> None:
        if str(source).endswith("new"):
            raise OSError(28, "No space left on device", target)
        real(source, target)

    monkeypatch.setattr(os, "rename", failing)
    done = bench.json("transplant", "update", "my_part")
    assert (done.status, done.error["code"]) == (5, "unwritable")
    assert {str(path): path.read_bytes() for path in Path("my_part").rglob("*") if path.is_file()} == before
    assert sorted(os.listdir()) == ["my_part"]


def test_what_a_copy_was_made_of_is_believed_by_its_hash(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    edit("my_part/util.py", "2 * x", "3 * x")
    Path("my_part/_transplant/base/util.py.orig").write_text("x\n")
    done = bench.json("transplant", "diff", "my_part")
    assert (done.status, done.error["code"]) == (5, "corrupt")


@pytest.mark.parametrize("path", ["../../x.py", "/x.py", "a//b.py"])
def test_a_manifest_whose_paths_lead_out_is_refused(bench: Bench, path: str) -> None:
    bench("transplant", "demo.part", "my_part")
    manifest = json.loads(Path("my_part/transplant.json").read_text())
    manifest["files"][0]["path"] = path
    Path("my_part/transplant.json").write_text(json.dumps(manifest))
    assert bench.json("transplant", "update", "my_part").error["code"] == "not-a-transplant"


# --- to-patch


def test_to_patch_makes_the_same_change_in_the_site(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    edit("my_part/kernel.py", "    twice)", "    twice, twice as double)")
    edit("my_part/kernel.py", "return scale(twice(x))", "return scale(double(x)) + extra()")
    edit(
        "my_part/kernel.py",
        "from demo.shared import scale\n",
        "from demo.shared import scale\nfrom my_part.new import extra\n",
    )
    Path("my_part/new.py").write_text("from my_part.util import half\n\n\ndef extra():\n    return half(2)\n")
    copied = python(bench, "import my_part.activate, demo.part as p; print(p.run(1))")
    done = bench("transplant", "to-patch", "my_part", "--name", "mine")
    assert done.status == 0, done.err
    *_, after, then = done.out.splitlines()
    assert after.startswith("next: patchkit ")
    assert after.endswith(" apply mine")
    assert then.endswith(" transplant update my_part`")
    assert bench.pristine()
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/part/kernel.py").decode() == (
        KERNEL.replace("    twice)", "    twice, twice as double)")
        .replace("return scale(twice(x))", "return scale(double(x)) + extra()")
        .replace("import scale\n", "import scale\nfrom demo.part.new import extra\n")
    )
    assert bench.read("demo/part/new.py") == b"from demo.part.util import half\n\n\ndef extra():\n    return half(2)\n"
    assert python(bench, "import demo.part as p; print(p.run(1))") == copied == "21.0"


def test_to_patch_lies_on_top_of_what_was_copied(bench: Bench) -> None:
    bench.patch("fourfold", PATCH)
    bench("apply", "fourfold")
    bench("transplant", "demo.part", "my_part")
    edit("my_part/util.py", "4 * x", "8 * x")
    done = bench.json("transplant", "to-patch", "my_part", "--name", "mine", "--dry-run").json
    assert 'after = ["fourfold"]' in done["patch"]
    assert done["path"] is None
    assert bench("transplant", "to-patch", "my_part", "--name", "mine", "--summary", "Eight times").status == 0
    assert bench("apply", "mine").status == 0
    assert b"8 * x" in bench.read("demo/part/util.py")


def test_to_patch_of_another_release_says_to_update_first(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    edit("my_part/util.py", "2 * x", "3 * x")
    bench.install("1.1", NEWER)
    done = bench.json("transplant", "to-patch", "my_part", "--name", "mine")
    assert (done.status, done.error["code"]) == (4, "stale-copy")
    assert done.error["hint"] == "patchkit transplant update my_part"


def test_nothing_edited_is_no_patch(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    done = bench.json("transplant", "to-patch", "my_part", "--name", "mine")
    assert (done.status, done.error["code"]) == (4, "nothing-changed")


def test_line_breaks_encodings_and_what_does_not_parse(bench: Bench) -> None:
    files = {
        "odd/__init__.py": "",
        "odd/crlf.py": "from .sub import x\r\ny = 1\r\n",
        "odd/latin.py": "# coding: latin-1\nfrom odd.sub import x\ny = '\xe4'\n".encode("latin-1"),
        "odd/sub.py": "x = 1\n",
        "odd/broken.py": "from odd.sub import x\nprint 'two'\n",
    }
    make_dist(bench.site, "odd", "2.0", files)
    done = bench("transplant", "odd", "even")
    assert done.err == "broken.py: does not parse: its imports stay as they are\n"
    assert Path("even/crlf.py").read_bytes() == b"from .sub import x\r\ny = 1\r\n"
    assert Path("even/latin.py").read_bytes() == "# coding: latin-1\nfrom even.sub import x\ny = '\xe4'\n".encode(
        "latin-1"
    )
    assert Path("even/broken.py").read_bytes() == b"from odd.sub import x\nprint 'two'\n"
    assert bench("transplant", "diff", "even").out == ""


def test_to_patch_removes_what_is_gone_from_the_copy(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    os.unlink("my_part/table.txt")
    assert bench("transplant", "to-patch", "my_part", "--name", "mine").status == 0
    assert bench("apply", "mine").status == 0
    assert not (bench.site / "demo/part/table.txt").exists()
    assert bench("revert", "mine").status == 0
    assert bench.pristine()
