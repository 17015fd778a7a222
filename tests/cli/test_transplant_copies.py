"""``patchkit transplant``: copies of unusual packages, and updates in unusual states."""

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

CORE = "from ..shared import scale\n\n\ndef run(x):\n    return scale(x) + 1\n"
FILES: dict[str, str | bytes] = {
    "demo/__init__.py": "",
    "demo/shared.py": "def scale(x):\n    return 10 * x\n",
    "demo/part/__init__.py": "from .core import run\n",
    "demo/part/core.py": CORE,
    "demo/part/sub/table.bin": b"\0one\ntwo\n",
    "demo/part/tool.sh": "#!/bin/sh\necho ran\n",
}
RUN = "import my_part.activate, demo.part; print(demo.part.run(1))"


@pytest.fixture
def bench(make_bench: Callable[[dict[str, str | bytes]], Bench]) -> Bench:
    return make_bench(FILES)


def edit(path: str, old: str, new: str) -> None:
    text = Path(path).read_text()
    assert text.count(old) == 1
    Path(path).write_text(text.replace(old, new))


def python(bench: Bench, code: str) -> Any:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PATCHKIT")}
    env["PYTHONPATH"] = os.pathsep.join([str(bench.site), os.getcwd()])
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_copy_follows_when_its_own_edit_is_applied_to_the_site(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    edit("my_part/core.py", "+ 1", "+ 2")
    assert bench("transplant", "to-patch", "my_part", "--name", "mine").status == 0
    assert bench("apply", "mine").status == 0
    dry = bench.json("transplant", "update", "my_part", "--dry-run")
    assert (dry.json["moved"], dry.json["dry_run"]) == (["demo/part/core.py"], True)
    done = bench("transplant", "update", "my_part")
    assert (done.status, done.out) == (0, "my_part: carried over to what the site has of demo 1.0\n  kept core.py\n")
    assert python(bench, RUN) == "12"
    assert bench("transplant", "diff", "my_part").out == ""
    again = bench("transplant", "update", "my_part")
    assert again.out == "my_part: the site has what was copied, demo 1.0\n"
    assert bench("revert", "mine").status == 0
    back = bench("transplant", "update", "my_part")
    assert "mine was applied when the copy was made, and is not any more" in back.err
    assert "stays in its patch file" in " ".join(back.err.split())
    assert python(bench, RUN) == "11"


def test_what_is_no_text_gets_no_marks(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    Path("my_part/sub/table.bin").write_bytes(b"\0mine\ntwo\n")
    bench.install("1.1", {**FILES, "demo/part/sub/table.bin": b"\0theirs\ntwo\n"})
    done = bench.json("transplant", "update", "my_part")
    assert done.status == 1
    states = {file["path"]: (file["state"], file["lines"]) for file in done.json["files"]}
    assert states["sub/table.bin"] == ("conflict", [])
    assert Path("my_part/sub/table.bin").read_bytes() == b"\0mine\ntwo\n"
    assert Path("my_part/_transplant/base/sub/table.bin.orig").read_bytes() == b"\0theirs\ntwo\n"


@pytest.mark.skipif(os.name == "nt", reason="mode bits")
def test_what_could_be_executed_can_be(bench: Bench) -> None:
    (bench.site / "demo/part/tool.sh").chmod(0o755)
    bench("transplant", "demo.part", "my_part")
    assert subprocess.run([os.path.abspath("my_part/tool.sh")], capture_output=True, check=True).stdout == b"ran\n"
    assert not os.access("my_part/core.py", os.X_OK)
    Path("my_part/core.py").chmod(0o755)  # a person's own
    bench.install("1.1", {**FILES, "demo/part/core.py": f"{CORE}# more\n"})
    (bench.site / "demo/part/tool.sh").chmod(0o755)
    assert bench("transplant", "update", "my_part").status == 0
    assert os.access("my_part/tool.sh", os.X_OK)
    assert os.access("my_part/core.py", os.X_OK)


def test_a_copy_that_a_killed_update_had_moved_aside_is_put_back(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    edit("my_part/core.py", "+ 1", "+ 2")
    before = {str(path): path.read_bytes() for path in Path("my_part").rglob("*") if path.is_file()}
    for verb in (["diff", "my_part"], ["update", "my_part"], ["demo.part", "my_part"]):
        Path(".my_part-killed/new").mkdir(parents=True)
        Path("my_part").rename(".my_part-killed/old")
        done = bench("transplant", *verb)
        assert "an update that was interrupted has been taken back" in done.err
        assert {str(path): path.read_bytes() for path in Path("my_part").rglob("*") if path.is_file()} == before
        assert not Path(".my_part-killed").exists()


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_links(bench: Bench) -> None:
    (bench.site / "elsewhere").mkdir()
    (bench.site / "demo/part/linked").symlink_to(bench.site / "elsewhere")
    (bench.site / "demo/part/broken.txt").symlink_to("nowhere")
    (bench.site / "demo/part/old.pyc").write_bytes(b"")
    (bench.site / "demo/part/.kept").mkdir()
    made = bench.json("transplant", "demo.part", "my_part")
    assert {item["path"]: item["reason"] for item in made.json["left"]} == {
        "demo/part/.kept": "is a hidden folder",
        "demo/part/broken.txt": "is no file that can be read",
        "demo/part/linked": "is a link to a folder",
        "demo/part/old.pyc": "is bytecode without a source",
    }
    Path("real").mkdir()
    Path("my_part").rename("real/my_part")
    Path("my_part").symlink_to("real/my_part")
    bench.install("1.1", {**FILES, "demo/part/core.py": f"{CORE}# more\n"})
    assert bench("transplant", "update", "my_part").status == 0
    assert (Path("my_part").is_symlink(), "# more" in Path("real/my_part/core.py").read_text()) == (True, True)
    Path("real/my_part/sub").rename("outside")
    Path("real/my_part/sub").symlink_to(os.path.abspath("outside"))
    bench.install("1.2", {**FILES, "demo/part/sub/table.bin": b"\0new\n"})
    done = bench.json("transplant", "update", "my_part")
    assert (done.status, done.error["code"], done.error["path"]) == (5, "unwritable", "sub/table.bin")
    assert Path("outside/table.bin").read_bytes() == b"\0one\ntwo\n"


def test_compiled_modules_beside_are_named_in_full(bench: Bench) -> None:
    text = "import demo.part._fast\nimport demo.part.core\n\n\n"
    text += "def go():\n    return demo.part._fast.f(demo.part.core.run)\n"
    (bench.site / "demo/part/user.py").write_text(text)
    (bench.site / f"demo/part/_fast{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    assert bench("transplant", "demo.part", "my_part").status == 0
    assert Path("my_part/user.py").read_text() == (
        "import demo.part._fast\nimport demo.part.core, my_part.core\n\n\n"
        "def go():\n    return demo.part._fast.f(my_part.core.run)\n"
    )
    diff = bench("transplant", "diff", "my_part")
    assert diff.out == ""


def test_a_package_with_an_activate_of_its_own(bench: Bench) -> None:
    (bench.site / "demo/part/__init__.py").write_text("from .core import run\n\n\ndef activate():\n    return 'own'\n")
    made = bench.json("transplant", "demo.part", "my_part")
    assert made.json["activate"] == "my_part.activate_transplant"
    assert python(bench, "import my_part.activate_transplant; print(my_part.activate())") == "own"


def test_what_names_the_copy_and_stays_is_told(bench: Bench) -> None:
    bench("transplant", "demo.part", "my_part")
    Path("my_part/fresh.py").write_text('import my_part.core\nname = "my_part.core"\ntext = f"{my_part.core.run(1)}"\n')
    made = bench.json("transplant", "to-patch", "my_part", "--name", "mine")
    assert sorted(made.json["notes"]) == [
        "fresh.py: line 2 names my_part.core in a string, which stays",
        "fresh.py: line 3 uses my_part within an f-string, which stays",
    ]


def test_a_namespace_of_several_distributions_is_copied_in_parts(bench: Bench) -> None:
    make_dist(bench.site, "space-a", "1.0", {"space/a/__init__.py": "x = 1\n"})
    make_dist(bench.site, "space-b", "1.0", {"space/b/__init__.py": "y = 2\n"})
    refused = bench.json("transplant", "space", "my_space")
    assert (refused.status, refused.error["distributions"]) == (2, ["space-a", "space-b"])
    assert "space.a" in refused.error["hint"]
    assert bench("transplant", "space.b", "my_b").status == 0


def test_git_keeps_what_a_copy_was_made_of_byte_for_byte(bench: Bench) -> None:
    def git(*arguments: str) -> None:
        settings = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "protocol.file.allow=always"]
        subprocess.run(["git", *settings, *arguments], check=True, capture_output=True)

    (bench.site / "demo/part/core.py").write_bytes(CORE.replace("\n", "\r\n").encode())
    bench("transplant", "demo.part", "work/my_part")
    Path("work/.gitignore").write_text("*.orig\n")
    Path("work/.gitattributes").write_text("* text=auto\n")
    git("init", "-q", "work")
    git("-C", "work", "add", ".")
    git("-C", "work", "commit", "-q", "-m", "x")
    git("clone", "-q", "work", "clone")
    base = Path("clone/my_part/_transplant/base/core.py.orig")
    assert base.read_bytes() == CORE.replace("\n", "\r\n").encode()
    manifest = json.loads(Path("clone/my_part/transplant.json").read_text())
    assert {file["path"] for file in manifest["files"]} == {
        str(path.relative_to("clone/my_part/_transplant/base")).replace(os.sep, "/").removesuffix(".orig")
        for path in Path("clone/my_part/_transplant/base").rglob("*.orig")
    }
    assert bench("transplant", "diff", "clone/my_part").status == 0
